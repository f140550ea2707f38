#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains adapters of PEFT beside transformers' models and records what nxrun must reproduce (README.md).

  record_lora.py [CASE...]               writes recorded/lora/CASE/
  record_lora.py --load BASE FOLDER...   PEFT loads what nxrun wrote, with no tensor too many or too few
"""
import argparse
import json
import re
import shutil
import sys

import numpy
import peft
import torch
import transformers
from safetensors.torch import load_file

from record import HERE, learning_rate
from record_families import (BETAS, CLIP, DECAY, EPSILON, LR, FAMILIES, SCHEDULE, STEPS, gradients_of_step, make_model)

OUT = HERE / "recorded" / "lora"
DENSE = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
# The family beside which adapters stand (record_families.py), and PEFT's configuration of them.
CASES = {
    "llama": ("llama", {"r": 4, "lora_alpha": 8, "target_modules": DENSE}),
    "llama_bias": ("llama_bias", {"r": 3, "lora_alpha": 16, "target_modules": ["q_proj", "v_proj"], "bias": "all",
                                  "use_rslora": True}),
    "qwen3": ("qwen3", {"r": 4, "lora_alpha": 4, "target_modules": ["self_attn.q_proj", "v_proj", "lm_head"]}),
    # Biases of keys have no gradient but rounding without rotation, so that those of c_attn are not trained.
    "gpt2": ("gpt2", {"r": 4, "lora_alpha": 8, "target_modules": ["c_attn", "mlp.c_proj"], "fan_in_fan_out": True}),
    "gpt2_bias": ("gpt2", {"r": 4, "lora_alpha": 8, "target_modules": ["c_fc", "attn.c_proj"], "bias": "lora_only",
                           "fan_in_fan_out": True}),
    "gpt_neox": ("gpt_neox", {"r": 2, "lora_alpha": 8, "target_modules": ["query_key_value", "dense_4h_to_h"],
                              "bias": "all"}),
    # Weights as NormalFloat of 4 bits has them: what bitsandbytes makes of them and back.
    "nf4": ("llama_wide", {"r": 4, "lora_alpha": 8, "target_modules": DENSE}),
    # And folders in which they are so already, as bitsandbytes saves them, with and without double quantization.
    "nf4_stored": ("llama_wide", {"r": 4, "lora_alpha": 8, "target_modules": DENSE}),
    "nf4_double_stored": ("llama_wide", {"r": 4, "lora_alpha": 8, "target_modules": DENSE}),
    # The same of NVFP4 as published; and a folder in which weights are so already, as ModelOpt writes it.
    "nvfp4": ("llama_wide", {"r": 4, "lora_alpha": 8, "target_modules": DENSE}),
    "nvfp4_stored": ("llama_wide", {"r": 4, "lora_alpha": 8, "target_modules": DENSE}),
    "phi3": ("phi3", {"r": 4, "lora_alpha": 8, "target_modules": ["qkv_proj", "gate_up_proj", "o_proj"]}),
    # The same of MXFP4, and a folder as compressed-tensors writes it; of e4m3 in tiles, as DeepSeek's folders have it.
    "mxfp4": ("llama_wide", {"r": 4, "lora_alpha": 8, "target_modules": DENSE}),
    "mxfp4_stored": ("llama_wide", {"r": 4, "lora_alpha": 8, "target_modules": DENSE}),
    "block_fp8": ("llama_tiles", {"r": 4, "lora_alpha": 8, "target_modules": DENSE}),
    "block_fp8_stored": ("llama_tiles", {"r": 4, "lora_alpha": 8, "target_modules": DENSE}),
}


# Rows are a whole number of blocks of 64.
FAMILIES["llama_wide"] = ("LlamaConfig", FAMILIES["llama"][1] | {"hidden_size": 64, "intermediate_size": 128,
                                                                  "num_hidden_layers": 1})
# The same of tiles of 128 x 128.
FAMILIES["llama_tiles"] = ("LlamaConfig", FAMILIES["llama"][1] | {
    "hidden_size": 128, "intermediate_size": 256, "num_key_value_heads": 4, "num_hidden_layers": 1,
    "tie_word_embeddings": True})


def quantize(model):
  import bitsandbytes.functional as bnb
  with torch.no_grad():
    for name, module in model.named_modules():
      if isinstance(module, torch.nn.Linear) and name != "lm_head":
        module.weight.copy_(bnb.dequantize_4bit(*bnb.quantize_4bit(module.weight.data, blocksize=64, quant_type="nf4",
                                                                   compress_statistics=False)))


def nvfp4(weight):
  """Codes, scales of blocks of 16 in e4m3, the scale of all, and what they stand for."""
  values = torch.tensor([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6])
  blocks, most = weight.reshape(weight.shape[0], -1, 16), weight.abs().max()
  largest = blocks.abs().amax(-1).clamp(min=1e-12)
  scales, scale = (largest / most * 448).to(torch.float8_e4m3fn), most * (1 / 6) / 448
  scaled = blocks * (6 / largest)[..., None]
  codes = torch.bucketize(scaled.abs(), torch.tensor([.25, .75, 1.25, 1.75, 2.5, 3.5, 5.0]), right=True)
  codes = (codes + 8 * (scaled < 0)).to(torch.uint8).reshape(weight.shape)
  means = (values[codes.long()].reshape(blocks.shape) * (scales.float() * scale)[..., None]).reshape(weight.shape)
  return codes[:, 0::2] | codes[:, 1::2] << 4, scales, scale, means


def mxfp4(weight):
  """Codes and scales of blocks of 32 in e8m0, as the format's definition has them, and what they stand for."""
  values = torch.tensor([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6])
  blocks = weight.reshape(weight.shape[0], -1, 32)
  exponents = torch.floor(torch.log2(blocks.abs().amax(-1).double())) - 2
  scaled = blocks / torch.exp2(exponents)[..., None].float()
  distance = (scaled.abs()[..., None] - values[:8]).abs()
  nearest = distance.argmin(-1)  # of two the first; the second where its code is even
  second = (nearest + 1).clamp(max=7)
  tie = (distance.gather(-1, nearest[..., None]) == distance.gather(-1, second[..., None]))[..., 0]
  codes = torch.where(tie & (nearest % 2 == 1), second, nearest) + 8 * torch.signbit(scaled)
  means = (values[codes] * torch.exp2(exponents)[..., None].float()).reshape(weight.shape)
  codes = codes.to(torch.uint8).reshape(weight.shape)
  return codes[:, 0::2] | codes[:, 1::2] << 4, (exponents + 127).to(torch.uint8), means


