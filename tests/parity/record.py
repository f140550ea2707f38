#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the parity cases with PyTorch and records what nxrun must reproduce (see README.md).

  record.py                 writes recorded/
  record.py --check         trains again and compares with recorded/ (exit 1 on a difference)
  record.py --sensitivity   prints how much legitimate differences in rounding and order change each case
"""
import argparse
import json
import math
import pathlib
import struct
import sys

import numpy
import torch
from safetensors.torch import load_file, save_file

import model as models
from model import Arithmetic
from muon import Muon

HERE = pathlib.Path(__file__).resolve().parent
STEPS, GLOBAL_BATCH, MICRO_BATCH, SEQUENCE, VOCAB = 24, 8, 2, 32, 250

# Hugging Face's config.json of the models, as far as it matters here.
LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": VOCAB, "hidden_size": 64,
         "intermediate_size": 136, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
         "max_position_embeddings": SEQUENCE, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
         "hidden_act": "silu", "attention_bias": False, "mlp_bias": False, "attention_dropout": 0.0,
         "tie_word_embeddings": False}
GPT2 = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": VOCAB,
        "n_positions": SEQUENCE, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_inner": 256,
        "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "attn_pdrop": 0.0, "embd_pdrop": 0.0,
        "resid_pdrop": 0.0, "bos_token_id": 0, "eos_token_id": 0, "tie_word_embeddings": True}
MIXTRAL = {key: value for key, value in LLAMA.items() if key != "mlp_bias"} | {
    "architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "intermediate_size": 72,
    "num_hidden_layers": 2, "num_local_experts": 4, "num_experts_per_tok": 2, "router_aux_loss_coef": 0.02,
    "output_router_logits": True, "router_jitter_noise": 0.0, "sliding_window": None}
CONFIGS = {"llama": LLAMA, "gpt2": GPT2, "mixtral": MIXTRAL}

ADAMW = {"name": "adamw", "lr": 3e-3, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1,
         "clip_norm": 1.0}
SGD = {"name": "sgd", "lr": 3e-3, "momentum": 0.0, "weight_decay": 0.0, "clip_norm": None}
# As Megatron Core does, and with queries, keys and values as one, too.
MUON = ADAMW | {"name": "muon", "momentum": 0.95, "ns_steps": 5, "ns_coefficients": "quintic",
                "update_scale": "spectral", "update_factor": 0.2, "matrix_routers": True,
                "joined": ["gate_up", "expert_gate_up"]}
MUON_QKV = MUON | {"joined": ["qkv", "gate_up", "expert_gate_up"]}
# As xorl does, of shards of two ranks and of a mixture.
MUON_SHARDS = MUON | {"matrix_parts": 2, "joined": ["qkv", "gate_up"], "update_scale": "tall",
                      "ns_coefficients": "simple"}
MUON_STACKED = MUON | {"stacked_scale": True, "joined": ["qkv"], "matrix_routers": False}
# Of eight ranks with two parts of the experts: dense matrices in eight parts, experts' in four; of two tensor-parallel
# ranks with two shards of each part.
MUON_EXPERT_SHARDS = MUON_STACKED | {"matrix_parts": 8, "expert_parts": 4, "update_scale": "tall", "update_factor": 1.0,
                                     "ns_coefficients": "simple"}
MUON_TENSOR_SHARDS = MUON_SHARDS | {"tensor": 2, "joined": []}
SLOW = ADAMW | {"lr": 1e-3}  # AdamW turns rounding noise into steps of size lr; see --sensitivity
COSINE = {"name": "CosineAnnealing", "warmup_steps": 4, "max_steps": STEPS, "min_lr": 3e-4,
          "constant_steps": 0}
LINEAR = {"name": "LinearAnnealingWithWarmUp", "warmup_steps": 4, "max_steps": STEPS}
FP32 = {"parameter": "fp32", "master": "fp32", "gradient": "fp32", "optimizer": "fp32", "residual": "fp32",
        "activation": "fp32", "norm": "fp32", "softmax": "fp32", "logits": "fp32", "reduce": "fp32"}
BF16 = FP32 | {"parameter": "bf16", "residual": "bf16", "activation": "bf16", "logits": "bf16"}


# How Hugging Face routes Mixtral and balances its load, and how Megatron-LM does by default (with a z-loss).
HUGGING_FACE = {"pre_softmax": True, "aux_loss_scope": "model", "router_aux_loss_coef": 0.02, "z_loss_coef": 0.0}
MEGATRON = {"pre_softmax": False, "aux_loss_scope": "layer", "router_aux_loss_coef": 0.05, "z_loss_coef": 0.01}
# Loads of the step so far: Megatron-LM's global_aux_loss, and xorl's moe_global_load_balancing.
MEGATRON_STEP = MEGATRON | {"aux_loss_over": "step"}
XORL_STEP = HUGGING_FACE | {"aux_loss_over": "step"}


def case(model, optimizer=ADAMW, schedule=COSINE, precision=FP32, layer_scaling=False, gradients=False,
         mixture=None):
  return {"model": model, "query_key_layer_scaling": layer_scaling, "optimizer": optimizer,
          "schedule": schedule, "precision": precision, "gradients": gradients, "mixture": mixture}


def config_of(spec):
  return CONFIGS[spec["model"]] | {"query_key_layer_scaling": spec["query_key_layer_scaling"]} | (
      spec["mixture"] or {})


CASES = {
    "llama_fp32": case("llama", gradients=True),
    "gpt2_fp32": case("gpt2", schedule=LINEAR),
    "llama_qkscale_fp32": case("llama", layer_scaling=True),
    "llama_sgd_fp32": case("llama", optimizer=SGD),
    "llama_sgd_clip_fp32": case("llama", optimizer=SGD | {"clip_norm": 1.0}),
    "llama_noclip_fp32": case("llama", optimizer=ADAMW | {"clip_norm": None}),
    "llama_bf16": case("llama", optimizer=SLOW, schedule=COSINE | {"min_lr": 1e-4}, precision=BF16,
                       gradients=True),
    "gpt2_bf16": case("gpt2", optimizer=SLOW, schedule=LINEAR, precision=BF16, gradients=True),
    "mixtral_fp32": case("mixtral", gradients=True, mixture=HUGGING_FACE),
    "mixtral_megatron_fp32": case("mixtral", mixture=MEGATRON),
    "mixtral_megatron_step_fp32": case("mixtral", mixture=MEGATRON_STEP),
    "mixtral_xorl_step_fp32": case("mixtral", mixture=XORL_STEP),
    "llama_muon_fp32": case("llama", optimizer=MUON_QKV),
    "mixtral_muon_fp32": case("mixtral", optimizer=MUON, mixture=MEGATRON),
    "llama_muon_shards_fp32": case("llama", optimizer=MUON_SHARDS),
    "mixtral_muon_stacked_fp32": case("mixtral", optimizer=MUON_STACKED, mixture=HUGGING_FACE),
    "llama_muon_tensor_fp32": case("llama", optimizer=MUON_TENSOR_SHARDS),
    "mixtral_muon_shards_fp32": case("mixtral", optimizer=MUON_EXPERT_SHARDS, mixture=HUGGING_FACE),
    "mixtral_bf16": case("mixtral", optimizer=SLOW, schedule=COSINE | {"min_lr": 1e-4}, precision=BF16,
                         gradients=True, mixture=HUGGING_FACE),
}


# -- learning rate -----------------------------------------------------------------------------------------
# i is the optimizer step counted from 0; w = warmup_steps, m = max_steps, c = constant_steps.

def cosine_annealing(i, lr, w, m, min_lr=0.0, c=0):
  """NeMo's CosineAnnealing. c = 0: warm-up lr (i+1)/(w+1) for i <= w, then
  min_lr + (lr - min_lr) (1 + cos(pi (i-w)/(m-w))) / 2 until i = m, then min_lr.
  c > 0 is Megatron's shape: warm-up lr i/w for i <= w, the same cosine over m-c-w steps, then min_lr."""
  if w > 0 and i <= w:
    return lr * (i + 1) / (w + 1) if c == 0 else lr * i / w
  span = m - c - w
  if i > w + span:
    return min_lr
  return min_lr + (lr - min_lr) * 0.5 * (1 + math.cos(math.pi * (i - w) / span))


