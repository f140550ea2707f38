#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random layouts against what transformers, PEFT and PyTorch recorded: tiny models of every family, adapters, pairs of
answers and packed documents on 2 to 8 ranks, with tensor, sequence, pipeline, virtual, context, expert and data
parallelism, every stage of ZeRO, recomputation, and whatever else a layout may say.

  check_layouts.py BUILD [--n N] [--seed S] [--only K]         (exit 1 on a difference)

Each training must have the losses and gradient norms that were recorded on one rank without nxrun (of packed documents:
those of nxrun with a document a row; of deeper models: nxrun's own on one rank), at every step. Layouts that nxcfg refuses
are counted by the message.
"""
import argparse
import collections
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

RECORDED = pathlib.Path(__file__).resolve().parent / "recorded"
HEAD = """batch: {micro: 2, global: 8}
optimizer: {name: adamw, lr: 1e-3, betas: [0.9, 0.95], weight_decay: 0.1, clip_norm: 1.0, epsilon: 1e-8}
schedule: {name: cosine, warmup_steps: 4, min_lr: 1e-4, max_steps: 20}
run: {seed: 7}
"""
TINY = HEAD + "model: {sequence: 32}\ndata: {shuffle: false}\n"
DEEP = HEAD.replace("max_steps: 20", "max_steps: 5").replace("micro: 2", "micro: 1") + """model: {layers: 8, hidden: 32,
  ffn_hidden: 48, heads: 4, kv_heads: 2, sequence: 32, vocab: 250, vocab_divisor: 16, normalization: rmsnorm,
  position_embedding: rope, activation: swiglu}
"""
PACKED = HEAD.replace("max_steps: 20", "max_steps: 4").replace("global: 8", "global: 4") + """model: {sequence: 32}
loss: {mean: step}
data: {sampler: packed, shuffle: false, reset_attention_mask: true, reset_position_ids: true, eod_mask_loss: true}
"""
LORA = {"llama": ("llama", "lora.alpha=8 lora.rank=4"),
        "llama_bias": ("llama_bias", "lora.rank=3 lora.alpha=16 lora.modules=[q_proj,v_proj] lora.bias=all lora.rank_stabilized=true"),
        "gpt2_bias": ("gpt2", "lora.rank=4 lora.alpha=8 lora.modules=[c_fc,attn.c_proj] lora.bias=lora_only"),
        "qwen3": ("qwen3", "lora.rank=4 lora.alpha=4 lora.modules=[self_attn.q_proj,v_proj,lm_head]"),
        "phi3": ("phi3", "lora.rank=4 lora.alpha=8 lora.modules=[qkv_proj,gate_up_proj,o_proj]"),
        "experts": ("qwen3_moe", "lora.rank=3 lora.alpha=6 lora.modules=[q_proj,gate_proj,up_proj,down_proj]"),
        "experts_shared": ("qwen3_moe", "lora.rank=3 lora.alpha=6 lora.shared_by_experts=true lora.modules=[q_proj,gate_proj,up_proj,down_proj]")}
PAIRS = {"dpo": "alignment.strategy=dpo alignment.beta=0.1", "orpo": "alignment.strategy=orpo alignment.beta=0.25",
         "dpo_smoothed": "alignment.strategy=dpo alignment.beta=0.5 alignment.label_smoothing=0.1"}
# Options of a model that has no record.
FORMS = ["", "model.kv_heads=4", "model.tied_embeddings=true", "model.kv_heads=1", "model.sliding_window=8", "model.hidden_dropout=0.1",
         "model.normalization=layernorm model.bias=true model.activation=gelu_tanh model.kv_heads=4 optimizer.epsilon=1e-5",
         "model.position_embedding=alibi", "data.end_of_document=7 data.reset_attention_mask=true data.reset_position_ids=true", "optimizer.name=lion",
         "moe.experts=4 moe.top_k=2 moe.ffn_hidden=24 moe.aux_loss_coef=0 moe.dropless=true",
         "moe.experts=4 moe.top_k=1 moe.ffn_hidden=24 moe.aux_loss_coef=0 moe.z_loss_coef=0.01 moe.dropless=true moe.shared_ffn_hidden=24"]


def shape_of(family):
  config = json.loads((RECORDED / "families" / family / "config.json").read_text())
  experts = next((config[k] for k in ["num_local_experts", "num_experts", "n_routed_experts"] if config.get(k)), 0)
  return {"layers": 2, "kv": config.get("num_key_value_heads", 4), "experts": experts}


def steps_of(path, key="fp32"):
  return [(s["loss"], s["grad_norm"]) for s in json.loads(path.read_text())[key]]


def model_of(family):
  at = RECORDED / "families" / family
  return ["--model-config", at / "config.json"], [f"run.init_from={at / 'model.safetensors'}"]


def draw_task(r):
  """Text, arguments, settings, shape, and what must come out: steps, or the settings of the run that tells them."""
  kind = r.choice(["family"] * 3 + ["lora", "pairs", "packed", "deep", "deep", "both", "both"])
  tokens = f"data.path=[{RECORDED / 'tokens'}]"
  if kind == "family":
    family = r.choice(sorted(p.name for p in (RECORDED / "families").iterdir()))
    record = RECORDED / "families" / family / "record.json"
    arguments, settings = model_of(family)
    rate = json.loads(record.read_text()).get("correction_rate", 0)
    return f"family {family}", TINY, arguments, settings + [tokens, f"moe.correction_rate={rate}"], shape_of(family), steps_of(record)
  if kind == "lora":
    case = r.choice(sorted(LORA))
    family, more = LORA[case]
    arguments, settings = model_of(family)
    settings += [tokens, f"lora.init_from={RECORDED / 'lora' / case}"] + more.split()
    return f"lora {case}", TINY, arguments, settings, shape_of(family), steps_of(RECORDED / "lora" / case / "record.json")
  if kind == "pairs":
    case = r.choice(sorted(PAIRS))
    arguments, settings = model_of("llama")
    settings += [f"data.path=[{RECORDED / 'preferences/pairs'}]"] + PAIRS[case].split()
    return f"pairs {case}", TINY, arguments, settings, shape_of("llama"), steps_of(RECORDED / "preferences" / case / "record.json", "fp64")
  if kind == "packed":
    family = r.choice(["llama", "qwen3", "gpt_neox", "mixtral", "gemma2", "llama_yarn"])
    arguments, settings = model_of(family)
    settings += ["data.path=[documents]"] + (["moe.aux_loss_coef=0"] if family == "mixtral" else [])
    return f"packed {family}", PACKED, arguments, settings, shape_of(family), ["data.sampler=document", "batch.global=10"]
  if kind == "both": return draw_both(r)
  form = r.choice(FORMS)
  kv = re.search(r"kv_heads=(\d)", form)
  shape = {"layers": 8, "kv": int(kv[1]) if kv else 2, "experts": 4 if "experts" in form else 0}
  return f"deep {form}", DEEP, [], [tokens] + form.split(), shape, []


def draw_both(r):
  """Adapters, pairs of answers, packed documents and mixtures together; like nxrun itself on one rank."""
  family = r.choice(["llama", "qwen3_moe", "gemma2", "phi3", "mixtral", "gpt_neox", "deepseek_v3", "gpt_oss", "qwen2"])
  arguments, settings = model_of(family)
  text, way = r.choice([(TINY, "pairs"), (PACKED, "packed"), (TINY, "stream")])
  name, shape, like = f"both {family} {way}", shape_of(family), []
  if way == "pairs": settings += [f"data.path=[{RECORDED / 'preferences/pairs'}]", *PAIRS[r.choice(sorted(PAIRS))].split()]
  if way == "packed": settings.append("data.path=[documents]")
  if way == "packed": like = ["data.sampler=document", "batch.global=10"]
  if way == "stream": settings.append(f"data.path=[{RECORDED / 'tokens'}]")
  if r.random() < .6:
    more = r.choice(["lora.dropout=0.1", "lora.rank_stabilized=true", "lora.bias=lora_only", ""]).split()
    if way == "packed": more = [m for m in more if "dropout" not in m] # which token drops out hangs on its place in the row
    settings += ["lora.rank=4", "lora.alpha=8", "lora.b_init_std=0.02", *more]
    name += f" lora {' '.join(more)}"
  if shape["experts"]: settings += ["moe.aux_loss_coef=0", "moe.dropless=true"]
  return name, text, arguments, settings + ["schedule.max_steps=5", "model.hidden_dropout=0"], shape, like


def draw_axes(r, shape):
  """Powers of two on axes, as many as there are ranks."""
  most = {"tensor": 4, "pipeline": min(shape["layers"], 8), "context": 4, "data": 8}
  axes = dict.fromkeys(most, 1)
  for _ in range(r.choice([1, 1, 2, 2, 2, 3])):
    axis = r.choice([a for a in most if axes[a] < most[a]])
    axes[axis] *= 2
  return axes


def draw_layout(r, shape, task):
  axes = draw_axes(r, shape)
  ranks = axes["tensor"] * axes["pipeline"] * axes["context"] * axes["data"]
  s = [f"mesh.world={ranks}"] + [f"mesh.{a}={n}" for a, n in axes.items() if a != "data" and n > 1]
  if axes["tensor"] > 1 and r.random() < .5: s.append("sequence_parallel=true")
  if axes["tensor"] > shape["kv"]: s.append(f"mesh.kv_replicator={axes['tensor'] // shape['kv']}")
  if axes["context"] > 1:
    how = r.choice(["ring", "ring", "ulysses", "both"] if axes["context"] > 2 else ["ring", "ulysses"])
    s += {"ring": ["attention.ring=true"], "ulysses": ["attention.ulysses=true"],
          "both": ["attention.ring=true", "attention.ulysses=true", "mesh.ulysses=2"]}[how]
  if axes["pipeline"] > 1:
    chunks = [n for n in (2, 4) if axes["pipeline"] * n <= shape["layers"]]
    if chunks and r.random() < .5: s.append(f"mesh.virtual_pipeline={r.choice(chunks)}")
    elif r.random() < .2: s.append("pipeline.schedule=gpipe")
    if r.random() < .3: s.append("pipeline.receive_ahead=true")
  s += draw_sharding(r, axes) + draw_experts(r, shape, axes)
  if r.random() < .3: s.append("recompute.granularity=full")
  elif r.random() < .2: s += ["recompute.granularity=selective", f"recompute.modules=[{r.choice(['mlp', 'self_attn', 'layernorm'])}]"]
  if axes["pipeline"] > 1 and axes["data"] > 1 and r.random() < .2: s.append("mesh.order=tp-pp-dp")
  if shape["experts"] == 0 and "pairs" not in task and axes["data"] < 8: s.append(f"batch.micro={r.choice([1, 1, 2, 4])}")
  return ranks, s


def draw_sharding(r, axes):
  s = [f"optimizer.zero_stage={r.randrange(4)}"] if r.random() < .7 else []
  if axes["data"] > 2 and r.random() < .3: s.append("mesh.replicate=2")
  if r.random() < .4: s += ["reduce.overlap=true", "gather.overlap=true"]
  if r.random() < .3: s.append(f"reduce.bucket_elements={r.choice([500, 3000, 20000])}")
  if r.random() < .15: s.append("optimizer.reshard_after_forward=false")
  if axes["context"] > 1 and r.random() < .2: s.append("optimizer.zero_context=none")
  return s


def draw_experts(r, shape, axes):
  if not shape["experts"]: return []
  s = []
  if axes["tensor"] > 1 and r.random() < .5: s.append("mesh.expert_tensor=1")
  room = axes["data"] * axes["context"] * (axes["tensor"] if s else 1)
  choices = [n for n in (2, 4) if n <= room and shape["experts"] % n == 0]
  if choices and r.random() < .8: s.append(f"mesh.expert={r.choice(choices)}")
  if r.random() < .3: s.append("moe.dispatcher=allgather")
  return s + ["moe.buffer_factor=8"]


def compile_plan(build, folder, text, arguments, settings):
  """None, or why not."""
  folder.mkdir()
  (folder / "config.yaml").write_text(text)
  sets = [word for s in settings for word in ("--set", "nx:" + s)]
  command = [build / "nxcfg", "plan", "--dialect", "nx", folder / "config.yaml", *arguments, *sets, "-o", folder / "plan.bin"]
  done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
  if done.returncode == 0: return None
  lines = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("error")]
  return re.sub(r"\d+", "#", lines[0].split("error", 1)[1] if lines else (done.stdout + done.stderr)[-300:])


def train(build, ranks, folders, p2p=False):
  """All on one launch; where one fails, the others go on in the next."""
  failed = {}
  while folders:
    command = ["mpiexec", "-n", str(ranks), str(build / "tests/parity/train_plans"), "comm=" + ("p2p" if p2p else "auto"), *map(str, folders)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0: break
    at = max([i for i, f in enumerate(folders) if (f / "run").exists()] + [0])
    failed[folders[at]] = done.stderr[-1500:]
    folders = folders[at + 1:]
  return failed


def read_steps(folder):
  lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
  return [(line["loss"], line["grad_norm"]) for line in lines if "set" not in line]


def worst(expected, got):
  if len(expected) != len(got): return (9.0, 9.0)
  return tuple(max(abs(a[i] - b[i]) / abs(b[i]) for a, b in zip(got, expected)) for i in range(2))


def make_documents(build):
  lines = []
  for length in [20, 8, 16, 30, 7, 12, 16, 2, 9, 8]:
    ids = [(length * 7 + i * i * 3 + 5 * i) % 240 for i in range(length)]
    lines.append(json.dumps({"input_ids": ids, "labels": [-100 if i < length / 2 else t for i, t in enumerate(ids)]}))
  pathlib.Path("documents.jsonl").write_text("\n".join(lines) + "\n")
  subprocess.run([build / "nxdata", "build", "documents.jsonl", "--field", "input_ids", "--labels", "labels", "-o", "documents"],
                 check=True, capture_output=True)


def draw(build, seed, k):
  r = random.Random(f"{seed} {k}")
  name, text, arguments, settings, shape, expected = draw_task(r)
  ranks, layout = draw_layout(r, shape, name)
  if " packed" in " " + name: layout = [s for s in layout if not s.startswith("batch.micro")] + ["batch.micro=1"]
  case = {"k": k, "name": name, "ranks": ranks, "layout": layout, "folder": pathlib.Path(f"layout-{k}"), "p2p": r.random() < .2,
          "pairs": "pairs" in name}
  case["refused"] = compile_plan(build, case["folder"], text, arguments, settings + layout)
  if case["refused"] is None and not (expected and isinstance(expected[0], tuple)):
    case["like"] = pathlib.Path(f"like-{k}")
    micro = [] if case["pairs"] else ["batch.micro=1"]
    why = compile_plan(build, case["like"], text, arguments, settings + expected + ["mesh.world=1", "moe.buffer_factor=8"] + micro)
    if why: sys.exit(f"{name}: one rank is refused: {why}")
  case["expected"] = expected
  return case


def judge(case, failed):
  told = f"{case['k']}: {case['name']} on {case['ranks']}: {' '.join(case['layout'])}"
  if case["folder"] in failed:
    print(f"not ok - {told}\n  failed: {failed[case['folder']]}")
    return False
  expected = read_steps(case["like"]) if "like" in case else case["expected"]
  loss, norm = worst(expected, read_steps(case["folder"]))
  good = loss <= 2e-6 and norm <= 2e-5
  if not good: print(f"not ok - {told}\n  loss {loss:.1e}, norm {norm:.1e}")
  return good


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("build", type=lambda p: pathlib.Path(p).resolve())
  parser.add_argument("--n", type=int, default=150)
  parser.add_argument("--seed", type=int, default=1)
  parser.add_argument("--only", type=int)
  a = parser.parse_args()
  with tempfile.TemporaryDirectory() as folder:
    import os
    os.chdir(folder)
    make_documents(a.build)
    cases = [draw(a.build, a.seed, k) for k in range(a.n) if a.only in (None, k)]
    taken = [c for c in cases if c["refused"] is None]
    failed = train(a.build, 1, [c["like"] for c in taken if "like" in c])
    if failed: sys.exit(f"on one rank: {failed}")
    for ranks in (2, 4, 8):
      for p2p in (False, True):
        failed |= train(a.build, ranks, [c["folder"] for c in taken if c["ranks"] == ranks and c["p2p"] == p2p], p2p)
    good = sum([judge(c, failed) for c in taken])
  for why, n in collections.Counter(c["refused"] for c in cases if c["refused"]).most_common(): print(f"  {n} refused: {why}")
  print(f"{len(cases)} layouts: {len(cases) - len(taken)} refused, {good} of {len(taken)} agree")
  sys.exit(good < len(taken))


if __name__ == "__main__":
  main()
