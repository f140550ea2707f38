#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records 20 steps of each update rule: recorded/optimizers.json.

Rules that PyTorch has are PyTorch's own, in float64; the others are the formulas of their papers, in float64, by
numpy. All start from the same matrix and see the same gradients; the learning rate changes at every step.
"""
import json
import pathlib
import sys

import numpy as np
import torch

ROWS, COLUMNS, STEPS, WIDE = 4, 6, 20, 96  # WIDE: whole bytes of signs for each of 2, 3 and 4 servers
HERE = pathlib.Path(__file__).parent / "recorded"


def rates(lr):
    return [lr * (1 - 0.03 * step) for step in range(STEPS)]


def by_torch(kind, start, gradients, lr, decay, **arguments):
    p = torch.nn.Parameter(torch.tensor(start, dtype=torch.float64))
    optimizer = kind([p], lr=lr, weight_decay=decay, **arguments)
    for rate, gradient in zip(rates(lr), gradients):
        optimizer.param_groups[0]["lr"] = rate
        p.grad = torch.tensor(gradient, dtype=torch.float64)
        optimizer.step()
    return p.detach().numpy()


def lion(p, g, state, lr, decay, count, beta1, beta2):
    m = state.setdefault("m", np.zeros_like(p))
    p *= 1 - lr * decay
    p -= lr * np.sign(beta1 * m + (1 - beta1) * g)
    state["m"] = beta2 * m + (1 - beta2) * g


def madgrad_wd(p, g, state, lr, decay, count, momentum, epsilon):
    if count == 1:
        state.update(start=p.copy(), square=np.zeros_like(p), sum=np.zeros_like(p))
    lr += epsilon
    weight = lr * np.sqrt(count)
    p *= 1 - lr * decay
    state["square"] += weight * g * g
    state["sum"] += weight * g
    z = state["start"] - state["sum"] / (np.cbrt(state["square"]) + epsilon)
    p[:] = momentum * p + (1 - momentum) * z


def madgrad_wd_alone(p, g, state, lr, decay, count, epsilon):
    """GPT-NeoX's optimizers.py where momentum is 0: nothing is kept of the start."""
    square, total, lr = state.get("square", np.zeros_like(p)), state.get("sum", np.zeros_like(p)), lr + epsilon
    start = p * (1 - lr * decay) + total / (np.cbrt(square) + epsilon)
    weight = lr * np.sqrt(count)
    state["square"], state["sum"] = square + weight * g * g, total + weight * g
    p[:] = start - state["sum"] / (np.cbrt(state["square"]) + epsilon)


def bf16(x):
    return torch.tensor(x, dtype=torch.float64).to(torch.bfloat16).to(torch.float64).numpy()


def anyprecision(p, g, state, lr, decay, count, beta1, beta2, epsilon, stored=lambda x: x):
    """Each operator of PyTorch stores what it makes."""
    m = state["m"] = stored(stored(beta1 * state.get("m", 0 * p)) + (1 - beta1) * g)
    v = state["v"] = stored(stored(beta2 * state.get("v", 0 * p)) + (1 - beta2) * g * g)
    root = stored(stored(stored(np.sqrt(v)) / np.sqrt(1 - beta2**count)) + epsilon)
    return lr / (1 - beta1**count) * m / root


def anyprecision_adamw(p, g, state, lr, decay, count, **numbers):
    change = anyprecision(p, g, state, lr, decay, count, **numbers)
    p[:] = p * (1 - lr * decay) - change


def anyprecision_bf16(p, g, state, lr, decay, count, **numbers):
    """Everything is stored in bf16."""
    change = anyprecision(p, g, state, lr, decay, count, stored=bf16, **numbers)
    p[:] = bf16(bf16(p * (1 - lr * decay)) - change)


def kahan_adamw(p, g, state, lr, decay, count, **numbers):
    """Everything is stored in bf16."""
    change = anyprecision(p, g, state, lr, decay, count, stored=bf16, **numbers)
    due = bf16(state.get("lost", 0) - change)
    old = bf16(p * (1 - lr * decay))
    p[:] = bf16(old + due)
    state["lost"] = bf16(due + (old - p))