def linear_annealing_with_warmup(i, lr, w, m):
  """NxDT's LinearAnnealingWithWarmUp (the transformers package's linear schedule): lr i/w for i < w, so the
  first step's rate is 0; then lr (m-i)/(m-w), not below 0. It has no min_lr."""
  return lr * i / max(1, w) if i < w else lr * max(0.0, (m - i) / max(1, m - w))


def warmup_annealing(i, lr, w, m, min_lr=0.0):
  """NeMo's WarmupAnnealing: warm-up lr (i+1)/(w+1) for i <= w, then linear from lr at w to min_lr at m."""
  if w > 0 and i <= w:
    return lr * (i + 1) / (w + 1)
  return min_lr if i > m else min_lr + (lr - min_lr) * (1 - (i - w) / (m - w))


SCHEDULES = {"CosineAnnealing": cosine_annealing, "LinearAnnealingWithWarmUp": linear_annealing_with_warmup,
             "WarmupAnnealing": warmup_annealing}
ARGUMENTS = {"warmup_steps": "w", "max_steps": "m", "min_lr": "min_lr", "constant_steps": "c"}


def learning_rate(schedule, lr, i):
  arguments = {ARGUMENTS[key]: value for key, value in schedule.items() if key != "name"}
  return SCHEDULES[schedule["name"]](i, lr, **arguments)


