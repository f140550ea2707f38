#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a tiny Llama whose products are in fp8 and records what nxrun must reproduce (README.md).

The formats and their rounding are PyTorch's own float8 types; scales follow what Transformer Engine and xorl document of
each recipe: delayed ones are chosen anew behind each micro-batch's forward pass, of gradients behind its backward pass,
and of weights, which are rounded once a step, behind the step's first pass. Projections that read the same are one matrix, as Transformer Engine has them."""
import json

import numpy
import torch
import transformers

from record import GLOBAL_BATCH, HERE, MICRO_BATCH, SEQUENCE, learning_rate, micro_batches
from record_families import BETAS, CLIP, DECAY, EPSILON, LR, SCHEDULE
from record_lora import make_model

STEPS = 8
TYPES = {"e4m3": (torch.float8_e4m3fn, 448.0), "e5m2": (torch.float8_e5m2, 57344.0)}
# Of each case: the settings of nxrun, and what they mean here.
CASES = {
    "delayed": {"recipe": "delayed", "format": "hybrid", "history": 3, "amax": "max", "margin": 1},
    "delayed_recent": {"recipe": "delayed", "format": "e4m3", "history": 5, "amax": "most_recent"},
    "delayed_inputs": {"recipe": "delayed", "format": "hybrid", "backward": "inputs"},
    "delayed_ranks": {"recipe": "delayed", "format": "hybrid", "history": 4, "amax": "max"},
    "tensorwise": {"recipe": "tensorwise", "format": "hybrid"},
    "blockwise": {"recipe": "blockwise", "format": "e4m3"},
    "mxfp8": {"recipe": "mxfp8", "format": "hybrid"},
    "rowwise": {"recipe": "rowwise", "format": "e4m3", "block": 48},
    "rowwise_forward": {"recipe": "rowwise", "format": "e4m3", "block": 32, "backward": "none"},
}
RANKS = {"delayed_ranks": 2}  # data-parallel ranks, whose passes are under way together; else 1


def rounded(x, kind):
  dtype, most = TYPES[kind]
  return x.clamp(-most, most).to(dtype).float()


def tensor_scale(amax, kind, margin=0):
  """Transformer Engine's: of zero, or of what is no number, 1."""
  if not (amax > 0 and torch.isfinite(amax)):
    return torch.tensor(1.0)
  return torch.tensor(TYPES[kind][1]) / amax / 2.0 ** margin


def power_of_two(scale):
  return (scale.view(torch.int32) & -8388608).view(torch.float32)  # the exponent alone


def mx_scale(amax, kind):
  """The power of two that divides, as e8m0 has it: rounded up."""
  _, exponent = torch.frexp(amax * torch.tensor(1 / TYPES[kind][1]))
  exact = torch.ldexp(torch.tensor(1.0), exponent - 1) == amax * torch.tensor(1 / TYPES[kind][1])
  return torch.ldexp(torch.tensor(1.0), exponent - exact.int())


def in_blocks(x, n_rows, n_columns, apply):
  y = torch.empty_like(x)
  for row in range(0, x.shape[0], n_rows):
    for column in range(0, x.shape[1], n_columns):
      box = x[row:row + n_rows, column:column + n_columns]
      y[row:row + n_rows, column:column + n_columns] = apply(box, box.abs().max())
  return y


def by_power(box, amax, kind):
  scale = power_of_two(tensor_scale(amax, kind))
  return rounded(box * scale, kind) / scale


def by_mx(box, amax, kind):
  if amax == 0:
    return box.clone()
  scale = mx_scale(amax, kind)
  return rounded(box / scale, kind) * scale


def by_division(box, amax, kind):
  scale = (amax / TYPES[kind][1]).clamp(min=1e-12)
  return rounded(box / scale, kind) * scale


