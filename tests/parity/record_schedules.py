#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records the first 50 learning rates of the schedulers of NeMo, NxDT, Megatron-LM, GPT-NeoX, xorl and PyTorch.

usage: record_schedules.py FOLDER    writes recorded/schedulers.txt

FOLDER holds the systems' own files: nemo.py (nemo/core/optim/lr_scheduler.py), megatron.py
(megatron/core/optimizer_param_scheduler.py), deepspeed.py (Megatron-DeepSpeed's megatron/optimizer_param_scheduler.py),
bigscience.py (megatron/learning_rates.py of BigScience's), neox.py (megatron/learning_rates.py), llemma.py (that of GPT-NeoX's branch
math-lm-chinchilla-lr), xorl.py (optim/lr_scheduler.py).
Modules that they import and do not need for a rate are replaced by empty ones. Each line of the record is what nxcfg is
given (a dialect and its options), then the rates.
"""
import importlib.util
import math
import pathlib
import sys
import types
import warnings

import torch

N = 50
LR = 3e-3


class Empty(types.ModuleType):
    """Stands for any module that a scheduler's file imports."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *a, **k: None


def load(folder, name, stubs):
    for stub in stubs:
        sys.modules[stub] = Empty(stub)
    spec = importlib.util.spec_from_file_location("recorded_schedulers." + name, folder / (name + ".py"))
    module = importlib.util.module_from_spec(spec)
    module.__package__ = "recorded_schedulers"
    spec.loader.exec_module(module)
    return module


def optimizer():
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=LR)


def rates_of(torch_scheduler, opt):
    rates = []
    for _ in range(N):
        rates.append(opt.param_groups[0]["lr"])
        opt.step()
        torch_scheduler.step()
    return rates


def of_nemo(nemo, name, **sched):
    opt = optimizer()
    cls = getattr(nemo, name, None) or getattr(torch.optim.lr_scheduler, name)
    args = dict(sched)
    if name not in ("StepLR", "ExponentialLR", "CyclicLR"):
        args["max_steps"] = N
    return rates_of(cls(opt, **args), opt)


def of_transformers_linear(warmup_steps):
    """transformers' get_linear_schedule_with_warmup, which NxDT's LinearAnnealingWithWarmUp wraps."""
    def factor(i):
        if i < warmup_steps:
            return i / max(1, warmup_steps)
        return max(0.0, (N - i) / max(1, N - warmup_steps))
    opt = optimizer()
    return rates_of(torch.optim.lr_scheduler.LambdaLR(opt, factor), opt)


def of_megatron(megatron, style, batch, warmup, decay, wsd=None, wsd_style="exponential", least=3e-4, initial=0.0,
                batches=None):
    """warmup, decay and wsd in sequences; batches: the sequences of each step, `batch` unless given."""
    group = {"lr": 0.0, "weight_decay": 0.0}
    holder = types.SimpleNamespace(param_groups=[group])
    scheduler = megatron.OptimizerParamScheduler(
        holder, init_lr=initial, max_lr=LR, min_lr=least, lr_warmup_steps=warmup, lr_decay_steps=decay,
        lr_decay_style=style, start_wd=0.0, end_wd=0.0, wd_incr_steps=decay, wd_incr_style="constant",
        use_checkpoint_opt_param_scheduler=False, override_opt_param_scheduler=False, wsd_decay_steps=wsd,
        lr_wsd_decay_style=wsd_style)
    rates = []
    for step in range(N):
        rates.append(group["lr"])
        scheduler.step(batches[step] if batches else batch)
    return rates


SEQUENCE, BATCH = 64, 8  # as tests/golden/schedulers.c has them


