# SPDX-License-Identifier: Apache-2.0
"""Muon over a model's tensors, as Megatron Core and xorl have them: some of them are one parameter there.

What is no matrix of a layer is AdamW's.
"""
import re

import torch

from record_optimizers import COEFFICIENTS

SETS = ["simple", "quintic"]
# What stands one below the other in one parameter, by the name that optimizer.joined has for it.
JOINED = {"qkv": r"\.(q|k|v)_proj\.", "gate_up": r"\.mlp\.(gate|up)_proj\.",
          "expert_gate_up": r"(?<=\.experts\.\d)\.(w1|w3)\."}


def is_matrix(name, weight, settings):
  router = name.endswith("block_sparse_moe.gate.weight")
  return weight.dim() == 2 and ".layers." in name and (not router or settings["matrix_routers"])


def matrices(names, settings):
  """Lists of names; those of one list are one matrix."""
  found = {}
  for name in names:
    key = name
    for join in settings["joined"]:
      key = re.sub(JOINED[join], f".{join}.", name) if re.search(JOINED[join], name) else key
    found.setdefault(key, []).append(name)
  return [sorted(them, key=lambda n: (".q_proj." not in n, n)) for them in found.values()]


def shards(name, x, settings):
  """What ranks of xorl have of a matrix: of an expert's, which lies turned over there, some of its columns; else the rows
  or the columns of a tensor-parallel rank, and of these some rows. And the axes by which they were cut, the last first."""
  if ".experts." in name:
    return [x.chunk(settings.get("expert_parts", 1), 1)], 1
  axis = 1 if ".o_proj." in name or ".down_proj." in name else 0
  return [part.chunk(settings.get("matrix_parts", 1)) for part in x.chunk(settings.get("tensor", 1), axis)], axis


def orthogonal(x, settings):
  rows, columns = x.shape
  x = x.T if rows > columns else x
  x = x / x.norm().clamp(min=1e-7)
  table, _ = COEFFICIENTS[SETS.index(settings["ns_coefficients"])]
  for i in range(settings["ns_steps"]):
    a, b, c = table[i % len(table)]
    gram = x @ x.T
    x = a * x + (b * gram + c * gram @ gram) @ x
  return x.T if rows > columns else x


def scale(name, x, settings):
  """In xorl an expert's two first matrices stand beside one another, and each has its inputs as rows."""
  rows, columns = x.shape
  if settings.get("stacked_scale") and ".experts." in name:
    rows, columns = columns, rows * (1 if ".w2." in name else 2)
  spectral = settings["update_scale"] == "spectral"
  return max(rows, columns) ** 0.5 if spectral else max(1, rows / columns) ** 0.5


class Muon:
  def __init__(self, settings, masters, adamw):
    self.settings, self.masters, self.means = settings, masters, {}
    own = {n: w for n, w in masters.items() if is_matrix(n, w, settings)}
    self.matrices = matrices(own, settings)
    self.others = adamw({n: w for n, w in masters.items() if n not in own})
    self.group = {"lr": None}
    self.param_groups = [self.group] + self.others.param_groups

  @torch.no_grad()
  def step(self):
    self.others.step()
    momentum, lr = self.settings["momentum"], self.group["lr"]
    for names in self.matrices:
      g = torch.cat([self.masters[n].grad for n in names])
      mean = momentum * self.means.get(names[0], 0) + (1 - momentum) * g
      self.means[names[0]] = mean
      direction = (1 - momentum) * g + momentum * mean
      cut, axis = shards(names[0], direction, self.settings)
      updates = [[orthogonal(x, self.settings) * scale(names[0], x, self.settings) for x in part] for part in cut]
      inner = 1 if ".experts." in names[0] else 0
      update = torch.cat([torch.cat(part, inner) for part in updates], axis)
      parts = update.split([self.masters[n].shape[0] for n in names])
      kept, rate = 1 - lr * self.settings["weight_decay"], lr * self.settings["update_factor"]
      for n, part in zip(names, parts, strict=True):
        self.masters[n].mul_(kept).sub_(rate * part)