class Delayed:
  """Maxima and scale of one tensor: the oldest maximum stands behind that of now, as in the kernels that update them."""

  def __init__(self, case, kind):
    self.case, self.kind = case, kind
    self.history, self.scale = torch.zeros(case.get("history", 1)), torch.tensor(1.0)

  def __call__(self, x):
    self.history[0] = torch.maximum(self.history[0], x.abs().max())
    return rounded(x * self.scale, self.kind) * (1 / self.scale)

  def end_pass(self):
    last = self.history[0].clone()
    if last == 0:
      return
    window = torch.cat([self.history[1:], last.reshape(1)])
    amax = window.max() if self.case.get("amax") == "max" else last
    self.history = torch.cat([torch.zeros(1), window[1:]]) if len(window) > 1 else torch.zeros(1)
    if torch.isfinite(amax):
      self.scale = torch.tensor(TYPES[self.kind][1]) / amax / 2.0 ** self.case.get("margin", 0)


class Operand:
  """x, weight or gradient of one product: how it is rounded."""

  def __init__(self, case, kind, square):
    self.case, self.kind, self.square = case, kind, square
    self.delayed = Delayed(case, kind)

  def __call__(self, x, along_rows=False):
    recipe, kind = self.case["recipe"], self.kind
    if recipe == "delayed":
      return self.delayed(x)
    if recipe == "tensorwise":
      scale = tensor_scale(x.abs().max(), kind)
      return rounded(x * scale, kind) * (1 / scale)
    size = {"blockwise": 128, "mxfp8": 32}.get(recipe) or self.case["block"]
    other = size if self.square and recipe == "blockwise" else 1
    apply = {"blockwise": by_power, "mxfp8": by_mx, "rowwise": by_division}[recipe]
    shape = (size, other) if along_rows else (other, size)
    return in_blocks(x, *shape, lambda box, amax: apply(box, amax, kind))


class Product(torch.autograd.Function):
  """Scales of whole tensors serve all products, and what was rounded is kept; those of blocks are made for each."""

  @staticmethod
  def forward(ctx, x, weight, group):
    ctx.group = group
    x8, weight8 = group.x(x), group.rounded_weight(weight)
    ctx.save_for_backward(x, weight, x8, weight8)
    return x8 @ weight8.T

  @staticmethod
  def backward(ctx, dy):
    (x, weight, x8, weight8), group, mode = ctx.saved_tensors, ctx.group, ctx.group.case.get("backward", "all")
    blocks = group.case["recipe"] not in ("delayed", "tensorwise")
    if mode == "none":
      return dy @ weight, dy.T @ x, None
    dy8 = group.gradient(dy)
    dx = dy8 @ (group.weight(weight, along_rows=True) if blocks else weight8)
    if mode == "inputs":
      return dx, dy.T @ x, None
    if blocks:
      return dx, group.gradient(dy, along_rows=True).T @ group.x(x, along_rows=True), None
    return dx, dy8.T @ x8, None


class Group:
  """Projections that read the same are one product."""

  def __init__(self, case, modules):
    backward = "e5m2" if case["format"] == "hybrid" else "e4m3"
    self.case, self.modules = case, modules
    self.x, self.weight, self.gradient = (Operand(case, "e4m3", False), Operand(case, "e4m3", True),
                                          Operand(case, backward, False))
    self.weight8 = None  # of the step
    for i, module in enumerate(modules):
      module.forward = lambda x, i=i: self.forward(x, i)

  def forward(self, x, index):
    if index == 0:
      y = Product.apply(x.reshape(-1, x.shape[-1]), torch.cat([m.weight for m in self.modules]), self)
      self.parts = y.reshape(*x.shape[:-1], -1).split([m.weight.shape[0] for m in self.modules], -1)
    return self.parts[index]

  def rounded_weight(self, weight):
    if self.weight8 is None:
      self.weight8 = self.weight(weight)
    return self.weight8

  def end_forward(self):
    for operand in (self.x, self.weight):
      operand.delayed.end_pass()

  def end_backward(self):
    self.gradient.delayed.end_pass()

  def end_step(self):
    self.weight8 = None


