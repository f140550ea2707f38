#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks model.py against the transformers package: loss and gradients of the recorded weights in float64.

  pip install transformers; check_transformers.py        (exit 1 on a difference)
"""
import pathlib
import sys

import numpy
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

import model as models
from model import Arithmetic
from record import CONFIGS, HUGGING_FACE, SEQUENCE, config_of

RECORDED = pathlib.Path(__file__).resolve().parent / "recorded"


def ours(name, weights, ids):
  a = Arithmetic(dtype=torch.float64)
  leaves = {n: a.parameter(w) for n, w in weights.items()}
  cfg = config_of({"model": name, "query_key_layer_scaling": False, "mixture": HUGGING_FACE})
  logits, router = models.MODELS[name](leaves, cfg, ids[:, :-1], a)
  loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()) + router
  loss.backward()
  return loss.item(), {n: leaf.grad for n, leaf in leaves.items()}


def stacked_experts(tensors):
  """Tensors by the names of a checkpoint, as the package keeps them in memory: experts one after another,
  gate above up."""
  stacked = {}
  for name, tensor in tensors.items():
    at, expert, rest = name.partition(".block_sparse_moe.experts.")
    if not expert:
      stacked[name.replace("block_sparse_moe.", "mlp.")] = tensor
      continue
    number, part, _ = rest.split(".")
    fused = at + (".mlp.experts.down_proj" if part == "w2" else ".mlp.experts.gate_up_proj")
    stacked.setdefault(fused, {})[int(number), part] = tensor
  join = lambda parts: torch.stack([torch.cat([parts[e, part] for part in ("w1", "w3", "w2") if (e, part) in parts])
                                    for e in sorted({e for e, _ in parts})])
  return {n: t if torch.is_tensor(t) else join(t) for n, t in stacked.items()}


def theirs(name, ids):
  network = AutoModelForCausalLM.from_pretrained(RECORDED / name, attn_implementation="eager",
                                                  experts_implementation="eager").double()
  result = network(ids[:, :-1])
  loss = torch.nn.functional.cross_entropy(result.logits.flatten(0, 1), ids[:, 1:].flatten())
  if result.get("aux_loss") is not None:
    loss = loss + network.config.router_aux_loss_coef * result.aux_loss
  loss.backward()
  return loss.item(), {n: p.grad for n, p in network.named_parameters()}


def main():
  torch.set_num_threads(1)
  tokens = torch.from_numpy(numpy.fromfile(RECORDED / "tokens.bin", "<u2").astype(numpy.int64))
  ids = tokens[: 4 * (SEQUENCE + 1)].view(4, SEQUENCE + 1)
  good = True
  for name in CONFIGS:
    weights = load_file(RECORDED / name / "model.safetensors")
    (loss, grads), (their_loss, their_grads) = ours(name, weights, ids), theirs(name, ids)
    if name == "mixtral":
      grads = stacked_experts(grads)
    far = max(((grads[n] - their_grads[n]).norm() / their_grads[n].norm()).item() for n in grads)
    # transformers makes its rotary angles and norm statistics in float32 even in a float64 model
    same = abs(loss / their_loss - 1) < 1e-6 and far < 1e-5
    good = good and same
    verdict = "same" if same else "DIFFERS"
    print(f"{name}: {verdict}: loss {loss:.9f} and {their_loss:.9f}, worst gradient {far:.1e}")
  sys.exit(0 if good else 1)


if __name__ == "__main__":
  main()
