#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes checkpoints as Megatron-LM, GPT-NeoX and torch.distributed.checkpoint do, with torch's own torch.save and
writer, from the weights of recorded families (README.md): nxrun that begins with one must train as transformers does.

  record_foreign.py            writes recorded/foreign/
"""
import argparse
import collections
import enum
import pathlib
import shutil

import numpy
import safetensors.torch
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.tensor import Shard, distribute_tensor

import record_families

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE / "recorded" / "foreign"
PAD = 16  # rows of nothing behind the vocabulary's


class AttnBackend(enum.Enum):  # Megatron's own are in the arguments that it saves
  flash = 1


def weights(family):
  return safetensors.torch.load_file(HERE / "recorded" / "families" / family / "model.safetensors")


def padded(table):
  return torch.cat([table, torch.zeros(PAD, table.shape[1])])


def groups(q, k, v, kv_heads):
  """For each key head its rows of queries, of keys and of values."""
  parts = [t.reshape(kv_heads, -1, *t.shape[1:]) for t in (q, k, v)]
  return torch.cat(parts, dim=1).reshape(-1, *q.shape[1:])


def shard(tensor, size, rank, dim):
  return tensor.chunk(size, dim)[rank].clone()


# ---- Megatron Core ----

def megatron_of_llama(kv_heads=2, w=None):
  """Each tensor whole, and along which dimension ranks divide it; None: each has all of it."""
  w, out = w or weights("llama"), {}
  out["embedding.word_embeddings.weight"] = padded(w["model.embed_tokens.weight"]), 0
  out["decoder.final_layernorm.weight"] = w["model.norm.weight"], None
  out["output_layer.weight"] = padded(w["lm_head.weight"]), 0
  for layer in range(2):
    of, to = f"model.layers.{layer}.", f"decoder.layers.{layer}."
    qkv = [w[f"{of}self_attn.{x}_proj.weight"] for x in "qkv"]
    out[to + "self_attention.linear_qkv.weight"] = groups(*qkv, kv_heads), 0
    out[to + "self_attention.linear_qkv.layer_norm_weight"] = w[of + "input_layernorm.weight"], None
    out[to + "self_attention.linear_proj.weight"] = w[of + "self_attn.o_proj.weight"], 1
    out[to + "mlp.linear_fc1.layer_norm_weight"] = w[of + "post_attention_layernorm.weight"], None
    out[to + "mlp.linear_fc1.weight"] = (w[of + "mlp.gate_proj.weight"], w[of + "mlp.up_proj.weight"]), 0
    out[to + "mlp.linear_fc2.weight"] = w[of + "mlp.down_proj.weight"], 1
  return out


def megatron_of_gpt2(heads=4):
  """The names of the models before Megatron Core, below language_model."""
  w, out = weights("gpt2"), {}
  out["embedding.word_embeddings.weight"] = padded(w["transformer.wte.weight"]), 0
  out["embedding.position_embeddings.weight"] = w["transformer.wpe.weight"], None
  for kind in ("weight", "bias"):
    out[f"encoder.final_norm.{kind}"] = w[f"transformer.ln_f.{kind}"], None
  for layer in range(2):
    of, to = f"transformer.h.{layer}.", f"encoder.layers.{layer}."
    for kind in ("weight", "bias"):
      turned = (lambda t: t.t().contiguous()) if kind == "weight" else (lambda t: t)
      row = 1 if kind == "weight" else None
      qkv = turned(w[f"{of}attn.c_attn.{kind}"]).chunk(3)
      out[f"{to}self_attention.query_key_value.{kind}"] = groups(*qkv, heads), 0
      out[f"{to}self_attention.dense.{kind}"] = turned(w[f"{of}attn.c_proj.{kind}"]), row
      out[f"{to}mlp.dense_h_to_4h.{kind}"] = turned(w[f"{of}mlp.c_fc.{kind}"]), 0
      out[f"{to}mlp.dense_4h_to_h.{kind}"] = turned(w[f"{of}mlp.c_proj.{kind}"]), row
      out[f"{to}input_norm.{kind}"] = w[f"{of}ln_1.{kind}"], None
      out[f"{to}post_attention_norm.{kind}"] = w[f"{of}ln_2.{kind}"], None
  return out


def of_rank(value, size, rank):
  tensor, dim = value
  if isinstance(tensor, tuple):  # a gated network: each rank has its rows of both, one below the other
    return torch.cat([shard(t, size, rank, dim) for t in tensor])
  return tensor if dim is None else shard(tensor, size, rank, dim)


def megatron_file(path, models):
  path.parent.mkdir(parents=True)
  arguments = argparse.Namespace(num_layers=2, params_dtype=torch.float32, attention_backend=AttnBackend.flash)
  torch.save({"args": arguments, "checkpoint_version": 3.0, "iteration": 20, **models,
              "optimizer": {"param_groups": [{"lr": 1e-3, "betas": (0.9, 0.95)}]},
              "rng_state": [{"random_rng_state": (3, (1, 2), None), "cpu": torch.zeros(8, dtype=torch.uint8)}]}, path)


def write_megatron(folder, tensors, size, stages, wrap):
  for rank in range(size):
    for stage in range(stages):
      model = of_stage(tensors, size, rank, lambda number: stage == (number if stages == 2 else 0),
                       stage == 0, stage == stages - 1)
      model["decoder.layers.0.self_attention.core_attention._extra_state"] = None
      name = f"mp_rank_{rank:02d}_{stage:03d}" if stages > 1 else f"mp_rank_{rank:02d}"
      megatron_file(folder / "iter_0000020" / name / "model_optim_rng.pt", {"model": wrap(model)})
  (folder / "latest_checkpointed_iteration.txt").write_text("20")


def of_stage(tensors, size, rank, has, first, last):
  """A rank's tensors of the layers that it has, which are counted from 0, and of what is before and behind all."""
  model = collections.OrderedDict()
  numbers = sorted({int(name.split(".layers.")[1].split(".")[0]) for name in tensors if ".layers." in name})
  own = [number for number in numbers if has(number)]
  for name, value in tensors.items():
    number = int(name.split(".layers.")[1].split(".")[0]) if ".layers." in name else None
    if (name.startswith("embedding") and not first) or (number is not None and number not in own):
      continue
    if name.startswith(("decoder.final", "encoder.final", "output")) and not last:
      continue
    if number is not None:
      name = name.replace(f".layers.{number}.", f".layers.{own.index(number)}.")
    model[name] = of_rank(value, size, rank)
  return model


