#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records the loss scales of DeepSpeed's and Megatron-LM's dynamic scalers over 200 steps, of which some overflow.

usage: record_loss_scales.py FOLDER    writes recorded/loss_scales.txt

FOLDER holds loss_scaler.py, fused_optimizer.py and unfused_optimizer.py (deepspeed/runtime/fp16, before 0.17.1: the
version that GPT-NeoX asks for) and grad_scaler.py (megatron/core/optimizer). Each line of the record: the system (plain:
DeepSpeed without ZeRO), initial, least, window, hysteresis, whether good steps renew the hysteresis, the steps (o good, x
overflow, to the end of the run where DeepSpeed raises), and log2 of the scale behind each.
"""
import ast
import math
import pathlib
import random
import sys
import types

import torch

N = 200


class Empty(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return types.SimpleNamespace(get_rank=lambda: 1, info=lambda *a: None, is_zero_stage=None)


def load(path, stubs):
    for stub in stubs:
        sys.modules[stub] = Empty(stub)
    module = types.ModuleType(path.stem)
    exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
    return module


def of_deepspeed(deepspeed, steps, initial, least, window, hysteresis, renews):
    scaler = deepspeed.DynamicLossScaler(init_scale=initial, scale_window=window, min_scale=least,
                                         delayed_shift=hysteresis, consecutive_hysteresis=renews)
    scales = []
    for step in steps:
        try:
            scaler.update_scale(step == "x")
        except Exception as error:
            assert "already at minimum" in str(error)
            break
        scales.append(scaler.cur_scale)
    return scales


def of_plain(optimizer, steps, initial, least, window):
    """FP16_Optimizer and FP16_UnfusedOptimizer keep a scale of their own; both must agree."""
    taken = ast.parse(optimizer.read_text())
    update = next(node for node in ast.walk(taken) if getattr(node, "name", "") == "_update_scale")
    names = {"logger": types.SimpleNamespace(info=lambda *a: None)}
    exec(compile(ast.Module([update], []), str(optimizer), "exec"), names)
    scaler = types.SimpleNamespace(dynamic_loss_scale=True, cur_scale=initial, scale_factor=2.0, min_loss_scale=least,
                                   scale_window=window, last_overflow_iter=-1, cur_iter=0, verbose=False)
    scales = []
    for step in steps:
        names["_update_scale"](scaler, step == "x")
        scales.append(scaler.cur_scale)
    return scales


def of_megatron(megatron, steps, initial, least, window, hysteresis):
    scaler = megatron.DynamicGradScaler.__new__(megatron.DynamicGradScaler)
    scaler._scale = torch.tensor([initial], dtype=torch.double)
    scaler.min_scale = torch.tensor([least], dtype=torch.double)
    scaler.growth_factor = torch.tensor([2.0], dtype=torch.double)
    scaler.backoff_factor = torch.tensor([0.5], dtype=torch.double)
    scaler.growth_interval, scaler.hysteresis = window, hysteresis
    scaler._growth_tracker, scaler._hysteresis_tracker = 0, hysteresis
    scales = []
    for step in steps:
        scaler.update(step == "x")
        scales.append(scaler._scale.item())
    return scales


def main():
    folder = pathlib.Path(sys.argv[1])
    deepspeed = load(folder / "loss_scaler.py", ["deepspeed", "deepspeed.comm", "deepspeed.utils", "deepspeed.runtime",
                                                 "deepspeed.runtime.config_utils"])
    megatron = load(folder / "grad_scaler.py", [])
    out = pathlib.Path(__file__).parent / "recorded" / "loss_scales.txt"
    random.seed(7)
    lines = []
    for initial, least, window, hysteresis in [(2.0**16, 1.0, 10, 2), (2.0**12, 2.0, 4, 1), (2.0**20, 2.0**10, 7, 3),
                                               (2.0**4, 1.0, 50, 2), (2.0**8, 2.0**10, 5, 2), (2.0**10, 1.0, 4, 0)]:
        for share in (0.05, 0.2, 0.5):
            steps = "".join("x" if random.random() < share else "o" for _ in range(N))
            cases = []
            if least <= initial and hysteresis > 0:  # what DynamicGradScaler asserts
                cases.append(("megatron", 0, of_megatron(megatron, steps, initial, least, window, hysteresis)))
            for renews in (0, 1):
                cases.append(("deepspeed", renews,
                              of_deepspeed(deepspeed, steps, initial, least, window, hysteresis, bool(renews))))
            fused, unfused = (of_plain(folder / name, steps, initial, least, window)
                              for name in ("fused_optimizer.py", "unfused_optimizer.py"))
            assert fused == unfused
            cases.append(("plain", 0, fused))
            for system, renews, scales in cases:
                powers = " ".join(str(int(math.log2(scale))) for scale in scales)
                lines.append(f"{system} {initial!r} {least!r} {window} {hysteresis} {renews} {steps} {powers}\n")
    out.write_text("".join(lines))
    print(f"{len(lines)} runs: {out}")


main()