def block_fp8(weight):
  """Codes in e4m3, a scale for each 128 x 128, and what they stand for."""
  rows, columns = weight.shape
  tiles = weight.reshape(rows // 128, 128, columns // 128, 128)
  scales = (tiles.abs().amax((1, 3)) / 448).clamp(min=1e-12)
  codes = (tiles / scales[:, None, :, None]).clamp(-448, 448).to(torch.float8_e4m3fn)
  means = (codes.float() * scales[:, None, :, None]).reshape(weight.shape)
  return codes.reshape(weight.shape), scales, means


def stored_nvfp4(weight):
  codes, scales, scale, means = nvfp4(weight)
  return {"weight": codes, "weight_scale": scales, "weight_scale_2": scale.reshape(()),
          "input_scale": torch.tensor(1.0)}, means


def stored_mxfp4(weight):
  codes, scales, means = mxfp4(weight)
  return {"weight_packed": codes, "weight_scale": scales}, means


def stored_block_fp8(weight):
  codes, scales, means = block_fp8(weight)
  return {"weight": codes, "weight_scale_inv": scales}, means


def stored_nf4(weight, nested):
  """As bitsandbytes saves it, with scales that are quantized once more (double quantization) or are not."""
  import bitsandbytes.functional as bnb
  codes, state = bnb.quantize_4bit(weight.contiguous(), blocksize=64, quant_type="nf4", compress_statistics=nested)
  parts = {"weight": codes} | {f"weight.{name}": part for name, part in state.as_dict(packed=True).items()}
  return parts, bnb.dequantize_4bit(codes, state)


FORMATS = {"nf4": lambda weight: stored_nf4(weight, False), "nf4_double": lambda weight: stored_nf4(weight, True),
           "nvfp4": stored_nvfp4, "mxfp4": stored_mxfp4, "block_fp8": stored_block_fp8}


def quantize_as(model, kind, folder):
  """Weights become what the format makes of them; a folder gets them as files of that format name them."""
  from safetensors.torch import save_file
  stored = {}
  with torch.no_grad():
    for name, weight in model.named_parameters():
      if weight.dim() != 2 or "layers" not in name:
        stored[name] = weight.detach().clone()
        continue
      parts, means = FORMATS[kind](weight.detach())
      stem = name.removesuffix("weight")
      stored |= {stem + ending: part.contiguous() for ending, part in parts.items()}
      weight.copy_(means)
  if folder is not None:
    folder.mkdir(parents=True)
    save_file(stored, folder / "model.safetensors")
    model.config.save_pretrained(folder)
    if kind.startswith("nf4"):
      describe_nf4(folder / "config.json", kind == "nf4_double")


def describe_nf4(path, nested):
  config = json.loads(path.read_text())
  config["quantization_config"] = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4",
                                   "bnb_4bit_use_double_quant": nested}
  path.write_text(json.dumps(config, indent=2) + "\n")


