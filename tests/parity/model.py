# SPDX-License-Identifier: Apache-2.0
"""Llama, GPT-2 and Mixtral in plain PyTorch: the oracle that nxrun is compared with.

A model is a function (parameters, config, ids, arithmetic) -> logits, and the losses that it adds to the
cross-entropy (0 of a dense model). Parameters are a dictionary with
Hugging Face's tensor names and shapes; nothing here depends on the transformers package.

Every value that nxrun would write to memory passes through `a.store`. In float64 and float32 that is the
identity. In bf16 it rounds the value on the way forward and the value's gradient on the way back, while
everything between two stores (a matrix product's accumulation, norm statistics, softmax, cross-entropy)
stays in fp32. Parameters are leaves held in fp32 whose values are bf16 numbers, so their gradients add up
over micro-batches in fp32 and are never rounded.
"""
import dataclasses
import math

import numpy
import torch


class _RoundBoth(torch.autograd.Function):
  """Rounds to bf16 (nearest even): the value forward, its gradient backward."""

  @staticmethod
  def forward(ctx, x):
    return x.bfloat16().float()

  @staticmethod
  def backward(ctx, grad):
    return grad.bfloat16().float()


class _RoundGradient(torch.autograd.Function):
  """Rounds the gradient alone."""

  @staticmethod
  def forward(ctx, x):
    return x.clone()

  @staticmethod
  def backward(ctx, grad):
    return grad.bfloat16().float()


@dataclasses.dataclass(frozen=True)
class Arithmetic:
  """How one run computes. The last three are other legitimate choices, used only to measure their effect."""
  dtype: torch.dtype = torch.float32
  bf16: bool = False
  round_probabilities: bool = False  # attention's probabilities and their gradient are rounded to bf16 too
  fused_norm_add: bool = False       # the norm's backward adds the residual's gradient before it rounds
  separate_products: bool = False    # q, k, v, gate and up each return a rounded input gradient

  def store(self, x):
    return _RoundBoth.apply(x) if self.bf16 else x

  def keep(self, x):
    """For values that stay in fp32, but whose gradient does not."""
    return _RoundGradient.apply(x) if self.bf16 else x

  def parameter(self, master):
    """The leaf that the model computes with: the fp32 master rounded to the compute type."""
    copy = master.detach().bfloat16().float() if self.bf16 else master.detach().clone()
    return copy.to(self.dtype).requires_grad_()


# -- operators ---------------------------------------------------------------------------------------------

def rms_norm(x, weight, eps):
  return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def layer_norm(x, weight, bias, eps):
  centred = x - x.mean(-1, keepdim=True)
  return centred * torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + eps) * weight + bias


def gelu_tanh(x):
  return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x.pow(3))))


def rope_table(length, head_dim, theta, dtype):
  """cos and sin of position / theta^(2i/head_dim), [length, head_dim/2], made in float64 and rounded once."""
  frequency = theta ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
  angle = torch.arange(length, dtype=torch.float64)[:, None] * frequency
  return angle.cos().to(dtype), angle.sin().to(dtype)


def rope(x, cos, sin):
  """Hugging Face's half rotation of x [B, H, S, D]: element i is paired with element i + D/2."""
  first, second = x.chunk(2, dim=-1)
  return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def attention(q, k, v, layer_divisor, a):
  """Causal attention; q [B, H, S, D], k and v [B, KV, S, D]; query head h reads key head h / (H / KV).

  layer_divisor n > 1 is Megatron's query-key layer scaling: scores are divided by n besides sqrt(D) and
  multiplied by n again inside the fp32 softmax."""
  group = q.shape[1] // k.shape[1]
  k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
  scores = q @ k.transpose(-1, -2) / (math.sqrt(q.shape[-1]) * layer_divisor)
  future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
  probabilities = torch.softmax((scores * layer_divisor).masked_fill(future, -math.inf), dim=-1)
  if a.round_probabilities:
    probabilities = a.store(probabilities)
  return probabilities @ v


def fused_products(x, weights, a):
  """x W^T for several W over one x, as one product: one rounded input gradient."""
  if a.separate_products:
    return [a.store(a.store(x) @ w.T) for w in weights]
  return list(a.store(x @ torch.cat(weights).T).split([w.shape[0] for w in weights], dim=-1))


def split_heads(x, n_heads):
  return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def merge_heads(x):
  return x.transpose(1, 2).flatten(-2)


def norm_input(x, a):
  return x if a.fused_norm_add else a.store(x)


# -- models ------------------------------------------------------------------------------------------------