SIMPLE = (3.4445, -4.7750, 2.0315)
# Sets of coefficients by number, and whether their last is taken time and again: Emerging-Optimizers, muon_utils.py.
COEFFICIENTS = [
    ([SIMPLE], False),
    ([(4.0848, -6.8946, 2.9270), (3.9505, -6.3029, 2.6377), (3.7418, -5.5913, 2.3037), (2.8769, -3.1427, 1.2046),
      (2.8366, -3.0525, 1.2012)], False),
    ([(8.2051, -22.9019, 16.4607), (4.0664, -2.8612, 0.5184), (3.9096, -2.8234, 0.5250), (3.2856, -2.4153, 0.4853),
      (2.2779, -1.6198, 0.3985), (1.8726, -1.2307, 0.3585), (1.8564, -1.2132, 0.3568), (1.8750, -1.2500, 0.3750)], True),
    ([(8.4703, -25.1081, 18.6293), (4.1828, -3.1087, 0.5806), (3.9619, -2.9541, 0.5630), (3.2866, -2.4647, 0.5074),
      (2.2737, -1.6447, 0.4162)], True),
    ([(4.0098, -7.0585, 2.4635), (3.4585, -5.5479, 2.5959), (2.7573, -3.2939, 1.4254), (2.7215, -3.0494, 1.3169)], False),
    ([SIMPLE] * 8 + [(2.0, -1.5, 0.5)] * 2, True),
    ([(3.3656576, -3.3420992, 0.0), (2.5744352, -1.4957376, 0.0), (2.5368962, -1.4312570, 0.0),
      (2.4418906, -1.2764040, 0.0), (2.2230472, -0.9630650, 0.0)], False)]


def stored(x, rounded):
    return torch.from_numpy(np.ascontiguousarray(x)).bfloat16().double().numpy() if rounded else x


def orthogonal(g, state, momentum, nesterov, ns_steps, ns_coefficients, rounded_update, rounded_momentum,
               column_parts):
    """torch.optim.Muon, whose iteration is in bf16, in float64; xorl's optim/muon.py says what is in bf16 before, and
    works on the columns that a rank has."""
    g = stored(g, rounded_momentum > 0)
    m = state["m"] = stored(momentum * state.get("m", 0) + (1 - momentum) * g, rounded_momentum > 1)
    x = (1 - momentum) * g + momentum * m if nesterov else m
    x = stored(x, rounded_update or rounded_momentum > 1)
    return np.hstack([iterated(part, ns_steps, ns_coefficients, rounded_update)
                      for part in np.hsplit(x, column_parts)])


def iterated(x, ns_steps, ns_coefficients, rounded_update):
    rows, columns = x.shape
    x = (x.T if rows > columns else x) / max(np.linalg.norm(x), 1e-7)
    table, last_stays = COEFFICIENTS[ns_coefficients]
    for i in range(ns_steps):
        a, b, c = table[min(i, len(table) - 1) if last_stays else i % len(table)]
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return stored(x.T if rows > columns else x, rounded_update)


def muon_scale(p, update_scale, update_factor, column_parts):
    rows, columns = p.shape[0], p.shape[1] // column_parts
    scales = [1, max(1, rows / columns) ** 0.5, max(rows, columns) ** 0.5, (rows / columns) ** 0.5]
    return update_factor * scales[update_scale]


def decayed(p, update, kept, cautious):
    """arXiv:2510.12402: decay where update and parameter have one sign."""
    return np.where(update * p >= 0, kept, 1) * p if cautious else kept * p


def muon(p, g, state, lr, decay, count, update_scale, update_factor, cautious_decay, **numbers):
    x = orthogonal(g, state, **numbers)
    scale = muon_scale(p, update_scale, update_factor, numbers["column_parts"])
    p[:] = decayed(p, x, 1 - lr * decay, cautious_decay) - lr * scale * x


def adaptive_muon(p, g, state, lr, decay, count, update_scale, update_factor, cautious_decay, moment2, moment2_beta,
                  moment2_epsilon, **numbers):
    """As Megatron Core has it: TensorParallelAdaptiveMuon, over AdaptiveMuon of Emerging-Optimizers 0.3."""
    scale = muon_scale(p, update_scale, update_factor, numbers["column_parts"])
    x = orthogonal(g, state, **numbers) * scale
    axis = 1 if p.shape[0] >= p.shape[1] else 0
    square = np.mean(x * x, axis=axis, keepdims=True) if moment2 else x * x
    v = state["v"] = moment2_beta * state.get("v", 0) + (1 - moment2_beta) * square
    if moment2:
        new = x / np.sqrt(np.maximum(v, moment2_epsilon))
        x = new * np.linalg.norm(x) / max(np.linalg.norm(new), moment2_epsilon)
    else:
        x = x / (np.sqrt(v) + moment2_epsilon)
    p[:] = decayed(p, x, 1 - lr * decay, cautious_decay) - lr * scale * x