def schedule_tables():
  """Rates of 30 steps, so that steps beyond max_steps are covered too."""
  straight = {"name": "WarmupAnnealing", "warmup_steps": 4, "max_steps": STEPS, "min_lr": 3e-4}
  variants = [COSINE, COSINE | {"warmup_steps": 0, "min_lr": 0.0}, COSINE | {"constant_steps": 6}, LINEAR,
              LINEAR | {"warmup_steps": 0}, straight, straight | {"warmup_steps": 0, "min_lr": 0.0}]
  return [{"lr": 3e-3, "schedule": s, "rates": [learning_rate(s, 3e-3, i) for i in range(30)]}
          for s in variants]


# -- data --------------------------------------------------------------------------------------------------

def make_tokens(seed):
  """A Markov chain over Zipf-distributed tokens: something to learn at once, and something later."""
  random = numpy.random.RandomState(seed)
  frequency = 1 / (1.0 + random.permutation(VOCAB))
  frequency /= frequency.sum()
  successors = random.choice(VOCAB, size=(VOCAB, 5), p=frequency)
  tokens = [0]
  while len(tokens) < STEPS * GLOBAL_BATCH * SEQUENCE + 1:
    follows = random.rand() < 0.7
    own = successors[tokens[-1]]
    tokens.append(own[random.randint(5)] if follows else random.choice(VOCAB, p=frequency))
  return numpy.array(tokens, dtype="<u2")


def write_indexed_dataset(prefix, tokens):
  """Megatron's indexed dataset with one document: PREFIX.bin holds the tokens, PREFIX.idx the index."""
  prefix.with_suffix(".bin").write_bytes(tokens.tobytes())
  sizes, pointers = numpy.array([len(tokens)], "<i4"), numpy.array([0], "<i8")
  documents = numpy.array([0, 1], "<i8")
  version, uint16 = 1, 8
  header = b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", version, uint16, len(sizes), len(documents))
  prefix.with_suffix(".idx").write_bytes(header + sizes.tobytes() + pointers.tobytes() + documents.tobytes())


def micro_batches(tokens, step, micro):
  for first in range(step * GLOBAL_BATCH, (step + 1) * GLOBAL_BATCH, micro):
    starts = [k * SEQUENCE for k in range(first, first + micro)]
    yield (torch.stack([tokens[s:s + SEQUENCE] for s in starts]),
           torch.stack([tokens[s + 1:s + SEQUENCE + 1] for s in starts]))


# -- training ----------------------------------------------------------------------------------------------

def make_optimizer(settings, masters):
  if settings["name"] == "sgd":
    return torch.optim.SGD(masters.values(), lr=settings["lr"], foreach=False)
  if settings["name"] == "muon":
    return Muon(settings, masters, lambda others: make_optimizer(settings | {"name": "adamw"}, others))
  groups = [{"params": [w for n, w in masters.items() if models.decays(n, w) == decayed],
             "weight_decay": settings["weight_decay"] if decayed else 0.0} for decayed in (True, False)]
  return torch.optim.AdamW(groups, lr=settings["lr"], betas=settings["betas"], eps=settings["eps"],
                           foreach=False)


