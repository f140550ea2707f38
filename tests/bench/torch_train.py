#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training tokens/s of PyTorch on the shapes that nxrun is measured with; prints one line of JSON.

  pip install torch==2.13.0 numpy
  torch_train.py [--model gpt2-124m] [--precision fp32|bf16] [--threads 2] [--batch 4] [--micros 1]
                 [--sequence 256] [--steps 5]

A step is forward and backward of each micro-batch, clipping at 1.0 and AdamW, on random tokens; each is timed
alone, after one that warms up, and tokens/s come from the median. PyTorch gets its fastest form: fused attention, fused AdamW,
gradients set to None. bf16 runs autocast (fp32 weights) and everything in bf16 (weights and optimizer state
too, which trains worse), and reports the faster.
"""
import argparse
import dataclasses
import json
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F


@dataclasses.dataclass(frozen=True)
class Shape:
  family: str  # gpt2: LayerNorm, GELU, learned positions, biases, tied
  #              llama: RMSNorm, RoPE, SwiGLU, grouped queries, untied
  layers: int
  hidden: int
  heads: int
  kv_heads: int
  ffn: int
  vocab: int


MODELS = {
    "gpt2-124m": Shape("gpt2", 12, 768, 12, 12, 3072, 50304),
    "gpt2-350m": Shape("gpt2", 24, 1024, 16, 16, 4096, 50304),
    "llama-134m": Shape("llama", 12, 768, 12, 4, 2048, 32000),
    "smoke-gpt2": Shape("gpt2", 2, 128, 4, 4, 512, 512),
    "smoke-llama": Shape("llama", 2, 128, 4, 2, 352, 512),
}


def rotate(x, cos, sin):
  first, second = x.chunk(2, dim=-1)
  return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class Block(nn.Module):
  def __init__(self, s):
    super().__init__()
    self.s, self.llama = s, s.family == "llama"
    self.head_dim = s.hidden // s.heads
    norm, bias = (nn.RMSNorm if self.llama else nn.LayerNorm), not self.llama
    self.norm_1, self.norm_2 = norm(s.hidden, eps=1e-5), norm(s.hidden, eps=1e-5)
    self.qkv = nn.Linear(s.hidden, (s.heads + 2 * s.kv_heads) * self.head_dim, bias=bias)
    self.out = nn.Linear(s.hidden, s.hidden, bias=bias)
    self.up = nn.Linear(s.hidden, s.ffn * (2 if self.llama else 1), bias=bias)
    self.down = nn.Linear(s.ffn, s.hidden, bias=bias)

  def forward(self, x, cos, sin):
    s = self.s
    qkv = self.qkv(self.norm_1(x)).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
    q, k, v = qkv.split([s.heads, s.kv_heads, s.kv_heads], dim=1)
    if self.llama:
      q, k = rotate(q, cos, sin), rotate(k, cos, sin)
    o = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=s.heads != s.kv_heads)
    x = x + self.out(o.transpose(1, 2).flatten(-2))
    h = self.up(self.norm_2(x))
    if self.llama:
      gate, up = h.chunk(2, dim=-1)
      h = F.silu(gate) * up
    else:
      h = F.gelu(h, approximate="tanh")
    return x + self.down(h)


class Model(nn.Module):
  def __init__(self, s, sequence):
    super().__init__()
    self.embed = nn.Embedding(s.vocab, s.hidden)
    self.position = nn.Embedding(sequence, s.hidden) if s.family == "gpt2" else None
    self.blocks = nn.ModuleList(Block(s) for _ in range(s.layers))
    self.norm = (nn.RMSNorm if s.family == "llama" else nn.LayerNorm)(s.hidden, eps=1e-5)
    self.head = nn.Linear(s.hidden, s.vocab, bias=False)
    for p in self.parameters():
      if p.dim() > 1:
        nn.init.normal_(p, std=0.02)
    if s.family == "gpt2":
      self.head.weight = self.embed.weight
    head_dim = s.hidden // s.heads
    frequency = 10000.0 ** (-torch.arange(0, head_dim, 2) / head_dim)
    angle = torch.arange(sequence)[:, None] * frequency
    self.register_buffer("cos", angle.cos())
    self.register_buffer("sin", angle.sin())

  def forward(self, ids, labels):
    x = self.embed(ids)
    if self.position is not None:
      x = x + self.position.weight
    for block in self.blocks:
      x = block(x, self.cos, self.sin)
    return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1).float(), labels.flatten())


def measure(shape, form, args):
  """Seconds of each step after one that warms up, and the last loss."""
  torch.manual_seed(1)
  network = Model(shape, args.sequence)
  if form == "pure bf16":
    network = network.bfloat16()
  optimizer = torch.optim.AdamW(network.parameters(), lr=3e-4, betas=(0.9, 0.95), fused=True)
  seconds = []
  for _ in range(args.steps + 1):
    batches = torch.randint(shape.vocab, (args.micros, args.batch, args.sequence + 1))
    start = time.perf_counter()
    for ids in batches:
      with torch.autocast("cpu", torch.bfloat16, enabled=form == "autocast"):
        loss = network(ids[:, :-1], ids[:, 1:]) / args.micros
      loss.backward()
    nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    seconds.append(time.perf_counter() - start)
  return seconds[1:], loss.item() * args.micros


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--model", choices=MODELS, default="gpt2-124m")
  parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
  parser.add_argument("--form", choices=["autocast", "pure bf16"], help="bf16: this one only")
  parser.add_argument("--threads", type=int, default=2)
  parser.add_argument("--batch", type=int, default=4)
  parser.add_argument("--micros", type=int, default=1)
  parser.add_argument("--sequence", type=int, default=256)
  parser.add_argument("--steps", type=int, default=5)
  args = parser.parse_args()
  torch.set_num_threads(args.threads)
  torch.set_flush_denormal(True)
  forms = ["fp32"] if args.precision == "fp32" else [args.form] if args.form else ["autocast", "pure bf16"]
  tokens = args.micros * args.batch * args.sequence
  results = {form: measure(MODELS[args.model], form, args) for form in forms}
  form, (seconds, loss) = min(results.items(), key=lambda item: statistics.median(item[1][0]))
  json.dump({"model": args.model, "precision": args.precision, "form": form, "threads": args.threads,
             "batch": args.batch, "micros": args.micros, "sequence": args.sequence, "steps": args.steps,
             "median_s": statistics.median(seconds), "tokens_per_s": tokens / statistics.median(seconds),
             "best_tokens_per_s": tokens / min(seconds), "loss": loss,
             "forms": {f: tokens / statistics.median(s) for f, (s, _) in results.items()},
             "torch": torch.__version__}, sys.stdout)
  print()


if __name__ == "__main__":
  main()