def record_blocks():
  """What bitsandbytes makes of numbers: near every border between two codes, and of every size. Of a block of zeros its
  backends have different codes, which all stand for 0."""
  import bitsandbytes.functional as bnb
  torch.manual_seed(4)
  values = bnb.get_4bit_type("nf4", device="cpu")
  borders = (values[1:] + values[:-1]) / 2
  near = torch.cat([borders, torch.nextafter(borders, torch.tensor(2.0)), torch.nextafter(borders, torch.tensor(-2.0))])
  x = torch.cat([near, torch.ones(19), 1e-20 * torch.randn(64), 3e4 * torch.randn(64), torch.randn(320)])
  codes, state = bnb.quantize_4bit(x, blocksize=64, quant_type="nf4", compress_statistics=False)
  record = {"x": x.tolist(), "codes": codes.flatten().tolist(), "absmax": state.absmax.tolist(),
            "y": bnb.dequantize_4bit(codes, state).flatten().tolist()}
  (OUT / "nf4" / "blocks.json").write_text(json.dumps(record) + "\n")


def record_nested():
  """Scales as bitsandbytes quantizes them once more, with the mean in float64. Its CPU library looks numbers up in a
  coarser table and takes the second nearest for one in 500: the first seed of which it takes the nearest is recorded."""
  import bitsandbytes.functional as bnb
  for seed in range(100):
    torch.manual_seed(seed)
    scales = 0.05 * torch.randn(600).abs() + 0.01
    offset = scales.double().mean().float()
    codes, state = bnb.quantize_blockwise(scales - offset, blocksize=256)
    most = state.absmax.repeat_interleave(256)[:len(scales)]
    nearest = torch.bucketize((scales - offset) / most, (state.code[1:] + state.code[:-1]) / 2).to(torch.uint8)
    if torch.equal(codes, nearest):
      break
  record = {"map": state.code.tolist(), "x": scales.tolist(),
            "y": (bnb.dequantize_blockwise(codes, state) + offset).tolist()}
  (OUT / "nf4" / "nested.json").write_text(json.dumps(record) + "\n")


def round_weights(model):
  """To what a folder in bf16 holds."""
  with torch.no_grad():
    for weight in model.parameters():
      weight.copy_(weight.bfloat16())


def make_adapted(case):
  """Second matrices are not 0, so that the first step moves everything."""
  family, settings = CASES[case]
  model = make_model(family)
  if case == "nf4":
    quantize(model)
  kind = case.removesuffix("_stored")
  if kind == "block_fp8":
    round_weights(model)
  if kind in FORMATS and case != "nf4":
    base = OUT / case / "base"
    quantize_as(model, kind, base if case != kind and not base.exists() else None)
  torch.manual_seed(len(case))
  adapted = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **settings), autocast_adapter_dtype=False)
  with torch.no_grad():
    for name, tensor in adapted.named_parameters():
      if "lora_B" in name:
        tensor += 0.05 * torch.randn_like(tensor)
  return adapted.train()


def train(model, tokens, master_type):
  masters = {name: w.detach().to(master_type).clone().requires_grad_()
             for name, w in model.named_parameters() if w.requires_grad}
  groups = [{"params": [w for w in masters.values() if (w.dim() > 1) == decays], "weight_decay": DECAY * decays}
            for decays in (True, False)]
  optimizer = torch.optim.AdamW([g for g in groups if g["params"]], lr=LR, betas=BETAS, eps=EPSILON, foreach=False)
  steps = []
  for i in range(STEPS):
    loss, gradients = gradients_of_step(model, masters, tokens, i)
    norm = sum(g.double().pow(2).sum().item() for g in gradients.values()) ** 0.5
    for name, w in masters.items():
      w.grad = gradients[name] * min(1.0, CLIP / (norm + 1e-6))
    rate = learning_rate(SCHEDULE, LR, i)
    for group in optimizer.param_groups:
      group["lr"] = rate
    optimizer.step()
    with torch.no_grad():
      for name, tensor in model.named_parameters():
        if name in masters:
          tensor.copy_(masters[name])
    steps.append({"loss": loss, "grad_norm": norm, "lr": rate})
  return steps


