#!/bin/bash
# Branches, cases, loops, functions, here documents and arithmetic, as launch scripts have them.
set -euxo pipefail
usage() {
  echo "usage: $0"
  NUM_LAYERS=99
}
MODEL_SIZE=${MODEL_SIZE:-7B}
NNODES=2
[ -z "${NNODES}" ] && NNODES=1
[[ -n "$NNODES" && $NNODES -gt 1 ]] && MULTI=1 || MULTI=0
GPUS=8
WORLD=$((NNODES * GPUS))
MBS=1
GBS=$(( MBS * $WORLD * 4 ))
case "$MODEL_SIZE" in
  1B | 2B)
    NUM_LAYERS=16; HIDDEN=2048 ;;
  7B)
    NUM_LAYERS=32
    HIDDEN=4096
    ;;
  *) echo bad; NUM_LAYERS=1 ;;
esac
while [[ $# -gt 0 ]]; do
  case $1 in
    --layers) NUM_LAYERS=$2; shift 2;;
    *) shift;;
  esac
done
cat > hostfile <<EOF
NUM_LAYERS=77
host slots=8
EOF
python - <<'PY'
print("if x: ( done")
PY
setup() {
  local -a X=(--lr $1)
  MODEL_ARGS=(--num-layers $NUM_LAYERS --hidden-size $HIDDEN --num-attention-heads 32)
}
setup 3e-4
EXTRA=()
for flag in swiglu bf16; do
  EXTRA+=(--$flag)
done
for i in $(seq 1 3); do echo $i; done
read -r -d '' TRAIN <<END || true
  --micro-batch-size $MBS --global-batch-size ${GBS} \
  --train-iters 10 --lr 3e-4
END
DATA=$(cat <<EOT
  --mock-data --vocab-size 1000
  --tokenizer-type NullTokenizer
EOT
)
if (( WORLD > 8 )); then EXTRA+=(--tensor-model-parallel-size 2); else EXTRA+=(--tensor-model-parallel-size 4); fi
export CUDA_DEVICE_MAX_CONNECTIONS=1
torchrun --nproc-per-node $GPUS --nnodes $NNODES pretrain_gpt.py "${MODEL_ARGS[@]}" ${EXTRA[@]} $TRAIN $DATA \
  --seq-length 128 --max-position-embeddings 128 ${WANDB:+--wandb-project $WANDB} \
  --log-interval $((10/2))
