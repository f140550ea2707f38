#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random pairs of answers by several tokenizers, as nxdata and nxrun take them and as TRL 0.10.1, which NxDT pins, does:
the tokens and labels of what fits and of what is cut (max_length, max_prompt_length, truncation_mode), and the losses,
rewards, margins, accuracies and log-odds of three steps of training by DPO and ORPO.

  pip install trl==0.10.1 torch transformers; check_pairs.py BUILD [--n N] [--seed S] [--only K]     (exit 1 on a difference)

TRL's functions and trainers are its own; its losses are in float64, nxrun's in fp32. Left out are pairs of which a token
reaches across the border of prompt and answer, which TRL drops and nxdata gives to the answer; they are counted. TRL's
ORPO takes the likelihood of the chosen answer over its prompt too; the paper, and NxDT, over the answer alone: it is
taken of TRL's own log-probabilities here.
"""
import argparse
import importlib
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import types

import torch
import transformers
import transformers.models.auto.modeling_auto as auto
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

HERE = pathlib.Path(__file__).parent / "recorded" / "tokenizers"
TOKENIZERS = ["llama3", "gpt2", "llama2", "mistral", "qwen", "o200k", "deepseek", "t5", "bert", "clip"]
WORDS = ("the of and to in is that 12 345 x+y don't Über naïve 世界 привет 🙂 a_b C++ \n \t ... ? ! : (so) — été שלום e\u0301").split(" ")
STEPS, RATE, BOUND = 3, 0.05, 2e-6
# By the name in metrics.jsonl, the key that TRL has.
METRICS = {"rewards_chosen": "rewards/chosen", "rewards_rejected": "rewards/rejected", "rewards_accuracy": "rewards/accuracies",
           "rewards_margin": "rewards/margins"}


def trainers():
  """Of TRL, which asks a transformers of today for what it has no more."""
  auto.MODEL_FOR_VISION_2_SEQ_MAPPING_NAMES = {}
  while True:
    try: return tuple(importlib.import_module(f"trl.trainer.{name}_trainer") for name in ("dpo", "orpo"))
    except RuntimeError as error:
      missing = re.search(r"cannot import name '(\w+)' from '([\w.]+)'", str(error))
      if not missing: raise
      setattr(importlib.import_module(missing[2]), missing[1], type(missing[1], (), {}))


def a_text(r, most): return r.choice(["", " "]) + " ".join(r.choice(WORDS) for _ in range(r.randrange(most)))


def draw(r):
  length = r.randrange(6, 40)
  return {"tokenizer": r.choice(TOKENIZERS), "strategy": r.choice(["dpo", "dpo", "orpo"]), "beta": r.choice([0.1, 0.5, 0.02]),
          "smoothing": r.choice([0.0, 0.0, 0.2]), "length": length, "prompt": r.randrange(1, length),
          "mode": r.choice(["keep_start", "keep_end"]), "bos": r.random() < .7, "eos": True,
          "pairs": [{"prompt": a_text(r, r.choice([3, 12, 30])) + r.choice(["\n", ": ", "?", " A:"]), "chosen": a_text(r, r.choice([4, 20])),
                     "rejected": a_text(r, r.choice([4, 20]))} for _ in range(r.randrange(6, 14))]}


def write_tokenizer(case, folder):
  folder.mkdir()
  shutil.copy(HERE / case["tokenizer"] / "tokenizer.json", folder)
  vocab = json.loads((folder / "tokenizer.json").read_text())
  vocab = vocab["model"]["vocab"]
  tokens = [piece[0] for piece in vocab] if isinstance(vocab, list) else list(vocab)
  r, texts = random.Random(len(case["pairs"])), "".join("".join(pair.values()) for pair in case["pairs"])
  absent = [token for token in tokens[:200] if len(token) > 1 and token not in texts]  # else transformers takes it out of them
  roles = {role: r.choice(absent) for role in ("bos", "eos") if case[role]}
  (folder / "tokenizer_config.json").write_text(json.dumps({f"{role}_token": token for role, token in roles.items()}))
  return PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), pad_token=absent[0],
                                 **{f"{role}_token": token for role, token in roles.items()})


def their_tokens(case, dpo, orpo, tokenizer, pair):
  """Ids and labels of both answers; None where TRL refuses the pair."""
  limits = dict(max_length=case["length"], max_prompt_length=case["prompt"], truncation_mode=case["mode"], label_pad_token_id=-100)
  try:
    if case["strategy"] == "dpo":
      made = dpo._tokenize({key: [value] for key, value in pair.items()}, tokenizer, types.SimpleNamespace(**limits))
      made = {key: value[0] for key, value in made.items()}
    else:
      trainer = orpo.ORPOTrainer.__new__(orpo.ORPOTrainer)
      trainer.__dict__.update(limits, tokenizer=tokenizer, is_encoder_decoder=False)
      made = trainer.tokenize_row(pair)
  except ValueError: return None
  return made


def reaches_across(tokenizer, pair):
  ids = lambda text: tokenizer(text, add_special_tokens=False)["input_ids"]
  alone = ids(pair["prompt"])
  return any(ids(pair["prompt"] + pair[key])[:len(alone)] != alone for key in ("chosen", "rejected"))


def run(*command, folder):
  done = subprocess.run([str(c) for c in command], capture_output=True, text=True, cwd=folder)
  if done.returncode: raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stdout[-500:]}{done.stderr[-1000:]}")
  return done.stdout


def our_tokens(prefix):
  """Documents of ids and weights."""
  index = pathlib.Path(f"{prefix}.idx").read_bytes()
  code, n = index[17], struct.unpack_from("<Q", index, 18)[0]
  sizes = struct.unpack_from(f"<{n}i", index, 34)
  ids = pathlib.Path(f"{prefix}.bin").read_bytes()
  ids = struct.unpack(f"<{len(ids) // (2 if code == 8 else 4)}{'H' if code == 8 else 'i'}", ids)
  weights = struct.unpack(f"<{len(ids)}f", pathlib.Path(f"{prefix}.weights").read_bytes())
  at, found = 0, []
  for size in sizes:
    found.append((list(ids[at:at + size]), list(weights[at:at + size])))
    at += size
  return found


def plan(case, n_pairs, vocab):
  return json.dumps({
      "mesh": {"world": 1}, "batch": {"micro": 1, "global": n_pairs},
      "model": {"layers": 2, "hidden": 32, "ffn_hidden": 64, "heads": 4, "kv_heads": 2, "sequence": case["length"], "vocab": vocab,
                "vocab_divisor": 1, "activation": "swiglu", "normalization": "rmsnorm", "position_embedding": "rope", "norm_epsilon": 1e-5,
                "rope_theta": 10000.0},
      "optimizer": {"name": "sgd", "lr": RATE, "momentum": 0.0, "weight_decay": 0.0, "clip_norm": None},
      "schedule": {"name": "constant", "max_steps": STEPS}, "precision": {"preset": "fp32"},
      "alignment": {"strategy": case["strategy"], "beta": case["beta"],
                    **({"label_smoothing": case["smoothing"]} if case["strategy"] == "dpo" else {})},
      "data": {"path": ["pairs.jsonl"], "kind": "pairs", "tokenizer": "tokenizer", "document_tokens": [case["length"]],
               "prompt_tokens": case["prompt"], "prompt_keeps": case["mode"][5:], "cut": True, "shuffle": False, "prepared": "made"},
      "run": {"name": "run", "init_from": "model"}}, indent=1)


class Theirs:
  """Three steps by the trainer's own functions."""

  def __init__(self, case, dpo, orpo, model, reference):
    kind = dpo.DPOTrainer if case["strategy"] == "dpo" else orpo.ORPOTrainer
    self.case, self.model, self.trainer = case, model, kind.__new__(kind)
    self.trainer.__dict__.update(
        beta=case["beta"], label_smoothing=case["smoothing"], loss_type="sigmoid", reference_free=False, label_pad_token_id=-100,
        padding_value=0, is_encoder_decoder=False, is_vision_model=False, aux_loss_enabled=False, ref_model=reference,
        precompute_ref_log_probs=False, model=model, accelerator=types.SimpleNamespace(device=torch.device("cpu")),
        args=types.SimpleNamespace(rpo_alpha=None, device="cpu"), use_dpo_data_collator=True, f_divergence_type="reverse_kl",
        f_divergence_params={})

  def batch(self, made):
    pad = lambda rows, value: torch.tensor([row + [value] * (max(map(len, rows)) - len(row)) for row in rows])
    batch = {}
    for answer in ("chosen", "rejected"):
      for key, value in (("input_ids", 0), ("labels", -100), ("attention_mask", 0)):
        batch[f"{answer}_{key}"] = pad([one[f"{answer}_{key}"] for one in made], value)
    return batch

  def step(self, made):
    self.model.zero_grad()
    batch = self.batch(made)
    loss, metrics = self.trainer.get_batch_loss_metrics(self.model, batch)
    if self.case["strategy"] == "orpo":
      chosen, rejected = self.trainer.concatenated_forward(self.model, batch)[:2]
      losses, *_, odds = self.trainer.odds_ratio_loss(chosen, rejected)
      loss, metrics["log_odds"] = (-chosen - losses).mean(), odds
      metrics["nll"] = -chosen.mean().detach()
    loss.backward()
    with torch.no_grad():
      for weight in self.model.parameters(): weight -= RATE * weight.grad
    return {"loss": loss.item(), **{key: float(value) for key, value in metrics.items()}}


