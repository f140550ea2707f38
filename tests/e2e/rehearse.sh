#!/bin/sh
# One rank of 16,384 on this machine: nxrun --dry-run --as. What a rank takes beside its arenas, and its start, do
# not grow with the world. TAP.
# usage: rehearse.sh NXCFG NXRUN SMALL_PLAN SOURCE_ROOT
# SPDX-License-Identifier: Apache-2.0
set -u
nxcfg=$(realpath "$1") nxrun=$(realpath "$2") small=$(realpath "$3") root=$(realpath "$4")
. "$(dirname "$0")/lib.sh"
unset MALLOC_PERTURB_ # it would touch what has addresses alone

passes 'a plan of 405 billion parameters for 16,384 ranks' \
  "$nxcfg" plan "$root/conf/megatron/llama-405b.sh" --world-size 16384 -o big.bin
expect 'says which way collectives go, and why' 0 'all_reduce over pipeline+data (2048) by doubling (.* ms; direct .* ms)' \
  sh -c "'$nxcfg' show big.bin --ops | grep -m 1 '(2048) by'"
"$nxcfg" plan "$root/conf/megatron/llama-405b.sh" --world-size 16384 --machine h100 -o other.bin >out 2>&1
id() { "$nxcfg" show "$1" | grep plan_id; }
routes() { "$nxcfg" show "$1" --ops | grep -o ' by [a-z]* (.*; .* ms)' >"$1.routes" && wc -l <"$1.routes"; }
[ "$(id big.bin)" = "$(id other.bin)" ] && [ "$(routes big.bin)" -eq "$(routes other.bin)" ] && ! cmp -s ./*.routes
report 'and that is of the machine, not of the training' $?
number() { # FIELD: of the line of JSON
  tr ',{}' '\n\n\n' <out | sed -n "s/^\"$1\"://p" | head -n 1
}
for rank in 0 5000 16383; do
  expect "rank $rank is bound alone" 0 "\"rank\":$rank,\"ranks\":16384" \
    "$nxrun" big.bin --dry-run --log json --as $rank/16384
  own=$(($(number resident_bytes) - $(number of_files_bytes) + $(number staging_bytes) - $(number workspace_bytes)))
  echo "# rank $rank: $((own >> 20)) MiB, $(number peers) peers, $(number requests) requests, plan $(number plan_s) s, MPI" \
    "$(number mpi_s) s, bind $(number bind_s) s"
  [ $own -lt $((40 << 20)) ]
  report 'with less than 40 MiB beside its arenas and what its kernels work in' $?
  awk "BEGIN { exit !($(number plan_s) + $(number mpi_s) + $(number bind_s) < 2) }"
  report 'within 2 s' $?
  [ "$(number requests)" -lt 4096 ]
  report 'and with few requests, whatever the size of its groups' $?
done
[ "$(number unwanted_bytes)" -gt 0 ] && [ "$(UCX_RNDV_THRESH=1k "$nxrun" big.bin --dry-run --log json --as 5000/16384 |
  tr ',{}' '\n\n\n' | sed -n 's/^"unwanted_bytes"://p' | head -n 1)" -lt "$(number unwanted_bytes)" ]
report 'what MPI may set aside is said, and is less where more is announced' $?
expect 'for people' 0 '^rank 5000 of 16384 alone: stage 4 of 16, host 625 of 2048 with 8 ranks$' \
  "$nxrun" big.bin --dry-run --as 5000/16384

"$small" four.bin 4 hosts=2 data=nowhere || exit 99
expect 'a rank of two hosts' 0 '^rank 3 of 4 alone: stage 0 of 1, host 1 of 2 with 2 ranks$' \
  "$nxrun" four.bin --dry-run --as 3/4
expect 'another number of ranks' 1 'four.bin is a plan for 4 ranks, not for 8: give --as RANK/4' \
  "$nxrun" four.bin --dry-run --as 3/8
expect 'a rank that there is not' 2 "nxrun: --as cannot be '4/4'" "$nxrun" four.bin --dry-run --as 4/4
expect 'no rank' 2 "nxrun: --as cannot be '3'" "$nxrun" four.bin --dry-run --as 3
expect 'without --dry-run' 2 '^nxrun: --as belongs to --dry-run' "$nxrun" four.bin --as 3/4
finish