def save(model, folder):
  model.save_pretrained(folder, save_embedding_layers=False)
  (folder / "README.md").unlink(missing_ok=True)


def record_case(case, tokens):
  folder = OUT / case
  shutil.rmtree(folder, ignore_errors=True)
  model = make_adapted(case)
  save(model, folder)
  if case == "nf4":
    make_model("llama_wide").save_pretrained(folder / "base")
    (folder / "base" / "generation_config.json").unlink(missing_ok=True)
    record_blocks()
    record_nested()
  if case == "block_fp8":
    make_model("llama_tiles").bfloat16().save_pretrained(folder / "base")
    (folder / "base" / "generation_config.json").unlink(missing_ok=True)
  fp32 = train(model, tokens, torch.float32)
  save(model, folder / "last")
  bf16 = train(make_adapted(case).to(torch.bfloat16), tokens, torch.float32)
  exact = train(make_adapted(case).double(), tokens, torch.float64)
  record = {"family": CASES[case][0], "torch": torch.__version__.split("+")[0],
            "transformers": transformers.__version__, "peft": peft.__version__, "fp32": fp32, "bf16": bf16,
            "fp64": exact}
  (folder / "record.json").write_text(json.dumps(record, indent=1) + "\n")
  worst = {kind: max(abs(s["loss"] / e["loss"] - 1) for s, e in zip(run, exact))
           for kind, run in (("fp32", fp32), ("bf16", bf16))}
  print(f"{case:16} loss {fp32[0]['loss']:.4f} -> {fp32[-1]['loss']:.4f}, "
        f"from float64: fp32 {worst['fp32']:.1e}, bf16 {worst['bf16']:.1e}")


# ---- experts: transformers keeps their matrices as one tensor, beside which PEFT puts no adapters ----

