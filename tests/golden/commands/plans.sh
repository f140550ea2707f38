#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# nxcfg diff of plans: a plan means what its configuration means. TAP. Usage: plans.sh NXCFG FOLDER
. "$(dirname "$0")/../../tap.sh"
nxcfg=$(realpath "$1")
cd "$2" || exit 1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
check() { # NAME WANTED-STATUS WANTED-TEXT ARGUMENTS...
  name=$1 wanted=$2 text=$3
  shift 3
  printed=$("$nxcfg" diff "$@" 2>&1)
  found=$?
  case $printed in *"$text"*) missing=0 ;; *) missing=1 ;; esac
  [ "$found" = "$wanted" ] && [ $missing = 0 ]
  result "$name" $? "exit $found: $printed"
}
"$nxcfg" plan ../ops/llama_tp2.yaml -o "$work/a.plan" >/dev/null || exit 1
"$nxcfg" plan ../ops/llama_tp2.yaml --set run.seed=7 -o "$work/b.plan" >/dev/null || exit 1
check "a plan and its configuration" 0 "mean the same" "$work/a.plan" ../ops/llama_tp2.yaml
check "a plan and the configuration in other words" 0 "mean the same" "$work/a.plan" diff_same.yaml
check "two plans" 1 "changes data order" "$work/a.plan" "$work/b.plan"
check "a configuration and a plan" 1 "llama_tp2.yaml:7" diff_lr.yaml "$work/a.plan"
checkpoint=../../parity/recorded/foreign/torch_dist
sizes="--num-layers 2 --hidden-size 32 --ffn-hidden-size 48 --num-attention-heads 4 --group-query-attention
  --num-query-groups 2 --kv-channels 8 --seq-length 32 --max-position-embeddings 32 --position-embedding-type rope
  --disable-bias-linear --swiglu --untie-embeddings-and-output-weights --normalization RMSNorm --attention-dropout 0
  --hidden-dropout 0 --padded-vocab-size 266"
for model in said "$sizes" taken --use-checkpoint-args; do
  case $model in said | taken) name=$model && continue ;; esac
  echo "torchrun --nproc_per_node 1 pretrain_gpt.py $model --load $checkpoint --finetune --micro-batch-size 2 \
    --global-batch-size 2 --lr 1e-3 --train-iters 8 --mock-data --tokenizer-type NullTokenizer --vocab-size 249 \
    --norm-epsilon 1e-6" | tr '\n\\' '  ' >"$work/$name.sh"
  "$nxcfg" plan "$work/$name.sh" -o "$work/$name.plan" | sed -n '/^plan_id/p' >"$work/$name"
done
[ -s "$work/said" ] && cmp -s "$work/said" "$work/taken"
result "a model that is given, and one that a checkpoint's arguments say, are one plan" $?
sed 's/^data: .*/data: {path: ["to\\u202e\\u009bkens"]}/' ../ops/llama_tp2.yaml >"$work/marks.yaml"
"$nxcfg" plan "$work/marks.yaml" -o "$work/marks.plan" >"$work/said"
"$nxcfg" plan "$work/marks.yaml" >>"$work/said"
for shown in text markdown; do "$nxcfg" diff --format $shown "$work/a.plan" "$work/marks.plan"; done >>"$work/said"
"$nxcfg" plan "$work/marks.yaml" --all >>"$work/said"
[ "$(grep -c 'to??kens' "$work/said")" = 4 ] && ! LC_ALL=C grep -q "$(printf '\302\233\|\342\200\256')" "$work/said"
result "what a terminal obeys is shown of no plan" $? "$(cat -v "$work/said")"
head -c 2000 "$work/a.plan" >"$work/short.plan"
check "a plan that is cut off" 2 "is no valid plan" "$work/a.plan" "$work/short.plan"
finish
