#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokens that a tokenizer_config.json names beside a tokenizer.json, with their flags and roles, taken out of texts as
transformers takes them.

  pip install transformers; check_added.py build/tests/parity/tokenize [--n N] [--seed S]       (exit 1 on a difference)
"""
import argparse
import json
import pathlib
import random
import shutil
import sys
import tempfile

from transformers import AutoTokenizer

from fuzz_tokenizers import ours

HERE = pathlib.Path(__file__).parent / "recorded" / "tokenizers"
TOKENIZERS = ["llama3", "gpt2", "llama2", "mistral", "qwen", "t5", "bert", "deepseek", "clip"]


def a_token(r, content):
  flags = {name: r.random() < .3 for name in ("lstrip", "rstrip", "single_word", "normalized", "special")}
  return {"content": content, **flags}


def a_config(r, pool):
  config = {"tokenizer_class": "PreTrainedTokenizerFast"}
  for role in ("bos", "eos", "unk", "sep", "pad", "cls", "mask"):
    if r.random() < .3: config[f"{role}_token"] = r.choice([lambda c: c, lambda c: a_token(r, c) | {"__type": "AddedToken", "special": True}])(r.choice(pool))
  if r.random() < .5: config["added_tokens_decoder"] = {str(1000 + i): a_token(r, c) for i, c in enumerate(r.sample(pool, r.randrange(1, 4)))}
  if r.random() < .4: config[r.choice(["additional_special_tokens", "extra_special_tokens"])] = r.sample(pool, 2)
  elif r.random() < .3: config["extra_special_tokens"] = {f"{name}_token": r.choice(pool) for name in ("image", "video")}
  return config


def check(k, seed, program):
  r = random.Random(f"{seed} {k}")
  with tempfile.TemporaryDirectory() as made:
    folder, name = pathlib.Path(made), r.choice(TOKENIZERS)
    shutil.copy(HERE / name / "tokenizer.json", folder)
    vocab = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    tokens = [piece[0] for piece in vocab] if isinstance(vocab, list) else list(vocab)
    pool = r.sample(tokens, 6) + ["<pad>", "<|im_start|>", "<|x y|>", "[MASK]", "</s>"]
    config = a_config(r, pool)
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    theirs = AutoTokenizer.from_pretrained(folder)
    pieces = pool + [" ", "  ", "the of", "é", "x", "12", "\n"] + tokens[40:80]
    texts = ["".join(r.choice(pieces) for _ in range(r.randrange(1, 9))) for _ in range(20)]
    found, why = ours(program, folder / "tokenizer.json", [text.encode() for text in texts], special=False)
  if found is None: sys.exit(f"{k}: {why}")
  for text, one in zip(texts, found):
    wanted = theirs(text, add_special_tokens=False)["input_ids"]
    if one is None or one[0] != wanted:
      print(f"not ok - {k}, {name}: {text!r}\n  ours   {one and one[0]}\n  theirs {wanted}\n  {json.dumps(config)}")
      return False
  return True


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("program")
  parser.add_argument("--n", type=int, default=100)
  parser.add_argument("--seed", type=int, default=1)
  a = parser.parse_args()
  results = [check(k, a.seed, a.program) for k in range(a.n)]
  print(f"{sum(results)} configurations of {len(results)}, 20 texts each, agree")
  sys.exit(not all(results))


if __name__ == "__main__":
  main()
