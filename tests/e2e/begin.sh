#!/bin/sh
# What a run begins with (another run's checkpoint, its weights alone, nothing) and where it ends to be resumed. TAP.
# usage: begin.sh NXRUN NXCFG NXDATA MPIEXEC
# SPDX-License-Identifier: Apache-2.0
set -u
here=$(dirname "$(realpath "$0")")
nxrun=$(realpath "$1") nxcfg=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4
. "$(dirname "$0")/lib.sh"

awk 'BEGIN { for (i = 0; i < 3000; i++) printf "%d ", i * i * 7919 % 10007 }' >text
"$nxdata" build text -o data >/dev/null || exit 99
plan() { # NAME SETTING=VALUE...
  name=$1 sets=
  shift
  for setting; do sets="$sets --set $setting"; done
  cat >plan.yaml <<END
mesh: {world: 2}
batch: {micro: 2, global: 8}
model: {layers: 2, hidden: 32, ffn_hidden: 64, heads: 4, kv_heads: 2, sequence: 16, vocab: 250, vocab_divisor: 8}
optimizer: {name: adamw, zero_stage: 1, lr: 3e-3}
schedule: {name: cosine, warmup_steps: 2, min_lr: 3e-4, max_steps: 8}
precision: {preset: fp32}
data: {path: [data]}
checkpoint: {every_steps: 4}
END
  # shellcheck disable=SC2086 # a list of words
  "$nxcfg" plan plan.yaml $sets -o "$name.bin" >out 2>&1 || { sed 's/^/# /' out; exit 99; }
}
losses() { # RUN FIRST: the metrics of steps from FIRST on, without times
  cut -d, -f1-4 "$1/metrics.jsonl" | awk -v first="$2" -F'[:,]' '$2 >= first'
}
same() { # NAME RUN OTHER FIRST
  losses "$2" "$4" >one && losses "$3" "$4" >other && diff one other >out && [ -s one ]
  report "$1" $?
}
run="$mpiexec -n 2 $nxrun"

plan whole
expect 'a run from start to end' 0 'step 8/8' $run whole.bin --dir whole

plan on checkpoint.load=whole checkpoint.load_step=4
expect 'begins with a step of another run' 0 'resumes from whole/checkpoints/step-000004' $run on.bin --dir on
same 'and computes what that did' whole on 5
test -e whole/checkpoints/step-000008 2>out
report 'whose checkpoints stay' $?
plan none checkpoint.load=whole checkpoint.load_step=5
expect 'a step that is not there' 1 'whole has no checkpoint of step 5' $run none.bin --dir none

plan anew checkpoint.load=whole checkpoint.load_step=4 checkpoint.load_optimizer=false
expect 'or with an optimizer that begins anew' 0 'resumes from whole/checkpoints/step-000004, with an optimizer that begins anew' \
  $run anew.bin --dir anew
losses whole 7 >later && ! losses anew 7 | cmp -s - later && losses anew 5 | head -1 | cut -d, -f1,2 >one &&
  losses whole 5 | head -1 | cut -d, -f1,2 | diff one - >out
report 'at the same loss, and then another' $?
expect 'one that is ended says how it goes on' 0 \
  'stopped by --stop-after after step 6, saved as anew2/checkpoints/step-000006; --resume continues' \
  $run anew.bin --dir anew2 --stop-after 6
expect 'and stays so where it is resumed' 0 'resumes from anew2/checkpoints/step-000006$' $run anew.bin --dir anew2 --resume
same 'to the last bit' anew anew2 5
plan bare checkpoint.save_optimizer=false
expect 'a run that saves no optimizer' 0 'step 8/8' $run bare.bin --dir bare
plan from-bare checkpoint.load=bare checkpoint.load_step=4
expect 'is not gone on with' 1 'no state of the optimizer .*checkpoint.load_optimizer=false' $run from-bare.bin --dir from-bare
plan bare-anew checkpoint.load=bare checkpoint.load_step=4 checkpoint.load_optimizer=false
expect 'but with an optimizer that begins anew' 0 'with an optimizer that begins anew' $run bare-anew.bin --dir bare-anew
same 'which is the same' anew bare-anew 5

