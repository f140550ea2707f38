#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records which blocks DeepSpeed's layouts of sparse attention read: recorded/sparsity.txt, for tests/unit/test_sparsity.c.

  record_sparsity.py DEEPSPEED      a folder with the source of DeepSpeed (pip download --no-binary :all: deepspeed)

A line is KIND HEADS BLOCKS DIFFER WINDOW GLOBAL PATTERNS WINDOWS FROM TO, lists with commas and - for none, and behind
a colon the rows of each layout in hexadecimal, bit c for block c; what lies behind a row's own block is left out.
"""
import importlib.util
import itertools
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
KINDS = {"fixed": "FixedSparsityConfig", "variable": "VariableSparsityConfig", "local": "LocalSlidingWindowSparsityConfig",
         "bigbird": "BigBirdSparsityConfig", "longformer": "BSLongformerSparsityConfig"}
BLOCK = 4


def cases():
  for heads, blocks in itertools.product((1, 3), (1, 2, 7, 16, 70)):
    differ = heads > 1
    for window, n_global, patterns in ((4, 1, 1), (4, 2, 2), (6, 3, 2), (1, 1, 1)):
      if patterns == 1 or differ:
        yield "fixed", heads, blocks, dict(different_layout_per_head=differ, num_local_blocks=window,
                                           num_global_blocks=n_global, num_different_global_patterns=patterns)
    for windows, first, end in (([4], [0], None), ([1, 3, 2], [2, 5], None), ([2], [0, 3], [2, 4])):
      yield "variable", heads, blocks, dict(different_layout_per_head=differ, num_random_blocks=0,
                                            local_window_blocks=windows, global_block_indices=first,
                                            global_block_end_indices=end)
      yield "longformer", heads, blocks, dict(different_layout_per_head=differ, num_sliding_window_blocks=1,
                                              global_block_indices=first, global_block_end_indices=end)
    for window in (1, 2, 3, 6):
      if window <= blocks:
        yield "local", 1, blocks, dict(num_sliding_window_blocks=window)
        yield "bigbird", heads, blocks, dict(different_layout_per_head=differ, num_random_blocks=0,
                                             num_sliding_window_blocks=window, num_global_blocks=1)
        yield "longformer", heads, blocks, dict(different_layout_per_head=differ, num_sliding_window_blocks=window)


def listed(values):
  return ",".join(map(str, values)) if values else "-"


def line_of(module, kind, heads, blocks, options):
  config = getattr(module, KINDS[kind])(num_heads=heads, block=BLOCK, attention="unidirectional", **options)
  layout = config.make_layout(blocks * BLOCK)
  differ = options.get("different_layout_per_head", False)
  rows = ["%x" % sum(1 << c for c in range(r + 1) if layout[h][r][c]) for h in range(heads if differ else 1)
          for r in range(blocks)]
  windows = options.get("local_window_blocks", [options.get("num_local_blocks", 4)])
  return " ".join(map(str, (kind, heads, blocks, int(differ), options.get("num_sliding_window_blocks", 3),
                            options.get("num_global_blocks", 1), options.get("num_different_global_patterns", 1),
                            listed(windows), listed(options.get("global_block_indices", [0])),
                            listed(options.get("global_block_end_indices"))))) + " : " + " ".join(rows)


def main():
  path = pathlib.Path(sys.argv[1]) / "deepspeed/ops/sparse_attention/sparsity_config.py"
  spec = importlib.util.spec_from_file_location("sparsity_config", path)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  lines = []
  for case in cases():
    try:
      lines.append(line_of(module, *case))
    except (ValueError, RuntimeError, IndexError):
      continue  # what DeepSpeed refuses
  (HERE / "recorded" / "sparsity.txt").write_text("\n".join(sorted(set(lines))) + "\n")


main()