def soap_mean(mean, now, rest):
    return mean + rest * (now - mean)


def soap(p, g, state, lr, decay, count, beta1, beta2, basis_epsilon, factor_beta, kl_factors):
    """SOAP of Emerging-Optimizers 0.3 (soap/soap.py), with which Megatron Core trains, in float64."""
    m, n = p.shape
    rest = (1 - factor_beta) / (1 - factor_beta**count)
    left, right = state.get("left", np.zeros((m, m))), state.get("right", np.zeros((n, n)))
    q, r = state.get("q", np.eye(m)), state.get("r", np.eye(n))
    first, second = state.get("m", np.zeros_like(p)), state.get("v", np.zeros_like(p))
    if kl_factors:
        weights = [1 / len(side) / np.maximum(np.diag(basis.T @ side @ basis), basis_epsilon)
                   for side, basis in ((left, q), (right, r))]
        now = g @ (r * weights[1]) @ r.T @ g.T, g.T @ (q * weights[0]) @ q.T @ g
    else:
        now = g @ g.T, g.T @ g
    left, right = soap_mean(left, now[0], rest), soap_mean(right, now[1], rest)
    first = q @ first @ r.T
    rows, columns = (np.argsort(-np.diag(basis.T @ side @ basis), kind="stable") for side, basis in ((left, q), (right, r)))
    second = second[rows][:, columns]
    if "q" in state:
        q, r = np.linalg.qr(left @ q[:, rows])[0], np.linalg.qr(right @ r[:, columns])[0]
    else:
        q, r = np.linalg.eigh(left)[1][:, ::-1], np.linalg.eigh(right)[1][:, ::-1]
    turned = q.T @ g @ r
    first = beta1 * (q.T @ first @ r) + (1 - beta1) * turned
    second = beta2 * second + (1 - beta2) * turned**2
    update = first / (1 - beta1**count) / (np.sqrt(second / (1 - beta2**count)) + basis_epsilon)
    p[:] = p * (1 - lr * decay) - lr * (q @ update @ r.T)
    state.update(left=left, right=right, q=q, r=r, m=first, v=second)


def soap_cases(draw):
    """A square matrix from the beginning: in its own bases the first gradient is diagonal, so what is beside that is
    roundings, which a small epsilon makes steps of, as it does of eigenvalues that are 0. What the first gradient of
    another shape says nothing of has any basis: those begin where three gradients have been."""
    for rows, columns, before in ((4, 4, 0), (4, 6, 3), (6, 4, 3)):
        for kl in (0, 1):
            epsilon = 1e-8 if before and not kl else 1e-2
            numbers = {"row_start": 0, "column_start": 0, "beta1": 0.9, "beta2": 0.95, "basis_epsilon": epsilon,
                       "factor_beta": 0.9}
            p, state = np.round(draw.normal(size=(rows, columns)), 6), {}
            gradients = np.round(draw.normal(size=(before + STEPS, rows, columns)) * 0.3, 6)
            own = {"basis_epsilon": epsilon, "factor_beta": 0.9, "kl_factors": kl, "beta1": 0.9, "beta2": 0.95}
            for count in range(before):
                soap(p, gradients[count], state, 1e-2, 0.1, count + 1, **own)
            start, kept = p.copy(), []
            if before:
                kept = [state["m"], state["v"], np.concatenate((state["left"], state["q"])),
                        np.concatenate((state["right"], state["r"]))]
            for step, rate in enumerate(rates(1e-2)):
                soap(p, gradients[before + step], state, rate, 0.1, before + step + 1, **own)
            yield {"rule": "soap", "numbers": {**numbers, "tensor_rows": rows, "kl_factors": kl}, "decay": 0.1,
                   "rates": rates(1e-2), "by": "formula", "stored": "f64", "rows": rows, "before": before,
                   "start": start.ravel().tolist(), "states": [x.ravel().tolist() for x in kept],
                   "gradients": [g.ravel().tolist() for g in gradients[before:]], "final": p.ravel().tolist()}


