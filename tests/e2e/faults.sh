#!/bin/sh
# Two hosts, which are two network namespaces, and a cable between them that is slow, loses packets, or is cut: no
# wrong result, and no rank that waits for ever. TAP.
# usage: faults.sh NXRUN NXDATA SMALL_PLAN LINK MPIEXEC
# SPDX-License-Identifier: Apache-2.0
set -u
nxrun=$(realpath "$1") nxdata=$(realpath "$2") small=$(realpath "$3") link=$(realpath "$4") mpiexec=$5
tests=$(realpath "$(dirname "$0")")
. "$tests/lib.sh"

one=nxfault-$$-1 two=nxfault-$$-2 # namespaces
net=10.214.$(($$ % 250 + 1))
. "$tests/hosts.sh"
if ! make_hosts >out 2>&1; then
  skip 'faults between hosts' "$no_hosts"
  finish
fi
if ! shape_cable 0 0; then
  skip 'faults between hosts' "no TUN device can be made here: $(cat out)"
  finish
fi

same() { # NAME RUN: the same weights as of the run without faults
  cmp plain/checkpoints/step-000004/model.safetensors "$2"/checkpoints/step-000004/model.safetensors >out 2>&1
  report "$1" $?
}

printf '%2000s' 'A text to train on. ' >text
"$nxdata" build text -o data >out 2>&1 || exit 99
"$small" four.bin 4 hosts=2 data=data || exit 99
on_two_hosts 120 four.bin --dir plain
report 'a cable without faults' $?
shape_cable 0 10 || exit 99
on_two_hosts 120 four.bin --dir lossy
report 'one packet of a hundred is lost: the run ends' $?
same 'with the same weights' lossy
shape_cable 200 0 || exit 99
on_two_hosts 120 four.bin --dir slow
report '200 ms on the way: the run ends' $?
same 'with the same weights again' slow

# Ranks on both sides notice, each for itself: the launcher can not tell the other host any more.
cut_off() { # NAME SIGNAL: waits until the run trains, then cuts; `out` has what both sides say
  rm -rf long
  on_two_hosts 120 long.bin --dir long &
  job=$!
  for _ in $(seq 600); do
    grep -q '"step":5,' long/metrics.jsonl 2>/dev/null && break
    sleep 0.1
  done
  since=$(date +%s)
  kill -USR1 $cable
  while [ -n "$(ip netns pids $one | xargs -r ps -o comm= -p | grep nxrun; ip netns pids $two | xargs -r ps -o comm= -p | grep nxrun)" ] &&
    [ $(($(date +%s) - since)) -lt 70 ]; do sleep 0.2; done
  took=$(($(date +%s) - since))
}
shape_cable 0 0 || exit 99
"$small" long.bin 4 hosts=2 data=data steps=2000000000 deadline=20 || exit 99
cut_off
echo "# the last rank ended $took s after the cut"
[ $took -le 60 ]
report 'the cable is cut: every rank ends after its deadline of 20 s' $?
grep -q "^nxrun: rank [0-3] (.*) waits in step [0-9]* .*, group .*, [0-9]* bytes: rank [0-3] (.*) does not come" out
report 'and says who waited for whom' $?
ip netns pids $one | xargs -r kill
wait $job
[ $? -ne 0 ]
report 'the launcher does not take it for a success' $?
finish
