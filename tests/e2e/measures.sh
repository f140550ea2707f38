#!/bin/sh
# What is logged of a step beside its loss: the same on all meshes. TAP.
# usage: measures.sh NXRUN NXCFG NXDATA MPIEXEC
# SPDX-License-Identifier: Apache-2.0
set -u
nxrun=$(realpath "$1") nxcfg=$(realpath "$2") nxdata=$(realpath "$3") mpiexec=$4
. "$(dirname "$0")/lib.sh"

awk 'BEGIN { for (i = 0; i < 3000; i++) printf "%d ", i * i * 7919 % 101 }' >text
"$nxdata" build text -o data >/dev/null || exit 99
train() { # NAME RANKS MESH ZERO [LOGS]
  cat >"$1.yaml" <<END
mesh: {world: $2, $3}
batch: {micro: 1, global: 4}
model: {layers: 4, hidden: 32, ffn_hidden: 64, heads: 4, kv_heads: 2, sequence: 16, vocab: 120, vocab_divisor: 16}
moe: {experts: 4, top_k: 2, buffer_factor: 4, aux_loss_coef: ${aux:-0.01}, z_loss_coef: 0.001, input_jitter: 0.1}
optimizer: {lr: 1e-3, zero_stage: $4}
schedule: {max_steps: 3}
data: {path: [data]}
run: {name: run, ${5:-log_parameter_norm: true, log_zero_gradients: true, log_router_layers: true}}
END
  "$nxcfg" plan "$1.yaml" -o "$1.bin" >out 2>&1 || { sed 's/^/# /' out; exit 99; }
  timeout 100 "$mpiexec" -n "$2" "$nxrun" "$1.bin" --dir "$1" >out 2>&1
  report "$1 trains" $?
  tr -d '"{}' <"$1/metrics.jsonl" | tr ',' '\n' | grep -E '^(params_norm|zero_gradients|router_)' >"$1.numbers"
}
like() { # NAME: its numbers are those of one rank
  paste -d: one.numbers "$1.numbers" | awk -F: '{ d = ($2 - $4) / $2; if ($1 != $3 || d > 1e-6 || -d > 1e-6) bad = 1 }
    END { exit bad || NR != 36 }' && [ "$(grep zero one.numbers)" = "$(grep zero "$1.numbers")" ]
  report "$1: the numbers are those of one rank" $?
}

train one 1 'tensor: 1' 0
cp one.numbers out
awk -F: '$1 == "params_norm" && $2 > 1 { a++ } $1 == "zero_gradients" && $2 > 0 && $2 < 60000 && $2 == int($2) { b++ }
  $1 == "router_balance_loss" && $2 >= 1 && $2 < 2 { c++ } $1 == "router_z_loss" && $2 > 0.5 && $2 < 4 { d++ }
  END { exit !(a == 3 && b == 3 && c == 3 && d == 3) }' one.numbers
report 'each step has a norm, a count, and losses of routers that are nearly balanced' $?
awk -F: '{ split($1, name, "."); sum[name[1] (name[2] == "")] += $2; n[$1]++ }
  function near(a, b) { return a > 0 && a - b < 1e-5 * b && b - a < 1e-5 * b }
  END { exit !(near(sum["router_balance_loss0"], 4 * sum["router_balance_loss1"]) && n["router_z_loss.3"] == 3 &&
               near(sum["router_z_loss0"], 4 * sum["router_z_loss1"])) }' one.numbers
report 'those of routers are the means over the layers, which are logged too' $?
train zero3 2 'tensor: 1' 3 && like zero3
train experts 2 'expert: 2' 1 && like experts
train stages 2 'pipeline: 2' 0 && like stages
train tensor 4 'tensor: 2}
sequence_parallel: true
pipeline: {schedule: 1f1b' 1 && like tensor
train silent 1 'tensor: 1' 0 'seed: 0'
[ "$(cut -d: -f1 silent.numbers | sort -u | tr '\n' ' ')" = 'router_balance_loss router_z_loss ' ]
report 'norms and counts are logged where they are asked for' $?
# Losses of routers that weigh much follow the loss scale, as the cross-entropy does.
fp16='{param: fp16, compute: fp16, master_weights: true'
for scale in 16 4096; do
  aux=5 train scale$scale 1 'tensor: 1' 0 "seed: 0}
precision: $fp16, loss_scale: $scale"
  tr -d '"{}' <"scale$scale/metrics.jsonl" | tr ',' '\n' | grep -E '^(loss|grad_norm):' >"$scale.losses"
done
paste -d: 16.losses 4096.losses >out
awk -F: '{ d = ($2 - $4) / $2; if ($1 != $3 || d > 1e-3 || -d > 1e-3) bad = 1 } END { exit bad || NR != 6 }' out
report 'in fp16 they follow the loss scale' $?
finish
