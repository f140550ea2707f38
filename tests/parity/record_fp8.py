#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a tiny Llama whose products are in fp8 and records what nxrun must reproduce (README.md).

The formats and their rounding are PyTorch's own float8 types; scales follow what Transformer Engine and xorl document of
each recipe. Projections that read the same are one matrix, as Transformer Engine has them."""
import json

import numpy
import torch
import transformers

from record import HERE, learning_rate
from record_families import BETAS, CLIP, DECAY, EPSILON, LR, SCHEDULE, gradients_of_step
from record_lora import make_model

STEPS = 8
TYPES = {"e4m3": (torch.float8_e4m3fn, 448.0), "e5m2": (torch.float8_e5m2, 57344.0)}
# Of each case: the settings of nxrun, and what they mean here.
CASES = {
    "delayed": {"recipe": "delayed", "format": "hybrid", "history": 3, "amax": "max", "margin": 1},
    "delayed_recent": {"recipe": "delayed", "format": "e4m3", "history": 5, "amax": "most_recent"},
    "delayed_inputs": {"recipe": "delayed", "format": "hybrid", "backward": "inputs"},
    "tensorwise": {"recipe": "tensorwise", "format": "hybrid"},
    "blockwise": {"recipe": "blockwise", "format": "e4m3"},
    "mxfp8": {"recipe": "mxfp8", "format": "hybrid"},
    "rowwise": {"recipe": "rowwise", "format": "e4m3", "block": 48},
    "rowwise_forward": {"recipe": "rowwise", "format": "e4m3", "block": 32, "backward": "none"},
}


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


class Operand:
  """x, weight or gradient of one product: how it is rounded, and what is remembered for it."""

  def __init__(self, case, kind, square):
    self.case, self.kind, self.square = case, kind, square
    self.history, self.now = torch.zeros(case.get("history", 1)), torch.tensor(0.0)

  def __call__(self, x, along_rows=False):
    recipe, kind = self.case["recipe"], self.kind
    if recipe == "delayed":
      self.now = torch.maximum(self.now, x.abs().max())
      amax = self.history.max() if self.case.get("amax") == "max" else self.history[0]
      scale = tensor_scale(amax, kind, self.case.get("margin", 0))
      return rounded(x * scale, kind) * (1 / scale)
    if recipe == "tensorwise":
      scale = tensor_scale(x.abs().max(), kind)
      return rounded(x * scale, kind) * (1 / scale)
    size = {"blockwise": 128, "mxfp8": 32}.get(recipe) or self.case["block"]
    other = size if self.square and recipe == "blockwise" else 1
    apply = {"blockwise": by_power, "mxfp8": by_mx, "rowwise": by_division}[recipe]
    shape = (size, other) if along_rows else (other, size)
    return in_blocks(x, *shape, lambda box, amax: apply(box, amax, kind))

  def end_step(self):
    """As Transformer Engine: a maximum that is zero or no number leaves the scale, and what it follows, as it was."""
    if self.now > 0 and torch.isfinite(self.now):
      self.history = torch.cat([self.now.reshape(1), self.history[:-1]])
    self.now = torch.tensor(0.0)


class Product(torch.autograd.Function):
  @staticmethod
  def forward(ctx, x, weight, group):
    ctx.group = group
    ctx.save_for_backward(x, weight)
    return group.x(x) @ group.weight(weight).T

  @staticmethod
  def backward(ctx, dy):
    (x, weight), group, mode = ctx.saved_tensors, ctx.group, ctx.group.case.get("backward", "all")
    blocks = group.case["recipe"] not in ("delayed", "tensorwise")
    if mode == "none":
      return dy @ weight, dy.T @ x, None
    dx = group.gradient(dy) @ group.weight(weight, along_rows=True)
    if mode == "inputs":
      return dx, dy.T @ x, None
    dy8 = group.gradient(dy, along_rows=True) if blocks else group.gradient(dy)
    return dx, dy8.T @ group.x(x, along_rows=True), None


class Group:
  """Projections that read the same are one product."""

  def __init__(self, case, modules):
    backward = "e5m2" if case["format"] == "hybrid" else "e4m3"
    self.case, self.modules = case, modules
    self.x, self.weight, self.gradient = (Operand(case, "e4m3", False), Operand(case, "e4m3", True),
                                          Operand(case, backward, False))
    for i, module in enumerate(modules):
      module.forward = lambda x, i=i: self.forward(x, i)

  def forward(self, x, index):
    if index == 0:
      y = Product.apply(x.reshape(-1, x.shape[-1]), torch.cat([m.weight for m in self.modules]), self)
      self.parts = y.reshape(*x.shape[:-1], -1).split([m.weight.shape[0] for m in self.modules], -1)
    return self.parts[index]

  def end_step(self):
    for operand in (self.x, self.weight, self.gradient):
      operand.end_step()


def groups_of(model, case):
  for layer in model.model.layers:
    a, f = layer.self_attn, layer.mlp
    for modules in ([a.q_proj, a.k_proj, a.v_proj], [a.o_proj], [f.gate_proj, f.up_proj], [f.down_proj]):
      yield Group(case, modules)


def train(model, groups, tokens):
  masters = {name: w.detach().clone().requires_grad_() for name, w in model.named_parameters()}
  decayed = [{"params": [w for w in masters.values() if (w.dim() > 1) == decays], "weight_decay": DECAY * decays}
             for decays in (True, False)]
  optimizer = torch.optim.AdamW(decayed, lr=LR, betas=BETAS, eps=EPSILON, foreach=False)
  steps = []
  for i in range(STEPS):
    loss, gradients = gradients_of_step(model, masters, tokens, i)
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
    steps = train(model, list(groups_of(model, case)), tokens)
    record["cases"][name] = {"settings": case, "steps": steps}
    print(f"{name:16} loss {steps[0]['loss']:.6f} -> {steps[-1]['loss']:.6f}, norm {steps[0]['grad_norm']:.6f}")
  (HERE / "recorded" / "fp8.json").write_text(json.dumps(record) + "\n")


if __name__ == "__main__":
  main()
