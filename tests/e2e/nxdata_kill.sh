#!/bin/sh
# nxdata build is killed and stopped at many moments: nothing half ever has a dataset's name, and the same command goes
# on to the same bytes. TAP.
# usage: nxdata_kill.sh NXDATA
# SPDX-License-Identifier: Apache-2.0
set -u
nxdata=$(realpath "$1")
. "$(dirname "$0")/lib.sh"

# 24 million bytes, in lines of very different lengths; as two files, one of them compressed.
awk 'BEGIN {
  line = "abcdefghijklmnopqrstuvwxyz "
  for (i = 0; i < 7; i++) line = line line
  for (i = 0; i < 12000; i++) printf "{\"text\": \"%d %s\"}\n", i, substr(line, 1, 1 + i * 7919 % 4000)
}' >lines.jsonl
gzip -k1 lines.jsonl
inputs="lines.jsonl lines.jsonl.gz --append-eod" # words
build() { "$nxdata" build $inputs -o "$@"; }
build whole >out 2>&1 || exit 99

same() { cmp whole.bin "$1.bin" && cmp whole.idx "$1.idx"; }

# Killed after ever longer times, until it ends by itself.
kills=0 halves=0 went_on=0
while [ $kills -lt 40 ]; do
  "$nxdata" build $inputs -o killed >said 2>&1 &
  pid=$!
  sleep "$(awk "BEGIN { print 0.01 + $kills * 0.02 }")"
  kill -9 $pid 2>/dev/null
  wait $pid 2>/dev/null && break
  kills=$((kills + 1))
  [ ! -e killed.idx ] || break
  [ ! -e killed.bin ] || halves=$((halves + 1))
  grep -q '"tokens"' killed.building/journal.json 2>/dev/null && went_on=$((went_on + 1))
done
[ -e killed.idx ] || build killed >out 2>&1
ls -R killed* >out 2>&1
same killed >>out 2>&1
report "killed $kills times, it comes to the same" $?
echo "# of them $went_on behind a commit, $halves with data alone"
[ "$(ls -d killed* 2>/dev/null | wc -l)" -eq 2 ] || [ ! -e killed.building/journal.json ]
report 'nothing that counts is left' $?

# Asked to stop behind a commit: it says how to go on, keeps what it has, and goes on. One that ends before it is
# asked is made anew. (SIGTERM: a shell's background commands ignore SIGINT.)
stop_once() {
  rm -rf stopped.*
  "$nxdata" build $inputs -o stopped >out 2>&1 &
  pid=$!
  until [ -e stopped.building/journal.json ] || [ -e stopped.idx ]; do sleep 0.01; done
  kill -TERM $pid 2>/dev/null
  wait $pid
  [ $? -eq 143 ]
}
times=0
until stop_once || [ $times -eq 20 ]; do times=$((times + 1)); done
grep -q 'the same command goes on' out && [ ! -e stopped.idx ] && [ ! -e stopped.bin ]
report 'stopped' $?
build stopped --force >out 2>&1 && same stopped >>out 2>&1 && [ ! -e stopped.building ]
report 'and gone on' $?

# Another command does not go on with it, and does not touch it.
mkdir -p other.building && printf '{"key": "another"}' >other.building/journal.json
build other >out 2>&1 && same other >>out 2>&1 && [ -e other.building/journal.json ]
report 'an unfinished dataset of other inputs stays' $?

# A full disk behind a commit.
sh -c "ulimit -f 20000; '$nxdata' build lines.jsonl lines.jsonl.gz --append-eod -o full" >out 2>&1
[ $? -eq 1 ] && grep -q 'cannot write' out && [ ! -e full.bin ] && [ ! -e full.idx ]
report 'a full disk' $?
finish
