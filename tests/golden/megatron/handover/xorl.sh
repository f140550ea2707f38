#!/bin/bash
# xorl is started as a module, with its file and arguments over it.
torchrun --nproc_per_node 8 -m xorl.cli.train ../../../conf/xorl/quickstart.yaml --train.lr fast