plan weights checkpoint.load=whole checkpoint.weights_only=true run.seed=1234
expect 'begins with weights alone' 0 'begins with the weights of whole/checkpoints/step-000008' \
  $run weights.bin --dir weights
cp -r whole tuned
plan tune checkpoint.load=tuned checkpoint.weights_only=true run.seed=1234
expect 'in one folder, where what it had is set aside' 0 'the checkpoints of tuned are in tuned/before-1 now' \
  $run tune.bin --dir tuned --stop-after 4
diff -r whole/checkpoints tuned/before-1/checkpoints >out && diff whole/metrics.jsonl tuned/metrics.jsonl.1 >>out &&
  [ "$(ls tuned/checkpoints)" = step-000004 ]
report 'with nothing lost' $? "$(cat out)"
expect 'and it resumes' 0 'resumes from tuned/checkpoints/step-000004' $run tune.bin --dir tuned --resume
same 'its own, as in another folder' weights tuned 1
expect 'or begins anew with that' 0 'begins with the weights of tuned/./before-2/checkpoints/step-000008' \
  $run tune.bin --dir tuned/.
[ "$(ls tuned/before-1/checkpoints tuned/before-2/checkpoints tuned/checkpoints | grep -c step-)" -eq 6 ]
report 'all are there' $? "$(ls tuned/before-1/checkpoints tuned/before-2/checkpoints tuned/checkpoints)"
plan first checkpoint.load=none checkpoint.weights_only=true
expect 'a folder without checkpoints' 0 'none has no checkpoint: the training begins at step 0' $run first.bin --dir none --stop-after 4
expect 'is gone on with' 0 'resumes from none/checkpoints/step-000004' $run first.bin --dir none --resume
same 'as ever' whole none 1
cp -r whole restarted
plan again checkpoint.load=restarted checkpoint.weights_only=true run.seed=1234
expect 'set aside by a start that may resume' 0 'begins with the weights of restarted/before-1/checkpoints/step-000008' \
  $run again.bin --dir restarted --resume
plan folder run.init_from=whole/checkpoints/step-000008
expect 'as from a folder of weights' 0 'step 8/8' $run folder.bin --dir folder
same 'which computes the same' weights folder 1
plan hf checkpoint.load=whole/checkpoints/step-000008
expect 'a folder of weights is one to load' 0 'step 8/8' $run hf.bin --dir hf
same 'and begins at step 0' hf folder 1

plan changed checkpoint.load=whole checkpoint.load_step=4 schedule.min_lr=1e-4
expect 'with another schedule, which the plan decides' 0 'schedule.min_lr: 0.0003 there, 0.0001 here' \
  $run changed.bin --dir changed
plan kept checkpoint.load=whole checkpoint.load_step=4 schedule.min_lr=1e-4 checkpoint.schedule=same
expect 'or which has to be the same' 1 'by checkpoint.schedule the schedule too' $run kept.bin --dir kept
plan theirs checkpoint.load=whole checkpoint.load_step=4 schedule.min_lr=1e-4 checkpoint.schedule=checkpoint
expect 'or is to be that of the checkpoint, which is named' 1 'schedule.min_lr: 0.0003 there' $run theirs.bin --dir theirs
plan wider checkpoint.load=whole checkpoint.load_step=4 model.ffn_hidden=128 checkpoint.schedule=checkpoint
expect 'where more differs than the schedule that is what is told' 1 '^A run goes on only where these are the same; to' \
  $run wider.bin --dir wider
plan longer checkpoint.load=whole checkpoint.load_step=4 schedule.max_steps=9 schedule.constant_steps=1 \
  checkpoint.schedule=same
expect 'more steps behind the end of the decay are the same schedule' 0 'step 9/9' $run longer.bin --dir longer

mkdir base && cp whole/checkpoints/step-000008/model.safetensors whole/checkpoints/step-000008/config.json base
plan adapters lora.rank=2 lora.save_base=true run.init_from=base
expect 'adapters beside weights that are read' 0 'step 8/8' $run adapters.bin --dir adapters
plan loaded lora.rank=2 lora.save_base=true checkpoint.load=base
expect 'or loaded' 0 'step 8/8' $run loaded.bin --dir loaded
same 'are drawn alike' adapters loaded 1
plan own lora.rank=2 lora.save_base=true run.init_from=whole/checkpoints/step-000008
expect 'or those of a run without adapters' 0 'step 8/8' $run own.bin --dir own
same 'with its manifest beside them' adapters own 1
plan other lora.rank=4 run.init_from=own/checkpoints/step-000008
expect 'or the base of a run with others' 0 'step 8/8' $run other.bin --dir lower

