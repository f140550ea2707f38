#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the recorded pairs of answers by TRL's own trainers, and compares the losses, gradient norms and rewards of
their 20 steps with the records that nxrun is held to (record_preferences.py).

  pip install trl transformers datasets; check_trl.py        (exit 1 on a difference)

TRL's ORPO takes the likelihood of the chosen answer over its prompt too, and over all tokens of a micro-batch together;
the paper, and NxDT, over the answer alone, pair by pair. So of ORPO its odds ratio is TRL's here, and the likelihood the
paper's. TRL's sigmoid loss has no label smoothing any more, and no form without a reference: `dpo_smoothed` is put
together of its loss for both orders of a pair, and `dpo_free` is not checked.
"""
import json
import sys
import tempfile

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast
from trl import DPOConfig, DPOTrainer
from trl.experimental.orpo import ORPOConfig, ORPOTrainer

from record import learning_rate
from record_families import BETAS, CLIP, DECAY, EPSILON, LR, SCHEDULE, STEPS, VOCAB, make_model
from record_preferences import BATCH, CASES, MICRO, N_PAIRS, OUT, log_probabilities, make_pairs

# Bounds of losses and norms; TRL has log-likelihoods in fp32, and the smoothed loss is made of two of its own.
BOUNDS = {"dpo": (1e-6, 1e-5), "dpo_smoothed": (2e-6, 2e-5), "orpo": (1e-6, 1e-5)}


def rows_of(pairs):
  return [{"prompt_ids": list(map(int, chosen[:n])), "chosen_ids": list(map(int, chosen[n:])),
           "rejected_ids": list(map(int, rejected[n:]))} for (chosen, n), (rejected, _) in pairs]


def tokenizer():
  words = {f"w{i}": i for i in range(VOCAB)}
  return PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="w0")), pad_token="w0",
                                 eos_token="w0", bos_token="w0")


class Dpo:
  """The loss of some pairs, and how much better their chosen answers do, by DPOTrainer._compute_loss."""

  def __init__(self, model, case, pairs, folder):
    self.case, self.rows = case, rows_of(pairs)
    data = Dataset.from_list([{"prompt": "w1", "chosen": "w2", "rejected": "w3"}])  # it wants one, and is handed batches
    config = DPOConfig(output_dir=folder, beta=case["beta"], max_length=None, report_to=[], use_cpu=True, bf16=False,
                       gradient_checkpointing=False, disable_dropout=False)
    self.trainer = DPOTrainer(model=model, ref_model=make_model("llama").double(), args=config, train_dataset=data,
                              processing_class=tokenizer())

  def loss(self, model, which):
    examples = [self.rows[i] for i in which]
    inputs = self.trainer.data_collator(examples)
    one = self.trainer._compute_loss(model, inputs, False)
    if self.case["smoothing"] == 0:
      return one
    turned = [e | {"chosen_ids": e["rejected_ids"], "rejected_ids": e["chosen_ids"]} for e in examples]
    other = self.trainer._compute_loss(model, self.trainer.data_collator(turned), False)
    return (1 - self.case["smoothing"]) * one + self.case["smoothing"] * other


class Orpo:
  """By ORPOTrainer.odds_ratio_loss, of the answers' likelihoods as it averages them."""

  def __init__(self, model, case, pairs):
    self.case, self.pairs = case, pairs
    self.trainer = ORPOTrainer.__new__(ORPOTrainer)
    self.trainer.beta = case["beta"]
    self.trainer.accelerator = type("Device", (), {"device": torch.device("cpu")})

  def loss(self, model, which):
    likelihoods = []
    for i in which:
      sums, counts = log_probabilities(model, self.pairs[i])
      likelihoods.append(sums / counts)
    means = torch.stack(likelihoods)
    ratio = self.trainer.odds_ratio_loss(means[:, 0], means[:, 1])[0]
    return (-means[:, 0] - ratio).mean()


def check(name, pairs):
  case = CASES[name]
  model = make_model("llama").double()
  with tempfile.TemporaryDirectory() as folder:
    by = Orpo(model, case, pairs) if case["kind"] == "orpo" else Dpo(model, case, pairs, folder)
    model.train()
    weights = list(model.parameters())
    groups = [{"params": [w for w in weights if (w.dim() > 1) == decays], "weight_decay": DECAY * decays}
              for decays in (True, False)]
    optimizer = torch.optim.AdamW(groups, lr=LR, betas=BETAS, eps=EPSILON, foreach=False)
    worst = {"loss": 0.0, "grad_norm": 0.0}
    for i, expected in enumerate(json.loads((OUT / name / "record.json").read_text())["fp64"]):
      total = 0.0
      optimizer.zero_grad()
      for first in range(i * BATCH, (i + 1) * BATCH, MICRO):
        loss = by.loss(model, [k % N_PAIRS for k in range(first, first + MICRO)]) * MICRO / BATCH
        loss.backward()
        total += loss.item()
      norm = sum(w.grad.double().pow(2).sum().item() for w in weights) ** 0.5
      for w in weights:
        w.grad *= min(1.0, CLIP / (norm + 1e-6))
      for group in optimizer.param_groups:
        group["lr"] = learning_rate(SCHEDULE, LR, i)
      optimizer.step()
      for key, value in (("loss", total), ("grad_norm", norm)):
        worst[key] = max(worst[key], abs(value / expected[key] - 1))
  loss_bound, norm_bound = BOUNDS[name]
  good = worst["loss"] <= loss_bound and worst["grad_norm"] <= norm_bound
  print(f"{'ok' if good else 'not ok'} - {name}: {STEPS} steps, loss {worst['loss']:.1e}, norm {worst['grad_norm']:.1e}")
  return good


def main():
  torch.set_num_threads(1)
  pairs = make_pairs()
  sys.exit(0 if all([check(name, pairs) for name in BOUNDS]) else 1)


if __name__ == "__main__":
  main()
