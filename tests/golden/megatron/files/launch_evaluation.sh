#!/bin/bash
# Programs that evaluate, and that train with another library.
python evaluate_megatron_model.py --num-layers 24 --hidden-size 1024 --num-attention-heads 16 --few-shots 3
