#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records how Megatron Core, GPT-NeoX and Hugging Face's datasets divide and blend: which documents a part has, which
source gives which sample.

usage: record_data.py FOLDER    writes recorded/data.txt

FOLDER holds the systems' own files: helpers.cpp (megatron/core/datasets), config.py (megatron/core/datasets/
blended_megatron_dataset_config.py), utils.py and gpt_dataset.py (megatron/core/datasets), and GPT-NeoX's neox.py
(megatron/data/data_utils.py) and gpt2_dataset.py (megatron/data). Needs
numpy, torch (for its copy of pybind11), datasets, and a compiler. Of the Python files single functions are taken, since
what they import is not needed for them.

Lines of the record: KIND FIELDS... = RESULT. Numbers are written so that C reads the same double.
"""
import ast
import functools
import math
import pathlib
import random
import re
import subprocess
import sys
import sysconfig

import numpy
import torch


def functions(path, names, given):
    """The named functions of a file, in a room where `given` stands for what it imports."""
    tree = ast.parse(path.read_text())
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in names]
    for node in tree.body:
        node.returns = None
        for argument in node.args.args:
            argument.annotation = None
    room = dict(given)
    exec(compile(tree, str(path), "exec"), room)
    return [room[name] for name in names]


def build_helpers(folder):
    target = folder / ("helpers_cpp" + sysconfig.get_config_var("EXT_SUFFIX"))
    includes = [pathlib.Path(torch.__file__).parent / "include", sysconfig.get_paths()["include"]]
    command = ["c++", "-O3", "-shared", "-std=c++17", "-fPIC", *(f"-I{i}" for i in includes), str(folder / "helpers.cpp")]
    subprocess.run([*command, "-o", str(target)], check=True)
    sys.path.insert(0, str(folder))
    import helpers_cpp

    return helpers_cpp


def shown(numbers):
    return " ".join(repr(float(number)) for number in numbers)


DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
N_PICKS, N_ALL = 100, 100000


def blends(helpers, normalize):
    draw = random.Random(1)
    cases = [[1, 1], [0.3, 0.7], [1, 1, 1], [5, 3, 2], [0.9, 0.05, 0.05], [1e-4, 1], [2, 1, 1, 4], [1] * 7, [7, 11, 13, 17]]
    cases += [[draw.random() for _ in range(n)] for n in (2, 5, 12, 30)]
    for case in cases:
        weights = normalize(case)
        sources, samples = numpy.zeros(N_ALL, dtype=numpy.int16), numpy.zeros(N_ALL, dtype=numpy.int64)
        helpers.build_blending_indices(sources, samples, weights, len(case), N_ALL, False)
        picks = "".join(DIGITS[i] for i in sources[:N_PICKS])
        counts = " ".join(str(int((sources == i).sum())) for i in range(len(case)))
        yield f"blend {shown(weights)} = {picks} {counts}"


SPLITS = ["969,30,1", "969, 30, 1", "99,1,0", "98,2", "1", "0,1", "1,1", "90,5,5", "1/1", "0.5,0.3,0.2", "33,33,34", "949,50,1"]
SIZES = [1, 2, 3, 5, 7, 10, 17, 99, 100, 149, 150, 151, 1000, 1049, 12345, 1000003]


def splits(megatron, neox):
    for text in SPLITS:
        for size in SIZES:
            if "/" not in text:
                ends = numpy.cumsum([0.0, *megatron(text)])
                borders = [int(round(end * float(size))) for end in ends]
                yield f"sums {text.replace(' ', '')} {size} = {' '.join(map(str, borders))}"
            borders = neox(text, size)
            if all(0 <= a <= b for a, b in zip(borders, borders[1:])):
                yield f"each {text.replace(' ', '')} {size} = {' '.join(map(str, borders))}"


def held_out():
    from datasets import Dataset

    for size in SIZES[2:-2]:
        rows = Dataset.from_dict({"row": range(size)})
        for test in (0.1, 0.05, 0.3, 1, 2):
            parts = rows.train_test_split(test_size=test if test < 1 else int(test), shuffle=False)
            assert parts["train"]["row"][0] == 0 and parts["test"]["row"][-1] == size - 1
            yield f"last {test} {size} = {len(parts['train'])}"


def by_documents(neox):
    for counts in ([10, 1000], [1, 1, 1], [500, 20, 4000, 77], [12]):
        for alpha in (0.3, 1.0, 0.0, 0.7):
            yield f"documents {alpha} {' '.join(map(str, counts))} = {shown(neox(counts, alpha))}"


def stream_order(documents, samples, helpers, sizes, seed, sequence, n, apart):
    """First token of every sample in order, as if the documents stood one after another: what GPTDataset's (with the
    last epoch apart, where little of it is needed) and GPT2Dataset's own functions give."""
    tokens = int(sizes.sum())
    epochs = 1
    while epochs * tokens < n * sequence + 1:
        epochs += 1
    before = ((epochs - 1) * tokens - 1) // sequence
    separate = apart and epochs > 1 and n - before < int(0.80 * ((tokens - 1) // sequence))
    state = numpy.random.RandomState(seed)
    ids = numpy.arange(len(sizes), dtype=numpy.int32)
    order = documents(ids, epochs, state, separate) if apart else documents(ids, epochs, state)
    starts = helpers.build_sample_idx_int32(sizes, order, sequence, epochs, tokens, True, 1)
    total = starts.shape[0] - 1
    shuffled = samples(before if separate else total, total, state) if apart else samples(total, state)
    firsts = numpy.concatenate([[0], numpy.cumsum(sizes)])
    found = []
    for sample in shuffled[:n]:
        at, offset = starts[sample]
        while offset >= sizes[order[at]]:
            at, offset = at + 1, offset - sizes[order[at]]
        found.append(int(firsts[order[at]] + offset))
    return found


# Seed, tokens a sample, samples: of one epoch and of many, to the last sample of an epoch and one beyond, on both sides
# of the four fifths of an epoch from which the last is shuffled with the others.
ORDERS = ((1234, 4, 30), (1, 5, 40), (1234, 4, 60), (7, 3, 150), (99, 7, 24), (5, 2, 200), (0, 4, 1), (0, 4, 24), (0, 4, 25),
          (0, 4, 43), (0, 4, 44), (0, 4, 45), (2, 2, 49), (2, 2, 50), (2, 2, 89), (2, 2, 90), (3, 33, 3), (3, 33, 4),
          (3, 50, 1), (3, 50, 7), (3, 99, 1), (3, 99, 9), (2147483647, 4, 61), (4294967295, 6, 70), (42, 8, 300), (43, 11, 77))


def orders(folder, helpers, given):
    megatron = functions(folder / "gpt_dataset.py", ["_build_document_index", "_build_shuffle_index"], given)
    neox = functions(folder / "gpt2_dataset.py", ["_build_doc_idx", "_build_shuffle_idx"], given)
    for name, (documents, samples), apart in (("megatron", megatron, True), ("neox", neox, False)):
        for seed, sequence, n in ORDERS:
            sizes = numpy.array([40, 3, 29, 1, 20, 7], dtype=numpy.int32)
            found = stream_order(documents, samples, helpers, sizes, seed, sequence, n, apart)
            yield f"{name} {seed} {sequence} {n} = {' '.join(map(str, found))}"


def main():
    folder = pathlib.Path(sys.argv[1])
    given = {"numpy": numpy, "functools": functools, "re": re, "math": math, "Split": range(3), "List": list}
    (normalize,) = functions(folder / "utils.py", ["normalize"], given)
    given["normalize"] = normalize
    (parse,) = functions(folder / "config.py", ["parse_and_normalize_split"], given)
    split, weigh = functions(folder / "neox.py", ["get_train_valid_test_split_", "weights_by_num_docs"], given)
    given.update(np=numpy, numpy=numpy)
    helpers = build_helpers(folder)
    lines = [*blends(helpers, normalize), *splits(parse, split), *held_out(), *by_documents(weigh), *orders(folder, helpers, given)]
    out = pathlib.Path(__file__).parent / "recorded" / "data.txt"
    out.write_text("\n".join(lines) + "\n")


main()