def write_chunks(folder, tensors):
  """A virtual pipeline, of the layout "E|t|t|L": two stages of two chunks."""
  for stage in range(2):
    layers = {0: 1, 1: 0}[stage]  # layer 0 is in the second stage's first chunk, layer 1 in the first one's second
    models = {f"model{chunk}": of_stage(tensors, 1, 0, lambda number: number == layers and chunk != stage,
                                        stage == 0 and chunk == 0, stage == 1 and chunk == 1) for chunk in range(2)}
    megatron_file(folder / "iter_0000020" / f"mp_rank_00_{stage:03d}" / "model_optim_rng.pt", models)
  (folder / "latest_checkpointed_iteration.txt").write_text("20")


def below_language_model(model):
  """Dictionaries in dictionaries, as they were before Megatron Core."""
  parts = {"embedding": {}, "encoder": {}}
  for name, tensor in model.items():
    part, rest = name.split(".", 1)
    if part in parts:
      parts[part][rest] = tensor
  return {"language_model": parts}


def megatron_of_mixtral():
  """All layers in one tensor, and of experts all of these."""
  w, out = weights("mixtral"), {}
  out["embedding.word_embeddings.weight"] = padded(w["model.embed_tokens.weight"])
  out["decoder.final_layernorm.weight"] = w["model.norm.weight"]
  out["output_layer.weight"] = padded(w["lm_head.weight"])

  def stack(name, of_layer):
    out[f"decoder.layers.{name}"] = torch.stack([of_layer(f"model.layers.{layer}.") for layer in range(2)])

  def experts(of, *parts):
    at = of + "block_sparse_moe.experts."
    return torch.stack([torch.cat([w[f"{at}{e}.{part}.weight"] for part in parts]) for e in range(4)])

  stack("self_attention.linear_qkv.weight",
        lambda of: groups(*[w[f"{of}self_attn.{x}_proj.weight"] for x in "qkv"], 2))
  stack("self_attention.linear_qkv.layer_norm_weight", lambda of: w[of + "input_layernorm.weight"])
  stack("self_attention.linear_proj.weight", lambda of: w[of + "self_attn.o_proj.weight"])
  stack("pre_mlp_layernorm.weight", lambda of: w[of + "post_attention_layernorm.weight"])
  stack("mlp.router.weight", lambda of: w[of + "block_sparse_moe.gate.weight"])
  stack("mlp.experts.experts.linear_fc1.weight", lambda of: experts(of, "w1", "w3"))
  stack("mlp.experts.experts.linear_fc2.weight", lambda of: experts(of, "w2"))
  return out


