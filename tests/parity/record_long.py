#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records which of records too long for a sequence NxDT's own packing leaves out: recorded/answers/long.jsonl and long.txt.

usage: record_long.py FOLDER [SEED]; needs transformers and torch

FOLDER holds NxDT's ConcatDataset.py (lightning_modules/data/datasets) and utils.py (lightning_modules/data). Records become
tokens as its _tokenize_and_modify_for_SFT says: each text by itself and cut to a sequence, a beginning, an end.
"""
import importlib.util
import json
import pathlib
import random
import shutil
import sys
import tempfile
import types

from transformers import AutoTokenizer

SEQUENCE, PADDING = 64, 1 << 20
HERE = pathlib.Path(__file__).parent / "recorded"


def concat_dataset(folder):
  """The class, in a room that has the one module that it imports."""
  names = "neuronx_distributed_training.lightning_modules.data.utils".split(".")
  for i in range(1, len(names)): sys.modules[".".join(names[:i])] = types.ModuleType(".".join(names[:i]))
  for name, file in ((".".join(names), "utils.py"), ("concat", "ConcatDataset.py")):
    spec = importlib.util.spec_from_file_location(name, pathlib.Path(folder) / file)
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
  return module.ConcatDataset


def tokenizer():
  with tempfile.TemporaryDirectory() as folder:
    shutil.copy(HERE / "tokenizers/llama3/tokenizer.json", folder)
    shutil.copy(HERE / "answers/tokenizer_config.json", folder)
    return AutoTokenizer.from_pretrained(folder)


def main():
  it, draw = tokenizer(), random.Random(sys.argv[2] if len(sys.argv) > 2 else "1")
  text = lambda most: " ".join(draw.choice("the of and a to in devil is that it as for".split()) for _ in range(draw.randrange(most)))
  records = [{"input": text(40), "output": text(45)} for _ in range(60)]
  asked, said = ([it(r[key], max_length=SEQUENCE, add_special_tokens=False)["input_ids"] for r in records] for key in ("input", "output"))
  ids = [[it.bos_token_id] + a + s + [it.eos_token_id] for a, s in zip(asked, said)]
  padding = {"input_ids": PADDING, "labels": -100, "attention_mask": 0}
  rows = concat_dataset(sys.argv[1])({"input_ids": ids, "labels": ids, "attention_mask": ids}, it.eos_token_id, padding, SEQUENCE).samples
  (HERE / "answers/long.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
  (HERE / "answers/long.txt").write_text(" ".join(str(i) for row in rows for i in row["input_ids"] if i != PADDING) + "\n")


main()