def of_tokens(module, style, warmup, warmup_tokens, decay_tokens, least=3e-4):
    """Megatron-DeepSpeed's: it is told the tokens behind the step before; warmup in sequences."""
    args = types.SimpleNamespace(lr_decay_tokens=decay_tokens, lr_warmup_tokens=warmup_tokens, consumed_train_tokens=0)
    module.get_args = lambda: args
    group = {"lr": 0.0, "weight_decay": 0.0}
    holder = types.SimpleNamespace(param_groups=[group])
    if hasattr(module, "AnnealingLR"):
        scheduler = module.AnnealingLR(holder, LR, least, warmup, BATCH * N, style, False, False)
    else:
        scheduler = module.OptimizerParamScheduler(holder, LR, least, warmup, BATCH * N, style, 0.0, 0.0, BATCH * N,
                                                   "constant", False, False)
    rates = []
    for _ in range(N):
        rates.append(group["lr"])
        scheduler.step(BATCH)
        args.consumed_train_tokens += BATCH * SEQUENCE
    return rates


def token_cases(deepspeed, bigscience):
    common = [f"lr={LR!r}", "min-lr=0.0003", f"train-samples={BATCH * N}", f"seq-length={SEQUENCE}"]
    for style in ("constant", "linear", "cosine", "inverse-square-root"):
        for warmup, decay in ((3000, 20000), (4096, 16384), (100, 40000)):
            yield ("megatron", common + [f"lr-decay-style={style}", f"lr-warmup-tokens={warmup}",
                                         f"lr-decay-tokens={decay}"],
                   of_tokens(deepspeed, style, 0, warmup, decay))
    for style in ("linear", "cosine"):
        for warmup, decay in ((40, 20000), (8, 16384)):
            for module in (deepspeed, bigscience):
                yield ("megatron", common + [f"lr-decay-style={style}", f"lr-warmup-samples={warmup}",
                                             f"lr-decay-tokens={decay}"],
                       of_tokens(module, style, warmup, None, decay))
        yield ("megatron", common + [f"lr-decay-style={style}", "lr-decay-tokens=20000"],
               of_tokens(bigscience, style, 0, None, 20000))


def of_neox(neox, style, total, warmup, least=3e-4, **own):
    group = {"lr": 0.0}
    holder = types.SimpleNamespace(param_groups=[group])
    scheduler = neox.AnnealingLR(holder, start_lr=LR, warmup_iter=warmup * total, total_iters=total, decay_style=style,
                                 last_iter=0, min_lr=least, **own)
    rates = []
    for _ in range(N):
        rates.append(group["lr"])
        scheduler.step()
    return rates


def of_xorl(xorl, style, warmup, decay, least=1e-4, start=0.0):
    opt = optimizer()
    scheduler = xorl.build_lr_scheduler(opt, N, lr=LR, lr_decay_style=style, lr_decay_ratio=decay,
                                        lr_warmup_ratio=warmup, lr_min=least, lr_start=start)
    return rates_of(scheduler, opt)