# ---- torch.distributed.checkpoint ----

def save_pieces(rank, folder, tensors, dim):
  torch.distributed.init_process_group("gloo", init_method=f"file://{folder}.rendezvous", rank=rank, world_size=2)
  mesh = torch.distributed.init_device_mesh("cpu", (2,))
  cut = {name: distribute_tensor(t, mesh, [Shard(min(dim, t.dim() - 1))]) for name, t in tensors.items()}
  dcp.save(cut, storage_writer=dcp.FileSystemWriter(folder))
  torch.distributed.destroy_process_group()


def write_pieces(folder, tensors, dim):
  """Two ranks have halves, along this dimension."""
  folder.parent.mkdir(parents=True, exist_ok=True)
  torch.multiprocessing.spawn(save_pieces, (folder, tensors, dim), nprocs=2)
  pathlib.Path(f"{folder}.rendezvous").unlink(missing_ok=True)


def stacked(tensors):
  """All layers of a decoder in one tensor, as Megatron Core has them."""
  out = {}
  for name, (tensor, _) in tensors.items():
    tensor = torch.cat(tensor) if isinstance(tensor, tuple) else tensor
    if ".layers.0." in name:
      other = tensors[name.replace(".layers.0.", ".layers.1.")][0]
      other = torch.cat(other) if isinstance(other, tuple) else other
      out[name.replace(".layers.0.", ".layers.")] = torch.stack([tensor, other])
    elif ".layers." not in name:
      out[name] = tensor.clone()
  return out


