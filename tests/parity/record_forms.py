#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what forms of decoders that no model of transformers has make of the recorded tokens, in float64:
recorded/forms/FORM has weights, settings of nxcfg, and the loss and the norm of the gradient of each of three steps of
plain gradient descent (forms.sh). usage: record_forms.py [FORM]...
"""
import math
import pathlib
import sys

import numpy
import torch
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).resolve().parent
HIDDEN, WIDTH, LAYERS, HEADS, SEQUENCE, VOCAB, BATCH, STEPS, LR = 32, 48, 2, 4, 32, 250, 8, 3, 0.01
BUCKETS, MOST, SCALE, DEPTH, FACTOR, BLOCK = 8, 20, 2.0, 2, 0.3, 4
EXPERTS, TOP, MICRO, AUX, MEMORY, DECAY, Z = 4, 2, 2, (0.3, 0.2, 0.4), 0.25, 0.1, 0.07
MIXTURE = f"moe.experts={EXPERTS} moe.top_k={TOP} moe.ffn_hidden={WIDTH} moe.dropless=true moe.pre_softmax=false moe.buffer_factor={EXPERTS}"
FORMS = {
    "relative": f"model.position_embedding=relative model.relative_buckets={BUCKETS} "
                f"model.relative_max_distance={MOST} model.relative_scale={SCALE}",
    "normformer": "model.block=normformer",
    "gated": "model.attention_gate=feature",
    "gated_heads": "model.attention_gate=head",
    "balanced": MIXTURE + f" moe.aux_loss_coef={AUX[0]} moe.sequence_aux_loss_coef={AUX[1]}",
    "balanced_steps": MIXTURE + f" moe.aux_loss_coef={AUX[0]} moe.sequence_aux_loss_coef={AUX[1]} moe.step_aux_loss_coef={AUX[2]}",
    "balanced_quantiles": MIXTURE + f" moe.routing=quantiles moe.quantile_memory={MEMORY}",
    "residual": f"moe.experts={EXPERTS} moe.ffn_hidden={WIDTH} moe.dropless=true moe.buffer_factor={EXPERTS} "
                f"moe.shared_softmax=true moe.aux_loss_coef={AUX[0]} model.ffn_bias=true moe.biases=first",
    "one_bias": f"moe.experts={EXPERTS} moe.top_k={TOP} moe.ffn_hidden={WIDTH} moe.dropless=true moe.buffer_factor={EXPERTS} "
                f"model.ffn_bias=true moe.biases=layer",
    "votes": f"optimizer.name=distsignsgd optimizer.weight_decay={DECAY} optimizer.norm_weight_decay=true",
    "local": f"model.attention_pattern=[local,global] model.sparse_block={BLOCK}",
    "z_loss": f"loss.z_coef={Z}",
    "further": f"model.predict_depth={DEPTH} model.predict_loss_factor={FACTOR}",
}


DEEPSPEED = ("residual", "one_bias")


def add_mixture(add, weights, form, at):
  """DeepSpeed's with use_residual, whose first products have biases; MegaBlocks' with one of all."""
  residual = form == "residual"
  at, names = (at, ("gate_proj", "up_proj", "down_proj")) if residual else (at[:-4] + "block_sparse_moe.", ("w1", "w3", "w2"))
  add(at + "gate", EXPERTS, HIDDEN)

  def bias(name, size):
    add(name, size)
    weights[name + ".bias"] = weights.pop(name + ".weight") - 1

  for block in [f"experts.{e}." for e in range(EXPERTS)] + ["shared_expert."] * residual:
    for name in names:
      add(at + block + name, *((HIDDEN, WIDTH) if name == names[2] else (WIDTH, HIDDEN)))
      weight = weights[at + block + name + ".weight"]
      if residual and name != names[2]:
        bias(at + block + name + "_", WIDTH)
        weights[at + block + name + ".bias"] = weights.pop(at + block + name + "_.bias")
        weights[at + block + name + ".weight"] = weight
  if residual:
    add(at + "shared_expert_gate", 2, HIDDEN)
    weight = weights[at + "shared_expert_gate.weight"]
    bias(at + "shared_expert_gate", 2)
    weights[at + "shared_expert_gate.weight"] = weight
  else:
    bias(at[:-len("block_sparse_moe.")] + "mlp.down_proj", HIDDEN)


def make_weights(form):
  random, weights = numpy.random.RandomState(3), {}

  def add(name, *shape):
    gain, size = len(shape) == 1, 0.05 if len(shape) == 1 else 0.5 if "embed" in name else 0.15
    weights[name + ".weight"] = torch.from_numpy((gain + size * random.randn(*shape)).astype(numpy.float32))

  add("model.embed_tokens", VOCAB, HIDDEN), add("lm_head", VOCAB, HIDDEN), add("model.norm", HIDDEN)
  for i in range(LAYERS + (DEPTH if form == "further" else 0)):
    at = f"model.layers.{i}."
    add(at + "input_layernorm", HIDDEN), add(at + "post_attention_layernorm", HIDDEN)
    for part in "qkvo":
      add(f"{at}self_attn.{part}_proj", HIDDEN, HIDDEN)
    if form.startswith("gated"):
      add(at + "self_attn.output_gate_proj", HEADS if form == "gated_heads" else HIDDEN, HIDDEN)
    if form.startswith("balanced"):
      add(at + "block_sparse_moe.gate", EXPERTS, HIDDEN)
    if form in DEEPSPEED:
      add_mixture(add, weights, form, at + "mlp.")
      continue
    for mlp in [f"block_sparse_moe.experts.{e}." for e in range(EXPERTS)] if form.startswith("balanced") else ["mlp."]:
      names = ("w1", "w3", "w2") if "experts" in mlp else ("gate_proj", "up_proj", "down_proj")
      add(at + mlp + names[0], WIDTH, HIDDEN), add(at + mlp + names[1], WIDTH, HIDDEN), add(at + mlp + names[2], HIDDEN, WIDTH)
    if form == "normformer":
      add(at + "attention_output_layernorm", HIDDEN), add(at + "mlp.inner_layernorm", WIDTH)
    if i >= LAYERS:
      add(at + "enorm", HIDDEN), add(at + "hnorm", HIDDEN), add(at + "shared_head.norm", HIDDEN)
      add(at + "eh_proj", HIDDEN, 2 * HIDDEN)
  if form == "relative":
    add("model.relative_attention_bias", BUCKETS, HEADS)
  return weights


class Model:
  def __init__(self, form, weights):
    self.form, self.p = form, {name: w.double().requires_grad_() for name, w in weights.items()}
    self.bias, self.quantiles = torch.zeros(LAYERS, EXPERTS, dtype=torch.float64), torch.zeros(LAYERS, EXPERTS, dtype=torch.float64)

  def norm(self, x, name):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.p[name + ".weight"]

  def product(self, x, name):
    return x @ self.p[name + ".weight"].T

  @staticmethod
  def rotate(x):
    half = x.shape[-1] // 2
    frequencies = 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
    angles = torch.arange(SEQUENCE, dtype=torch.float64)[:, None] * frequencies
    first, second = x.chunk(2, -1)
    return torch.cat([first * angles.cos() - second * angles.sin(), second * angles.cos() + first * angles.sin()], -1)

  @staticmethod
  def bucket(distance):
    exact = BUCKETS // 2
    if distance < exact:
      return distance
    return min(BUCKETS - 1, exact + int(math.log(distance / exact) / math.log(MOST / exact) * (BUCKETS - exact)))

  def attention(self, at, x, layer):
    q, k, v = [self.product(x, f"{at}self_attn.{part}_proj").unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in "qkv"]
    if self.form != "relative":
      q, k = self.rotate(q), self.rotate(k)
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    places = torch.arange(SEQUENCE)
    unread = places[:, None] < places[None, :]
    if self.form == "relative":
      buckets = torch.tensor([[self.bucket(max(i - j, 0)) for j in range(SEQUENCE)] for i in range(SEQUENCE)])
      scores = scores + SCALE * self.p["model.relative_attention_bias.weight"][buckets].permute(2, 0, 1)
    if self.form == "local" and layer % 2 == 0:  # a window of three blocks, whose first half lies before
      unread = unread | (places[:, None] // BLOCK - places[None, :] // BLOCK > 1)
    weights = scores.masked_fill(unread, -math.inf).softmax(-1)
    y = (weights @ v).transpose(1, 2)
    if self.form.startswith("gated"):
      y = y * self.product(x, at + "self_attn.output_gate_proj").sigmoid().unflatten(-1, (HEADS, -1))
    return self.product(y.flatten(-2), at + "self_attn.o_proj")

  def layer(self, i, x):
    at, within = f"model.layers.{i}.", self.form == "normformer"
    y = self.attention(at, self.norm(x, at + "input_layernorm"), i)
    x = x + (self.norm(y, at + "attention_output_layernorm") if within else y)
    h = self.norm(x, at + "post_attention_layernorm")
    if self.form.startswith("balanced"):
      return x + self.experts(h, at + "block_sparse_moe.", i)
    if self.form in DEEPSPEED:
      return x + self.first_choices(h, at)
    h = torch.nn.functional.silu(self.product(h, at + "mlp.gate_proj")) * self.product(h, at + "mlp.up_proj")
    return x + self.product(self.norm(h, at + "mlp.inner_layernorm") if within else h, at + "mlp.down_proj")

  def experts(self, h, at, layer):
    """Of a batch of micro-batches, one after another; the losses are Megatron's three (switch_load_balancing_loss_func)."""
    logits = self.product(h, at + "gate")
    if self.form == "balanced_quantiles":
      self.note_quantiles(logits.detach(), layer)
    chosen = (logits - self.bias[layer]).topk(TOP, -1).indices
    weights = torch.zeros_like(logits).scatter(-1, chosen, logits.gather(-1, chosen).softmax(-1))
    counts = torch.zeros_like(logits).scatter(-1, chosen, 1.0).sum(1)  # [sequence, expert]
    p, step = logits.softmax(-1).sum(1), torch.zeros(EXPERTS, dtype=torch.float64)
    for first in range(0, BATCH, MICRO):
      own, load = slice(first, first + MICRO), counts[first:first + MICRO]
      step = step + load.sum(0)
      n = MICRO * SEQUENCE
      losses = [(p[own].sum(0) * load.sum(0)).sum() * EXPERTS / (n * n * TOP),
                (p[own] * load).sum() * EXPERTS / (SEQUENCE * SEQUENCE * TOP) / MICRO,
                (p[own].sum(0) * step / step.sum()).sum() * EXPERTS / n]
      used = {"balanced_steps": AUX, "balanced_quantiles": ()}.get(self.form, AUX[:2])
      self.router = self.router + sum(c * l for c, l in zip(used, losses)) * MICRO / BATCH
    y = 0.0
    for e in range(EXPERTS):
      w = f"{at}experts.{e}."
      y = y + weights[..., e, None] * self.product(
          torch.nn.functional.silu(self.product(h, w + "w1")) * self.product(h, w + "w3"), w + "w2")
    return y

  def first_choices(self, h, at):
    """Weights are a softmax over all experts; the loss is DeepSpeed's top1gating's."""
    residual = self.form == "residual"
    own, names = (at + "mlp.", ("gate_proj", "up_proj", "down_proj")) if residual else (at + "block_sparse_moe.", ("w1", "w3", "w2"))

    def block(name):
      first, second = [self.product(h, own + name + part) + self.p.get(own + name + part + ".bias", 0.0) for part in names[:2]]
      return self.product(torch.nn.functional.silu(first) * second, own + name + names[2])

    gates = self.product(h, own + "gate").softmax(-1)
    mask = torch.zeros_like(gates).scatter(-1, gates.topk(1 if residual else TOP, -1).indices, 1.0)
    y = sum((gates * mask)[..., e, None] * block(f"experts.{e}.") for e in range(EXPERTS))
    if not residual:
      return y + self.p[at + "mlp.down_proj.bias"]
    for first in range(0, BATCH, MICRO):
      part = slice(first, first + MICRO)
      loss = (gates[part].flatten(0, 1).mean(0) * mask[part].flatten(0, 1).mean(0)).sum() * EXPERTS
      self.router = self.router + AUX[0] * loss * MICRO / BATCH
    shares = (self.product(h, own + "shared_expert_gate") + self.p[own + "shared_expert_gate.bias"]).softmax(-1)
    return y * shares[..., :1] + block("shared_expert.") * shares[..., 1:]

  def note_quantiles(self, logits, layer):
    """The mean over micro-batches of Megatron's qb_dual_update."""
    for scores in logits.flatten(0, 1).split(MICRO * SEQUENCE):
      bound = (scores - self.bias[layer]).topk(TOP + 1, -1).values[:, -1:]
      share = MICRO * SEQUENCE * TOP // EXPERTS
      self.quantiles[layer] += (scores - bound).topk(share + 1, 0).values[-1] * MICRO / BATCH

  def settle(self):
    """Megatron's _update_router_qb_beta."""
    new = MEMORY * self.bias + (1 - MEMORY) * self.quantiles
    self.bias, self.quantiles = new - new.mean(-1, keepdim=True), torch.zeros_like(self.bias)

  def losses(self, x, labels):
    logits = self.product(x, "lm_head")
    z = Z * logits.logsumexp(-1) ** 2 if self.form == "z_loss" else 0.0
    return z + torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view(labels.shape)

  def further(self, x, labels):
    """The mean of the losses of further tokens; those behind the end of a sequence are 0 and do not count."""
    tokens, total = labels, 0.0
    for depth in range(1, DEPTH + 1):
      at = f"model.layers.{LAYERS + depth - 1}."
      embedded = self.norm(self.p["model.embed_tokens.weight"][tokens], at + "enorm")
      x = self.product(torch.cat([embedded, self.norm(x, at + "hnorm")], -1), at + "eh_proj")
      x = self.norm(self.layer(LAYERS + depth - 1, x), at + "shared_head.norm")
      tokens = torch.zeros_like(labels)
      tokens[:, :SEQUENCE - depth] = labels[:, depth:]
      total = total + self.losses(x, tokens)[:, :SEQUENCE - depth].mean() / DEPTH
    return total

  def loss(self, inputs, labels):
    """Of the next token, and all that is trained."""
    x, self.router = self.p["model.embed_tokens.weight"][inputs], 0.0
    for i in range(LAYERS):
      x = self.layer(i, x)
    x = self.norm(x, "model.norm")
    loss = self.losses(x, labels).mean()
    return loss, loss + self.router + (FACTOR * self.further(x, labels) if self.form == "further" else 0.0)