def gradients_of_step(forward, cfg, masters, tokens, step, a, micro):
  """Mean loss of the global batch and its gradient by every tensor. Per micro-batch the losses are summed
  over its tokens, and backward starts from 1 / (tokens of the global batch); a router's losses are means over
  the micro-batch, and so a mean over micro-batches. The loss that is returned is without them."""
  leaves = {name: a.parameter(w) for name, w in masters.items()}
  total, count = 0.0, GLOBAL_BATCH * SEQUENCE
  cfg = cfg | {"so_far": {}}
  for inputs, labels in micro_batches(tokens, step, micro):
    logits, router = forward(leaves, cfg, inputs, a)
    losses = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
    (losses.sum() / count + router * (micro / GLOBAL_BATCH)).backward()
    total += losses.detach().double().sum().item()
  return total / count, {name: leaf.grad for name, leaf in leaves.items()}


def train(spec, weights, tokens, a, micro=MICRO_BATCH):
  """Loss, gradient norm before clipping and rate of each step, and the first step's gradients."""
  cfg = config_of(spec)
  masters = {name: w.to(a.dtype, copy=True).requires_grad_() for name, w in weights.items()}
  optimizer, clip = make_optimizer(spec["optimizer"], masters), spec["optimizer"]["clip_norm"]
  steps, first = [], None
  for i in range(STEPS):
    loss, grads = gradients_of_step(models.MODELS[spec["model"]], cfg, masters, tokens, i, a, micro)
    norm = math.sqrt(sum(g.double().pow(2).sum().item() for g in grads.values()))
    first = first or {name: g.clone() for name, g in grads.items()}
    scale = 1.0 if clip is None else min(1.0, clip / (norm + 1e-6))  # torch.nn.utils.clip_grad_norm_
    for name, w in masters.items():
      w.grad = grads[name] * scale
    rate = learning_rate(spec["schedule"], spec["optimizer"]["lr"], i)
    for group in optimizer.param_groups:
      group["lr"] = rate
    optimizer.step()
    steps.append({"step": i + 1, "loss": loss, "grad_norm": norm, "lr": rate})
  return steps, first


def arithmetic_of(spec, **choices):
  return Arithmetic(bf16=spec["precision"]["activation"] == "bf16", **choices)


def worst(steps, reference, key):
  """Largest relative difference over the steps."""
  return max(abs(s[key] - r[key]) / abs(r[key]) for s, r in zip(steps, reference, strict=True))


def record_case(name, spec, weights, tokens):
  """The case's JSON object and its first gradients. The same run in float64 stands beside it."""
  steps, first = train(spec, weights, tokens, arithmetic_of(spec))
  exact, _ = train(spec, weights, tokens, Arithmetic(dtype=torch.float64))
  for s, e in zip(steps, exact, strict=True):
    s["loss_f64"], s["grad_norm_f64"] = e["loss"], e["grad_norm"]
  fp32 = spec["precision"]["activation"] == "fp32"
  record = {"case": name, "torch": torch.__version__.split("+")[0], "model": spec["model"],
            "query_key_layer_scaling": spec["query_key_layer_scaling"], "precision": spec["precision"],
            "batch": {"global": GLOBAL_BATCH, "micro": MICRO_BATCH, "sequence": SEQUENCE}, "data": "tokens",
            "init_from": spec["model"] + "/model.safetensors", "optimizer": spec["optimizer"],
            "schedule": spec["schedule"], "mixture": spec["mixture"], "tolerance": 2e-6 if fp32 else 1e-3,
            "first_gradients": f"{name}.grads.safetensors" if spec["gradients"] else None,
            "first_gradient_tolerance": 1e-5 if fp32 else 3e-2,
            "distance_from_f64": {key: worst(steps, exact, key) for key in ("loss", "grad_norm")},
            "steps": steps, "first_gradient_norms": {n: g.double().norm().item() for n, g in first.items()}}
  return record, first


# -- commands ----------------------------------------------------------------------------------------------

def make_inputs():
  weights = {m: models.initial_weights(m, CONFIGS[m], seed) for m, seed in (("llama", 1), ("gpt2", 2), ("mixtral", 4))}
  return weights, make_tokens(3)


def write_json(path, value):
  path.write_text(json.dumps(value, indent=1) + "\n")