def llama_attention(w, cfg, x, divisor, a):
  """The first half of a layer of Llama or Mixtral; w names its weights."""
  heads, kv_heads, eps = cfg["num_attention_heads"], cfg["num_key_value_heads"], cfg["rms_norm_eps"]
  cos, sin = rope_table(x.shape[1], cfg["hidden_size"] // heads, cfg["rope_theta"], a.dtype)
  h = a.store(rms_norm(norm_input(x, a), w("input_layernorm"), eps))
  q, k, v = fused_products(h, [w(f"self_attn.{n}_proj") for n in "qkv"], a)
  q = a.store(rope(split_heads(q, heads), cos, sin))
  k = a.store(rope(split_heads(k, kv_heads), cos, sin))
  o = a.store(merge_heads(attention(q, k, split_heads(v, kv_heads), divisor, a)))
  return a.store(x + a.store(o @ w("self_attn.o_proj").T))


def gated(gate, up, a):
  return a.store(gate * torch.sigmoid(gate) * up)


def llama(p, cfg, ids, a):
  eps = cfg["rms_norm_eps"]
  x = p["model.embed_tokens.weight"][ids]
  for i in range(cfg["num_hidden_layers"]):
    w = lambda name: p[f"model.layers.{i}.{name}.weight"]
    x = llama_attention(w, cfg, x, i + 1 if cfg["query_key_layer_scaling"] else 1, a)
    h = a.store(rms_norm(norm_input(x, a), w("post_attention_layernorm"), eps))
    h = gated(*fused_products(h, [w("mlp.gate_proj"), w("mlp.up_proj")], a), a)
    x = a.store(x + a.store(h @ w("mlp.down_proj").T))
  h = a.store(rms_norm(norm_input(x, a), p["model.norm.weight"], eps))
  return a.store(h @ p["lm_head.weight"].T), 0.0


# -- mixture of experts ------------------------------------------------------------------------------------

def mixture(w, cfg, h, a):
  """Tokens h [T, H] through their experts: the weighted sum of what they make of them, and the router's
  logits. Mixtral's weights are softmax values over all experts, divided by their sum; Megatron's, without
  pre-softmax, the softmax over the chosen."""
  n_experts, top_k = cfg["num_local_experts"], cfg["num_experts_per_tok"]
  logits = a.keep(a.store(h) @ w("block_sparse_moe.gate").T)
  chosen = torch.topk(logits, top_k).indices
  if cfg["pre_softmax"]:
    weights = torch.softmax(logits, -1).gather(1, chosen)
    weights = weights / weights.sum(-1, keepdim=True)
  else:
    weights = torch.softmax(logits.gather(1, chosen), -1)
  tokens, mixed = a.store(h), torch.zeros_like(h)
  for e in range(n_experts):
    rows, places = torch.where(chosen == e)
    expert = lambda name: w(f"block_sparse_moe.experts.{e}.{name}")
    y = gated(*fused_products(a.store(tokens[rows]), [expert("w1"), expert("w3")], a), a)
    y = a.store(y @ expert("w2").T)
    mixed = mixed.index_add(0, rows, weights[rows, places, None] * y)
  return a.store(mixed), logits


def balancing_loss(cfg, logits, top_k, layer=0):
  """Of one list of tokens (all layers' in Hugging Face, a layer's in Megatron-LM): experts x the sum of mean
  probability x mean count, of these tokens, or of those of the step so far (cfg["so_far"], per layer)."""
  probabilities = torch.softmax(logits, -1)
  counts = torch.nn.functional.one_hot(torch.topk(logits, top_k).indices, cfg["num_local_experts"]).sum((0, 1))
  n = len(logits)
  if cfg.get("aux_loss_over") == "step":
    before, n_before = cfg["so_far"].get(layer, (0, 0))
    counts, n = counts + before, n + n_before
    cfg["so_far"][layer] = counts, n
  return cfg["num_local_experts"] * (probabilities.mean(0) * counts.to(logits.dtype) / n).sum()


def router_losses(cfg, logits):
  """logits: of each layer, [T, experts]."""
  top_k, coefficient = cfg["num_experts_per_tok"], cfg["router_aux_loss_coef"]
  if cfg["aux_loss_scope"] == "model":
    return coefficient * balancing_loss(cfg, torch.cat(logits), top_k)
  balance = sum(balancing_loss(cfg, layer, top_k, i) / top_k for i, layer in enumerate(logits))
  z = sum(torch.logsumexp(layer, -1).pow(2).mean() for layer in logits)
  return coefficient * balance + cfg["z_loss_coef"] * z


def mixtral(p, cfg, ids, a):
  eps, logits = cfg["rms_norm_eps"], []
  x = p["model.embed_tokens.weight"][ids]
  for i in range(cfg["num_hidden_layers"]):
    w = lambda name: p[f"model.layers.{i}.{name}.weight"]
    x = llama_attention(w, cfg, x, 1, a)
    h = a.store(rms_norm(norm_input(x, a), w("post_attention_layernorm"), eps))
    mixed, router = mixture(w, cfg, h.flatten(0, 1), a)
    x = a.store(x + mixed.view_as(x))
    logits.append(router)
  h = a.store(rms_norm(norm_input(x, a), p["model.norm.weight"], eps))
  return a.store(h @ p["lm_head.weight"].T), router_losses(cfg, logits)


def gpt2(p, cfg, ids, a):
  heads, eps = cfg["n_head"], cfg["layer_norm_epsilon"]
  norm = lambda x, name: a.store(layer_norm(norm_input(x, a), p[name + ".weight"], p[name + ".bias"], eps))
  linear = lambda x, name: a.store(x @ p[name + ".weight"] + p[name + ".bias"])  # Conv1D: weight is [in, out]
  x = a.store(p["transformer.wte.weight"][ids] + p["transformer.wpe.weight"][: ids.shape[1]])
  for i in range(cfg["n_layer"]):
    at = f"transformer.h.{i}."
    h = norm(x, at + "ln_1")
    q, k, v = [split_heads(t, heads) for t in linear(h, at + "attn.c_attn").chunk(3, dim=-1)]
    o = a.store(merge_heads(attention(q, k, v, 1, a)))
    x = a.store(x + linear(o, at + "attn.c_proj"))
    h = linear(norm(x, at + "ln_2"), at + "mlp.c_fc")
    x = a.store(x + linear(a.store(gelu_tanh(h)), at + "mlp.c_proj"))
  return a.store(norm(x, "transformer.ln_f") @ p["transformer.wte.weight"].T), 0.0


MODELS = {"llama": llama, "gpt2": gpt2, "mixtral": mixtral}


# -- shapes and initial weights ----------------------------------------------------------------------------

def llama_shapes(cfg):
  hidden, ffn, vocab = cfg["hidden_size"], cfg["intermediate_size"], cfg["vocab_size"]
  kv = hidden // cfg["num_attention_heads"] * cfg["num_key_value_heads"]
  shapes = {"model.embed_tokens.weight": (vocab, hidden)}
  for i in range(cfg["num_hidden_layers"]):
    layer = {"input_layernorm": (hidden,), "post_attention_layernorm": (hidden,),
             "self_attn.q_proj": (hidden, hidden), "self_attn.k_proj": (kv, hidden),
             "self_attn.v_proj": (kv, hidden), "self_attn.o_proj": (hidden, hidden),
             "mlp.gate_proj": (ffn, hidden), "mlp.up_proj": (ffn, hidden), "mlp.down_proj": (hidden, ffn)}
    shapes.update({f"model.layers.{i}.{name}.weight": shape for name, shape in layer.items()})
  shapes.update({"model.norm.weight": (hidden,), "lm_head.weight": (vocab, hidden)})
  return shapes


def mixtral_shapes(cfg):
  hidden, ffn = cfg["hidden_size"], cfg["intermediate_size"]
  shapes = {}
  for name, shape in llama_shapes(cfg).items():
    at, dense, _ = name.partition("mlp.gate_proj")
    if dense:
      experts = range(cfg["num_local_experts"])
      shapes[f"{at}block_sparse_moe.gate.weight"] = (len(experts), hidden)
      shapes |= {f"{at}block_sparse_moe.experts.{e}.{part}.weight": part_shape for e in experts
                 for part, part_shape in {"w1": (ffn, hidden), "w2": (hidden, ffn), "w3": (ffn, hidden)}.items()}
    elif ".mlp." not in name:
      shapes[name] = shape
  return shapes


def gpt2_shapes(cfg):
  hidden, inner = cfg["n_embd"], cfg["n_inner"]
  shapes = {"transformer.wte.weight": (cfg["vocab_size"], hidden),
            "transformer.wpe.weight": (cfg["n_positions"], hidden)}
  norm = lambda name: {f"{name}.weight": (hidden,), f"{name}.bias": (hidden,)}
  linear = lambda name, n_in, n_out: {f"{name}.weight": (n_in, n_out), f"{name}.bias": (n_out,)}
  for i in range(cfg["n_layer"]):
    at = f"transformer.h.{i}."
    shapes |= norm(at + "ln_1") | norm(at + "ln_2")
    shapes |= linear(at + "attn.c_attn", hidden, 3 * hidden) | linear(at + "attn.c_proj", hidden, hidden)
    shapes |= linear(at + "mlp.c_fc", hidden, inner) | linear(at + "mlp.c_proj", inner, hidden)
  return shapes | norm("transformer.ln_f")


def initial_scale(name, shape):
  """Matrices are wide enough that attention is far from uniform. Llama's input embeddings are wide because
  the first norm divides by their size: small ones would dominate the gradient's norm and its rounding."""
  if len(shape) == 1:
    return 0.05
  return 0.5 if "embed_tokens" in name else 0.04 if "wte" in name or "wpe" in name else 0.06


def initial_weights(model, cfg, seed):
  """Normal around 0, gains around 1, biases not zero. NumPy's RandomState, whose stream never changes."""
  random = numpy.random.RandomState(seed)
  weights = {}
  for name, shape in {"llama": llama_shapes, "gpt2": gpt2_shapes, "mixtral": mixtral_shapes}[model](cfg).items():
    gain = len(shape) == 1 and name.endswith("weight")
    values = gain + initial_scale(name, shape) * random.randn(*shape)
    weights[name] = torch.from_numpy(values.astype(numpy.float32))
  return weights


def decays(name, weight):
  """Weight decay is for matrices and embeddings, not for gains and biases."""
  return weight.dim() > 1
