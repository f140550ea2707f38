#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small Llama of transformers on pairs of answers and records what nxrun must reproduce (README.md).

The objectives are written from the papers: DPO from arXiv:2305.18290 (with label smoothing as the probability that a
pair is the wrong way round), ORPO from arXiv:2403.07691. KTO and the reward model are written from what GPT-NeoX's
megatron/training.py computes of a micro-batch, token by token.

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
    "kto": {"kind": "kto", "beta": 0.5, "weights": (1.5, 0.75), "gradients": True},
    "reward": {"kind": "reward", "penalty": 0.05, "gradients": True},
}
KTO_MICRO = 4  # answers


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


def write_beside(pairs):
  """Indexed datasets as GPT-NeoX's tools write them: a reward for each answer, and labels of last tokens alone."""
  rewards, labels = [], []
  for i, pair in enumerate(pairs):
    for k, (tokens, _) in enumerate(pair):
      rewards.append(numpy.array([(2 if i == 3 else 1) * (1 if k == 0 else -1)]))
      labels.append(numpy.where(numpy.arange(len(tokens)) == len(tokens) - 1, tokens, -100))
  for name, documents in (("rewards", rewards), ("value_labels", labels)):
    sizes = [len(document) for document in documents]
    starts = numpy.concatenate([[0], numpy.cumsum(sizes)[:-1]])
    with open(OUT / f"{name}.bin", "wb") as out:
      for document in documents:
        out.write(document.astype("<i4").tobytes())
    with open(OUT / f"{name}.idx", "wb") as out:
      out.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 4, len(sizes), len(sizes) + 1))
      out.write(numpy.array(sizes, "<i4").tobytes() + (4 * starts).astype("<i8").tobytes())
      out.write(numpy.arange(len(sizes) + 1, dtype="<i8").tobytes())
  return [int(reward[0]) for reward in rewards]


def rows_of(answers):
  """Tokens with padding, and what counts of the tokens that are predicted."""
  rows = torch.zeros(len(answers), SEQUENCE + 1, dtype=torch.int64)
  counted = torch.zeros(len(answers), SEQUENCE + 1)
  for row, counts, (tokens, n_prompt) in zip(rows, counted, answers):
    row[:len(tokens)] = torch.from_numpy(tokens)
    counts[n_prompt:len(tokens)] = 1
  return rows, counted[:, 1:]


def token_log_probabilities(model, rows):
  logits = model(input_ids=rows[:, :-1], use_cache=False).logits
  if logits.dtype != torch.float64:
    logits = logits.float()
  return torch.log_softmax(logits, -1).gather(2, rows[:, 1:, None]).squeeze(2)


def kto(case, policy, reference, mask, answers, given):
  """The loss of a micro-batch, whose second half says the divergence of the first, and the other way round."""
  rewards = torch.zeros_like(policy)
  for row, (tokens, _), reward in zip(rewards, answers, given):
    row[:len(tokens)] = reward
  policy, reference = policy * mask, reference * mask
  scaling = (rewards.sum(-1) > 0.001).to(policy.dtype) * case["weights"][0]
  scaling = scaling + (rewards.sum(-1) < -0.001).to(policy.dtype) * case["weights"][1]
  ratios = torch.chunk(policy - reference, 2, 0)
  divergences = [ratio.sum(-1).clamp(min=0).mean().detach() for ratio in ratios]
  loss = 0
  for i, (ratio, reward, scale) in enumerate(zip(ratios, torch.chunk(rewards, 2, 0), torch.chunk(scaling, 2, 0))):
    margin = case["beta"] * reward.mean(-1) * (ratio.sum(-1) - divergences[1 - i])
    loss = loss + 0.5 * scale.mean(-1) * (1 - torch.sigmoid(margin))
  wanted, unwanted = (rewards > 0.001).to(policy.dtype), (rewards < -0.001).to(policy.dtype)
  won = case["beta"] * rewards * (policy - reference)
  metrics = {"logps": policy.sum(-1).mean(), "reference_logps": reference.sum(-1).mean(),
             "logps_chosen": (policy * wanted).sum(-1).mean(), "logps_rejected": (policy * unwanted).sum(-1).mean(),
             "reference_logps_chosen": (reference * wanted).sum(-1).mean(),
             "reference_logps_rejected": (reference * unwanted).sum(-1).mean(),
             "kl": (policy - reference).sum() / mask.sum(), "rewards": won.sum() / len(answers),
             "rewards_accuracy": (won.sum(-1) > 0).double().mean()}
  return loss.mean(), metrics


