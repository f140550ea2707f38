#!/bin/sh
# Builds with ThreadSanitizer what runs in threads, and runs it so: nxcfg on many files, nxdata's workers, a run whose
# checkpoints are written while it trains. A race ends the program with status 66. The kernels are compiled as they are
# elsewhere, but of a rank with one thread. The build stays, so that the next run compiles what has changed alone. TAP.
# SPDX-License-Identifier: Apache-2.0
# usage: threads.sh SOURCE_ROOT BUILD
set -u
source=$(realpath "$1") build=$2 log=$2.log
[ -e "$build/build.ninja" ] || {
  rm -rf "$build"
  meson setup "$build" "$source" --buildtype=plain -Doptimization=0 -Dc_args=-g1 -Dwerror=false -Db_sanitize=thread \
    >"$log" 2>&1 || { cat "$log"; exit 1; }
}
build=$(realpath "$build")
nxcfg=$build/nxcfg nxdata=$build/nxdata nxrun=
programs='nxcfg nxdata'
grep -q '^build nxrun:' "$build/build.ninja" && programs="$programs nxrun" nxrun=$build/nxrun
# shellcheck disable=SC2086 # words
nice ninja -C "$build" $programs >"$log" 2>&1 || { tail -n 100 "$log"; exit 1; }
. "$(dirname "$0")/lib.sh"
export TSAN_OPTIONS=halt_on_error=1

# usage: free_of_races NAME COMMAND...: whatever it finds, it ends, and not for a race
free_of_races() {
  name=$1
  shift
  timeout 300 "$@" >out 2>&1
  status=$?
  [ $status -ne 66 ] && [ $status -lt 124 ] && ! grep -q 'WARNING: ThreadSanitizer' out
  report "$name" $?
}

for n in 1 2 3; do for file in "$source"/conf/*/*.y*ml "$source"/conf/megatron/*.sh; do
  cp "$file" "$n.$(basename "$file")"
done; done
free_of_races 'many files are judged' "$nxcfg" validate ./*.*
grep -q '\.sh: ' out
report 'each is told of' $?
free_of_races 'and folders' "$nxcfg" validate --format json .
for i in 1 2 3 4 5 6; do
  awk -v i=$i 'BEGIN { for (n = 0; n < 400; n++) printf "{\"text\": \"word %d of %d, and some more\"}\n", n * i, n }'
done >many.jsonl
"$nxdata" build many.jsonl --tokenizer "$source/conf/text/tokenizer" --workers 1 -o one >out 2>&1
report 'a dataset of one worker' $?
free_of_races 'and of four' "$nxdata" build many.jsonl --tokenizer "$source/conf/text/tokenizer" --workers 4 -o four
cmp one.bin four.bin && cmp one.idx four.idx
report 'are the same' $?

if [ -z "$nxrun" ]; then
  skip 'a run whose checkpoints are written beside it' 'nxrun is not built'
else
  small_training 'mesh: {world: 1}' 'batch: {micro: 2, global: 4}' 'optimizer: {lr: 0.01}' 'schedule: {max_steps: 6}' \
    'checkpoint: {every_steps: 1, async: true}' 'evaluate: {every_steps: 2, batches: 1}'
  plan aside 'data.split=[8,1,1]'
  free_of_races 'a run whose checkpoints are written beside it' "$nxrun" aside.bin --dir aside --backend ref
  [ -d aside/checkpoints/step-000006 ]
  report 'ends' $?
fi
finish
