#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `nxcfg schema` prints, judged by jsonschema: the schemas themselves, the shipped configurations, real ones
below $NX_SHARED where it is set, and mistakes.

  check_schema.py NXCFG SOURCE_ROOT

Prints TAP; skips (77) where jsonschema or PyYAML is missing.
"""
import glob
import json
import os
import subprocess
import sys

try:
  import jsonschema
  import yaml
except ImportError as missing:
  print(f"1..0 # SKIP {missing}")
  sys.exit(77)

CONFIGURATIONS = {"nx": ["conf/nx", "tests/golden/ops"], "nxdt": ["conf/nxdt"], "neox": ["conf/neox"], "xorl": ["conf/xorl"]}
MISTAKES = {
    "nx": ["mesh: {tensor: 0}", "mesh: {tensr: 2}", "mesh: {tensor: two}", "optimizer: {lr: fast}",
           "model: {activation: swish}", "data: {path: 3}"],
    "nxdt": ["trainer: {devices: 0}", "trainer: {devicess: 8}", "distributed_strategy: {zero1: 3}"],
    "neox": ["num-layer: 12", "pipe-parallel-size: two", "optimizer: {type: Adam, params: {lr: fast}}"],
    "xorl": ["train: {lr_typo: 1}", "modle: {}", "train: {lr: fast}"],
    "megatron": ["num-layers: two", "MODEL_ARGS: {--num-layer: 12}", "MODEL_ARGS: {--num-layers: two}"],
}
GOOD = {
    "nx": ["mesh: {tensor: '${vars.x}'}\nvars: {x: 2}", "optimizer: {lr: 3e-4}", "optimizer: {lr: $<vars.lr>}",
           "mesh:", "data: {path: [a, b]}", "run:\n  seed: ???"],
    "nxdt": ["mine: {x: 1}\ntrainer: {devices: '${mine.x}'}", "data: {my_own: 1}"],
}


REPORTS = {  # the schema of what a command prints, and arguments
    "plan": ["conf/megatron/llama-405b.sh --machine machines/h100.yaml", "conf/nxdt/quickstart.yaml",
             "conf/neox/zero.yml --world-size 4", "conf/xorl/fsdp.yaml --memory 1MB", "tests/golden/estimate/unknown.yaml",
             "tests/golden/estimate/unknown.yaml --assume none", "nofile.yaml",
             "tests/golden/estimate/model.yaml --machine tests/golden/estimate/machine.yaml"],
    "diff": ["conf/nxdt/quickstart.yaml conf/nxdt/pipeline.yaml", "conf/nx/quickstart.yaml conf/nx/quickstart.yaml",
             "conf/nx/quickstart.yaml conf/nx/tied-pipeline.yaml --machine machines/h100.yaml",
             "nofile.yaml conf/nx/quickstart.yaml"],
    "tune": ["conf/nxdt/llama-7b.yaml --machine trn2", "conf/neox/zero.yml --machine a100-40gb --world-size 8 --top 3",
             "conf/megatron/quickstart.sh --machine h100 --memory 1MB",
             "conf/nxdt/quickstart.yaml --machine trn2 --set trainer.devicess=2", "nofile.yaml --machine trn2"],
}


def check_reports(nxcfg, root, check):
  for command, arguments in REPORTS.items():
    with open(os.path.join(root, "schema", f"{command}.schema.json"), encoding="utf-8") as file:
      schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for words in arguments:
      printed = subprocess.run([nxcfg, command, *words.split(), "--format", "json"], cwd=root, capture_output=True)
      found = [f"{list(e.absolute_path)}: {e.message[:200]}" for e in validator.iter_errors(json.loads(printed.stdout))]
      check(not found, f"{command} {words} fits its schema", "; ".join(found))


def main():
  nxcfg, root = sys.argv[1:3]
  tests = []

  def check(good, name, why=""):
    tests.append(good)
    print(f"{'ok' if good else 'not ok'} {len(tests)} - {name}" + (f"\n# {why}" if why and not good else ""))

  check_reports(os.path.abspath(nxcfg), root, check)
  for dialect in ["nx", "nxdt", "megatron", "neox", "neox@today", "xorl"]:
    schema = json.loads(subprocess.run([nxcfg, "schema", dialect], check=True, capture_output=True).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    check(True, f"{dialect} is a schema of draft 2020-12")
    validator = jsonschema.Draft202012Validator(schema)

    def faults(text):
      return [f"{list(e.absolute_path)}: {e.message[:200]}" for e in validator.iter_errors(yaml.safe_load(text))]

    for folder in CONFIGURATIONS.get(dialect, []):
      for path in sorted(glob.glob(os.path.join(root, folder, "*.y*ml"))):
        with open(path, encoding="utf-8") as file:
          found = faults(file.read())
        check(not found, f"{os.path.relpath(path, root)} fits {dialect}", "; ".join(found))
    golden = os.path.join(root, "tests/golden", "validate" if dialect == "nxdt" else dialect, "files", "*.y*ml")
    real = os.path.join(os.environ.get("NX_SHARED", "/nowhere"), "corpora", dialect, "**", "*.y*ml")
    for path in sorted(glob.glob(golden)) + sorted(glob.glob(real, recursive=True)):
      command = [nxcfg, "validate", "--partial", "--dialect", dialect, path]
      said = subprocess.run(command, capture_output=True, text=True)
      another_program = "\n  it runs " in said.stdout  # which has options of its own
      if said.returncode != 0 or another_program:
        continue
      with open(path, encoding="utf-8") as file:
        found = faults(file.read())
      check(not found, f"{os.path.basename(path)} is valid and fits {dialect}", "; ".join(found))
    for text in MISTAKES.get(dialect, []):
      check(bool(faults(text)), f"{dialect} refuses {text!r}")
    for text in GOOD.get(dialect, []):
      found = faults(text)
      check(not found, f"{dialect} accepts {text!r}", "; ".join(found))
  print(f"1..{len(tests)}")
  sys.exit(0 if all(tests) else 1)


if __name__ == "__main__":
  main()
