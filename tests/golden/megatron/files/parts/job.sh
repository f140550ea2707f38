#!/bin/bash
srun bash -c "python -u pretrain_gpt.py ${TRAINING_ARGS} $1 --use-mcore-models"
