#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Folders whose weights are quantized, with adapters that nxrun trained on them, opened by transformers, bitsandbytes and
PEFT: the loss of what is held out is nxrun's, and so is that of the model with its adapters merged (nxdata merge-adapter).

  pip install torch transformers peft bitsandbytes safetensors; check_quantized.py BUILD      (exit 1 on a difference)

The models are made up, in NF4 by bitsandbytes, with and without double quantization; of NVFP4, MXFP4 and e4m3 in tiles the
bytes are made here by the formats' definitions (record_lora.py), and are numbers again by them.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
import torch
import transformers
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, LlamaConfig, LlamaForCausalLM

import record_lora

HERE = pathlib.Path(__file__).parent / "recorded"
SEQUENCE, ROWS, BOUND = 32, 24, 2e-6
STORED = ("nf4_stored", "nf4_double_stored", "nvfp4_stored", "mxfp4_stored", "block_fp8_stored")


def run(*command, folder):
  done = subprocess.run([str(c) for c in command], capture_output=True, text=True, cwd=folder)
  if done.returncode: sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-800:]}{done.stderr[-1500:]}")
  return done.stdout


def make_nf4(folder, double):
  """A model of two layers as transformers saves one that bitsandbytes has quantized."""
  torch.manual_seed(double)
  config = LlamaConfig(vocab_size=250, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4,
                       num_key_value_heads=2, max_position_embeddings=SEQUENCE, initializer_range=0.2, bos_token_id=0, eos_token_id=0)
  LlamaForCausalLM(config).save_pretrained(folder / "plain")
  how = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=double, bnb_4bit_compute_dtype=torch.float32)
  AutoModelForCausalLM.from_pretrained(folder / "plain", quantization_config=how, dtype=torch.float32).save_pretrained(folder / "base")


def settings(base, kind, modules):
  return {"mesh": {"world": 1}, "batch": {"micro": 4, "global": 8}, "model": {"sequence": SEQUENCE},
          "optimizer": {"name": "adamw", "lr": 1e-2, "weight_decay": 0.0}, "schedule": {"name": "constant", "max_steps": 6},
          "precision": {"preset": "fp32"}, "lora": {"rank": 4, "alpha": 8, "base_type": kind, "modules": modules},
          "data": {"path": [str(HERE / "tokens")], "shuffle": False, "validation_path": [str(HERE / "tokens")]},
          "evaluate": {"batches": ROWS // 8, "every_steps": 6, "sanity_batches": 0},
          "run": {"name": "run", "init_from": str(base)}}


def loss_of(model):
  tokens = torch.from_numpy(numpy.fromfile(HERE / "tokens.bin", "<u2").astype(numpy.int64))
  rows = torch.stack([tokens[i * SEQUENCE:(i + 1) * SEQUENCE + 1] for i in range(ROWS)])
  with torch.no_grad(): logits = model(input_ids=rows[:, :-1], use_cache=False).logits.double()
  return torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten()).item()


def evaluated(folder, build, plan, directory):
  run(build / "nxrun", plan, "--evaluate", "--dir", directory, "--metrics", "evaluated.jsonl", folder=folder)
  rows = [json.loads(line) for line in (folder / "evaluated.jsonl").read_text().splitlines()]
  (folder / "evaluated.jsonl").unlink()
  return next(row["loss"] for row in rows if row.get("set") == "validation")


E2M1 = torch.tensor([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6])


def numbers_of(codes, stored, stem):
  """By which scales stand beside the codes: of tiles of 128 x 128, of blocks of 32 as powers of two, or of 16 and of all."""
  if f"{stem}weight_scale_inv" in stored:
    scales = stored[f"{stem}weight_scale_inv"].repeat_interleave(128, 0).repeat_interleave(128, 1)
    return codes.float() * scales[:codes.shape[0], :codes.shape[1]]
  numbers = E2M1[torch.stack([codes & 15, codes >> 4], -1).flatten(1).long()]
  scales = stored[f"{stem}weight_scale"]
  if scales.dtype == torch.uint8: return numbers * torch.exp2(scales.float() - 127).repeat_interleave(32, 1)
  return numbers * (scales.float() * stored[f"{stem}weight_scale_2"]).repeat_interleave(16, 1)


def from_bitsandbytes(base):
  """Its numbers as bitsandbytes gives them back: its products on a CPU are in bf16."""
  return AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32).dequantize()


def as_numbers(base):
  """The model of the folder with the numbers that its bytes are."""
  config = transformers.AutoConfig.from_pretrained(base)
  config.__dict__.pop("quantization_config", None)
  model, stored = LlamaForCausalLM(config), load_file(base / "model.safetensors")
  weights = {name: part for name, part in stored.items() if part.dtype == torch.float32 and "scale" not in name}
  for name, codes in stored.items():
    stem = name.removesuffix("_packed").removesuffix("weight")
    if name != stem and name not in weights: weights[f"{stem}weight"] = numbers_of(codes, stored, stem)
  missing, unexpected = model.load_state_dict(weights, strict=False)
  assert not unexpected and all("lm_head" in name and config.tie_word_embeddings for name in missing), (missing, unexpected)
  return model


def check(name, folder, base, kind, build, opened):
  modules = record_lora.DENSE
  config = folder / "plan.yaml"
  config.write_text(json.dumps(settings(base, kind, modules)))
  run(build / "nxcfg", "plan", "--dialect", "nx", config, "--model-config", base / "config.json", "-o", "plan.bin", folder=folder)
  run(build / "nxrun", "plan.bin", "--dir", "run", folder=folder)
  adapter = sorted((folder / "run" / "checkpoints").iterdir())[-1]
  ours = evaluated(folder, build, "plan.bin", "run")
  found = {"with adapters": loss_of(PeftModel.from_pretrained(opened(base).float(), adapter))}
  run(build / "nxdata", "merge-adapter", base, adapter, "-o", "merged", folder=folder)
  merged = AutoModelForCausalLM.from_pretrained(folder / "merged", dtype=torch.float32)
  found["merged"] = loss_of(merged)
  good = all(abs(loss / ours - 1) <= BOUND for loss in found.values())
  print(f"{'ok' if good else 'not ok'} - {name}: {ours:.9f}; " + ", ".join(f"{k} {abs(v / ours - 1):.1e}" for k, v in found.items()), flush=True)
  return good


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("build", type=lambda p: pathlib.Path(p).resolve())
  a = parser.parse_args()
  transformers.logging.set_verbosity_error()
  torch.set_num_threads(1)
  good = True
  for double in (False, True):
    with tempfile.TemporaryDirectory() as made:
      folder = pathlib.Path(made)
      make_nf4(folder, double)
      good &= check(f"nf4, {'double' if double else 'single'}", folder, folder / "base", "nf4", a.build,
                    from_bitsandbytes)
  for name in STORED:
    with tempfile.TemporaryDirectory() as made:
      folder = pathlib.Path(made)
      kind = name.removesuffix("_stored").removesuffix("_double")
      good &= check(name, folder, HERE / "lora" / name / "base", kind, a.build, from_bitsandbytes if kind == "nf4" else as_numbers)
  sys.exit(not good)


if __name__ == "__main__":
  main()
