#!/bin/sh
# Adapters beside a frozen model: they resume bit by bit, begin from a folder of PEFT's, and are merged by nxdata or
# while the training goes on. TAP.
# usage: adapters.sh NXRUN NXCFG NXDATA MPIEXEC RECORDED
# SPDX-License-Identifier: Apache-2.0
set -u
nxrun=$(realpath "$1") nxcfg=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4 recorded=$(realpath "$5")
. "$(dirname "$0")/lib.sh"

base=$recorded/families/llama

plan() { # NAME WORLD SETTINGS...
  name=$1 world=$2
  shift 2
  cat >config.yaml <<END
batch: {micro: 2, global: 8}
model: {sequence: 32}
optimizer: {name: adamw, lr: 1e-2}
schedule: {name: constant, max_steps: 6}
data: {path: [$recorded/tokens]}
run: {name: $name, seed: 3}
END
  settings=
  for setting; do settings="$settings --set nx:$setting"; done
  # shellcheck disable=SC2086
  "$nxcfg" plan config.yaml --model-config "$base/config.json" --set "nx:mesh.world=$world" $settings -o "$name.bin" >out 2>&1
}

train() { # NAME WORLD OPTIONS...
  name=$1 world=$2
  shift 2
  timeout 100 "$mpiexec" -n "$world" "$nxrun" "$name.bin" "$@" >out 2>&1
}

loss() { # NAME: of the first step
  head -n 1 "$1/metrics.jsonl" | sed 's/.*"loss": *\([0-9.e+-]*\).*/\1/'
}

adapted="lora.rank=4 lora.alpha=8 lora.dropout=0.1 run.init_from=$base/model.safetensors"
# shellcheck disable=SC2086
plan whole 2 $adapted mesh.tensor=2 sequence_parallel=true && train whole 2 &&
  plan parts 2 $adapted mesh.tensor=2 sequence_parallel=true && train parts 2 --stop-after 2 && train parts 2 --resume &&
  cmp whole/checkpoints/step-000006/adapter_model.safetensors parts/checkpoints/step-000006/adapter_model.safetensors &&
  cmp whole/checkpoints/step-000006/moment2.safetensors parts/checkpoints/step-000006/moment2.safetensors
report 'a run that resumes ends with the same bits' $?
[ ! -e whole/checkpoints/step-000006/model.safetensors ] && [ ! -e whole/checkpoints/step-000006/config.json ] &&
  grep -q '"peft_type": "LORA"' whole/checkpoints/step-000006/adapter_config.json
report 'a checkpoint holds adapters alone' $?

# shellcheck disable=SC2086
plan based 1 $adapted lora.save_base=true && train based 1 --stop-after 1 &&
  cmp based/checkpoints/step-000001/model.safetensors "$base/model.safetensors" && train based 1 --resume --stop-after 2
report 'with the model where that is asked for, as it was' $?

"$nxdata" merge-adapter "$base" "$recorded/lora/llama" -o merged >out 2>&1
report 'adapters are merged' $?
cmp merged/config.json "$base/config.json" >out 2>&1
report 'what stands beside the weights is copied' $?
plan adapter 1 lora.rank=4 lora.alpha=8 "run.init_from=$base/model.safetensors" "lora.init_from=$recorded/lora/llama" &&
  train adapter 1 --stop-after 1 && plan merged_model 1 "run.init_from=$folder/merged" &&
  train merged_model 1 --stop-after 1 && plan base_model 1 "run.init_from=$base/model.safetensors" &&
  train base_model 1 --stop-after 1
report 'the model, the model with adapters and the merged one train' $?
echo "$(loss adapter) $(loss merged_model) $(loss base_model)" >out
awk '{ d = $1 - $2; e = $1 - $3; exit !(d * d < 1e-11 && e * e > 1e-8) }' out
report 'the merged model is the model with adapters' $?

# What all experts have in common is added to each of them, by nxdata and while the training goes on.
llama=$base base=$recorded/families/qwen3_moe shared=$recorded/lora/experts_shared
mixture="lora.rank=3 lora.alpha=6 lora.shared_by_experts=true lora.modules=[q_proj,gate_proj,up_proj,down_proj] run.init_from=$base/model.safetensors"
"$nxdata" merge-adapter "$base" "$shared" -o merged_experts >out 2>&1
report 'an adapter with a matrix of all experts is merged' $?
# shellcheck disable=SC2086
plan experts 1 $mixture "lora.init_from=$shared" && train experts 1 --stop-after 1 &&
  plan merged_mixture 1 "run.init_from=$folder/merged_experts" && train merged_mixture 1 --stop-after 1 &&
  plan merging_experts 1 $mixture "lora.init_from=$shared" lora.save_base=true lora.merge_interval=1 optimizer.lr=1e-9 \
    optimizer.weight_decay=0 && train merging_experts 1 --stop-after 2
