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
from transformers import AutoConfig, AutoModelForCausalLM

import model as models
from model import Arithmetic
from record import CONFIGS, SEQUENCE

RECORDED = pathlib.Path(__file__).resolve().parent / "recorded"


def ours(name, weights, ids):
  a = Arithmetic(dtype=torch.float64)
  leaves = {n: a.parameter(w) for n, w in weights.items()}
  logits = models.MODELS[name](leaves, CONFIGS[name] | {"query_key_layer_scaling": False}, ids[:, :-1], a)
  loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
  loss.backward()
  return loss.item(), {n: leaf.grad for n, leaf in leaves.items()}


def theirs(name, weights, ids):
  config = AutoConfig.from_pretrained(RECORDED / name)
  network = AutoModelForCausalLM.from_config(config, attn_implementation="eager").double()
  missing, unexpected = network.load_state_dict({n: w.double() for n, w in weights.items()}, strict=False)
  assert not unexpected and set(missing) <= {"lm_head.weight"}, (missing, unexpected)
  loss = torch.nn.functional.cross_entropy(network(ids[:, :-1]).logits.flatten(0, 1), ids[:, 1:].flatten())
  loss.backward()
  return loss.item(), {n: p.grad for n, p in network.named_parameters()}


def main():
  torch.set_num_threads(1)
  tokens = torch.from_numpy(numpy.fromfile(RECORDED / "tokens.bin", "<u2").astype(numpy.int64))
  ids = tokens[: 4 * (SEQUENCE + 1)].view(4, SEQUENCE + 1)
  good = True
  for name in CONFIGS:
    weights = load_file(RECORDED / name / "model.safetensors")
    (loss, grads), (their_loss, their_grads) = ours(name, weights, ids), theirs(name, weights, ids)
    far = max(((grads[n] - their_grads[n]).norm() / their_grads[n].norm()).item() for n in grads)
    # transformers makes its rotary angles and norm statistics in float32 even in a float64 model
    same = abs(loss / their_loss - 1) < 1e-6 and far < 1e-5
    good = good and same
    verdict = "same" if same else "DIFFERS"
    print(f"{name}: {verdict}: loss {loss:.9f} and {their_loss:.9f}, worst gradient {far:.1e}")
  sys.exit(0 if good else 1)


if __name__ == "__main__":
  main()
