#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random blends, as nxrun reads them and as Megatron Core's own builders and helpers make them: weights or none, a set or one
for each part, splits, batches, epochs, evaluations.

  pip install numpy torch; check_blends.py BUILD MEGATRON [--n N] [--seed S] [--only K]      (exit 1 on a difference)

MEGATRON holds megatron/core of Megatron-LM, with helpers_cpp compiled in megatron/core/datasets. What of it data does not
need (models, communication) is stood in for. Tokens are numbered, so that its first token tells a sample.
"""
import argparse
import importlib.abc
import importlib.machinery
import json
import logging
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings
from unittest.mock import MagicMock


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
  names = ("triton", "megatron.core.transformer", "megatron.core.tensor_parallel", "megatron.core.parallel_state",
           "megatron.core.tokenizers", "megatron.core.inference", "megatron.core.packed_seq_params", "megatron.core.extensions",
           "megatron.core.pipeline_parallel", "megatron.core.dist_checkpointing")

  def find_spec(self, name, path, target=None):
    if any(name == n or name.startswith(n + ".") for n in self.names):
      return importlib.machinery.ModuleSpec(name, self, is_package=True)

  def create_module(self, spec):
    made = MagicMock(name=spec.name)
    made.__path__, made.__spec__, made.__name__ = [], spec, spec.name
    return made

  def exec_module(self, module): pass


class Tokenizer:
  vocab_size, eod, pad, unique_identifiers = 65000, 64999, 64998, {"class": "numbers"}


def draw(r):
  sets = []
  for _ in range(r.choice([1, 1, 2, 2, 3, 4, 6])):
    sets.append([r.randrange(1, r.choice([3, 20, 90])) for _ in range(r.choice([3, 10, 40, 100]))])
  case = {"sets": sets, "sequence": r.choice([4, 7, 16]), "seed": r.choice([1234, 1, r.randrange(2**31)]),
          "batch": r.choice([1, 2, 4]), "steps": r.randrange(2, 60), "eval_iters": r.randrange(1, 4), "interval": r.randrange(1, 40)}
  blend = lambda: [(r.choice([1, 2, 0.3, 10, r.random() + 1e-3]), i) for i in r.sample(range(len(sets)), r.randrange(1, len(sets) + 1))]
  weighed = r.random() < .7
  written = lambda b: [str(w) for pair in b for w in (pair[0], f"set{pair[1]}")] if weighed else [f"set{i}" for _, i in b]
  if r.random() < .3:
    case["paths"] = {part: written(blend()) for part in ("train", "valid", "test")}
  else:
    case["path"] = written(blend())
    case["split"] = r.choice(["969,30,1", "90,5,5", "1,1,1", "80,20,0", "0.7,0.2,0.1", "99,1,0", "5,3,2", "100,0,0"])
  return case


def megatron_samples(case, names):
  from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
  from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
  from megatron.core.datasets.utils import get_blend_from_list
  batch, steps = case["batch"], case["steps"]
  sizes = [steps * batch, (steps // case["interval"] + 1) * case["eval_iters"] * batch, case["eval_iters"] * batch]
  blend = get_blend_from_list(case["path"]) if "path" in case else None
  per_split = [get_blend_from_list(case["paths"][p]) for p in ("train", "valid", "test")] if "paths" in case else None
  config = GPTDatasetConfig(random_seed=case["seed"], sequence_length=case["sequence"], blend=blend, blend_per_split=per_split,
                            split=case.get("split"), tokenizer=Tokenizer(), reset_position_ids=False, reset_attention_mask=False,
                            eod_mask_loss=False, create_attention_mask=False, mid_level_dataset_surplus=0.005,
                            num_dataset_builder_threads=1, path_to_cache=None)
  built = BlendedMegatronDatasetBuilder(GPTDataset, sizes, lambda: True, config).build()
  return {name: {i: int(d[i]["tokens"][0]) for i in places(min(len(d), n))} for name, d, n in zip(names, built, sizes) if d is not None}


def places(n):
  """Of so many samples: the first, every seventh, and the last; Megatron takes milliseconds for one."""
  return sorted({*range(min(n, 30)), *range(0, n, 7), *range(max(0, n - 10), n)})


def nxrun_samples(case, build, folder):
  data = sum([[f"--{p}-data-path", *case["paths"][p]] for p in case["paths"]], []) if "paths" in case else [
      "--data-path", *case["path"], "--split", case["split"]]
  script = folder / "train.sh"
  script.write_text("torchrun --nproc_per_node 1 pretrain_gpt.py --num-layers 1 --hidden-size 8 --num-attention-heads 1 "
                    f"--max-position-embeddings {case['sequence']} --seq-length {case['sequence']} --micro-batch-size 1 "
                    f"--global-batch-size {case['batch']} --train-iters {case['steps']} --eval-iters {case['eval_iters']} "
                    f"--eval-interval {case['interval']} --lr 1e-3 --seed {case['seed']} --tokenizer-type NullTokenizer "
                    f"--vocab-size 64999 --attention-dropout 0 --hidden-dropout 0 {' '.join(data)}\n")
  done = subprocess.run([build / "nxcfg", "plan", script, "-o", folder / "plan.bin"], capture_output=True, text=True)
  if done.returncode: return None, done.stdout + done.stderr
  done = subprocess.run([build / "tests/parity/samples", "plan.bin", str(case["steps"] * 5)], capture_output=True, text=True, cwd=folder)
  found = {}
  for line in done.stdout.splitlines():
    if line.startswith("! "): return None, line
    name, *numbers = line.split(" ! ")[0].split()
    found[name] = [int(n) for n in numbers]
  return found, done.stderr[-400:]


def write_sets(case, build, folder):
  first = 0
  for i, lengths in enumerate(case["sets"]):
    lines, first_here = [], first
    for length in lengths:
      lines.append(json.dumps({"ids": list(range(first, first + length))}))
      first += length
    (folder / f"set{i}.jsonl").write_text("\n".join(lines) + "\n")
    command = [build / "nxdata", "build", folder / f"set{i}.jsonl", "--field", "ids", "-o", folder / f"set{i}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode: sys.exit(done.stderr)


def check(k, seed, build):
  case = draw(random.Random(f"{seed} {k}"))
  if sum(map(sum, case["sets"])) > 60000: return None
  with tempfile.TemporaryDirectory() as made:
    folder = pathlib.Path(made)
    write_sets(case, build, folder)
    os.chdir(folder)
    ours, why = nxrun_samples(case, build, folder)
    try: theirs, raised = megatron_samples(case, ["train", "validation", "test"]), ""
    except Exception as error: theirs, raised = None, f"{type(error).__name__}: {error}"
    os.chdir("/")
  told = f"{k}: " + json.dumps({name: value for name, value in case.items() if name != "sets"}) + f" documents {[len(s) for s in case['sets']]}"
  if theirs is None or ours is None or why:
    agree = theirs is None and bool(ours is None or why)
    if not agree: print(f"not ok - {told}\n  Megatron: {raised[:300] or 'takes it'}\n  ours: {why[-500:] or 'takes it'}")
    return agree
  good = True
  for name, wanted in theirs.items():
    got = ours.get(name)
    at = next((i for i, token in wanted.items() if got is None or i >= len(got) or got[i] != token), None)
    if at is None: continue
    good = False
    print(f"not ok - {told}\n  {name}: sample {at} is {got and got[at:at + 1]}, not {wanted[at]} {why}")
  return good


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("build", type=lambda p: pathlib.Path(p).resolve())
  parser.add_argument("megatron", type=lambda p: pathlib.Path(p).resolve())
  parser.add_argument("--n", type=int, default=100)
  parser.add_argument("--seed", type=int, default=1)
  parser.add_argument("--only", type=int)
  a = parser.parse_args()
  warnings.simplefilter("ignore")
  logging.disable()
  sys.path.insert(0, str(a.megatron))
  sys.meta_path.insert(0, StandIns())
  results = []
  for k in range(a.n):
    if a.only in (None, k): results.append(check(k, a.seed, a.build))
    if k % 10 == 9: print(f"{k + 1} drawn, {results.count(False)} differ", flush=True)
  print(f"{sum(r is not None for r in results)} blends, {sum(r is False for r in results)} differ")
  sys.exit(False in results)


if __name__ == "__main__":
  main()