report 'and both train' $?
mkdir alone_experts && cp merging_experts/checkpoints/step-000002/model.safetensors alone_experts
plan after_experts 1 "run.init_from=$folder/alone_experts/model.safetensors" && train after_experts 1 --stop-after 1
report 'weights that adapters were added to train' $?
echo "$(loss experts) $(loss merged_mixture) $(loss after_experts)" >out
awk '{ d = $1 - $2; e = $1 - $3; exit !(d * d < 1e-11 && e * e < 1e-11) }' out
report 'as the experts with their adapters' $?
grep -q moe_hybrid_shared_lora experts/checkpoints/step-000001/adapter_config.json
report 'adapter_config.json says so' $?
base=$llama

# Merged while the training goes on: W + scale B A, as nxdata makes it, and adapters that begin anew.
plain="lora.rank=4 lora.alpha=8 run.init_from=$base/model.safetensors" saving="lora.save_base=true lora.merge_resets_optimizer=true"
# shellcheck disable=SC2086
plan plain 1 $plain && train plain 1 --stop-after 3 &&
  "$nxdata" merge-adapter "$base" plain/checkpoints/step-000003 -o by_hand >out 2>&1 &&
  plan merging 1 $plain $saving lora.merge_interval=3 && train merging 1 --stop-after 3
report 'adapters are merged every three steps' $?
mkdir alone && cp merging/checkpoints/step-000003/model.safetensors alone
for model in by_hand alone; do
  rm -rf after
  plan after 1 "run.init_from=$folder/$model/model.safetensors" && train after 1 --stop-after 1 && loss after >>losses
done
loss base_model >>losses
awk '{ n[NR] = $1 } END { d = n[1] - n[2]; e = n[1] - n[3]; exit !(NR == 3 && d * d < 1e-12 && e * e > 1e-8) }' losses
report 'the weights are those that nxdata makes of them' $?
tail -c +1 merging/checkpoints/step-000003/moment1.safetensors | tail -c 64 | od -An -tx1 | grep -qv '[1-9a-f]' >out 2>&1
report 'and the optimizer begins anew' $?
# shellcheck disable=SC2086
plan merges 2 $plain $saving lora.merge_interval=2 mesh.tensor=2 && train merges 2 &&
  plan merged_parts 2 $plain $saving lora.merge_interval=2 mesh.tensor=2 && train merged_parts 2 --stop-after 3 &&
  train merged_parts 2 --resume &&
  for file in model adapter_model moment1 moment2; do
    cmp merges/checkpoints/step-000006/$file.safetensors merged_parts/checkpoints/step-000006/$file.safetensors || break
  done
report 'a run that resumes between two merges ends with the same bits' $?
# shellcheck disable=SC2086
plan sharded 2 $plain $saving lora.merge_interval=2 optimizer.zero_stage=3 && train sharded 2 &&
  plan staged 2 $plain $saving lora.merge_interval=2 mesh.pipeline=2 && train staged 2
report 'shards and stages are merged' $?
for run in merges sharded staged; do tail -n 1 $run/metrics.jsonl | sed 's/.*"loss": *\([0-9.e+-]*\).*/\1/'; done >out
awk 'NR == 1 { a = $1 } { d = a - $1; bad = bad || d * d > 1e-10 } END { exit bad || NR != 3 }' out
report 'with the loss of every layout' $?

# Quantized weights become numbers with what adapters add.
for format in nf4 nf4_double nvfp4 mxfp4 block_fp8; do
  base=$recorded/lora/${format}_stored/base stored=$recorded/lora/${format}_stored
  "$nxdata" merge-adapter "$base" "$stored" -o "plain_$format" >out 2>&1 &&
    ! grep -q quantization_config "plain_$format/config.json" &&
    plan "numbers_$format" 1 "run.init_from=$folder/plain_$format" && train "numbers_$format" 1 --stop-after 1 &&
    plan "codes_$format" 1 lora.rank=4 lora.alpha=8 "lora.base_type=${format%_double}" "lora.init_from=$stored" \
      "run.init_from=$base" && train "codes_$format" 1 --stop-after 1 &&
    echo "$(loss "numbers_$format") $(loss "codes_$format")" >out && awk '{ d = $1 - $2; exit !($1 > 0 && d * d < 1e-12) }' out
  report "adapters are merged into weights in $format" $?
done