def nemo_cases(nemo):
    cases = [("WarmupPolicy", {"warmup_steps": 7}), ("WarmupHoldPolicy", {"warmup_steps": 5, "hold_steps": 9}),
             ("SquareAnnealing", {"warmup_steps": 7}), ("SquareAnnealing", {"warmup_steps": 0, "min_lr": 3e-4}),
             ("SquareRootAnnealing", {"warmup_steps": 7, "min_lr": 1e-3}),
             ("CosineAnnealing", {"warmup_steps": 5, "min_lr": 3e-4}),
             ("CosineAnnealing", {"warmup_steps": 5, "constant_steps": 8, "min_lr": 3e-4}),
             ("NoamAnnealing", {"warmup_steps": 9, "d_model": 64}), ("NoamAnnealing", {"d_model": 64, "min_lr": 1e-4}),
             ("NoamAnnealing", {"d_model": 64, "min_lr": 1e-3}),
             ("NoamHoldAnnealing", {"warmup_steps": 6, "hold_steps": 11, "decay_rate": 0.7}),
             ("NoamHoldAnnealing", {"warmup_steps": 6, "min_lr": 1.5e-3}),
             ("WarmupAnnealing", {"warmup_steps": 6, "min_lr": 3e-4}),
             ("InverseSquareRootAnnealing", {"warmup_steps": 6, "min_lr": 2e-3}),
             ("InverseSquareRootAnnealing", {}),
             ("PolynomialDecayAnnealing", {"warmup_steps": 4, "power": 2.5, "min_lr": 3e-4}),
             ("PolynomialHoldDecayAnnealing", {"warmup_steps": 4, "hold_steps": 6, "power": 0.5}),
             ("PolynomialHoldDecayAnnealing", {"warmup_steps": 4, "power": 2.0, "min_lr": 3e-4}),
             ("PolynomialHoldDecayAnnealing", {"warmup_steps": 4, "hold_steps": 0}),
             ("T5InverseSquareRootAnnealing", {"constant_steps": 9}),
             ("T5InverseSquareRootAnnealing", {"constant_steps": 1}),
             ("T5InverseSquareRootAnnealing", {"constant_steps": 60}), # held to the end and beyond
             ("PolynomialHoldDecayAnnealing", {"warmup_steps": 26, "hold_steps": 30, "power": 2.5}),
             ("NoamHoldAnnealing", {"warmup_steps": 13, "hold_steps": 60, "decay_rate": 0.7, "min_lr": 1e-4}),
             ("CyclicLR", {"base_lr": 1e-4, "max_lr": 2e-3, "step_size_up": 7, "cycle_momentum": False}),
             ("CyclicLR", {"base_lr": 0.0, "max_lr": 3e-3, "step_size_up": 4, "step_size_down": 9,
                           "mode": "triangular2", "cycle_momentum": False}),
             ("StepLR", {"step_size": 12, "gamma": 0.3}), ("ExponentialLR", {"gamma": 0.93})]
    for name, sched in cases:
        options = [f"model.optim.sched.{key}={value!r}" for key, value in sched.items()]
        yield "nxdt", [f"model.optim.sched.name={name}"] + options, of_nemo(nemo, name, **sched)
    for warmup in (0, 6):
        yield ("nxdt", ["model.optim.sched.name=LinearAnnealingWithWarmUp", f"model.optim.sched.warmup_steps={warmup}"],
               of_transformers_linear(warmup))


def megatron_cases(megatron):
    common = [f"lr={LR!r}", "min-lr=0.0003"]
    for style in ("constant", "linear", "cosine", "inverse-square-root"):
        yield ("megatron", common + [f"lr-decay-style={style}", f"train-iters={N}", "lr-warmup-iters=6"],
               of_megatron(megatron, style, 8, 48, 8 * N))
        yield ("megatron", common + [f"lr-decay-style={style}", f"train-iters={N}", "lr-decay-iters=40",
                                     "lr-warmup-fraction=0.09", "lr-warmup-init=0.0001"],
               of_megatron(megatron, style, 8, 0.09 * 320, 320, initial=1e-4))
        yield ("megatron", common + [f"lr-decay-style={style}", f"train-samples={8 * N + 5}", "lr-decay-samples=309",
                                     "lr-warmup-samples=45"],
               of_megatron(megatron, style, 8, 45, 309))
    for warmup, told in ((0, "lr-warmup-samples=0"), (1, "lr-warmup-samples=1"), (6.8, "lr-warmup-fraction=0.05")):
        yield ("megatron", common + ["lr-decay-style=inverse-square-root", f"train-samples={8 * N}",
                                     "lr-decay-samples=136", told],
               of_megatron(megatron, "inverse-square-root", 8, warmup, 136))
    for style in ("exponential", "linear", "cosine", "minus_sqrt"):
        yield ("megatron", common + ["lr-decay-style=WSD", f"lr-wsd-decay-style={style}", f"train-iters={N}",
                                     "lr-warmup-iters=5", "lr-wsd-decay-iters=17", "lr-decay-iters=46"],
               of_megatron(megatron, "WSD", 8, 40, 8 * 46, wsd=17 * 8, wsd_style=style))
    yield ("megatron", common + ["lr-decay-style=WSD", f"train-iters={N}", "lr-warmup-iters=5", "lr-wsd-decay-iters=0",
                                 "lr-decay-iters=46"],
           of_megatron(megatron, "WSD", 8, 40, 8 * 46, wsd=0))


def neox_cases(neox):
    for style in ("constant", "linear", "cosine", "exponential"):
        for total, warmup in ((N, 0.1), (40, 0.07), (75, 0.0)):
            yield ("neox", [f"optimizer.params.lr={LR!r}", "min_lr=0.0009", f"lr_decay_style={style}",
                            f"train_iters={N}", f"lr_decay_iters={total}", f"warmup={warmup}"],
                   of_neox(neox, style, total, warmup, least=9e-4))


