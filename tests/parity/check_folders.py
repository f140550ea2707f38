#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that transformers opens the folder of a checkpoint as it is: the loss of a validation set and the text that
the likeliest tokens make are nxrun's own, with the weights, the tokenizer and the settings of the folder.

  pip install transformers; check_folders.py NXRUN NXCFG NXDATA MPIEXEC [CASE...]        (exit 1 on a difference)
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

SEQUENCE, STEPS, PROMPT, N_TOKENS = 64, 100, "MARRIAGE, n. ", 40
FAMILIES = pathlib.Path(__file__).resolve().parent / "recorded" / "families"
TEXT = pathlib.Path(__file__).resolve().parents[2] / "conf" / "text" / "devil.txt"
PLAN = f"""
batch: {{micro: 4, global: 8}}
model: {{layers: 2, hidden: 64, ffn_hidden: 128, heads: 4, kv_heads: 2, sequence: {SEQUENCE}, vocab: 257,
  vocab_divisor: 16}}
optimizer: {{name: adamw, lr: 5e-3}}
schedule: {{max_steps: {STEPS}}}
precision: {{preset: fp32}}
data: {{path: [train], validation_path: [validation]}}
evaluate: {{share: 1}}
run: {{name: run, log_every: {STEPS}}}
"""
GPT2 = ["model.position_embedding=learned", "model.normalization=layernorm", "model.activation=gelu",
        "model.norm_bias=true", "model.bias=true", "model.kv_heads=4", "model.tied_embeddings=true"]
MIXTURE = ["moe.experts=4", "moe.top_k=2", "moe.dropless=true", "moe.pre_softmax=true", "moe.normalize_top_k=true"]
# Of each: ranks, settings, how far the loss may be from nxrun's, and the family of the model, if it is none of the plan's.
CASES = {
    "llama": (1, [], 1e-6),
    "tensor": (2, ["mesh.tensor=2", "sequence_parallel=true"], 1e-6),
    "pipeline": (2, ["mesh.pipeline=2"], 1e-6),
    "zero3": (2, ["optimizer.zero_stage=3"], 1e-6),
    "several_files": (2, ["mesh.tensor=2", "checkpoint.file_bytes=100000"], 1e-6),
    "gpt2": (1, GPT2 + ["model.hidden_dropout=0.1"], 1e-6),
    "experts": (2, MIXTURE + ["mesh.expert=2"], 1e-6),
    "mixtral": (2, ["mesh.expert=2", "moe.dropless=true"], 1e-6, "mixtral"),
    "mixtral_stages": (2, ["mesh.pipeline=2", "moe.dropless=true"], 1e-6, "mixtral"),
    "qwen3_moe": (2, ["mesh.expert=2", "optimizer.zero_stage=1"], 1e-6, "qwen3_moe"),
    "qwen3_moe_sharded": (2, ["optimizer.zero_stage=3"], 1e-6, "qwen3_moe"),
    "deepseek_v2": (2, ["mesh.expert=2"], 1e-6, "deepseek_v2"),
    "deepseek_v3": (2, ["mesh.pipeline=2"], 1e-6, "deepseek_v3"),
    "deepseek_v3_sharded": (2, ["optimizer.zero_stage=3"], 1e-6, "deepseek_v3"),
    "gemma2": (2, ["mesh.tensor=2"], 1e-6, "gemma2"),
    "qwen2": (2, ["mesh.tensor=2", "sequence_parallel=true"], 1e-6, "qwen2"),
    "phi3": (2, ["mesh.tensor=2"], 1e-6, "phi3"),
    "olmo2_sharded": (2, ["optimizer.zero_stage=3"], 1e-6, "olmo2"),
    "gpt_neox": (2, ["mesh.tensor=2"], 1e-6, "gpt_neox"),
    "glm4_moe": (2, ["mesh.expert=2"], 1e-6, "glm4_moe"),
    "gpt_oss_sharded": (2, ["optimizer.zero_stage=3"], 1e-6, "gpt_oss"),
    "gemma_sharded": (2, ["optimizer.zero_stage=3"], 1e-6, "gemma"),
    "qwen3_stages": (2, ["mesh.pipeline=2"], 1e-6, "qwen3"),
    "mistral_stages": (2, ["mesh.pipeline=2"], 1e-6, "mistral"),
    "llama_yarn": (2, ["mesh.context=2", "attention.ring=true"], 1e-6, "llama_yarn"),
    "model_weights": (1, ["precision.preset=mixed_precision", "checkpoint.weights=model"], 2e-2),
}


