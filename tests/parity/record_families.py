#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a tiny model of each family with transformers' own code and records what nxrun must reproduce (README.md).

  record_families.py [FAMILY...]           writes recorded/families/FAMILY/
  record_families.py --load FOLDER...      transformers loads what nxrun wrote, with no tensor too many or too few
"""
import argparse
import json
import pathlib
import sys

import numpy
import torch
import transformers

from record import GLOBAL_BATCH, HERE, MICRO_BATCH, SEQUENCE, VOCAB, learning_rate, micro_batches

STEPS, LR, CLIP, DECAY, BETAS, EPSILON = 20, 1e-3, 1.0, 0.1, (0.9, 0.95), 1e-8
SCHEDULE = {"name": "CosineAnnealing", "warmup_steps": 4, "max_steps": STEPS, "min_lr": 1e-4, "constant_steps": 0}
OUT = HERE / "recorded" / "families"

COMMON = {"vocab_size": VOCAB, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
          "max_position_embeddings": SEQUENCE, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None}
GATED = COMMON | {"intermediate_size": 48, "num_key_value_heads": 2}
MIXTURE = GATED | {"moe_intermediate_size": 24, "num_experts": 4, "num_experts_per_tok": 2}
ROPE = {"linear": {"rope_type": "linear", "factor": 2.0},
        "dynamic": {"rope_type": "dynamic", "factor": 2.0},
        "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8},
        "llama3": {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                   "original_max_position_embeddings": 16}}
LATENT = COMMON | {"intermediate_size": 48, "moe_intermediate_size": 24, "n_routed_experts": 8,
                   "num_experts_per_tok": 3, "n_shared_experts": 1, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4,
                   "v_head_dim": 6, "num_key_value_heads": 4}
BLOOM = {"vocab_size": VOCAB, "hidden_size": 36, "n_layer": 2, "n_head": 6, "bos_token_id": 0, "eos_token_id": 0}
# Of each family: its class of configuration in transformers, and sizes that leave nothing at a special value.
FAMILIES = {
    "llama": ("LlamaConfig", GATED),
    "llama_bias": ("LlamaConfig", GATED | {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}),
    "llama_gelu": ("LlamaConfig", GATED | {"hidden_act": "gelu_pytorch_tanh"}),
    **{f"llama_{name}": ("LlamaConfig", GATED | {"rope_parameters": {"rope_theta": 500.0} | scaling})
       for name, scaling in ROPE.items()},
    "mistral": ("MistralConfig", GATED | {"sliding_window": 8, "head_dim": 16}),
    "mixtral": ("MixtralConfig", GATED | {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": None}),
    "qwen2": ("Qwen2Config", GATED | {"tie_word_embeddings": True}),
    "qwen3": ("Qwen3Config", GATED | {"head_dim": 16}),
    "qwen3_moe": ("Qwen3MoeConfig", MIXTURE | {"head_dim": 8, "norm_topk_prob": True}),
    "qwen2_moe": ("Qwen2MoeConfig", MIXTURE | {"shared_expert_intermediate_size": 40, "num_experts_per_tok": 2,
                                               "norm_topk_prob": False}),
    "gemma": ("GemmaConfig", GATED | {"head_dim": 16}),
    "gemma2": ("Gemma2Config", GATED | {"head_dim": 16, "sliding_window": 8, "query_pre_attn_scalar": 24,
                                        "attn_logit_softcapping": 5.0, "final_logit_softcapping": 3.0}),
    "deepseek": ("LlamaConfig", GATED | {
        "moe_intermediate_size": 24, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 2,
        "first_k_dense_replace": 1, "norm_topk_prob": False}),
    "deepseek_v2": ("DeepseekV2Config", LATENT | {
        "q_lora_rank": None, "first_k_dense_replace": 1, "n_shared_experts": 2, "routed_scaling_factor": 1.5}),
    "deepseek_v2_groups": ("DeepseekV2Config", LATENT | {
        "q_lora_rank": 12, "n_group": 4, "topk_group": 2, "topk_method": "group_limited_greedy",
        "attention_bias": True,
        "rope_parameters": ROPE["yarn"] | {"rope_theta": 500.0, "mscale": 0.7, "mscale_all_dim": 0.5}}),
    "deepseek_v3": ("DeepseekV3Config", LATENT | {
        "q_lora_rank": 12, "n_group": 2, "topk_group": 1, "norm_topk_prob": True, "first_k_dense_replace": 1,
        "num_mtp_layers": 0}),
    "deepseek_v3_yarn": ("DeepseekV3Config", LATENT | {
        "q_lora_rank": None, "n_group": 1, "topk_group": 1, "norm_topk_prob": False,
        "first_k_dense_replace": 0,
        "num_mtp_layers": 0, "rope_interleave": False, "rms_norm_eps": 1e-3,
        "rope_parameters": ROPE["yarn"] | {"rope_theta": 500.0, "mscale": 1.0, "mscale_all_dim": 1.0}}),
    "deepseek_v3_balanced": ("DeepseekV3Config", LATENT | {"q_lora_rank": 12, "n_group": 1, "topk_group": 1,
                                                           "first_k_dense_replace": 1, "num_mtp_layers": 0}),
    "glm4_moe": ("Glm4MoeConfig", MIXTURE | {
        "head_dim": 16, "n_routed_experts": 4, "num_experts": None, "n_group": 1, "topk_group": 1,
        "first_k_dense_replace": 1, "use_qk_norm": True, "attention_bias": True}),
    "gpt_oss": ("GptOssConfig", GATED | {
        "num_local_experts": 4, "num_experts_per_tok": 2, "head_dim": 16, "sliding_window": 8, "swiglu_limit": 0.6,
        "rope_parameters": ROPE["yarn"] | {"rope_theta": 500.0, "truncate": False}}),
    "phi3": ("Phi3Config", GATED | {"sliding_window": None}),
    **{f"phi3_{name}": ("Phi3Config", GATED | {
        "sliding_window": None, "max_position_embeddings": most, "original_max_position_embeddings": original,
        "rope_parameters": {"rope_type": "longrope", "rope_theta": 500.0, "short_factor": [1.0, 1.1, 1.3, 2.0],
                            "long_factor": [1.0, 1.5, 3.0, 5.0], "original_max_position_embeddings": original}})
       for name, most, original in (("long", SEQUENCE, SEQUENCE // 2), ("short", 8 * SEQUENCE, 2 * SEQUENCE))},
    "olmo": ("OlmoConfig", GATED),
    "olmo_clipped": ("OlmoConfig", GATED | {"clip_qkv": 0.8, "num_key_value_heads": 4}),
    "olmo2": ("Olmo2Config", GATED),
    "seed_oss": ("SeedOssConfig", GATED | {"head_dim": 16, "attention_bias": True, "attention_out_bias": False,
                                           "attention_dropout": 0.0, "residual_dropout": 0.0}),
    "ernie4_5": ("Ernie4_5Config", GATED | {"head_dim": 16, "use_bias": True, "tie_word_embeddings": True}),
    "glm4": ("Glm4Config", GATED | {"head_dim": 16}),
    "olmoe": ("OlmoeConfig", GATED | {"num_experts": 4, "num_experts_per_tok": 2}),
    "olmoe_clipped": ("OlmoeConfig", GATED | {"num_experts": 4, "num_experts_per_tok": 2, "clip_qkv": 2.0}),
    "gpt2": ("GPT2Config", {"vocab_size": VOCAB, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": SEQUENCE,
                            "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "bos_token_id": 0,
                            "eos_token_id": 0}),
    "bloom": ("BloomConfig", BLOOM),
    "bloom_post": ("BloomConfig", BLOOM | {"apply_residual_connection_post_layernorm": True,
                                            "tie_word_embeddings": False}),
    "gpt_neox": ("GPTNeoXConfig", COMMON | {"intermediate_size": 64, "rotary_pct": 0.5}),
    "gpt_neox_scaled": ("GPTNeoXConfig", COMMON | {
        "intermediate_size": 64, "hidden_act": "relu2",
        "rope_parameters": ROPE["llama3"] | {"rope_theta": 500.0, "partial_rotary_factor": 0.5}}),
    "gpt_neox_serial": ("GPTNeoXConfig", COMMON | {"intermediate_size": 64, "use_parallel_residual": False}),
}


# By how much a step moves the correction of each expert towards a balanced load, as Megatron-LM does
# (core/transformer/moe/moe_utils.py, get_updated_expert_bias); transformers itself leaves them alone.
CORRECTION_RATE = {"deepseek_v3_balanced": 0.01}


# Written in several files too, with an index, as transformers divides large models.
SHARDED = ("phi3",)


class DeepseekMoe(torch.nn.Module):
  """The mixture of DeepSeek-MoE (arXiv:2401.06066, section 3), which transformers has no class for: the chosen experts
  with their shares of a softmax over all, beside shared experts, which are one network of their widths together."""

  def __init__(self, config):
    super().__init__()
    network = transformers.models.llama.modeling_llama.LlamaMLP
    sized = lambda width: transformers.LlamaConfig(**config.to_dict() | {"intermediate_size": width})
    self.top_k = config.num_experts_per_tok
    self.gate = torch.nn.Linear(config.hidden_size, config.n_routed_experts, bias=False)
    self.experts = torch.nn.ModuleList(
        network(sized(config.moe_intermediate_size)) for _ in range(config.n_routed_experts))
    self.shared_experts = network(sized(config.moe_intermediate_size * config.n_shared_experts))

  def forward(self, x):
    shares = self.gate(x).float().softmax(-1)
    best = shares.topk(self.top_k, sorted=False)
    shares = torch.zeros_like(shares).scatter(-1, best.indices, best.values)
    routed = sum(shares[..., i:i + 1] * expert(x) for i, expert in enumerate(self.experts))
    return routed.to(x.dtype) + self.shared_experts(x)


def add_mixtures(model):
  """Makes DeepSeek-MoE of a Llama."""
  for layer in model.model.layers[model.config.first_k_dense_replace:]:
    layer.mlp = DeepseekMoe(model.config)


def save(model, family, folder):
  model.save_pretrained(folder)
  if family != "deepseek":
    return
  config = json.loads((folder / "config.json").read_text())
  config |= {"model_type": "deepseek", "architectures": ["DeepseekForCausalLM"]}
  (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def make_model(family):
  """The model, with weights that are not at special values: norms differ from 1, biases from 0."""
  name, sizes = FAMILIES[family]
  torch.manual_seed(sum(map(ord, family)))
  config = getattr(transformers, name)(**sizes)
  config._attn_implementation = config._experts_implementation = "eager"
  model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
  if family == "deepseek":
    add_mixtures(model)
  with torch.no_grad():
    for tensor in model.parameters():
      tensor += 0.05 * torch.randn_like(tensor)
    for name, tensor in model.named_buffers():
      if name.endswith("e_score_correction_bias"):
        tensor += 0.05 * torch.randn_like(tensor)
  return model.train()


def gradients_of_step(model, masters, tokens, step):
  """Mean loss of the global batch, and its gradient by every tensor: fp32 sums of what each micro-batch gives."""
  total, count = 0.0, GLOBAL_BATCH * SEQUENCE
  sums = {name: torch.zeros_like(w) for name, w in masters.items()}
  for inputs, labels in micro_batches(tokens, step, MICRO_BATCH):
    logits = model(input_ids=inputs, use_cache=False).logits.float()
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    model.zero_grad()
    (loss / count).backward()
    for name, tensor in model.named_parameters():
      if tensor.grad is not None:
        sums[name] += tensor.grad.to(sums[name].dtype)
    total += loss.item()
  return total / count, sums


class Balance:
  """Counts the tokens of each expert, and moves the corrections of their scores after a step."""

  def __init__(self, model, rate):
    self.rate = rate
    self.routers = [m for m in model.modules() if rate and hasattr(m, "e_score_correction_bias")]
    self.counts = [torch.zeros(r.num_experts) for r in self.routers]
    for router, counts in zip(self.routers, self.counts):
      router.register_forward_hook(lambda _, __, out, counts=counts: self.count(counts, out[2]))

  @staticmethod
  def count(counts, chosen):
    counts += torch.bincount(chosen.flatten(), minlength=counts.numel())

  @torch.no_grad()
  def move(self):
    for router, counts in zip(self.routers, self.counts):
      bias = router.e_score_correction_bias
      bias += (self.rate * torch.sign(counts.mean() - counts)).to(bias.dtype)
      counts.zero_()


def train(model, tokens, master_type, rate=0, n_steps=STEPS, kept=None):
  """`kept` gets the master weights and the optimizer."""
  balance = Balance(model, rate)
  masters = {name: w.detach().to(master_type).clone().requires_grad_() for name, w in model.named_parameters()}
  # biases of experts stand in matrices, and are biases all the same
  groups = [{"params": [w for name, w in masters.items() if (w.dim() > 1 and not name.endswith("bias")) == decays],
             "weight_decay": DECAY * decays}
            for decays in (True, False)]
  optimizer = torch.optim.AdamW(groups, lr=LR, betas=BETAS, eps=EPSILON, foreach=False)
  steps = []
  if kept is not None:
    kept |= {"masters": masters, "optimizer": optimizer}
  for i in range(n_steps):
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
        tensor.copy_(masters[name])
    balance.move()
    steps.append({"loss": loss, "grad_norm": norm, "lr": rate})
  return steps


def saved(folder):
  """The tensors that transformers wrote."""
  from safetensors.torch import load_file
  return load_file(folder / "model.safetensors")


def record_shards(model, folder):
  model.save_pretrained(folder, max_shard_size="32KB")
  for path in folder.glob("*config.json"):
    path.unlink()


def record_family(family, tokens):
  folder = OUT / family
  save(make_model(family), family, folder)
  (folder / "generation_config.json").unlink(missing_ok=True)
  if family in SHARDED:
    record_shards(make_model(family), folder / "shards")
  initial, last = saved(folder), folder / "last"
  model, rate = make_model(family), CORRECTION_RATE.get(family, 0)
  fp32 = train(model, tokens, torch.float32, rate)
  save(model, family, last)
  final = saved(last)
  for path in last.iterdir():
    path.unlink()
  last.rmdir()
  bf16 = train(make_model(family).to(torch.bfloat16), tokens, torch.float32, rate)
  exact = train(make_model(family).double(), tokens, torch.float64, rate)
  changes = {name: [(final[name] - w).double().norm().item(), w.double().norm().item()] for name, w in initial.items()}
  record = {"family": family, "torch": torch.__version__.split("+")[0], "transformers": transformers.__version__,
            "fp32": fp32, "bf16": bf16, "fp64": exact, "changes": changes}
  if rate:
    record["correction_rate"] = rate
  (folder / "record.json").write_text(json.dumps(record, indent=1) + "\n")
  worst = {kind: max(abs(s["loss"] / e["loss"] - 1) for s, e in zip(run, exact))
           for kind, run in (("fp32", fp32), ("bf16", bf16))}
  print(f"{family:16} loss {fp32[0]['loss']:.4f} -> {fp32[-1]['loss']:.4f}, "
        f"from float64: fp32 {worst['fp32']:.1e}, bf16 {worst['bf16']:.1e}")


def load(folder):
  """What nxrun wrote, as transformers reads it: false where a tensor is missing, left over or of another shape."""
  model, told = transformers.AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
  wrong = {kind: list(names) for kind, names in told.items() if names}
  print(f"{folder}: {type(model).__name__}", wrong or "whole")
  return not wrong


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--load", nargs="+", metavar="FOLDER")
  parser.add_argument("families", nargs="*", metavar="FAMILY")
  arguments = parser.parse_args()
  if arguments.load:
    sys.exit(0 if all([load(folder) for folder in arguments.load]) else 1)
  transformers.utils.logging.disable_progress_bar()
  torch.set_num_threads(1)
  torch.use_deterministic_algorithms(True)
  torch.set_flush_denormal(True)
  tokens = torch.from_numpy(numpy.fromfile(HERE / "recorded" / "tokens.bin", "<u2").astype(numpy.int64))
  for family in arguments.families or FAMILIES:
    record_family(family, tokens)


if __name__ == "__main__":
  main()
