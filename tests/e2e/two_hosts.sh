#!/bin/sh
# Two hosts, which are two network namespaces with a cable between them: every run ends. TAP.
# usage: two_hosts.sh NXRUN NXDATA SMALL_PLAN MPIEXEC [REPETITIONS]
# SPDX-License-Identifier: Apache-2.0
set -u
nxrun=$(realpath "$1") nxdata=$(realpath "$2") small=$(realpath "$3") mpiexec=$4 repetitions=${5:-3}
tests=$(realpath "$(dirname "$0")")
. "$tests/lib.sh"

one=nxrun-$$-1 two=nxrun-$$-2 # namespaces
net=10.213.$(($$ % 250 + 1))
. "$tests/hosts.sh"
make_hosts_or_skip 'runs on two hosts'

printf '%2000s' 'A text to train on. ' >text
"$nxdata" build text -o data >out 2>&1 || exit 99
"$small" four.bin 4 hosts=2 data=data || exit 99
bad=0 done=0
while [ $done -lt "$repetitions" ]; do
  done=$((done + 1))
  rm -rf run
  on_two_hosts 60 four.bin --dir run
  status=$?
  if [ $status -ne 0 ] || ! grep -q '^step 4/4' out || [ ! -d run/checkpoints/step-000004 ]; then
    bad=$((bad + 1))
    echo "# run $done: status $status, $(tail -n 1 out)"
  fi
done
echo "# $bad of $repetitions runs did not end well"
[ $bad -eq 0 ]
report 'runs on two hosts end' $?
on_two_hosts 60 four.bin --dir run
[ $? -eq 1 ] && grep -q 'has a run already' out
report 'and a refused one, with its status' $?
finish