def gradients_of_step(model, masters, groups, tokens, step, n_ranks):
  """Mean loss of the global batch, and its gradients. Each rank has its part of the micro-batches; the first of all ranks
  are under way together, then the second, and so on."""
  total, count = 0.0, GLOBAL_BATCH * SEQUENCE
  sums = {name: torch.zeros_like(w) for name, w in masters.items()}
  batches = list(micro_batches(tokens, step, MICRO_BATCH))
  share = len(batches) // n_ranks
  for turn in range(share):
    losses = []
    for inputs, labels in batches[turn::share]:
      logits = model(input_ids=inputs, use_cache=False).logits.float()
      losses.append(torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum"))
    for group in groups:
      group.end_forward()
    for loss in losses:
      model.zero_grad()
      (loss / count).backward()
      for name, tensor in model.named_parameters():
        sums[name] += tensor.grad
      total += loss.item()
    for group in groups:
      group.end_backward()
  return total / count, sums


def groups_of(model, case):
  for layer in model.model.layers:
    a, f = layer.self_attn, layer.mlp
    for modules in ([a.q_proj, a.k_proj, a.v_proj], [a.o_proj], [f.gate_proj, f.up_proj], [f.down_proj]):
      yield Group(case, modules)


def train(model, groups, tokens, n_ranks):
  masters = {name: w.detach().clone().requires_grad_() for name, w in model.named_parameters()}
  decayed = [{"params": [w for w in masters.values() if (w.dim() > 1) == decays], "weight_decay": DECAY * decays}
             for decays in (True, False)]
  optimizer = torch.optim.AdamW(decayed, lr=LR, betas=BETAS, eps=EPSILON, foreach=False)
  steps = []
  for i in range(STEPS):
    loss, gradients = gradients_of_step(model, masters, groups, tokens, i, n_ranks)
    norm = sum(g.double().pow(2).sum().item() for g in gradients.values()) ** 0.5
    for name, w in masters.items():
      w.grad = gradients[name] * min(1.0, CLIP / (norm + 1e-6))
    for group in optimizer.param_groups:
      group["lr"] = learning_rate(SCHEDULE, LR, i)
    optimizer.step()
    with torch.no_grad():
      for name, tensor in model.named_parameters():
        tensor.copy_(masters[name])
    for group in groups:
      group.end_step()
    steps.append({"loss": loss, "grad_norm": norm, "lr": learning_rate(SCHEDULE, LR, i)})
  return steps


def rounding_vectors():
  """What PyTorch makes of numbers near every border of both formats, and of every size."""
  torch.manual_seed(8)
  record = {}
  for kind, (dtype, most) in TYPES.items():
    codes = torch.arange(256, dtype=torch.uint8).view(dtype).float()
    values = codes[torch.isfinite(codes) & (codes >= 0)].unique()
    borders = (values[1:] + values[:-1]) / 2
    x = torch.cat([values, borders, torch.nextafter(borders, torch.tensor(torch.inf)),
                   torch.nextafter(borders, torch.tensor(0.0)), torch.tensor([most * 1.01, 1e30, 1e-30])])
    x = torch.cat([x, -x, torch.randn(64)])
    record[kind] = {"x": x.tolist(), "y": rounded(x, kind).tolist()}
  return record


def main():
  transformers.utils.logging.disable_progress_bar()
  torch.set_num_threads(1)
  torch.use_deterministic_algorithms(True)
  tokens = torch.from_numpy(numpy.fromfile(HERE / "recorded" / "tokens.bin", "<u2").astype(numpy.int64))
  record = {"torch": torch.__version__.split("+")[0], "rounding": rounding_vectors(), "cases": {}}
  for name, case in CASES.items():
    model = make_model("llama_wide")
    ranks = RANKS.get(name, 1)
    steps = train(model, list(groups_of(model, case)), tokens, ranks)
    record["cases"][name] = {"settings": case, "ranks": ranks, "steps": steps}
    print(f"{name:16} loss {steps[0]['loss']:.6f} -> {steps[-1]['loss']:.6f}, norm {steps[0]['grad_norm']:.6f}")
  (HERE / "recorded" / "fp8.json").write_text(json.dumps(record) + "\n")


if __name__ == "__main__":
  main()