def uncorrected(p, g, state, lr, decay, count, beta1, beta2, epsilon, added=False):
    """FusedAdam of apex and DeepSpeed with bias_correction=False; `added`: weight decay is added to gradients."""
    g = g + decay * p if added else g
    m = state["m"] = beta1 * state.get("m", 0) + (1 - beta1) * g
    v = state["v"] = beta2 * state.get("v", 0) + (1 - beta2) * g * g
    p[:] = p * (1 if added else 1 - lr * decay) - lr * m / (np.sqrt(v) + epsilon)


def adam_uncorrected(p, g, state, lr, decay, count, **numbers):
    uncorrected(p, g, state, lr, decay, count, added=True, **numbers)


def adamw_late_decay(p, g, state, lr, decay, count, beta1, beta2, epsilon):
    """neuronx_distributed/utils/adamw_fp32_optim_params.py, which is transformers' former AdamW."""
    m = state["m"] = beta1 * state.get("m", 0) + (1 - beta1) * g
    v = state["v"] = beta2 * state.get("v", 0) + (1 - beta2) * g * g
    p -= lr * np.sqrt(1 - beta2**count) / (1 - beta1**count) * m / (np.sqrt(v) + epsilon)
    p *= 1 - lr * decay


def ademamix(p, g, state, lr, decay, count, beta1, beta2, epsilon, slow_beta, slow_weight, slow_beta_warmup,
             slow_weight_warmup):
    """arXiv:2409.03137, with its schedules."""
    half_life = lambda beta: np.log(0.5) / np.log(beta + 1e-8) - 1
    weight, beta3 = slow_weight, slow_beta
    if count < slow_weight_warmup:
        weight *= count / slow_weight_warmup
    if count < slow_beta_warmup:
        share = count / slow_beta_warmup
        beta3 = 0.5 ** (1 / ((1 - share) * half_life(beta1) + share * half_life(slow_beta) + 1))
    m = state["m"] = beta1 * state.get("m", 0) + (1 - beta1) * g
    slow = state["slow"] = beta3 * state.get("slow", 0) + (1 - beta3) * g
    v = state["v"] = beta2 * state.get("v", 0) + (1 - beta2) * g * g
    root = np.sqrt(v) / np.sqrt(1 - beta2**count) + epsilon
    p[:] = p * (1 - lr * decay) - lr * (m / (1 - beta1**count) + weight * slow) / root


def adan(p, g, state, lr, decay, count, beta1, beta2, beta3, epsilon):
    """arXiv:2208.06677, as NeMo has it (nemo/core/optim/adan.py, without no_prox)."""
    difference = g - state.get("before", g)
    state["before"] = g.copy()
    m = state["m"] = beta1 * state.get("m", 0) + (1 - beta1) * g
    d = state["d"] = beta2 * state.get("d", 0) + (1 - beta2) * difference
    v = state["v"] = beta3 * state.get("v", 0) + (1 - beta3) * (g + beta2 * difference) ** 2
    root = np.sqrt(v) / np.sqrt(1 - beta3**count) + epsilon
    p[:] = (p - (lr / (1 - beta1**count) * m + lr * beta2 / (1 - beta2**count) * d) / root) / (1 + lr * decay)


def cautious_adamw(p, g, state, lr, decay, count, **numbers):
    old = p.copy()
    change = anyprecision(p, g, state, lr, decay, count, **numbers)
    p[:] = decayed(old, state["m"], 1 - lr * decay, True) - change


def cautious_signsgd(p, g, state, lr, decay, count):
    p[:] = decayed(p, g, 1 - lr * decay, True) - lr * np.sign(g)


def dynamic_map(signed):
    """The values of 8 bits as bitsandbytes makes them."""
    from bitsandbytes.functional import create_dynamic_map
    return create_dynamic_map(signed).numpy()


def rounded_to_8_bits(x, signed):
    """What is left of a moment, as bitsandbytes' kernels for GPUs store it: the nearest value, of two that are equally
    near that of the even code; what is below 0 stays there."""
    values, flat = dynamic_map(signed), x.astype(np.float32).ravel()
    stored = np.zeros_like(flat)
    for first in range(0, len(flat), 256):
        block = flat[first:first + 256]
        most = np.abs(block).max()
        if most == 0:
            continue
        distance = np.abs((block / most)[:, None] - values[None, :])
        code = 255 - np.argmin(distance[:, ::-1], axis=1)
        code -= (distance[np.arange(len(block)), code - 1] == distance[np.arange(len(block)), code]) & (code % 2 == 1)
        code -= signed & (block < 0) & (values[code] == 0)
        stored[first:first + 256] = values[code] * most
    return stored.reshape(x.shape).astype(np.float64)


