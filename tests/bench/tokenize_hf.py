# SPDX-License-Identifier: Apache-2.0
"""How fast tokenizers encodes the same parts of texts on one core: called by tests/bench/tokenize."""

import sys
import time

from tokenizers import Tokenizer

PART = 4096
it = Tokenizer.from_file(sys.argv[1])
it.no_truncation()
for name in sys.argv[3:]:
    data = open(name, "rb").read()
    parts = [data[i : i + PART].decode("utf-8", "replace") for i in range(0, len(data), PART)]
    best, n = 1e9, 0
    for _ in range(int(sys.argv[2])):
        start = time.process_time()
        n = sum(len(it.encode(part, add_special_tokens=False).ids) for part in parts)
        best = min(best, time.process_time() - start)
    print(name, f"{len(data) / 1e6 / best:.2f}", n)
