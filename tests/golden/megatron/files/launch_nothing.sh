sbatch -p ${SLURM_PARTITION} --nodes=${NNODES} train.sh
