#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs each line of cases.txt and compares what is printed and the exit status with NAME.out, as TAP; UPDATE=1
# rewrites. Then what -o writes is read back: it says the best, and where it is the file there is nothing better. And
# how long whole spaces take, with room for slow machines. Usage: tune.sh NXCFG FOLDER
. "$(dirname "$0")/../../tap.sh"
nxcfg=$(realpath "$1")
cd "$2" || exit 1
slowness=${3:-1}
while IFS= read -r line; do
  case $line in '' | '#'*) continue ;; esac
  name=${line%% |*}
  # shellcheck disable=SC2086
  printed=$("$nxcfg" ${line#*| } 2>&1 </dev/null; echo "exit $?")
  golden "$line" "$name.out" <<END
$printed
END
done <cases.txt

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# What no layout fits in without it is searched again with the optimizer in the host's memory.
"$nxcfg" tune megatron.sh --machine device.yaml --memory 6.5GiB --format options | grep -qx optimizer-cpu-offload=true
result "what does not fit is offloaded" $?
# What is written is planned as it was found where plan is told what was assumed, which is not written.
sed 's/torchrun .* pretrain/python pretrain/' megatron.sh >"$folder/left_open.sh"
"$nxcfg" tune "$folder/left_open.sh" --machine device.yaml --memory 500GiB -o "$folder/best.sh" >"$folder/told"
assume=$(sed -n 's/^to plan it as here: //p' "$folder/told")
best=$(awk '$1 == 1 && $2 ~ /^[0-9]+(sp)?$/ { print $(NF - 3), $(NF - 2); exit }' "$folder/told")
# shellcheck disable=SC2086
planned=$("$nxcfg" plan "$folder/best.sh" --machine device.yaml --format json $assume |
  sed -n 's/.*"step_seconds": \([0-9.e-]*\).*/\1/p' | head -n 1)
[ -n "$assume" ] &&
  awk -v b="$best" -v p="$planned" 'BEGIN { split(b, x); s = x[1] * (x[2] == "ms" ? 1e-3 : 1); exit !(p > 0 && s / p < 1.005 && p / s < 1.005) }'
result "what is written is planned as it was found" $?
# A twentieth of a device's memory stays free, where any layout fits so, and nothing says how much a rank may need.
roomy() { # GIB PATTERN: what tune tells with that memory
  sed "s/^memory: .*/memory: $1GiB/" device.yaml >"$folder/device.yaml"
  "$nxcfg" tune megatron.sh --machine "$folder/device.yaml" --vary micro --top 1 >"$folder/told" && grep -q "$2" "$folder/told"
}
roomy 56 ' fit in 53\.2 GiB;' && ! grep -q ' 54\.4 GiB ' "$folder/told" && ! grep -q '^1 leaves' "$folder/told" &&
  roomy 58 ' 54\.4 GiB ' && roomy 16 ' fit in 16\.0 GiB;' && grep -q '^1 leaves 2 %' "$folder/told"
result "a twentieth of the memory stays free" $?
# And where the model was taken from what the file is called, which the other file is not.
sed 's/model_path: .*/model_path: weights/' xorl.yaml >"$folder/qwen3-8b.yaml"
"$nxcfg" tune "$folder/qwen3-8b.yaml" --machine device.yaml --world-size 16 -o "$folder/other.yaml" |
  grep -qx 'to plan it as here: --assume model=Qwen/Qwen3-8B'
result "the model that was assumed is told" $?
# Of the file's errors those that the best layout mends are told from those that stay.
sed 's/--micro-batch-size 1/--micro-batch-size 3/; s/--bf16/--bf16 --mock-data/' megatron.sh >"$folder/wrong.sh"
"$nxcfg" tune "$folder/wrong.sh" --machine device.yaml --memory 500GiB --top 1 >"$folder/told"
grep -q '^1 mends an error of the file: the global batch of 128' "$folder/told" &&
  grep -q '^the file has an error: mock-data excludes' "$folder/told"
result "errors that a layout mends" $?
# The file's name tells less of the vocabulary than the tokenizer that it names.
sed 's/NullTokenizer --vocab-size 128255/HuggingFaceTokenizer --tokenizer-model Qwen\/Qwen3-8B/' megatron.sh >"$folder/llama-3-8b.sh"
"$nxcfg" plan "$folder/llama-3-8b.sh" | grep -q '^assumed *model.vocab = [0-9]* (that of Qwen/Qwen3-8B)'
result "a tokenizer that is named tells the vocabulary" $?
# What nothing reads as the file is stays for what may read it then.
"$nxcfg" validate neox_bucket.yml --world-size 16 --machine a100-40 --memory 8GiB >"$folder/told" 2>&1
grep -q 'with checkpoint_activations=true.*zero_optimization.stage=3' "$folder/told" && ! grep -q 'reduce_bucket_size taken out' "$folder/told"
result "the size of a bucket stays where ZeRO is asked for" $?
# A code that grew out of the system is not told options that it has not: offloading, the padded vocabulary.
sed 's/--bf16/--bf16 --deepspeed/' megatron.sh >"$folder/deepspeed.sh"
sed 's/--vocab-size 128255//; s/NullTokenizer/PretrainedFromHF/' "$folder/deepspeed.sh" >"$folder/unpadded.sh"
lacks() { # FILE ARGUMENTS...
  "$nxcfg" tune "$@" --machine device.yaml --format options >"$folder/told"
  grep -q = "$folder/told" && ! grep -E '^(optimizer-cpu-offload|padded-vocab-size|context-parallel-size)' "$folder/told"
}
lacks "$folder/deepspeed.sh" --vary mesh,recompute,offload && lacks "$folder/unpadded.sh" --assume model.vocab=50257
result "Megatron-DeepSpeed is told its own options alone" $?
# And searched once: what does not fit without it is not estimated again, and the deadline is one.
for vary in '' '--vary mesh,batch,recompute,zero,offload'; do
  # shellcheck disable=SC2086
  "$nxcfg" tune megatron.sh --machine device.yaml --memory 6.5GiB --format json $vary |
    sed -n '/^  "combinations"/,/^  "fit"/p; /^  "best"/,/"options"/p' >"$folder/found${vary:+_asked}"
done
cmp -s "$folder/found" "$folder/found_asked" && [ "$(wc -l <"$folder/found")" -gt 20 ]
result "what does not fit is offloaded as if that had been asked for" $?
for file in megatron.sh neox.yml nxdt.yaml reference.yaml; do
  cp "$file" "$folder/$file"
  set -- --machine device.yaml --world-size 16
  "$nxcfg" tune "$file" "$@" -o "$folder/best_$file" >"$folder/said" 2>&1
  grep -q "^written: $folder/best_$file\$" "$folder/said"
  result "$file: -o writes" $?
  cmp -s "$file" "$folder/$file"
  result "$file: it stays as it was" $?
  "$nxcfg" validate "$folder/best_$file" --world-size 16 >/dev/null 2>&1
  result "$file: the best is valid" $?
  "$nxcfg" tune "$folder/best_$file" "$@" | grep -q '^The file is the best already\.$'
  result "$file: the best of the best is itself" $?
  "$nxcfg" tune "$file" "$@" --format patch | (cd "$folder" && patch -s -p0 "$file")
  cmp -s "$folder/$file" "$folder/best_$file"
  result "$file: patch(1) applies the difference" $?
  awk 'length > 80 { exit 1 }' "$folder/said"
  result "$file: no row is longer than 80 columns" $?
done

deep=$folder/of/experiments/that/somebody/keeps/in/a/home/with/others
mkdir -p "$deep" && cp model.yaml "$deep"
"$nxcfg" tune "$deep/model.yaml" --machine machine.yaml --vary zero >"$folder/said"
head -n 1 "$folder/said" | grep -q '^\.\.\..*/others/model\.yaml on two hosts, 4 ranks$' && awk 'length > 80 { exit 1 }' "$folder/said"
result "of a long path the end is told" $? "$(cat "$folder/said")"

# What --format options prints are values of --set, also of what is taken out of the file.
sets() { # FILE ARGUMENTS...: whether the file is as good as the best with them
  file=$1
  shift
  "$nxcfg" tune "$file" "$@" --format options >"$folder/options" 2>/dev/null
  set -- "$@" # the values may have blanks
  while IFS= read -r assignment; do set -- "$@" --set "$assignment"; done <"$folder/options"
  "$nxcfg" tune "$file" "$@" 2>&1 | grep -q '^The file is the best already\.$'
  result "$file: the best as options is itself" $?
}
sets megatron.sh --machine device.yaml --world-size 16 --dialect megatron@later
sets xorl.yaml --machine h100 --world-size 32 --set train.data_parallel_shard_size=2 \
  --set train.data_parallel_replicate_size=4

"$nxcfg" tune megatron.sh --dialect megatron@later --machine device.yaml --vary recompute --top 9 --format json |
  awk '/"name": "recompute-modules"/ { n = NR } n && NR == n + 2 { all++; right += /"core_attn"/ }
    END { exit !(all > 0 && right == all) }'
result "items of a list in JSON" $?

spent() { # $now: milliseconds of processors, of this shell's processes up to now
  times >"$folder/times"
  now=$(awk 'NR == 2 { split($1, user, /[ms]/); split($2, kernel, /[ms]/)
    printf "%d", 1000 * (60 * (user[1] + kernel[1]) + user[2] + kernel[2]) }' "$folder/times")
}
pace() { # $pace: how long what takes 100 takes now, on this machine: by a loop of 100 ms on a quiet one
  spent
  before=$now
  awk 'BEGIN { for (i = 0; i < 3000000; i++) s += i % 7; print s >"/dev/null" }'
  spent
  pace=$((now - before))
  [ $pace -ge 100 ] || pace=100
}
takes() { # NAME MOST RUNS ARGUMENTS...: no more milliseconds of a quiet processor, of so many runs on average
  name=$1 most=$2 runs=$3
  shift 3
  pace
  first=$pace
  spent
  before=$now
  for _ in $(seq "$runs"); do "$nxcfg" "$@" >/dev/null 2>&1; done
  spent
  took=$(((now - before) / runs))
  pace
  [ $pace -ge $first ] || pace=$first
  [ $((took * 100)) -le $((most * pace)) ]
  result "$name: $most ms" $?
  echo "# it took $took ms, where 100 take $pace"
}
conf=../../../conf
"$nxcfg" tune $conf/megatron/llama-405b.sh --machine device.yaml --deadline 0.01 | tr -s '\n ' ' ' |
  grep -q 'stopped by the deadline'
result "a deadline stops the search" $?
[ "$slowness" -eq 1 ] || finish # a build that checks itself says nothing of time
# What is refused for a few reasons is judged a few times, and what would have to change is told.
"$nxcfg" tune $conf/megatron/llama-405b.sh --machine trn1 --memory 5GiB --vary mesh,batch,recompute,zero,global \
  --format json >"$folder/refused"
number() { sed -n "s/^  \"$1\": \([0-9]*\),*\$/\1/p" "$folder/refused"; }
[ "$(number judged)" -lt 64 ] && [ "$(number refused)" -eq "$(number fit)" ] && [ "$(number fit)" -gt 512 ] &&
  grep -q '"id": "NX2950"' "$folder/refused" && ! grep -q '"fix": null' "$folder/refused"
result "many layouts are refused for what few are" $?
takes "405B on 16384 ranks" 10000 1 tune $conf/megatron/llama-405b.sh --machine device.yaml
takes "7B on 8 ranks" 500 3 tune nxdt.yaml --machine device.yaml --world-size 8
takes "the plan of 405B" 60 3 plan $conf/megatron/llama-405b.sh --machine h100 # 20 on a quiet machine
finish