def check(k, seed, build, dpo, orpo):
  case = draw(random.Random(f"{seed} {k}"))
  told = f"{k}: " + json.dumps({key: value for key, value in case.items() if key != "pairs"})
  with tempfile.TemporaryDirectory() as made:
    folder = pathlib.Path(made)
    tokenizer = write_tokenizer(case, folder / "tokenizer")
    kept = [pair for pair in case["pairs"] if not reaches_across(tokenizer, pair)]
    theirs = [(pair, their_tokens(case, dpo, orpo, tokenizer, pair)) for pair in kept]
    # An answer of which no token is foreseen is no pair here: there is nothing to compare.
    theirs = [(pair, ids) for pair, ids in theirs if ids and all(any(x != -100 for x in ids[f"{a}_labels"][1:]) for a in ("chosen", "rejected"))]
    if len(theirs) < 2: return "none", len(case["pairs"]) - len(kept)
    (folder / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair, _ in theirs))
    vocab = len(tokenizer)
    config = LlamaConfig(vocab_size=vocab, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2, max_position_embeddings=64, rms_norm_eps=1e-5, tie_word_embeddings=False,
                         initializer_range=0.2)
    torch.manual_seed(k)
    model = LlamaForCausalLM(config)
    model.save_pretrained(folder / "model")
    reference = LlamaForCausalLM.from_pretrained(folder / "model", dtype=torch.float64)
    (folder / "plan.yaml").write_text(plan(case, len(theirs), vocab))
    run(build / "nxcfg", "plan", "plan.yaml", "-o", "plan.bin", folder=folder)
    run(build / "nxdata", "prepare", "plan.bin", folder=folder)
    ours = our_tokens(next((folder / "made").glob("*.idx")).with_suffix(""))
    wanted = [(ids[f"{a}_input_ids"], [float(x != -100) for x in ids[f"{a}_labels"]]) for _, ids in theirs for a in ("chosen", "rejected")]
    for i, (one, other) in enumerate(zip(ours, wanted)):
      if one != other:
        print(f"not ok - {told}\n  answer {i}: {theirs[i // 2][0]}\n  ours   {one}\n  theirs {other}", flush=True)
        return "differ", 0
    if len(ours) != len(wanted):
      print(f"not ok - {told}\n  {len(ours)} answers, not {len(wanted)}", flush=True)
      return "differ", 0
    run(build / "nxrun", "plan.bin", "--dir", "run", folder=folder)
    rows = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    by = Theirs(case, dpo, orpo, model.double(), reference)
    for row in rows:
      expected = by.step([ids for _, ids in theirs])
      names = {"loss": "loss", **METRICS} if case["strategy"] == "dpo" else {
          "loss": "loss", "nll": "nll", "log_odds": "log_odds", **{n: t for n, t in METRICS.items() if n != "rewards_margin"}}
      for name, key in names.items():
        if not abs(row[name] - expected[key]) <= BOUND * (1 + abs(expected[key])) * (10 if name != "loss" else 1):
          print(f"not ok - {told}\n  step {row['step']}: {name} is {row[name]}, and TRL's {expected[key]}", flush=True)
          return "differ", 0
  return "agree", len(case["pairs"]) - len(kept)


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("build", type=lambda p: pathlib.Path(p).resolve())
  parser.add_argument("--n", type=int, default=50)
  parser.add_argument("--seed", type=int, default=1)
  parser.add_argument("--only", type=int)
  a = parser.parse_args()
  os.environ["TOKENIZERS_PARALLELISM"] = "false"
  transformers.logging.set_verbosity_error()
  transformers.logging.disable_progress_bar()
  torch.set_num_threads(1)
  dpo, orpo = trainers()
  results = [check(k, a.seed, a.build, dpo, orpo) for k in range(a.n) if a.only in (None, k)]
  count = lambda word: sum(result == word for result, _ in results)
  print(f"{count('agree')} cases agree, {count('none')} have no pairs, {count('differ')} differ; "
        f"left out: {sum(n for _, n in results)} pairs whose answer begins within a token")
  sys.exit(count("differ") > 0)


if __name__ == "__main__":
  main()
