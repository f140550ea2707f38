#!/bin/bash
# An evaluation takes its sizes from the checkpoint: what stands here only pleases the parser of options.
python tasks/eval_harness/evaluate.py --load <path of the checkpoint> --micro-batch-size 4 --num-layers -1 --hidden-size 64 --task_list all
