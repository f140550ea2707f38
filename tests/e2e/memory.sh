#!/bin/sh
# What nxrun takes is what the plan says: the arenas that it maps are the plan's to the byte, and the ranks'
# memory (PSS without files, of which other programs have a share; summed over the host) is within 3 % of arenas + workspace ceilings + what nxrun takes for a
# plan of almost nothing. Two ranks of more than 256 MB; with ZeRO 3, whose layers are gathered while they are
# needed; with sequences divided over the ranks, whose keys and values go around; and, within 1 %, with adapters
# beside weights in four bits.
# SPDX-License-Identifier: Apache-2.0
# usage: memory.sh NXCFG NXRUN MPIEXEC DATASET_PREFIX CASE...
set -eu
nxcfg=$1 nxrun=$2 mpiexec=$3 data=$4
shift 4
work=$(mktemp -d)
# The ranks that run a plan of this test, and no others.
ranks() { # NAME
  for pid in $(pgrep -x nxrun); do
    if tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q "$work/$1.plan"; then echo "$pid"; fi
  done
}
end() { # NAME
  for pid in $(ranks "$1"); do kill -KILL "$pid" 2>/dev/null || true; done
}
trap 'end least; end large; end sharded; end ring; end quantized; rm -rf "$work"' EXIT

make_plan() { # NAME LAYERS HIDDEN FFN WORKSPACE [ZERO_STAGE [CONTEXT [LORA]]]
  cat >"$work/$1.yaml" <<YAML
mesh: {world: 2, context: ${7:-1}}
attention: {ring: $([ "${7:-1}" = 1 ] && echo false || echo true)}
batch: {micro: 1, global: 2}
model: {layers: $2, hidden: $3, ffn_hidden: $4, heads: 4, sequence: 64, vocab: 250}
optimizer: {lr: 1e-3, zero_stage: ${6:-1}}
reduce: {overlap: true}
gather: {overlap: true}
schedule: {max_steps: 100000}
data: {path: ["$data"]}
run: {workspace_bytes: $5}
lora: {${8:-rank: 0}}
YAML
  "$nxcfg" plan --dialect nx "$work/$1.yaml" -o "$work/$1.plan" >/dev/null
}

# Sum of the proportional set sizes of the ranks of a plan, in bytes, once they have trained a few steps.
measure() { # NAME
  "$mpiexec" -n 2 "$nxrun" "$work/$1.plan" --dir "$work/$1-run" --metrics "$work/$1.jsonl" \
    >"$work/$1.out" 2>&1 &
  launcher=$!
  waited=0
  until [ -f "$work/$1.jsonl" ] && [ "$(wc -l <"$work/$1.jsonl")" -ge 3 ]; do
    sleep 0.1
    waited=$((waited + 1))
    if [ $waited -gt 600 ] || ! kill -0 $launcher 2>/dev/null; then cat "$work/$1.out" >&2; exit 1; fi
  done
  pss=0
  for pid in $(ranks "$1"); do
    pss=$((pss + $(awk '/^Pss_(Anon|Shmem):/ {n += $2} END {print n}' "/proc/$pid/smaps_rollup") * 1024))
  done
  end "$1"
  wait $launcher 2>/dev/null || true
  echo "$pss"
}

arena_bytes() { "$nxcfg" show "$work/$1.plan" --memory | awk '$1 == "total" {print $2}'; }

# A field of nxrun's --dry-run report; of several the last, which is the sum.
reported() { # NAME FIELD
  "$mpiexec" -n 2 "$nxrun" "$work/$1.plan" --dry-run --log json --dir "$work/dry" | tr ',{}' '\n\n\n' |
    awk -F: -v field="\"$2\"" '$1 == field {last = $2} END {print last}'
}

# The ceiling is what the kernels need, so that it is used.
make_plan least 1 8 8 4194304
least=$(measure least)

check() { # NAME LAYERS ZERO_STAGE LEAST_ARENAS [CONTEXT [LORA [TOLERANCE]]]
  make_plan "$1" "$2" 512 1408 67108864 "$3" "${5:-1}" "${6:-}"
  ceiling=$(reported "$1" workspace_bytes)
  make_plan "$1" "$2" 512 1408 "$ceiling" "$3" "${5:-1}" "${6:-}"
  measured=$(measure "$1")
  arenas=$(arena_bytes "$1")
  expected=$((2 * arenas + 2 * ceiling + least - 2 * $(arena_bytes least)))
  echo "$1: arenas $arenas and workspace $ceiling bytes a rank"
  echo "$1: measured $measured bytes, expected $expected, nxrun itself $least"
  [ "$arenas" -ge "$4" ] || { echo "the test is too small"; exit 1; }
  awk -v a="$measured" -v b="$expected" -v most="${7:-0.03}" 'BEGIN {
    d = (a - b) / b
    printf "difference %.2f %%\n", 100 * d
    exit !(d <= most && d >= -most)
  }'
  # To the byte: what nxrun says that it mapped.
  mapped=$(reported "$1" mapped_bytes)
  echo "$1: mapped $mapped bytes a rank"
  [ "$mapped" = "$arenas" ]
}
for case; do
  case $case in
    large) check large 8 1 268435456 ;;
    sharded) check sharded 10 3 268435456 ;;
    ring) check ring 8 1 268435456 2 ;;
    quantized) check quantized 48 1 67108864 1 "rank: 16, base_type: nf4" 0.01 ;;
  esac
done
