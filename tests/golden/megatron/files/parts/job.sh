#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=8
srun bash -c "python -u pretrain_gpt.py ${TRAINING_ARGS} $1 --use-mcore-models"
