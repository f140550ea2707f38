#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time that OmegaConf takes to load and resolve a file (and jsonschema to check it); prints one line of JSON.

  pip install omegaconf==2.3.0 jsonschema
  omegaconf_validate.py FILE [--schema SCHEMA.json] [--runs 20]

Medians: process_ms is a whole new process, which is what a command costs and compares with `nxcfg validate`;
warm_ms is the same work in a process that has already imported everything and done it once. Resolvers that
trainers register themselves are defined here, so that their files resolve.
"""
import argparse
import json
import math
import statistics
import subprocess
import sys
import time


def register_resolvers():
  from omegaconf import OmegaConf
  OmegaConf.register_new_resolver("multiply", lambda *values: math.prod(values))
  OmegaConf.register_new_resolver("add", lambda *values: sum(values))
  OmegaConf.register_new_resolver("divide", lambda a, b: a / b)


def validate(path, schema_path):
  """Loads and resolves; checks against the schema where one is given. Raises where the file does not fit."""
  from omegaconf import OmegaConf
  settings = OmegaConf.to_container(OmegaConf.load(path), resolve=True)
  if schema_path:
    import jsonschema
    with open(schema_path, encoding="utf-8") as file:
      jsonschema.validate(settings, json.load(file))


def median_ms(work, runs):
  seconds = []
  for _ in range(runs):
    start = time.perf_counter()
    work()
    seconds.append(time.perf_counter() - start)
  return statistics.median(seconds) * 1e3


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("file")
  parser.add_argument("--schema")
  parser.add_argument("--runs", type=int, default=20)
  parser.add_argument("--once", action="store_true", help="validate once and print nothing")
  args = parser.parse_args()
  register_resolvers()
  validate(args.file, args.schema)
  if args.once:
    return
  again = [sys.executable, __file__, args.file, "--once"] + (["--schema", args.schema] if args.schema else [])
  with open(args.file, encoding="utf-8") as file:
    n_lines = sum(1 for _ in file)
  print(json.dumps({"file": args.file, "lines": n_lines, "schema": args.schema, "runs": args.runs,
                    "process_ms": median_ms(lambda: subprocess.run(again, check=True), args.runs),
                    "warm_ms": median_ms(lambda: validate(args.file, args.schema), args.runs)}))


if __name__ == "__main__":
  main()
