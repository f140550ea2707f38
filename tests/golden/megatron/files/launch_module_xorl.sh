#!/bin/bash
# xorl is started as a module, with its file and options of it.
torchrun --nproc_per_node 8 -m xorl.cli.train configs/a.yaml --train.lr 1e-4
