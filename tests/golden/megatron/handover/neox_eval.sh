#!/bin/bash
# An evaluation reads the same files, and is no training.
python ./deepy.py eval.py ../../../conf/neox/quickstart.yml --eval_tasks lambada_openai piqa