def votes(model, inputs, labels):
  """What xorl's DistSignSGD steps by: the mean of the signs of micro-batches' gradients."""
  means = [torch.zeros_like(weight) for weight in model.p.values()]
  for first in range(0, BATCH, MICRO):
    loss = model.loss(inputs[first:first + MICRO], labels[first:first + MICRO])[0]
    for mean, gradient in zip(means, torch.autograd.grad(loss, list(model.p.values()))):
      mean += gradient.sign() * MICRO / BATCH
  return means


def record(form, tokens):
  folder = HERE / "recorded" / "forms" / form
  folder.mkdir(parents=True, exist_ok=True)
  weights = make_weights(form)
  save_file(weights, folder / "model.safetensors")
  model, lines = Model(form, weights), []
  for step in range(STEPS):
    starts = [(step * BATCH + i) * SEQUENCE for i in range(BATCH)]
    inputs = torch.stack([tokens[s:s + SEQUENCE] for s in starts])
    labels = torch.stack([tokens[s + 1:s + SEQUENCE + 1] for s in starts])
    loss, total = model.loss(inputs, labels)
    gradients = torch.autograd.grad(total, list(model.p.values()))
    if form == "votes":
      gradients = votes(model, inputs, labels)
    norm = math.sqrt(sum(g.pow(2).sum().item() for g in gradients))
    lines.append(f"{loss.item():.12g} {norm:.12g}")
    with torch.no_grad():
      for weight, gradient in zip(model.p.values(), gradients):
        weight -= LR * (gradient + (DECAY * weight if form == "votes" else 0))
      model.settle()
  (folder / "settings").write_text(FORMS[form] + "\n")
  (folder / "steps").write_text("\n".join(lines) + "\n")


def main():
  tokens = torch.from_numpy(numpy.fromfile(HERE / "recorded" / "tokens.bin", "<u2").astype(numpy.int64))
  for form in sys.argv[1:] or FORMS:
    record(form, tokens)


main()