def in_runs(tensors):
  """As Megatron's distributed optimizer has them where each rank writes its own ("fully_sharded_model_space"): each
  dimension counts parts, two where ranks divide the tensor, and one more the elements of a part."""
  out = {}
  for name, tensor in stacked(tensors).items():
    of = name if name in tensors else name.replace(".layers.", ".layers.0.")
    whole, dim = tensors[of]
    layers = tensor if of != name else tensor[None]
    parts = [1] * (layers.dim() - 1)
    if dim is not None and not isinstance(whole, tuple):
      parts[dim] = 2
      layers = torch.stack([layer.chunk(2, dim)[i].reshape(-1) for layer in layers for i in range(2)])
    layers = layers.reshape(len(layers) // max(parts), *parts, -1)
    out[name] = layers if of != name else layers[0] if tensor.dim() > 1 else tensor
  return {name: tensor.contiguous() for name, tensor in out.items()}


ADAM_STEPS = 5


def write_adam(folder, states=stacked):
  """What torch's AdamW has after some steps of the recorded training, as Megatron's distributed optimizer writes it
  with --dist-ckpt-optim-fully-reshardable; the model's own weights are rounded to bf16."""
  model, kept = record_families.make_model("llama"), {}
  tokens = torch.from_numpy(numpy.fromfile(HERE / "recorded" / "tokens.bin", "<u2").astype(numpy.int64))
  record_families.train(model, tokens, torch.float32, n_steps=ADAM_STEPS, kept=kept)
  state = {name: kept["optimizer"].state[tensor] for name, tensor in kept["masters"].items()}
  masters = {name: tensor.detach() for name, tensor in kept["masters"].items()}
  out = {name: tensor.bfloat16() for name, tensor in stacked(megatron_of_llama(w=masters)).items()}
  for kind, tensors in (("fp32_param", masters), ("exp_avg", {n: s["exp_avg"] for n, s in state.items()}),
                        ("exp_avg_sq", {n: s["exp_avg_sq"] for n, s in state.items()})):
    for name, tensor in states(megatron_of_llama(w=tensors)).items():
      out[f"optimizer.state.{kind}.{name}"] = tensor
  at = folder / f"iter_{ADAM_STEPS:07d}"
  write_pieces(at, out, 1 if states is stacked else 9)
  groups_of_adam = [{"lr": 1e-3, "betas": (0.9, 0.95), "step": ADAM_STEPS}]
  torch.save({"iteration": ADAM_STEPS, "optimizer": {"optimizer": {"param_groups": groups_of_adam}},
              "args": argparse.Namespace(num_layers=2)}, at / "common.pt")
  (folder / "latest_checkpointed_iteration.txt").write_text(str(ADAM_STEPS))


# ---- GPT-NeoX ----

def neox_of_gpt_neox(family):
  w, out = weights(family), [{} for _ in range(7)]
  out[0]["word_embeddings.weight"] = padded(w["gpt_neox.embed_in.weight"]), 0
  out[6]["final_linear.weight"] = padded(w["embed_out.weight"]), 0
  for kind in ("weight", "bias"):
    out[5][f"norm.{kind}"] = w[f"gpt_neox.final_layer_norm.{kind}"], None
    for layer in range(2):
      of = f"gpt_neox.layers.{layer}."
      row = 1 if kind == "weight" else "share" if family == "gpt_neox" else None
      for name, dim in (("attention.query_key_value", 0), ("attention.dense", row), ("mlp.dense_h_to_4h", 0),
                        ("mlp.dense_4h_to_h", row), ("input_layernorm", None), ("post_attention_layernorm", None)):
        out[layer + 2][f"{name}.{kind}"] = w[f"{of}{name}.{kind}"], dim
  return out


def neox_of_llama(size):
  w, out = weights("llama"), [{} for _ in range(7)]
  out[0]["word_embeddings.weight"] = w["model.embed_tokens.weight"], 0
  out[5]["norm.scale"] = w["model.norm.weight"], None
  out[6]["final_linear.weight"] = w["lm_head.weight"], 0
  for layer in range(2):
    of, to = f"model.layers.{layer}.", out[layer + 2]
    to["attention.query_key_value.weight"] = tuple(w[f"{of}self_attn.{x}_proj.weight"] for x in "qkv"), 0
    to["attention.dense.weight"] = w[of + "self_attn.o_proj.weight"], 1
    to["mlp.linear1.weight"] = (w[of + "mlp.up_proj.weight"], w[of + "mlp.gate_proj.weight"]), 0
    to["mlp.linear2.weight"] = w[of + "mlp.down_proj.weight"], 1
    to["input_layernorm.scale"] = w[of + "input_layernorm.weight"], None
    to["post_attention_layernorm.scale"] = w[of + "post_attention_layernorm.weight"], None
  return out


def of_neox_rank(value, size, rank):
  """Where both branches of a layer are summed over the ranks together, each rank has a share of a bias."""
  return value[0] / size if value[1] == "share" else of_rank(value, size, rank)


def write_neox(folder, entries, size, stages):
  at = folder / "global_step20"
  at.mkdir(parents=True)
  (folder / "latest").write_text("global_step20\n")
  for rank in range(size):
    tensors = [{name: of_neox_rank(value, size, rank) for name, value in entry.items()} for entry in entries]
    if stages:
      for number, entry in enumerate(tensors):
        if entry:
          torch.save(collections.OrderedDict(entry), at / f"layer_{number:02d}-model_{rank:02d}-model_states.pt")
      torch.save({"module": None, "iteration": 20}, at / f"mp_rank_{rank:02d}_model_states.pt")
    else:
      module = {f"sequential.{number}.{name}": t for number, entry in enumerate(tensors) for name, t in entry.items()}
      torch.save({"module": module, "iteration": 20}, at / f"mp_rank_{rank:02d}_model_states.pt")


# ---- arguments that Megatron keeps ----

OF_LLAMA = {"num_layers": 2, "hidden_size": 32, "ffn_hidden_size": 48, "num_attention_heads": 4, "seq_length": 32,
            "num_query_groups": 2, "group_query_attention": True, "kv_channels": 8, "max_position_embeddings": 32,
            "position_embedding_type": "rope", "add_position_embedding": True, "rotary_base": 10000,
            "rotary_percent": 1.0, "rotary_interleaved": False, "add_bias_linear": False, "add_qkv_bias": False,
            "swiglu": True, "squared_relu": False, "untie_embeddings_and_output_weights": True,
            "normalization": "RMSNorm", "norm_epsilon": 1e-6, "apply_layernorm_1p": False, "attention_dropout": 0.0,
            "hidden_dropout": 0.0, "num_experts": None, "moe_layer_freq": 1, "moe_router_topk": 2,
            "padded_vocab_size": 266, "tensor_model_parallel_size": 2, "pipeline_model_parallel_size": 1,
            "params_dtype": torch.float32, "attention_backend": AttnBackend.flash, "lr": 1e-3}
OLDEST = {"num_layers": 4, "hidden_size": 64, "ffn_hidden_size": 256, "num_attention_heads": 8, "seq_length": 128,
          "kv_channels": 8, "max_position_embeddings": 128, "disable_bias_linear": True, "swiglu": False,
          "normalization": "LayerNorm", "tensor_model_parallel_size": 2, "pipeline_model_parallel_size": 2}
EXPERTS = OF_LLAMA | {"num_experts": 4, "moe_layer_freq": [0, 1], "moe_ffn_hidden_size": 24}


def write_arguments(path, arguments):
  path.parent.mkdir(parents=True, exist_ok=True)
  torch.save({"args": argparse.Namespace(**arguments), "checkpoint_version": 3.0, "iteration": 20}, path)


def write_all_arguments():
  write_arguments(OUT / "torch_dist" / "iter_0000020" / "common.pt", OF_LLAMA)
  write_arguments(OUT / "args_old" / "iter_0000020" / "mp_rank_00_000" / "model_optim_rng.pt", OLDEST)
  (OUT / "args_old" / "latest_checkpointed_iteration.txt").write_text("20")
  write_arguments(OUT / "args_experts" / "release" / "mp_rank_00" / "model_optim_rng.pt", EXPERTS)
  (OUT / "args_experts" / "latest_checkpointed_iteration.txt").write_text("release")


def main():
  torch.set_num_threads(1)
  torch.use_deterministic_algorithms(True)
  torch.set_flush_denormal(True)
  shutil.rmtree(OUT, ignore_errors=True)
  write_megatron(OUT / "megatron", megatron_of_llama(), 2, 2, lambda model: model)
  write_megatron(OUT / "megatron_old", megatron_of_gpt2(), 2, 1, below_language_model)
  write_pieces(OUT / "torch_dist" / "iter_0000020", stacked(megatron_of_llama()), 1)
  (OUT / "torch_dist" / "latest_checkpointed_iteration.txt").write_text("20")
  write_all_arguments()
  write_pieces(OUT / "mixture" / "iter_0000020", megatron_of_mixtral(), 1)
  (OUT / "mixture" / "latest_checkpointed_iteration.txt").write_text("20")
  write_chunks(OUT / "chunks", megatron_of_llama())
  write_adam(OUT / "adam")
  write_adam(OUT / "adam_runs", in_runs)
  write_pieces(OUT / "fsdp", weights("llama"), 0)
  write_neox(OUT / "neox", neox_of_gpt_neox("gpt_neox"), 2, True)
  write_neox(OUT / "neox_serial", neox_of_gpt_neox("gpt_neox_serial"), 2, False)
  write_neox(OUT / "neox_llama", neox_of_llama(2), 2, True)


if __name__ == "__main__":
  main()
