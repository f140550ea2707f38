#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random blends, as nxrun reads them and as the builders and helpers of Megatron Core or GPT-NeoX make them: weights or none,
by number of documents, a set or one for each part, splits, batches, epochs, evaluations.

  pip install numpy torch; check_blends.py BUILD SYSTEM [--n N] [--seed S] [--only K]      (exit 1 on a difference)

SYSTEM is a checkout of Megatron-LM (core 0.8 and later) or of GPT-NeoX, with helpers.cpp compiled beside it. What of it data
does not need (models, communication) is stood in for. Every token of the sets is another number, and a row is compared whole,
by a hash of its inputs and its last label. Where a part has one token at most the systems crash, or search for ever: that is
an error of theirs here, before they do, and no part of ours. A crash that is another, and one that takes longer than a minute,
are differences.
"""
import argparse
import importlib.abc
import importlib.machinery
import json
import logging
import multiprocessing
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import types
import warnings
from unittest.mock import MagicMock

import numpy
import torch

PATIENCE = 60
SPLITS = ["969,30,1", "90,5,5", "1,1,1", "80,20,0", "0.7,0.2,0.1", "99,1,0", "5,3,2", "100,0,0", "949,50,1", "98,2", "7"]
PARTS = ("train", "valid", "test")
NAMES = {"train": "train", "valid": "validation", "test": "test"}


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
  def __init__(self, names): self.names = names

  def find_spec(self, name, path, target=None):
    if any(name == n or name.startswith(n + ".") for n in self.names):
      return importlib.machinery.ModuleSpec(name, self, is_package=True)

  def create_module(self, spec):
    made = MagicMock(name=spec.name)
    made.__path__, made.__spec__, made.__name__ = [], spec, spec.name
    return made

  def exec_module(self, module): pass


class NoTokens(Exception):
  """Of a part: what the systems do not ask."""


def guard_tokens(place, name, part_of):
  """Has a function of theirs that counts the tokens of a part raise NoTokens where these make no sample of any length."""
  counts = getattr(place, name)

  def guarded(*given):
    found = counts(*given)
    if found <= 1: raise NoTokens(part_of(sys._getframe(1).f_locals))
    return found

  setattr(place, name, guarded)


class Tokenizer:
  vocab_size, eod, pad, unique_identifiers = 65000, 64999, 64998, {"class": "numbers"}


def row_hash(tokens):
  found = 0
  for token in tokens: found = (found * 31 + int(token) + 1) % 2**32
  return found


def places(n):
  """Of so many samples: the first, every seventh, and the last; the systems take milliseconds for one."""
  return sorted({*range(min(n, 30)), *range(0, n, 7), *range(max(0, n - 10), n)})


def draw_sets(r):
  sets = []
  for _ in range(r.choice([1, 1, 2, 2, 3, 4, 6])):
    sets.append([r.randrange(1, r.choice([3, 20, 90])) for _ in range(r.choice([3, 10, 40, 100]))])
  return {"sets": sets, "sequence": r.choice([4, 7, 16]), "seed": r.choice([1234, 1, r.randrange(2**31)]),
          "batch": r.choice([1, 2, 4]), "steps": r.randrange(2, 60), "eval_iters": r.randrange(1, 4), "interval": r.randrange(1, 40)}


def some_sets(r, case):
  return r.sample(range(len(case["sets"])), r.randrange(1, len(case["sets"]) + 1))


def a_weight(r): return r.choice([1, 2, 0.3, 10, r.random() + 1e-3])


def wanted_samples(case):
  batch, steps = case["batch"], case["steps"]
  return [steps * batch, (steps // case["interval"] + 1) * case["eval_iters"] * batch, case["eval_iters"] * batch]


def steps_read(case): return case["steps"] * 5


class Megatron:
  stand_ins = ("triton", "megatron.core.transformer", "megatron.core.tensor_parallel", "megatron.core.parallel_state",
               "megatron.core.tokenizers", "megatron.core.inference", "megatron.core.packed_seq_params", "megatron.core.extensions",
               "megatron.core.pipeline_parallel", "megatron.core.dist_checkpointing")

  def open(self, checkout):
    for name in ("blended_megatron_dataset_builder", "gpt_dataset", "utils"): importlib.import_module("megatron.core.datasets." + name)
    guard_tokens(sys.modules["megatron.core.datasets.gpt_dataset"].GPTDataset, "_get_num_tokens_per_epoch",
                 lambda names: names["self"].index_split.name)

  def draw(self, r):
    case = draw_sets(r)
    weighed = r.random() < .7
    if r.random() < .8: case["sets"] = [[r.randrange(2, 60) for _ in range(r.choice([60, 120]))] for _ in case["sets"]]
    written = lambda: [text for i in some_sets(r, case) for text in ([str(a_weight(r))] if weighed else []) + [f"set{i}"]]
    if r.random() < .3:
      case["paths"] = {part: written() for part in PARTS}
    else:
      case["path"], case["split"] = written(), r.choice(SPLITS)
    if r.random() < .15: case["file"] = True
    return case

  def rows(self, case):
    from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
    from megatron.core.datasets.utils import get_blend_from_list
    sizes = wanted_samples(case)
    blend = get_blend_from_list(case["path"]) if "path" in case else None
    per_split = [get_blend_from_list(case["paths"][p]) for p in PARTS] if "paths" in case else None
    wanted = dict(random_seed=case["seed"], sequence_length=case["sequence"], blend=blend, blend_per_split=per_split,
                  split=case.get("split"), tokenizer=Tokenizer(), reset_position_ids=False, reset_attention_mask=False,
                  eod_mask_loss=False, create_attention_mask=False, mid_level_dataset_surplus=0.005,
                  num_dataset_builder_threads=1, path_to_cache=None)
    known = GPTDatasetConfig.__dataclass_fields__
    config = GPTDatasetConfig(**{name: value for name, value in wanted.items() if name in known})
    built = BlendedMegatronDatasetBuilder(GPTDataset, sizes, lambda: True, config).build()
    found = {}
    for name, data, n in zip(NAMES.values(), built, sizes):
      if data is not None:
        found[name] = {i: row_hash([*data[i]["tokens"].tolist(), int(data[i]["labels"][-1])]) for i in places(min(len(data), n))}
    return found

  def write(self, case, folder):
    data = sum([[f"--{p}-data-path", *case["paths"][p]] for p in case["paths"]], []) if "paths" in case else [
        "--data-path", *case["path"], "--split", case["split"]]
    if "file" in case and "path" in case:
      (folder / "blend").write_text(" ".join(case["path"]))
      data = ["--data-args-path", "blend", "--split", case["split"]]
    elif "file" in case:
      (folder / "blend.json").write_text(json.dumps(case["paths"]))
      data = ["--per-split-data-args-path", "blend.json"]
    script = folder / "train.sh"
    script.write_text("torchrun --nproc_per_node 1 pretrain_gpt.py --num-layers 1 --hidden-size 8 --num-attention-heads 1 "
                      f"--max-position-embeddings {case['sequence']} --seq-length {case['sequence']} --micro-batch-size 1 "
                      f"--global-batch-size {case['batch']} --train-iters {case['steps']} --eval-iters {case['eval_iters']} "
                      f"--eval-interval {case['interval']} --lr 1e-3 --seed {case['seed']} --tokenizer-type NullTokenizer "
                      f"--vocab-size 64999 --attention-dropout 0 --hidden-dropout 0 {' '.join(data)}\n")
    return script


class Neox:
  stand_ins = ("megatron.mpu", "megatron.data.online_dataset")

  def open(self, checkout):
    """Its package without what its __init__ imports: arguments, and with them DeepSpeed."""
    package = types.ModuleType("megatron")
    package.__path__, package.print_rank_0 = [str(checkout / "megatron")], lambda *texts: None
    sys.modules["megatron"] = package
    package.mpu = importlib.import_module("megatron.mpu")
    package.mpu.get_model_parallel_rank.return_value = package.mpu.get_data_parallel_rank.return_value = 0
    package.mpu.get_data_parallel_world_size.return_value = 1
    torch.cuda.LongTensor = torch.LongTensor
    for name in ("all_reduce", "barrier", "broadcast"): setattr(torch.distributed, name, lambda *a, **b: None)
    torch.distributed.get_rank, torch.distributed.get_world_size = lambda *a, **b: 0, lambda *a, **b: 1
    importlib.import_module("megatron.data.data_utils")
    guard_tokens(sys.modules["megatron.data.gpt2_dataset"], "_num_tokens", lambda names: names["name"].partition("_")[0])

  def draw(self, r):
    case = draw_sets(r)
    case["options"] = options = {}
    if r.random() < .15: options["train_epochs"], options["eval_iters"] = 1, case["eval_iters"]
    else: options.update(train_iters=case["steps"], eval_iters=case["eval_iters"], eval_interval=case["interval"])
    options["seed"], options["seq_length"] = case["seed"], case["sequence"]
    if r.random() < .3:
      options["data_path"], options["split"] = "set0", r.choice(SPLITS + ["8/1/1"])
      return case
    by_documents = r.random() < .35 and "train_epochs" not in options
    weighed = not by_documents and r.random() < .6 and "train_epochs" not in options
    if by_documents: options["weight_by_num_documents"], options["weighted_sampler_alpha"] = True, r.choice([0.3, 1.0, 0.7, 0.1])
    for part in PARTS:
      options[f"{part}_data_paths"] = [f"set{i}" for i in some_sets(r, case)]
      if weighed and r.random() < .8: options[f"{part}_data_weights"] = [a_weight(r) for _ in options[f"{part}_data_paths"]]
    return case

  def rows(self, case):
    from megatron.data import data_utils
    given = {"train_iters": None, "train_epochs": None, "eval_interval": 1000, "weight_by_num_documents": False,
             "weighted_sampler_alpha": 1.0, "data_impl": "mmap", "dataset_impl": "gpt2", "pack_impl": "packed", "allow_chopped": True,
             "mmap_warmup": False, "use_shared_fs": True, "is_pipe_parallel": False, "precompute_model_name": None,
             "batch_size": 1, "num_workers": 0, "train_batch_size": case["batch"], **case["options"]}
    for part in PARTS:  # as NeoXArgs.calculate_derived fills weights in
      if given.get(f"{part}_data_paths") and not given.get(f"{part}_data_weights"):
        given[f"{part}_data_weights"] = [1.0] * len(given[f"{part}_data_paths"])
    class Arguments(types.SimpleNamespace):
      def __getattr__(self, name):
        if name.endswith(("_data_paths", "_data_weights")): return None
        raise AttributeError(name)
    made = data_utils.build_train_valid_test_data_loaders(Arguments(**given))
    found = {}
    for name, part, n in zip(NAMES.values(), PARTS, wanted_samples(case)):
      if made[part] is None: continue
      data = made[part].dataset
      if data.__len__() < 0: raise NoTokens(part)  # it says of what has no sample that it has one less
      if given["train_epochs"]: n = steps_read(case) * case["batch"]
      n = min(len(data) // case["batch"] * case["batch"] if given["train_epochs"] else len(data), n)
      found[name] = {i: row_hash(data[i]["text"]) for i in places(n)}
    return found

  def write(self, case, folder):
    config = folder / "train.yml"
    config.write_text(json.dumps({
        "pipe_parallel_size": 0, "model_parallel_size": 1, "num_layers": 1, "hidden_size": 8, "num_attention_heads": 1,
        "max_position_embeddings": case["sequence"], "pos_emb": "rotary", "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": case["batch"], "global_num_gpus": 1, "padded_vocab_size": 65024,
        "tokenizer_type": "CharLevelTokenizer", "make_vocab_size_divisible_by": 8, "hidden_dropout": 0, "attention_dropout": 0,
        "precision": "fp32", "lr_decay_style": "constant", "data_impl": "mmap",
        "optimizer": {"type": "Adam", "params": {"lr": 1e-3}}, **case["options"]}, indent=1) + "\n")
    return config


def our_rows(case, build, folder, written):
  done = subprocess.run([build / "nxcfg", "plan", written, "-o", folder / "plan.bin"], capture_output=True, text=True)
  if done.returncode: return None, done.stdout + done.stderr
  done = subprocess.run([build / "tests/parity/samples", "plan.bin", str(steps_read(case))], capture_output=True, text=True, cwd=folder)
  found = {}
  for line in done.stdout.splitlines():
    if line.startswith("! "): return None, line
    name, *numbers = line.split(" ! ")[0].split()
    found[name] = [int(n) for n in numbers]
  return found, done.stderr[-400:]


def write_sets(case, build, folder):
  first = 0
  for i, lengths in enumerate(case["sets"]):
    lines = []
    for length in lengths:
      lines.append(json.dumps({"ids": list(range(first, first + length))}))
      first += length
    (folder / f"set{i}.jsonl").write_text("\n".join(lines) + "\n")
    command = [build / "nxdata", "build", folder / f"set{i}.jsonl", "--field", "ids", "-o", folder / f"set{i}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode: sys.exit(done.stderr)


def part_of(error):
  """Which part an error is of: both systems make them one after another."""
  at = error.__traceback__
  while at:
    names, function = at.tb_frame.f_locals, at.tb_frame.f_code.co_name
    if function == "_build_blended_dataset_splits" and names.get("i") in range(len(PARTS)): return PARTS[names["i"]]
    if function == "build_train_valid_test_data_loaders" and "train_datasets" in names:
      return next((part for part in PARTS if names.get(f"{part}_ds") is None), "train")
    at = at.tb_next
  return "train"


def answer(system, case, pipe):
  os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
  try: pipe.send((system.rows(case), None, ""))
  except NoTokens as error: pipe.send((None, str(error), "a part has no tokens"))
  except Exception as error: pipe.send((None, part_of(error), f"{type(error).__name__}: {error}"))


def their_rows(system, case):
  """Their rows; or None, what they refuse (the part without tokens, or all: \"train\"; None: nothing), and why."""
  ours, theirs = multiprocessing.get_context("fork").Pipe()
  child = multiprocessing.get_context("fork").Process(target=answer, args=(system, case, theirs))
  child.start()
  theirs.close()
  try: return ours.recv() if ours.poll(PATIENCE) else (None, None, "it never ends")
  except EOFError: return None, None, "it crashed"
  finally:
    child.kill()
    child.join()


def differences(theirs, ours):
  for name, wanted in theirs.items():
    got = ours.get(name, [])
    at = next((i for i, row in wanted.items() if i >= len(got) or got[i] != row), None)
    if at is not None: yield f"{name}: row {at} of {len(wanted)} is {'another' if at < len(got) else 'none'}"


def check(k, seed, build, system):
  case = system.draw(random.Random(f"{seed} {k}"))
  if sum(map(sum, case["sets"])) > 60000: return None
  with tempfile.TemporaryDirectory() as made:
    folder = pathlib.Path(made)
    write_sets(case, build, folder)
    os.chdir(folder)
    ours, why = our_rows(case, build, folder, system.write(case, folder))
    theirs, refused, raised = their_rows(system, case)
    os.chdir("/")
  told = f"{k}: " + json.dumps({name: value for name, value in case.items() if name != "sets"}) + f" documents {[len(s) for s in case['sets']]}"
  if theirs is None or ours is None:
    # What is evaluated alone and has no sample is left out here.
    if refused and (ours is None or refused != "train" and NAMES[refused] not in ours): return "refused"
    print(f"not ok - {told}\n  theirs: {raised[:300] or 'takes it'}\n  ours: {why[-500:] or 'takes it'}", flush=True)
    return "differs"
  found = list(differences(theirs, ours))
  if found: print(f"not ok - {told}\n  " + "\n  ".join(found), why, flush=True)
  return "differs" if found else "agrees"


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("build", type=lambda p: pathlib.Path(p).resolve())
  parser.add_argument("system", type=lambda p: pathlib.Path(p).resolve())
  parser.add_argument("--n", type=int, default=100)
  parser.add_argument("--seed", type=int, default=1)
  parser.add_argument("--only", type=int)
  a = parser.parse_args()
  warnings.simplefilter("ignore")
  logging.disable()
  torch.set_num_threads(1)
  system = Megatron() if (a.system / "megatron" / "core").is_dir() else Neox()
  sys.path.insert(0, str(a.system))
  sys.meta_path.insert(0, StandIns(system.stand_ins))
  system.open(a.system)
  results = [check(k, a.seed, a.build, system) for k in range(a.n) if a.only in (None, k)]
  print(", ".join(f"{results.count(r)} {word}" for r, word in (
      ("agrees", "agree"), ("refused", "refused by both"), ("differs", "differ"))))
  sys.exit("differs" in results)


if __name__ == "__main__":
  main()