def write_all(out, names):
  weights, tokens = make_inputs()
  for name, cfg in CONFIGS.items():
    (out / name).mkdir(parents=True, exist_ok=True)
    write_json(out / name / "config.json", cfg)
    save_file(weights[name], out / name / "model.safetensors", metadata={"format": "pt"})
  write_indexed_dataset(out / "tokens", tokens)
  write_json(out / "schedules.json", schedule_tables())
  for name in names:
    spec = CASES[name]
    ids = torch.from_numpy(tokens.astype(numpy.int64))
    record, first = record_case(name, spec, weights[spec["model"]], ids)
    write_json(out / f"{name}.json", record)
    if spec["gradients"]:
      save_file(first, out / f"{name}.grads.safetensors", metadata={"format": "pt"})
    print_summary(record)


def print_summary(record):
  first, last, far = record["steps"][0], record["steps"][-1], record["distance_from_f64"]
  clipped = sum(s["grad_norm"] > (record["optimizer"]["clip_norm"] or math.inf) for s in record["steps"])
  print(f"{record['case']:20} loss {first['loss']:.4f} -> {last['loss']:.4f}, "
        f"norm {first['grad_norm']:.3f} -> {last['grad_norm']:.3f}, {clipped} steps clipped; "
        f"from float64: loss {far['loss']:.1e}, norm {far['grad_norm']:.1e}")


def check_all(recorded, names):
  """Trains from the recorded weights. Another CPU may sum in another order, and in bf16 that comes out as
  large as the other legitimate choices do (--sensitivity): half of the tolerance is allowed."""
  tokens = torch.from_numpy(numpy.fromfile(recorded / "tokens.bin", "<u2").astype(numpy.int64))
  good = True
  for name in names:
    old = json.loads((recorded / f"{name}.json").read_text())
    weights = load_file(recorded / old["init_from"])
    steps, first = train(CASES[name], weights, tokens, arithmetic_of(CASES[name]))
    loss, norm = worst(steps, old["steps"], "loss"), worst(steps, old["steps"], "grad_norm")
    grads = max(abs(g.double().norm().item() / old["first_gradient_norms"][n] - 1) for n, g in first.items())
    rates = all(math.isclose(s["lr"], o["lr"], rel_tol=1e-12) for s, o in zip(steps, old["steps"]))
    same = max(loss, norm) <= old["tolerance"] / 2 and grads <= old["first_gradient_tolerance"] / 2 and rates
    good = good and same
    print(f"{name:20} {'same' if same else 'DIFFERS'}: loss {loss:.1e}, norm {norm:.1e}, "
          f"norms of the first gradients {grads:.1e}")
  return good


def print_sensitivity(names):
  weights, tokens = make_inputs()
  tokens = torch.from_numpy(tokens.astype(numpy.int64))
  variants = {"micro-batch 4": ({}, 4), "separate products": ({"separate_products": True}, MICRO_BATCH),
              "probabilities rounded": ({"round_probabilities": True}, MICRO_BATCH),
              "norm backward adds residual": ({"fused_norm_add": True}, MICRO_BATCH)}
  for name in names:
    spec = CASES[name]
    base, base_first = train(spec, weights[spec["model"]], tokens, arithmetic_of(spec))
    for label, (choices, micro) in variants.items():
      steps, first = train(spec, weights[spec["model"]], tokens, arithmetic_of(spec, **choices), micro)
      far = max(((first[n] - g).norm() / g.norm()).item() for n, g in base_first.items())
      print(f"{name:20} {label:28} loss {worst(steps, base, 'loss'):.1e}  "
            f"norm {worst(steps, base, 'grad_norm'):.1e}  first gradient, worst tensor {far:.1e}")


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--check", action="store_true")
  parser.add_argument("--sensitivity", action="store_true")
  parser.add_argument("--out", type=pathlib.Path, default=HERE / "recorded")
  parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
  arguments = parser.parse_args()
  unknown = [c for c in arguments.cases if c not in CASES]
  if unknown:
    parser.error("no such case: " + ", ".join(unknown))
  names = arguments.cases or list(CASES)
  torch.set_num_threads(1)
  torch.use_deterministic_algorithms(True)
  torch.set_flush_denormal(True)
  if arguments.check:
    sys.exit(0 if check_all(arguments.out, names) else 1)
  print_sensitivity(names) if arguments.sensitivity else write_all(arguments.out, names)


if __name__ == "__main__":
  main()
