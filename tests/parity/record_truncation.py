#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what TRL 0.10.1, which NxDT pins, makes of pairs of answers that do not fit, which are in
recorded/preferences/truncation.jsonl: truncation.txt has two lines for each way, with what it keeps of a prompt, its lengths
and the tokens of all documents, and with their weights.

  pip download --no-deps trl==0.10.1; record_truncation.py UNPACKED/trl        (needs transformers)

Only the functions that make the tokens are taken of TRL: the rest wants a transformers of its time. Where a token reaches
across the border of prompt and answer TRL drops it, and nxdata gives it to the answer: there is no such pair here.
"""
import ast
import collections
import json
import pathlib
import random
import sys
import types
import typing

from transformers import PreTrainedTokenizerFast

HERE = pathlib.Path(__file__).parent / "recorded"
WAYS = [(length, prompt, mode) for length, prompt in ((9, 3), (12, 8), (16, 1), (16, 15), (24, 12), (64, 5))
        for mode in ("keep_start", "keep_end")]
WORDS = "the of and to in is that for it with as on be at by this had not are but from or have an they".split()


def functions_of(folder):
    names = {k: getattr(typing, k) for k in ("Any", "Callable", "Dict", "List", "Optional", "Tuple")}
    names |= {"defaultdict": collections.defaultdict, "PreTrainedTokenizerBase": object, "PreTrainedModel": object,
              "DPOConfig": object}
    for file in ("utils.py", "dpo_trainer.py"):
        for node in ast.parse((folder / "trainer" / file).read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name[0] in "_a":
                exec(compile(ast.Module([node], []), file, "exec"), names)
    return names


def make_pairs(tokenizer):
    """Prompts and answers of all lengths, whose prompts are the same tokens alone and before each answer."""
    draw, pairs = random.Random(7), []

    def text(most):
        return " ".join(draw.choice(WORDS) for _ in range(draw.randint(0, most)))

    def ids(words):
        return tokenizer(words, add_special_tokens=False)["input_ids"]

    while len(pairs) < 24:
        prompt = text(14) + draw.choice(("\n", ": ", "?"))
        pair = {"prompt": prompt, "chosen": text(8), "rejected": " " + text(8)}
        alone = ids(prompt)
        if all(ids(prompt + pair[key])[:len(alone)] == alone for key in ("chosen", "rejected")):
            pairs.append(pair)
    return pairs


def main():
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(HERE / "tokenizers/llama3/tokenizer.json"), bos_token="<s>",
                                        eos_token="</s>")
    tokenize, pairs = functions_of(pathlib.Path(sys.argv[1]))["_tokenize"], make_pairs(tokenizer)
    columns = {key: [pair[key] for pair in pairs] for key in pairs[0]}
    lines = []
    for length, prompt, mode in WAYS:
        made = tokenize(columns, tokenizer, types.SimpleNamespace(max_length=length, max_prompt_length=prompt,
                                                                  truncation_mode=mode, label_pad_token_id=-100))
        tokens, weights = [], []
        for one in range(len(pairs)):
            for answer in ("chosen", "rejected"):
                tokens += made[f"{answer}_input_ids"][one]
                weights += [int(label != -100) for label in made[f"{answer}_labels"][one]]
        lines += [" ".join(map(str, [mode[5:], length, prompt, *tokens])), " ".join(map(str, weights))]
    folder = HERE / "preferences"
    (folder / "truncation.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    (folder / "truncation.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