def expert_factors(model, rank, shared):
  """Both matrices beside each expert's gate, up and down projection, and beside q_proj, by PEFT's names. shared: experts
  have those in common that meet hidden features, as xorl names them."""
  torch.manual_seed(11)
  factors, prefix = {}, "base_model.model."

  def add(module, n_out, n_in):
    factors[f"{prefix}{module}.lora_A.weight"] = (torch.rand(rank, n_in) * 2 - 1) / n_in ** 0.5
    factors[f"{prefix}{module}.lora_B.weight"] = 0.05 * torch.randn(n_out, rank)

  for name, weight in model.named_parameters():
    module = name.rpartition(".")[0]
    if name.endswith("q_proj.weight"):
      add(module, *weight.shape)
    if name.endswith("experts.gate_up_proj"):
      for expert in range(weight.shape[0]):
        for projection in ("gate_proj", "up_proj"):
          add(f"{module}.{expert}.{projection}", weight.shape[1] // 2, weight.shape[2])
    if name.endswith("experts.down_proj"):
      for expert in range(weight.shape[0]):
        add(f"{module}.{expert}.down_proj", weight.shape[1], weight.shape[2])
  return share(factors) if shared else factors


def factor_name(module, side, names):
  """The factor's name: its module's own, or the one that all experts have."""
  own = f"base_model.model.{module}.lora_{side}.weight"
  return own if own in names else re.sub(r"experts\.\d+\.", "experts.shared.", own)


def share(factors):
  both = {}
  for name, factor in factors.items():
    meets_hidden = ".experts." in name and ("lora_B" if "down_proj" in name else "lora_A") in name
    if not meets_hidden or ".experts.0." in name:
      both[re.sub(r"experts\.\d+\.", "experts.shared.", name) if meets_hidden else name] = factor
  return both


def merged(model, factors, scale):
  """The model's parameters with what the factors add, as a function of them."""
  def delta(module):
    return scale * (factors[factor_name(module, "B", factors)] @ factors[factor_name(module, "A", factors)])

  weights = {}
  for name, weight in model.named_parameters():
    module = name.rpartition(".")[0]
    if name.endswith("q_proj.weight"):
      weights[name] = weight.detach() + delta(module)
    if name.endswith("experts.gate_up_proj"):
      weights[name] = weight.detach() + torch.stack([
          torch.cat([delta(f"{module}.{e}.gate_proj"), delta(f"{module}.{e}.up_proj")]) for e in range(weight.shape[0])])
    if name.endswith("experts.down_proj"):
      weights[name] = weight.detach() + torch.stack([delta(f"{module}.{e}.down_proj") for e in range(weight.shape[0])])
  return weights


class Merged(torch.nn.Module):
  """What gradients_of_step trains: the factors are its parameters."""

  def __init__(self, model, factors, scale):
    super().__init__()
    self.base, self.names, self.scale = [model], list(factors), scale
    self.factors = torch.nn.ParameterList([torch.nn.Parameter(f) for f in factors.values()])

  def by_name(self):
    return dict(zip(self.names, self.factors))

  def forward(self, **arguments):
    weights = merged(self.base[0], self.by_name(), self.scale)
    return torch.func.functional_call(self.base[0], weights, kwargs=arguments)


def record_experts(tokens, case):
  from safetensors.torch import save_file
  folder, rank, alpha = OUT / case, 3, 6
  shutil.rmtree(folder, ignore_errors=True)
  (folder / "last").mkdir(parents=True)
  record = {"family": "qwen3_moe", "torch": torch.__version__.split("+")[0], "transformers": transformers.__version__}
  for kind, dtype in (("fp64", torch.float64), ("fp32", torch.float32)):
    base = make_model("qwen3_moe").to(dtype)
    factors = {name: f.to(dtype) for name, f in expert_factors(base, rank, case == "experts_shared").items()}
    if kind == "fp32":
      save_file(factors, folder / "adapter_model.safetensors")
    model = Merged(base, {name: f.clone() for name, f in factors.items()}, alpha / rank)
    record[kind] = train(model, tokens, dtype)
  save_file({name: f.detach().clone() for name, f in model.by_name().items()}, folder / "last" / "adapter_model.safetensors")
  (folder / "adapter_config.json").write_text(json.dumps({
      "peft_type": "LORA", "task_type": "CAUSAL_LM", "r": rank, "lora_alpha": alpha, "bias": "none", "use_rslora": False,
      "fan_in_fan_out": False, "target_modules": ["q_proj", "gate_proj", "up_proj", "down_proj"]}, indent=1) + "\n")
  (folder / "record.json").write_text(json.dumps(record, indent=1) + "\n")
  worst = max(abs(s["loss"] / e["loss"] - 1) for s, e in zip(record["fp32"], record["fp64"]))
  print(f"{case:16} loss {record['fp32'][0]['loss']:.4f} -> {record['fp32'][-1]['loss']:.4f}, "
        f"from float64: fp32 {worst:.1e}")


def load(base, folder):
  """PEFT reads every tensor of the folder and finds its own modules there: what it holds afterwards is the file."""
  model = peft.PeftModel.from_pretrained(transformers.AutoModelForCausalLM.from_pretrained(base), folder)
  held, file = peft.get_peft_model_state_dict(model, save_embedding_layers=False), load_file(f"{folder}/adapter_model.safetensors")
  good = held.keys() == file.keys() and all(torch.equal(held[name].float(), file[name].float()) for name in file)
  print(f"{folder}: {len(file)} tensors,", "whole" if good else sorted(held.keys() ^ file.keys()) or "other numbers")
  return good


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--load", nargs="+", metavar="FOLDER")
  parser.add_argument("cases", nargs="*", metavar="CASE")
  arguments = parser.parse_args()
  if arguments.load:
    sys.exit(0 if all([load(arguments.load[0], folder) for folder in arguments.load[1:]]) else 1)
  torch.set_num_threads(1)
  torch.use_deterministic_algorithms(True)
  torch.set_flush_denormal(True)
  tokens = torch.from_numpy(numpy.fromfile(HERE / "recorded" / "tokens.bin", "<u2").astype(numpy.int64))
  for case in arguments.cases or [*CASES, "experts", "experts_shared"]:
    if case.startswith("experts"):
      record_experts(tokens, case)
    else:
      record_case(case, tokens)


if __name__ == "__main__":
  main()