def adamw_8bit(p, g, state, lr, decay, count, beta1, beta2, epsilon, min_8bit_size):
    m = beta1 * state.get("m", 0) + (1 - beta1) * g
    v = beta2 * state.get("v", 0) + (1 - beta2) * g * g
    p -= lr / (1 - beta1**count) * m / (np.sqrt(v) / np.sqrt(1 - beta2**count) + epsilon)
    p *= 1 - lr * decay
    small = p.size < min_8bit_size
    state["m"], state["v"] = (m, v) if small else (rounded_to_8_bits(m, True), rounded_to_8_bits(v, False))


def eight_bits():
    """Numbers of two blocks and a part of one, and what 8 bits leave of them. (quantize_blockwise of bitsandbytes' CPU
    build looks numbers up in a table that is coarse near 0: what its optimizers store is the nearest value.)"""
    draw = np.random.default_rng(8)
    x = (draw.normal(size=600) * 10.0 ** draw.uniform(-7, 0, size=600)).astype(np.float32)
    return [{"signed": signed, "numbers": numbers.tolist(),
             "stored": rounded_to_8_bits(numbers, signed).astype(np.float32).tolist()}
            for signed, numbers in ((True, x), (False, np.abs(x)))]


def novograd(p, g, state, lr, decay, count, beta1, beta2, epsilon, grad_averaging, luc, luc_trust, luc_epsilon):
    norm = np.sum(g * g)
    v = state["v"] = beta2 * state["v"] + (1 - beta2) * norm if count > 1 else norm
    d = g / (np.sqrt(v) + epsilon) + decay * p
    m = state["m"] = beta1 * state.get("m", 0) + (d * (1 - beta1) if grad_averaging else d)
    bound = luc_trust * np.linalg.norm(p) / (np.linalg.norm(m) + luc_epsilon)
    p -= (min(lr, bound) if luc else lr) * m


def sm3_momentum(p, g, state, lr, decay, count, epsilon, sum_beta, momentum=0.0):
    """The accumulators of rows and columns, as the paper has them; with a decay as GPT-NeoX's optimizers.py does."""
    rows, columns = state.get("rows", np.zeros(p.shape[0])), state.get("columns", np.zeros(p.shape[1]))
    sums = (sum_beta or 1) * np.minimum(rows[:, None], columns[None, :]) + (1 - sum_beta) * g * g
    kept = (rows, columns) if sum_beta else (0, 0)
    state["rows"], state["columns"] = np.maximum(kept[0], sums.max(axis=1)), np.maximum(kept[1], sums.max(axis=0))
    update = state["m"] = (1 - momentum) * g / np.sqrt(sums + epsilon) + momentum * state.get("m", 0)
    p -= lr * update


def adafactor(p, g, state, lr, decay, count, decay_rate, clip_threshold, scale_parameter, relative_step, warmup_init,
              momentum=0):
    """The sums of rows and columns, as the paper has them."""
    rms = lambda x: np.sqrt(np.mean(x * x))
    rate = min(1e-6 * count if warmup_init else 1e-2, count**-0.5) if relative_step else lr
    rate *= max(1e-3, rms(p)) if scale_parameter else 1
    beta, square = 1 - count**decay_rate, g * g + 1e-30
    rows = state["rows"] = beta * state.get("rows", 0) + (1 - beta) * square.mean(axis=1)
    columns = state["columns"] = beta * state.get("columns", 0) + (1 - beta) * square.mean(axis=0)
    update = g / np.sqrt(rows[:, None] * columns[None, :] / rows.mean())
    update /= max(1, rms(update) / clip_threshold)
    step = state["m"] = momentum * state.get("m", 0) + (1 - momentum) * rate * update
    p[:] = p - rate * decay * p - step


def onebitadam(p, g, state, lr, decay, count, beta1, beta2, epsilon, freeze_step):
    """arXiv:2102.02888 on one rank: there is nothing to compress."""
    m = state["m"] = beta1 * state.get("m", 0) + (1 - beta1) * g
    if count < freeze_step:
        state["v"] = beta2 * state.get("v", 0) + (1 - beta2) * g * g
    p[:] = p * (1 - lr * decay) - lr * m / (np.sqrt(state["v"]) + epsilon)


def compressed(x):
    """What a vector's signs stand for, times the root of its mean square."""
    return np.where(x >= 0, 1.0, -1.0) * np.sqrt(np.mean(x * x))