plan named run.init_from=Qwen/Qwen3-8B
expect 'a name is no folder' 1 'there is no Qwen/Qwen3-8B to read weights from: .*hf download' \
  $run named.bin --dir named

plan missing checkpoint.load=nowhere
expect 'where there is none, at step 0' 0 'nowhere has no checkpoint: the training begins at step 0' \
  $run missing.bin --dir missing
same 'as a run that asked for none' whole missing 1
plan required checkpoint.load=nowhere checkpoint.required=true
expect 'or not at all' 1 'there is no checkpoint in nowhere, and checkpoint.required asks for one' \
  $run required.bin --dir required
mkdir neox && echo global_step1 >neox/latest
plan foreign checkpoint.load=neox
expect "a folder of another system's" 1 'neox is a checkpoint of DeepSpeed, .*convert_neox_to_hf.py' \
  $run foreign.bin --dir foreign
recorded=$here/../parity/recorded/foreign
of_it="model.ffn_hidden=48"
cp -r "$recorded/megatron" megatron && chmod -R u+w megatron
plan megatron checkpoint.load=megatron $of_it
expect 'of whose checkpoints weights are read alone' 1 'of another system, .*checkpoint.weights_only' \
  $run megatron.bin --dir megatron-all
plan meg-later checkpoint.load=megatron checkpoint.load_optimizer=false $of_it schedule.max_steps=22
expect 'and their step' 0 'step 22/22' $run meg-later.bin --dir meg-later
plan unlike run.init_from=megatron
expect 'of another model' 1 'the shards of model.layers.0.mlp.gate_proj.weight do not fit' $run unlike.bin --dir unlike
mv megatron/iter_0000020/mp_rank_01_001 shard
plan half run.init_from=megatron $of_it
expect 'of which a shard is missing' 1 'the shards of .* do not fit' $run half.bin --dir half
mkdir megatron/iter_0000020/mp_rank_01_001
head -c 30000 shard/model_optim_rng.pt >megatron/iter_0000020/mp_rank_01_001/model_optim_rng.pt
expect 'or cut short' 1 'is no whole zip file. .*convert.py.* makes safetensors' $run half.bin --dir half
echo text >megatron/iter_0000020/mp_rank_01_001/model_optim_rng.pt
expect 'or old' 1 'is no zip file, as torch.save writes them' $run half.bin --dir half

plan every run.stop_every=3
expect 'ends at each multiple' 3 'stopped by run.stop_every after step 3, saved as every/checkpoints/step-000003; --resume continues' $run every.bin --dir every
expect 'and goes on' 3 'stopped by run.stop_every after step 6' $run every.bin --dir every --resume
expect 'to the end' 0 'step 8/8' $run every.bin --dir every --resume
same 'with the same numbers' whole every 1
plan minutes run.stop_after_minutes=1e-9
expect 'ends after a time' 3 'stopped by .* after step 1, saved as .*; --resume continues' $run minutes.bin --dir minutes

plan light checkpoint.save_optimizer=false
expect 'checkpoints without the optimizer' 0 'step 8/8' $run light.bin --dir light
test -e light/checkpoints/step-000008/model.safetensors -a ! -e light/checkpoints/step-000008/moment1.safetensors 2>out
report 'are weights alone' $?
expect 'and no run goes on from them' 1 'has no state of the optimizer' $run light.bin --dir light --resume
plan lighter checkpoint.load=light checkpoint.weights_only=true
expect 'but one may begin with them' 0 'step 8/8' $run lighter.bin --dir lighter
same 'as with those of a whole one' lighter weights 1

mkdir piped && mkfifo piped/model.safetensors.index.json
plan piped run.init_from=piped
expect 'a pipe for an index is not waited for' 1 'index.json is damaged: it is no file' $run piped.bin --dir new
finish