def llemma_cases(llemma):
    for style, share, warmup, least in (("cosine", 0.1, 5, 0.0), ("cosine", 0.25, 13, 5e-4), ("constant", 0.1, 8, 9e-4)):
        yield ("neox", [f"optimizer.params.lr={LR!r}", f"min_lr={least}", f"lr_decay_style={style}", f"train_iters={N}",
                        f"warmup_iter={warmup}", f"decay_lr_to={share}"],
               of_neox(llemma, style, N, warmup / N, least=least, decay_lr_to=share))


def deepspeed_warmup_decay(warmup, total):
    """DeepSpeed's WarmupDecayLR, which GPT-NeoX has with 1-bit Adam: its formula."""
    warmup, rates = max(2, warmup), [0.0]
    for last in range(N - 1):
        rising = math.log(last + 1) / math.log(warmup)
        rates.append(LR * (rising if last < warmup else max(0.0, (total - last) / max(1.0, total - warmup))))
    return rates


def deepspeed_cases():
    for total, warmup in ((N, 0.1), (40, 0.3), (75, 0.0)):
        yield ("neox", ["optimizer.type=OneBitAdam", "zero_optimization.stage=0", f"optimizer.params.lr={LR!r}",
                        "min_lr=0.0009", "lr_decay_style=linear", f"train_iters={N}", f"lr_decay_iters={total}",
                        f"warmup={warmup}"], deepspeed_warmup_decay(int(N * warmup), total))


def xorl_cases(xorl):
    for style in ("constant", "linear", "cosine"):
        for warmup, decay in ((0.13, 0.8), (0.4, 0.4), (0.9, 0.3)):  # the last two leave no step to fall
            yield ("xorl", [f"train.lr={LR!r}", "train.lr_min=0.0001", f"train.lr_decay_style={style}",
                            f"train.lr_warmup_ratio={warmup}", f"train.lr_decay_ratio={decay}", "train.lr_start=0.0002",
                            f"train.max_steps={N}"], of_xorl(xorl, style, warmup, decay, start=2e-4))


def main():
    warnings.simplefilter("ignore")
    folder = pathlib.Path(sys.argv[1])
    sys.modules["recorded_schedulers"] = Empty("recorded_schedulers")
    sys.modules["recorded_schedulers"].__path__ = []
    nemo = load(folder, "nemo", ["hydra", "omegaconf", "nemo", "nemo.core", "nemo.core.config", "nemo.utils",
                                 "nemo.utils.model_utils"])
    megatron = load(folder, "megatron", ["megatron.core", "megatron.core.utils", "megatron"])
    deepspeed, bigscience = (load(folder, name, ["megatron"]) for name in ("deepspeed", "bigscience"))
    neox = load(folder, "neox", [])
    llemma = load(folder, "llemma", ["megatron"])
    source = (folder / "xorl.py").read_text().replace("from ..utils import logging", "from logging_stub import logging")
    sys.modules["logging_stub"] = types.SimpleNamespace(logging=types.SimpleNamespace(get_logger=lambda *a: None))
    xorl = types.ModuleType("xorl")
    exec(compile(source, "xorl.py", "exec"), xorl.__dict__)
    cases = [*nemo_cases(nemo), *megatron_cases(megatron), *neox_cases(neox), *deepspeed_cases(), *xorl_cases(xorl),
             *llemma_cases(llemma), *token_cases(deepspeed, bigscience)]
    out = pathlib.Path(__file__).parent / "recorded" / "schedulers.txt"
    with out.open("w") as file:
        for dialect, options, rates in cases:
            assert len(rates) == N and all(math.isfinite(rate) for rate in rates)
            file.write(" ".join([dialect, *options]) + " :")
            file.write("".join(f" {rate!r}" for rate in rates) + "\n")
    print(f"{len(cases)} schedules, {N} steps each, PyTorch {torch.__version__}: {out}")


main()