def kto_step(case, model, answers, references, given, first, weigh):
  """Micro-batches of a step; backward passes of their losses, which weigh as much each."""
  totals = {}
  for at in range(first, first + BATCH, KTO_MICRO):
    numbers = [i % len(answers) for i in range(at, at + KTO_MICRO)]
    rows, mask = rows_of([answers[i] for i in numbers])
    policy = token_log_probabilities(model, rows)
    reference = torch.stack([references[i] for i in numbers])
    loss, metrics = kto(case, policy, reference, mask.to(policy.dtype), [answers[i] for i in numbers],
                        [given[i] for i in numbers])
    weigh(loss, KTO_MICRO / BATCH)
    for name, value in (metrics | {"loss": loss.detach()}).items():
      totals[name] = totals.get(name, 0) + value.item() * KTO_MICRO / BATCH
  return totals


def reward_step(case, model, head, pairs, first, weigh):
  totals = {}
  for i in range(first, first + BATCH):
    pair = pairs[i % N_PAIRS]
    rows, _ = rows_of(pair)
    hidden = model.model(input_ids=rows[:, :-1], use_cache=False).last_hidden_state
    values = (hidden.to(head.dtype) @ head.T).squeeze(2)
    pos, neg = (values[k, len(tokens) - 2] for k, (tokens, _) in enumerate(pair))
    loss = -logsigmoid(pos - neg) + case["penalty"] * (pos ** 2 + neg ** 2)
    weigh(loss, 1 / BATCH)
    found = {"values_chosen": pos, "values_rejected": neg, "rewards_margin": pos - neg,
             "rewards_accuracy": (pos > neg).double(), "loss": loss.detach()}
    for name, value in found.items():
      totals[name] = totals.get(name, 0) + value.item() / BATCH
  return totals


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


def pairs_step(case, model, pairs, references, first, weigh):
  totals = {"loss": 0.0, "rewards_chosen": 0.0, "rewards_rejected": 0.0}
  for k in range(first, first + BATCH):
    pair = k % N_PAIRS
    loss, won = objective(case, *log_probabilities(model, pairs[pair]), references[pair])
    weigh(loss, 1 / BATCH)
    totals["loss"] += loss.item() / BATCH
    for name, reward in zip(("rewards_chosen", "rewards_rejected"), won):
      totals[name] += reward.item() / BATCH
  return totals


def make_head(model):
  """A head of one row, and what a run with it begins from."""
  head = torch.randn(1, model.config.hidden_size, generator=torch.Generator().manual_seed(3)) * 0.2
  weights = {name: w.contiguous() for name, w in model.state_dict().items() if not name.startswith("lm_head")}
  save_file(weights | {"score.weight": head}, OUT / "reward" / "model.safetensors")
  return head


def train(case, pairs, dtype, folder=None):
  model = make_model("llama")
  head = torch.nn.Parameter(make_head(model).to(dtype)) if case["kind"] == "reward" else None
  model = model.to(dtype)
  answers, given = [answer for pair in pairs for answer in pair], write_beside(pairs)
  with torch.no_grad():
    references = [log_probabilities(model, pair)[0] for pair in pairs]
    if case.get("free"):
      references = [torch.zeros_like(r) for r in references]
    if case["kind"] == "kto":
      references = [token_log_probabilities(model, rows_of([answer])[0])[0] for answer in answers]
  named = {name: w for name, w in model.named_parameters() if head is None or not name.startswith("lm_head")}
  if head is not None:
    named["score.weight"] = head
  weights = list(named.values())
  groups = [{"params": [w for w in weights if (w.dim() > 1) == decays], "weight_decay": DECAY * decays}
            for decays in (True, False)]
  optimizer = torch.optim.AdamW(groups, lr=LR, betas=BETAS, eps=EPSILON, foreach=False)
  steps = []
  for i in range(STEPS):
    optimizer.zero_grad()
    weigh = lambda loss, share: (loss * share).backward()
    if case["kind"] == "kto":
      found = kto_step(case, model, answers, references, given, i * BATCH, weigh)
    elif case["kind"] == "reward":
      found = reward_step(case, model, head, pairs, i * BATCH, weigh)
    else:
      found = pairs_step(case, model, pairs, references, i * BATCH, weigh)
    if folder and case.get("gradients") and i == 0:
      save_file({name: w.grad.clone() for name, w in named.items()}, folder / "gradients.safetensors")
    norm = sum(w.grad.double().pow(2).sum().item() for w in weights) ** 0.5
    for w in weights:
      w.grad *= min(1.0, CLIP / (norm + 1e-6))
    rate = learning_rate(SCHEDULE, LR, i)
    for group in optimizer.param_groups:
      group["lr"] = rate
    optimizer.step()
    steps.append(found | {"grad_norm": norm, "lr": rate})
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
