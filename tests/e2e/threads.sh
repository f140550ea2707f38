#!/bin/sh
# Builds nxcfg and nxdata with ThreadSanitizer, and runs what they do in threads: many files, workers. A race ends the
# program with status 66. The build stays, so that the next run compiles what has changed alone. TAP.
# SPDX-License-Identifier: Apache-2.0
# usage: threads.sh SOURCE_ROOT BUILD
set -u
source=$(realpath "$1") build=$2 log=$2.log
[ -e "$build/build.ninja" ] || {
  rm -rf "$build"
  meson setup "$build" "$source" --buildtype=plain -Doptimization=0 -Dc_args=-g1 -Dwerror=false -Db_sanitize=thread \
    -Druntime=disabled >"$log" 2>&1 || { cat "$log"; exit 1; }
}
build=$(realpath "$build")
nice ninja -C "$build" nxcfg nxdata >"$log" 2>&1 || { tail -n 100 "$log"; exit 1; }
nxcfg=$build/nxcfg nxdata=$build/nxdata
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

for copy in 1 2 3; do for file in "$source"/conf/*/*.y*ml "$source"/conf/megatron/*.sh; do
  cp "$file" "$copy.$(basename "$file")"
done; done
free_of_races 'many files are judged' "$nxcfg" validate ./*.*
grep -q '\.sh: ' out
report 'each is told of' $?
free_of_races 'and folders' "$nxcfg" validate --format json .
for part in 1 2 3 4 5 6; do
  awk -v i=$part 'BEGIN { for (n = 0; n < 400; n++) printf "{\"text\": \"word %d of %d, and some more\"}\n", n * i, n }'
done >many.jsonl
"$nxdata" build many.jsonl --tokenizer "$source/conf/text/tokenizer" --workers 1 -o one >out 2>&1
report 'a dataset of one worker' $?
free_of_races 'and of four' "$nxdata" build many.jsonl --tokenizer "$source/conf/text/tokenizer" --workers 4 -o four
cmp one.bin four.bin && cmp one.idx four.idx
report 'are the same' $?
finish
