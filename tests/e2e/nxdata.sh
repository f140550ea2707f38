#!/bin/sh
# nxdata from the command line: what it prints, its exit status, and what a failure leaves behind. TAP.
# usage: nxdata.sh NXDATA TEXT
# SPDX-License-Identifier: Apache-2.0
set -u
nxdata=$(realpath "$1") text=$(realpath "$2")
folder=$(mktemp -d) || exit 99
trap 'rm -rf "$folder"' EXIT
n=0

# expect NAME STATUS PATTERN COMMAND…: the command ends with the status and prints a line with the pattern.
expect() {
  name=$1 status=$2 pattern=$3
  shift 3
  n=$((n + 1))
  "$@" >"$folder/out" 2>&1
  got=$?
  if [ $got -eq "$status" ] && grep -q -e "$pattern" "$folder/out"; then
    echo "ok $n - $name"
  else
    echo "not ok $n - $name"
    echo "# status $got, not $status, or no line with: $pattern"
    sed 's/^/# /' "$folder/out"
  fi
}

n_bytes=$(wc -c <"$text")
expect 'build' 0 "tokens  *$n_bytes\$" "$nxdata" build "$text" -o "$folder/text"
expect 'info' 0 'type  *uint16, 2 bytes a token' "$nxdata" info "$folder/text"
expect 'info takes the name of either file' 0 "documents  *1\$" "$nxdata" info "$folder/text.idx"
expect 'check' 0 'no damage found' "$nxdata" check "$folder/text"
expect 'an existing dataset stays' 1 'give --force' "$nxdata" build "$text" -o "$folder/text"
expect 'unless forced' 0 "tokens  *$((2 * n_bytes + 2))\$" \
  "$nxdata" build --force --append-end "$text" "$text" -o "$folder/text"
expect 'the end of a document is token 256' 0 '… 256 (' "$nxdata" check "$folder/text"
expect 'standard input' 0 'tokens  *3$' sh -c "printf abc | '$nxdata' build - -o '$folder/three'"
expect 'a text that begins with a dash' 0 'tokens  *3$' \
  sh -c "cd '$folder' && printf abc >-a && '$nxdata' build -o dash -- -a"

printf x >>"$folder/three.bin"
expect 'bytes that nothing uses are said' 0 'unused  *1 bytes' "$nxdata" check "$folder/three"
head -c 5 "$folder/text.bin" >"$folder/three.bin"
expect 'truncated data' 1 'cut short' "$nxdata" check "$folder/three"
head -c 40 "$folder/text.idx" >"$folder/three.idx"
expect 'truncated index' 1 'cut short or damaged' "$nxdata" info "$folder/three"
printf 'no index at all, but a text that someone gave this name' >"$folder/three.idx"
expect 'another file' 1 'is not the index of a dataset' "$nxdata" check "$folder/three"
rm "$folder/text.bin"
expect 'half of a dataset' 1 'text.bin: No such file' "$nxdata" check "$folder/text"

expect 'a missing dataset' 2 'cannot read .*none.idx' "$nxdata" check "$folder/none"
expect 'a missing text' 2 'cannot read .*none' "$nxdata" build "$folder/none" -o "$folder/new"
expect 'a missing folder' 1 'cannot write' "$nxdata" build "$text" -o "$folder/none/new"
expect 'an empty text' 1 'is empty' "$nxdata" build /dev/null -o "$folder/new"
expect 'full standard output' 1 'No space left' sh -c "'$nxdata' --help >/dev/full"
if [ -w /dev/full ]; then
  expect 'a full disk' 1 'No space left' sh -c "ln -s /dev/full '$folder/new.bin.tmp' &&
    '$nxdata' build '$text' -o '$folder/new'"
fi
expect 'nothing is left of builds that failed' 0 '^0$' sh -c "ls '$folder' | grep -c '^new' || true"

expect 'no command' 2 'build, info or check' "$nxdata"
expect 'an unknown command' 2 'unknown command frob' "$nxdata" frob
expect 'an unknown option' 2 'unknown option --frob' "$nxdata" build --frob "$text" -o "$folder/new"
expect 'no text' 2 'which text' "$nxdata" build -o "$folder/new"
expect 'no name' 2 'give -o PREFIX' "$nxdata" build "$text"
expect 'no dataset' 2 'which dataset' "$nxdata" info
expect 'help' 0 '^usage: nxdata build' "$nxdata" --help
expect 'version' 0 '^nxdata [0-9]' "$nxdata" --version
echo "1..$n"
