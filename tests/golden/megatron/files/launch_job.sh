#!/bin/bash
# Ranks that Slurm is told of: of the job, of the command line of srun, and by torchrun itself, which counts most.
#SBATCH --job-name=ranks
#SBATCH --nodes=4 --ntasks-per-node=4
ARGS="--num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 128 --max-position-embeddings 128 \
  --micro-batch-size 1 --global-batch-size 64 --train-iters 10 --lr 1.0e-4 --tokenizer-type NullTokenizer \
  --vocab-size 999 --mock-data --split 1,0,0 --bf16 --use-mcore-models"
srun -l python pretrain_gpt.py $ARGS
srun -N 2 bash -c "python pretrain_gpt.py $ARGS"
srun --ntasks-per-node=1 bash -c "torchrun --nnodes \$SLURM_NNODES --nproc_per_node 8 pretrain_gpt.py $ARGS"