def by_workers(n, start, gradients, lr, decay, numbers):
    """The same on n ranks, each of which has a gradient of its own."""
    p, size = np.array(start), len(start)
    beta1, epsilon, m, v = numbers["beta1"], numbers["epsilon"], np.zeros(size), np.zeros(size)
    worker_errors, server_errors = np.zeros((n, size)), np.zeros((n, size // n))
    for count, (rate, g) in enumerate(zip(rates(lr), gradients), 1):
        if count < numbers["freeze_step"]:
            m = beta1 * m + (1 - beta1) * g
            v = numbers["beta2"] * v + (1 - numbers["beta2"]) * g * g
        else:
            sent = []
            for w, own in enumerate(shares(n, g)):
                x = beta1 * m + (1 - beta1) * own + worker_errors[w]
                sent.append(compressed(x))
                worker_errors[w] = x - sent[w]
            means = np.mean(sent, axis=0).reshape(n, -1) + server_errors
            served = np.array([compressed(x) for x in means])
            server_errors = means - served
            m = np.where(v == 0, 0, served.ravel())
        p = p * (1 - rate * decay) - rate * m / (np.sqrt(v) + epsilon)
    return p


def shares(n, g):
    """Gradients of n workers whose mean is g."""
    w, i = np.arange(n)[:, None], np.arange(len(g))[None, :]
    return g * (1 + (w - (n - 1) / 2) / 4 * np.where(i % 2, 1, -1))


def signsgd(p, g, state, lr, decay, count):
    p[:] = p * (1 - lr * decay) - lr * np.sign(g)


def by_formula(rule, start, gradients, lr, decay, row_start=0, column_start=0, tensor_rows=0, **numbers):
    p, state = np.array(start), {}
    for count, (rate, gradient) in enumerate(zip(rates(lr), gradients), 1):
        rule(p, np.array(gradient), state, rate, decay, count, **numbers)
    return p


def cases():
    optim, betas = torch.optim, {"beta1": 0.9, "beta2": 0.95}
    adam = {**betas, "epsilon": 1e-8}
    torch_adam = {"betas": (0.9, 0.95), "eps": 1e-8}
    sgd = {"momentum": 0.9, "dampening": 0.0, "nesterov": 0}
    yield "adamw", adam, 1e-2, 0.1, optim.AdamW, torch_adam
    yield "adam", adam, 1e-2, 0.1, optim.Adam, torch_adam
    yield "adamw_amsgrad", adam, 1e-2, 0.1, optim.AdamW, {**torch_adam, "amsgrad": True}
    yield "adam_amsgrad", adam, 1e-2, 0.1, optim.Adam, {**torch_adam, "amsgrad": True}
    yield ("rmsprop_centered", {"alpha": 0.9, "epsilon": 1e-8}, 1e-2, 0.1, optim.RMSprop,
           {"alpha": 0.9, "eps": 1e-8, "centered": True})
    yield ("rmsprop_centered_momentum", {"alpha": 0.95, "epsilon": 1e-6, "momentum": 0.6}, 1e-2, 0.1, optim.RMSprop,
           {"alpha": 0.95, "eps": 1e-6, "momentum": 0.6, "centered": True})
    yield "adamax", adam, 1e-2, 0.1, optim.Adamax, torch_adam
    yield "distsignsgd", {}, 1e-2, 0.1, optim.SGD, {}
    yield "sgd", {}, 1e-2, 0.1, optim.SGD, {}
    yield "sgd_momentum", sgd, 1e-2, 0.1, optim.SGD, {"momentum": 0.9}
    yield "sgd_momentum", {**sgd, "nesterov": 1}, 1e-2, 0.1, optim.SGD, {"momentum": 0.9, "nesterov": True}
    yield "sgd_momentum", {**sgd, "dampening": 0.3}, 1e-2, 0.1, optim.SGD, {"momentum": 0.9, "dampening": 0.3}
    yield "adadelta", {"rho": 0.9, "epsilon": 1e-6}, 1.0, 0.1, optim.Adadelta, {"rho": 0.9, "eps": 1e-6}
    yield ("adagrad", {"lr_decay": 0.01, "initial_accumulator": 0.1, "epsilon": 1e-10}, 1e-2, 0.1, optim.Adagrad,
           {"lr_decay": 0.01, "initial_accumulator_value": 0.1, "eps": 1e-10})
    yield "rmsprop", {"alpha": 0.99, "epsilon": 1e-8}, 1e-2, 0.1, optim.RMSprop, {"alpha": 0.99, "eps": 1e-8}
    yield ("rmsprop_momentum", {"alpha": 0.99, "epsilon": 1e-8, "momentum": 0.9}, 1e-2, 0.1, optim.RMSprop,
           {"alpha": 0.99, "eps": 1e-8, "momentum": 0.9})
    rprop = {"eta_minus": 0.5, "eta_plus": 1.2, "step_min": 1e-6, "step_max": 50.0}
    yield "rprop", rprop, 1e-2, 0.0, optim.Rprop, {"etas": (0.5, 1.2), "step_sizes": (1e-6, 50)}
    yield "lion", {"beta1": 0.9, "beta2": 0.99}, 1e-3, 0.1, lion, None
    yield "madgrad_wd", {"momentum": 0.9, "epsilon": 1e-6}, 1e-2, 0.1, madgrad_wd, None
    yield "madgrad_wd_alone", {"epsilon": 1e-6}, 1e-2, 0.1, madgrad_wd_alone, None
    yield "adamw_late_decay", {**adam, "epsilon": 1e-3}, 1e-2, 0.3, adamw_late_decay, None
    yield "anyprecision_adamw", adam, 1e-2, 0.1, anyprecision_adamw, None
    for beta2 in (0.95, 0.999):
        yield "anyprecision_adamw", {**adam, "beta2": beta2}, 1e-2, 0.1, anyprecision_bf16, None
    yield "kahan_adamw", adam, 1e-2, 0.1, kahan_adamw, None
    box = {"row_start": 0, "column_start": 0, "tensor_rows": ROWS}
    nova = {**box, "beta1": 0.95, "beta2": 0.98, "epsilon": 1e-8, "luc_trust": 1e-3, "luc_epsilon": 1e-8}
    yield "novograd", {**nova, "grad_averaging": 0, "luc": 0}, 1e-2, 0.1, novograd, None
    yield "novograd", {**nova, "grad_averaging": 1, "luc": 1}, 1e-2, 0.1, novograd, None
    yield "sm3", {**box, "epsilon": 1e-30, "sum_beta": 0}, 1e-2, 0.0, sm3_momentum, None
    yield "sm3", {**box, "epsilon": 1e-6, "sum_beta": 0.6}, 1e-2, 0.0, sm3_momentum, None
    yield "sm3_momentum", {**box, "epsilon": 1e-30, "sum_beta": 0, "momentum": 0.9}, 1e-2, 0.0, sm3_momentum, None
    yield "sm3_momentum", {**box, "epsilon": 1e-30, "sum_beta": 0.95, "momentum": 0.8}, 1e-2, 0.0, sm3_momentum, None
    eight = {**box, **adam, "min_8bit_size": 0}
    yield "adamw_8bit", eight, 1e-2, 0.1, adamw_8bit, None
    yield "adamw_8bit", {**eight, "min_8bit_size": 4096}, 1e-2, 0.1, adamw_8bit, None
    ada = {**box, "decay_rate": -0.8, "clip_threshold": 1.0}
    yield "adafactor", {**ada, "scale_parameter": 0, "relative_step": 0, "warmup_init": 0}, 1e-2, 0.1, adafactor, None
    yield "adafactor", {**ada, "scale_parameter": 1, "relative_step": 1, "warmup_init": 1}, 1e-2, 0.1, adafactor, None
    yield ("adafactor_momentum", {**ada, "scale_parameter": 1, "relative_step": 0, "warmup_init": 0, "momentum": 0.7}, 1e-1,
           0.1, adafactor, None)
    plain = {**box, "momentum": 0.95, "ns_steps": 5, "cautious_decay": 0, "rounded_update": 0, "rounded_momentum": 0,
             "column_parts": 1}
    tall = {**plain, "nesterov": 1, "update_scale": 1, "update_factor": 1.0, "ns_coefficients": 0}
    spectral = {**plain, "nesterov": 0, "update_scale": 2, "update_factor": 0.2, "ns_coefficients": 1}
    yield "muon", tall, 1e-2, 0.1, muon, None
    yield "muon", spectral, 1e-2, 0.1, muon, None
    yield "muon", {**tall, "rounded_update": 1}, 1e-4, 0.1, muon, None  # a border of bf16 is a step of this rate
    yield "muon", {**spectral, "rounded_momentum": 1}, 1e-2, 0.1, muon, None
    yield "muon", {**tall, "rounded_momentum": 2}, 1e-4, 0.1, muon, None
    yield "muon", {**tall, "column_parts": 2, "rounded_update": 1, "rounded_momentum": 2}, 1e-4, 0.1, muon, None
    yield "muon", {**tall, "column_parts": 3}, 1e-2, 0.1, muon, None
    for index in range(2, len(COEFFICIENTS)):
        steps = {4: 6, 2: 10, 5: 12}.get(index, 5)
        yield "muon", {**tall, "ns_coefficients": index, "ns_steps": steps, "cautious_decay": index % 2}, 1e-2, 0.1, muon, None
    adaptive = {"moment2_beta": 0.95, "moment2_epsilon": 1e-8}
    yield "adaptive_muon", {**spectral, **adaptive, "moment2": 0}, 1e-2, 0.1, adaptive_muon, None
    yield "adaptive_muon", {**tall, **adaptive, "moment2": 1, "cautious_decay": 1}, 1e-2, 0.1, adaptive_muon, None
    yield "adaptive_muon", {**tall, **adaptive, "moment2": 1, "column_parts": 3}, 1e-2, 0.1, adaptive_muon, None
    yield "adamw_uncorrected", adam, 1e-3, 0.1, uncorrected, None
    yield "adam_uncorrected", adam, 1e-3, 0.1, adam_uncorrected, None
    slow = {**adam, "slow_beta": 0.999, "slow_weight": 5.0}
    yield "ademamix", {**slow, "slow_beta_warmup": 0, "slow_weight_warmup": 0}, 1e-2, 0.1, ademamix, None
    yield "ademamix", {**slow, "slow_beta_warmup": 12, "slow_weight_warmup": 30}, 1e-2, 0.1, ademamix, None
    yield "adan", {"beta1": 0.98, "beta2": 0.92, "beta3": 0.99, "epsilon": 1e-8}, 1e-2, 0.1, adan, None
    yield "cautious_adamw", adam, 1e-2, 0.3, cautious_adamw, None
    yield "cautious_signsgd", {}, 1e-3, 0.3, cautious_signsgd, None
    yield "onebitadam", {**adam, "freeze_step": 8}, 1e-3, 0.1, onebitadam, None
    yield "signsgd", {}, 1e-3, 0.1, signsgd, None


def trained(rule, numbers, lr, decay, by, arguments, start, gradients):
    if arguments is None:
        return by_formula(by, start, gradients, lr, decay, **numbers)
    if by is torch.optim.Rprop:  # it has no weight decay
        return by_torch(lambda p, lr, weight_decay, **a: by(p, lr=lr, **a), start, gradients, lr, decay, **arguments)
    return by_torch(by, start, gradients, lr, decay, **arguments)


def main():
    draw = np.random.default_rng(7)
    start = bf16(draw.normal(size=(ROWS, COLUMNS)))
    gradients = np.round(draw.normal(size=(STEPS, ROWS, COLUMNS)) * 0.3, 6)
    rows = []
    for rule, numbers, lr, decay, by, arguments in cases():
        final = trained(rule, numbers, lr, decay, by, arguments, start, gradients)
        rows.append({"rule": rule, "numbers": numbers, "decay": decay, "rates": rates(lr),
                     "by": "formula" if arguments is None else "torch", "stored": "bf16" if by in (kahan_adamw, anyprecision_bf16) else "f64",
                     "final": final.ravel().tolist()})
    onebit = {"beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8, "freeze_step": 8}
    wide = [np.round(draw.normal(size=WIDE) * 0.3, 6) for _ in range(STEPS)]
    wide_start = np.round(draw.normal(size=WIDE), 6)
    for g in wide:
        g[5] = 0
    workers = [{"workers": n, "numbers": onebit, "decay": 0.1, "rates": rates(1e-3),
                "final": by_workers(n, wide_start, wide, 1e-3, 0.1, onebit).tolist()} for n in (2, 3, 4)]
    rows += soap_cases(np.random.default_rng(9))
    record = {"dynamic8": eight_bits(),
              "wide": {"start": wide_start.tolist(), "gradients": [g.tolist() for g in wide], "cases": workers},
              "torch": torch.__version__, "rows": ROWS, "columns": COLUMNS, "start": start.ravel().tolist(),
              "gradients": [g.ravel().tolist() for g in gradients], "cases": rows}
    (HERE / "optimizers.json").write_text(json.dumps(record, indent=0) + "\n")
    print(len(rows), "cases", file=sys.stderr)


if __name__ == "__main__":
    main()
