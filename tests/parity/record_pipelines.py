#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records in which order the ranks of PyTorch's pipeline schedules go forward and back.

usage: record_pipelines.py    writes recorded/pipelines.txt

Each line is a schedule as pipeline.schedule names it, the ranks, the chunks of a rank, the micro-batches and the rank;
then what the rank computes: F forward, B backward, I the inputs' part of it and W the weights', each with the chunk and
the micro-batch. What PyTorch lets overlap is written in the order in which it runs.
"""
import pathlib
import re

import torch
from torch.distributed.pipelining import schedules

TURNING = [(p, 2, n) for p in (2, 3, 4, 5, 8) for n in (1, 2, 3, 4, 5, 7, 8, 9, 12, 17)]
SCHEDULES = {
    "1f1b": (schedules.ScheduleInterleaved1F1B, [(p, v, p * k) for p in (2, 3, 4) for v in (2, 3) for k in (1, 2, 3)]),
    "zero_bubble": (schedules.ScheduleInterleavedZeroBubble,
                    [(p, v, n) for p in (2, 3, 4, 8) for v in (1, 2, 3) for n in (1, 2, 3, 4, 5, 6, 8, 10, 11, 12, 17)
                     if n % max(1, n // p) == 0]),
    "zbv": (schedules.ScheduleZBVZeroBubble, TURNING),
    "dualpipev": (schedules.ScheduleDualPipeV, [case for case in TURNING if case[2] >= 2 * case[0]]),
}


class Stage:
    """As much of a stage as the schedules ask for."""

    def __init__(self, index, ranks, stages):
        self.stage_index, self.group_rank, self.group_size, self.num_stages = index, 0, ranks, stages
        self.group, self.device, self.has_backward, self.submod = None, torch.device("cpu"), True, torch.nn.Identity()


def flat(actions):
    for action in actions:
        if action is None:
            continue
        for part in action.sub_actions or (action,):
            kind, = re.findall(r"^\d+([FBIW])\d", str(part).replace("BW", "B"))
            yield kind, part.stage_index, part.microbatch_index


def main():
    lines = []
    for name, (schedule, cases) in SCHEDULES.items():
        for p, v, n in cases:
            stages = [Stage(i, p, p * v) for i in range(v)]
            order = schedule(stages, n, loss_fn=lambda *a: None).pipeline_order
            for rank in range(p):
                text = " ".join(f"{kind}{chunk}.{m}" for kind, chunk, m in flat(order[rank]))
                lines.append(f"{name} {p} {v} {n} {rank} {text}")
    path = pathlib.Path(__file__).parent / "recorded" / "pipelines.txt"
    path.write_text("\n".join(lines) + "\n")


main()
