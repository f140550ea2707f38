#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small Llama of transformers on pairs of answers and records what nxrun must reproduce (README.md).

The objectives are written from the papers: DPO from arXiv:2305.18290 (with label smoothing as the probability that a
pair is the wrong way round), ORPO from arXiv:2403.07691.

  record_preferences.py [CASE...]     writes recorded/preferences/
"""
import json
import struct
import sys

import numpy
import torch
import transformers
from safetensors.torch import save_file
from torch.nn.functional import logsigmoid

from record import HERE, learning_rate
from record_families import BETAS, CLIP, DECAY, EPSILON, LR, SCHEDULE, SEQUENCE, STEPS, VOCAB, make_model

OUT = HERE / "recorded" / "preferences"
N_PAIRS, BATCH, MICRO = 12, 8, 2
CASES = {
    "dpo": {"kind": "dpo", "beta": 0.1, "smoothing": 0.0, "free": False},
    "dpo_smoothed": {"kind": "dpo", "beta": 0.5, "smoothing": 0.1, "free": False, "gradients": True},
    "dpo_free": {"kind": "dpo", "beta": 0.2, "smoothing": 0.0, "free": True},
    "orpo": {"kind": "orpo", "beta": 0.25, "gradients": True},
}


def make_pairs():
  """Each a prompt and two answers; one fills the sequence to its last label."""
  random, pairs = numpy.random.default_rng(5), []
  for i in range(N_PAIRS):
    prompt = random.integers(1, VOCAB, random.integers(1, 9))
    lengths = random.integers(2, 20, 2) if i else (SEQUENCE + 1 - len(prompt), 1)
    pairs.append([(numpy.concatenate([prompt, random.integers(1, VOCAB, n)]), len(prompt)) for n in lengths])
  return pairs


def write_dataset(pairs):
  """An indexed dataset of Megatron's, and the weights of its tokens."""
  documents = [document for pair in pairs for document in pair]
  sizes = [len(tokens) for tokens, _ in documents]
  starts = numpy.concatenate([[0], numpy.cumsum(sizes)[:-1]])
  with open(OUT / "pairs.bin", "wb") as out:
    for tokens, _ in documents:
      out.write(tokens.astype("<u2").tobytes())
  with open(OUT / "pairs.idx", "wb") as out:
    out.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, len(sizes), len(sizes) + 1))
    out.write(numpy.array(sizes, "<i4").tobytes() + (2 * starts).astype("<i8").tobytes())
    out.write(numpy.arange(len(sizes) + 1, dtype="<i8").tobytes())
  with open(OUT / "pairs.weights", "wb") as out:
    for tokens, n_prompt in documents:
      out.write((numpy.arange(len(tokens)) >= n_prompt).astype("<f4").tobytes())


def log_probabilities(model, pair):
  """Of both answers, the sum over their tokens, and how many those are."""
  rows = torch.zeros(2, SEQUENCE + 1, dtype=torch.int64)
  counted = torch.zeros(2, SEQUENCE + 1)
  for row, counts, (tokens, n_prompt) in zip(rows, counted, pair):
    row[:len(tokens)] = torch.from_numpy(tokens)
    counts[n_prompt:len(tokens)] = 1
  logits = model(input_ids=rows[:, :-1], use_cache=False).logits
  if logits.dtype != torch.float64:
    logits = logits.float()
  each = torch.log_softmax(logits, -1).gather(2, rows[:, 1:, None]).squeeze(2)
  counted = counted[:, 1:].to(each.dtype)
  return (each * counted).sum(1), counted.sum(1)


def objective(case, sums, counts, reference):
  """The loss of a pair, and the rewards of both answers."""
  if case["kind"] == "dpo":
    rewards = case["beta"] * (sums - reference)
    margin = rewards[0] - rewards[1]
    return -(1 - case["smoothing"]) * logsigmoid(margin) - case["smoothing"] * logsigmoid(-margin), rewards
  means = sums / counts
  odds = means - torch.log1p(-torch.exp(means))
  return -means[0] - case["beta"] * logsigmoid(odds[0] - odds[1]), case["beta"] * means


def train(case, pairs, dtype, folder=None):
  model = make_model("llama").to(dtype)
  with torch.no_grad():
    references = [log_probabilities(model, pair)[0] for pair in pairs]
    if case.get("free"):
      references = [torch.zeros_like(r) for r in references]
  weights = list(model.parameters())
  groups = [{"params": [w for w in weights if (w.dim() > 1) == decays], "weight_decay": DECAY * decays}
            for decays in (True, False)]
  optimizer = torch.optim.AdamW(groups, lr=LR, betas=BETAS, eps=EPSILON, foreach=False)
  steps = []
  for i in range(STEPS):
    model.zero_grad()
    total, rewards = 0.0, torch.zeros(2, dtype=torch.float64)
    for k in range(i * BATCH, (i + 1) * BATCH):
      pair = k % N_PAIRS
      loss, won = objective(case, *log_probabilities(model, pairs[pair]), references[pair])
      (loss / BATCH).backward()
      total += loss.item() / BATCH
      rewards += won.detach().double() / BATCH
    if folder and case.get("gradients") and i == 0:
      save_file({name: w.grad.clone() for name, w in model.named_parameters()}, folder / "gradients.safetensors")
    norm = sum(w.grad.double().pow(2).sum().item() for w in weights) ** 0.5
    for w in weights:
      w.grad *= min(1.0, CLIP / (norm + 1e-6))
    rate = learning_rate(SCHEDULE, LR, i)
    for group in optimizer.param_groups:
      group["lr"] = rate
    optimizer.step()
    steps.append({"loss": total, "grad_norm": norm, "lr": rate, "rewards_chosen": rewards[0].item(),
                  "rewards_rejected": rewards[1].item()})
  return steps


def main():
  torch.set_num_threads(1)
  torch.use_deterministic_algorithms(True)
  OUT.mkdir(parents=True, exist_ok=True)
  pairs = make_pairs()
  write_dataset(pairs)
  for name in sys.argv[1:] or CASES:
    folder = OUT / name
    folder.mkdir(exist_ok=True)
    fp32, exact = (train(CASES[name], pairs, dtype, folder if dtype == torch.float32 else None)
                   for dtype in (torch.float32, torch.float64))
    record = {"family": "llama", "torch": torch.__version__.split("+")[0], "transformers": transformers.__version__,
              "fp32": fp32, "fp64": exact}
    (folder / "record.json").write_text(json.dumps(record, indent=1) + "\n")
    worst = max(abs(s["loss"] / e["loss"] - 1) for s, e in zip(fp32, exact))
    print(f"{name:14} loss {fp32[0]['loss']:.4f} -> {fp32[-1]['loss']:.4f}, from float64: fp32 {worst:.1e}")


if __name__ == "__main__":
  main()
