#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records the learning rates of PyTorch's ReduceLROnPlateau over 60 random losses.

usage: record_plateaus.py    writes recorded/plateaus.txt

Each line of the record: mode, factor, patience, threshold, threshold mode, cooldown, least learning rate, eps, the
first learning rate, and pairs of a loss and the learning rate behind it.
"""
import pathlib
import random

import torch

N = 60


def run(mode, factor, patience, threshold, threshold_mode, cooldown, least, eps, lr, losses):
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=lr)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode=mode, factor=factor, patience=patience,
                                                          threshold=threshold, threshold_mode=threshold_mode,
                                                          cooldown=cooldown, min_lr=least, eps=eps)
    words = [mode, repr(factor), str(patience), repr(threshold), threshold_mode, str(cooldown), repr(least), repr(eps),
             repr(lr)]
    for loss in losses:
        schedule.step(loss)
        words += [repr(loss), repr(optimizer.param_groups[0]["lr"])]
    return " ".join(words)


def losses(seed, falls):
    source = random.Random(seed)
    made = [4 - falls * step + source.gauss(0, 0.3) for step in range(N)]
    if seed % 4 == 3:
        made[5] = float("nan")
    if seed % 5 == 4:
        made[0] = float("inf")
    return made


def main():
    lines = []
    for seed in range(40):
        source = random.Random(1000 + seed)
        lines.append(run(source.choice(["min", "max"]), source.choice([0.1, 0.5, 0.9]), source.choice([0, 1, 3, 10]),
                         source.choice([0.0, 1e-4, 0.1]), source.choice(["rel", "abs"]), source.choice([0, 2, 5]),
                         source.choice([0.0, 1e-5, 1e-3]), source.choice([0.0, 1e-8, 1e-4]),
                         source.choice([1e-2, 3e-4]), losses(seed, source.choice([0, 0.01, -0.02]))))
    folder = pathlib.Path(__file__).parent / "recorded"
    (folder / "plateaus.txt").write_text("\n".join(lines) + "\n")


main()