def run(*command):
  done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
  if done.returncode:
    sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
  return done.stdout


def describe(family):
  """The arguments that name the recorded family's config.json, with room for bytes and longer sequences."""
  config = json.loads((FAMILIES / family / "config.json").read_text())
  config |= {"vocab_size": 272, "max_position_embeddings": SEQUENCE}
  pathlib.Path("config.json").write_text(json.dumps(config))
  pathlib.Path("family.yaml").write_text("".join(
      line for line in PLAN.splitlines(True) if not line.startswith(("model:", "  vocab_divisor"))) +
      f"model: {{sequence: {SEQUENCE}}}\n")
  return ["family.yaml", "--model-config", "config.json"]


def loss_of(model, ids):
  """Of every whole sample of the set, as a stream cuts it."""
  n = (len(ids) - 1) // SEQUENCE
  tokens = torch.tensor(ids[:n * SEQUENCE + 1])
  inputs, labels = tokens[:-1].view(n, SEQUENCE), tokens[1:].view(n, SEQUENCE)
  with torch.no_grad():
    logits = torch.cat([model(part).logits for part in inputs.split(8)])
  return torch.nn.functional.cross_entropy(logits.double().flatten(0, 1), labels.flatten()).item()


def check(name, tools, ids):
  ranks, settings, bound, *family = CASES[name]
  nxrun, nxcfg, _, mpiexec = tools
  sets = [word for s in [f"mesh.world={ranks}", *settings] for word in ("--set", s)]
  run(nxcfg, "plan", *(describe(*family) if family else ["plan.yaml"]), *sets, "-o", "plan.bin")
  start = [mpiexec, "-n", ranks, nxrun, "plan.bin", "--dir", name]
  run(*start)
  run(*start, "--evaluate", "--metrics", name + ".jsonl")
  ours = json.loads(pathlib.Path(name + ".jsonl").read_text().splitlines()[-1])["loss"]
  folder = pathlib.Path(name) / "checkpoints" / f"step-{STEPS:06}"
  model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
  tokenizer = AutoTokenizer.from_pretrained(folder)
  theirs = loss_of(model, ids)
  good = abs(ours - theirs) <= bound * theirs and tokenizer(TEXT.read_text()[:500])["input_ids"] == list(TEXT.read_bytes()[:500])
  text = ""
  if "mesh.pipeline=2" not in settings:
    text = run(*start, "--generate", PROMPT, "--tokens", N_TOKENS, "--temperature", 0)
    made = model.generate(**tokenizer(PROMPT, return_tensors="pt"), max_new_tokens=N_TOKENS, do_sample=False)
    good = good and (bound > 1e-3 or text == tokenizer.decode(made[0], skip_special_tokens=True) + "\n")
  files = sorted(p.name for p in folder.iterdir() if p.name.startswith("model"))
  print(f"{'ok' if good else 'not ok'} - {name}: loss {ours:.9f}, transformers {theirs:.9f}; {len(files)} files of weights;"
        f" {text[len(PROMPT):].strip()!r}")
  return good


def main():
  tools = [pathlib.Path(p).resolve() if "/" in p else p for p in sys.argv[1:5]]
  names = sys.argv[5:] or list(CASES)
  with tempfile.TemporaryDirectory() as folder:

    os.chdir(folder)
    text = TEXT.read_bytes()
    parts = {"train": text[30000:130000], "validation": text[130000:150000]}
    for name, part in parts.items():
      pathlib.Path(name + ".txt").write_bytes(part)
      run(tools[2], "build", name + ".txt", "-o", name)
    pathlib.Path("plan.yaml").write_text(PLAN)
    sys.exit(0 if all([check(name, tools, list(parts["validation"])) for name in names]) else 1)


if __name__ == "__main__":
  main()