# Adapters are added to quantized weights, which are quantized anew: as what nxdata makes of both is.
for format in nf4 nf4_double nvfp4 mxfp4 block_fp8; do
  base=$recorded/lora/nf4/base quantized="lora.rank=4 lora.alpha=8 lora.save_base=true lora.base_type=${format%_double}"
  [ $format = block_fp8 ] && base=$recorded/lora/block_fp8/base
  [ $format = nf4_double ] && quantized="$quantized lora.double_quantization=true"
  # shellcheck disable=SC2086
  plan "before_$format" 1 $quantized "run.init_from=$base" && train "before_$format" 1 --stop-after 3 &&
    plan "anew_$format" 1 $quantized "run.init_from=$base" lora.merge_interval=3 && train "anew_$format" 1 --stop-after 3 &&
    step=$folder/before_$format/checkpoints/step-000003 &&
    "$nxdata" merge-adapter "$step" "$step" -o "sum_$format" >out 2>&1 &&
    mkdir "codes_anew_$format" && cp "anew_$format/checkpoints/step-000003/model.safetensors" "codes_anew_$format" &&
    plan "sum_codes_$format" 1 $quantized "run.init_from=$folder/sum_$format" && train "sum_codes_$format" 1 --stop-after 1 &&
    plan "own_codes_$format" 1 $quantized "run.init_from=$folder/codes_anew_$format" &&
    train "own_codes_$format" 1 --stop-after 1 &&
    [ "$(loss "sum_codes_$format")" = "$(loss "own_codes_$format")" ] &&
    [ "$(loss "sum_codes_$format")" != "$(loss "before_$format")" ]
  report "adapters are added to weights in $format" $?
done
base=$recorded/lora/nf4/base
quantized="lora.rank=4 lora.alpha=8 lora.base_type=nvfp4 lora.save_base=true lora.merge_interval=2 run.init_from=$base"
# shellcheck disable=SC2086
plan anew_one 1 $quantized && train anew_one 1 &&
  plan anew_sharded 2 $quantized optimizer.zero_stage=3 && train anew_sharded 2 --stop-after 3 && train anew_sharded 2 --resume &&
  plan anew_parts 2 $quantized mesh.tensor=2 sequence_parallel=true && train anew_parts 2
report 'in every layout, and in a run that resumes' $?
for run in anew_one anew_sharded anew_parts; do
  tail -n 1 $run/metrics.jsonl | sed 's/.*"loss": *\([0-9.e+-]*\).*/\1/'
done >out
awk 'NR == 1 { a = $1 } { d = a - $1; bad = bad || d * d > 1e-9 } END { exit bad || NR != 3 }' out
report 'with the same loss' $?

# Noise of quantized weights is of the step: in every run and on every rank the same, and in no evaluation.
base=$recorded/lora/nf4/base
quantized="lora.rank=4 lora.base_type=nf4 run.init_from=$base/model.safetensors evaluate.batches=2 evaluate.every_steps=2 data.split=[0.9,0.1]"
# shellcheck disable=SC2086
plan quiet 1 $quantized && train quiet 1 --stop-after 2 &&
  plan noisy 1 $quantized lora.base_noise=0.5 && train noisy 1 --stop-after 2 &&
  plan noisy_ranks 2 $quantized lora.base_noise=0.5 && train noisy_ranks 2 --stop-after 2
report 'noise is added to quantized weights' $?
echo "$(loss quiet) $(loss noisy) $(loss noisy_ranks)" >out
awk '{ d = $2 - $3; e = $1 - $2; exit !(d * d < 1e-12 && e * e > 1e-8) }' out
report 'the same on every rank, and not none' $?
"$nxcfg" show noisy.bin --ops >out 2>&1 && grep -q 'dequantize_nf4 noise=0.5 ' out && grep -q 'dequantize_nf4 noise=0 ' out
report 'and evaluations read the weights without it' $?
base=$llama

mkdir odd && cp "$recorded/lora/llama/adapter_model.safetensors" odd &&
  sed 's/"r": 4/"r": 5/' "$recorded/lora/llama/adapter_config.json" >odd/adapter_config.json
expect 'an adapter of another rank' 1 'has not its shape' "$nxdata" merge-adapter "$base" odd -o none
expect 'an adapter of another model' 1 'belongs to nothing' "$nxdata" merge-adapter "$base" "$recorded/lora/gpt2" -o none2
mkdir piped && mkfifo piped/adapter_config.json
expect 'a pipe for an adapter' 1 'cannot read piped/adapter_config.json: it is no file' timeout 5 "$nxdata" merge-adapter \
  "$base" piped -o none3
expect 'a folder that exists' 1 'cannot make merged' "$nxdata" merge-adapter "$base" "$recorded/lora/llama" -o merged
expect 'no folder' 2 'where to' "$nxdata" merge-adapter "$base" "$recorded/lora/llama"
plan other 1 lora.rank=4 "lora.init_from=$recorded/lora/gpt2" "run.init_from=$base/model.safetensors"
expect 'adapters of another model to begin with' 1 'are not those of the plan' "$mpiexec" -n 1 "$nxrun" other.bin
finish
