#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Texts that are made to take forever, or much memory: each ends with a finding in bounded time, or with what was
# not followed where there is no training; TAP.
# Usage: hostile.sh NXCFG
. "$(dirname "$0")/../../tap.sh"
nxcfg=$(realpath "$1")
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99
try() { # NAME [STATUS]: of what stands in the file `text`
  timeout 20 "$nxcfg" validate --dialect megatron text >out 2>&1
  ended=$?
  [ $ended = "${2:-1}" ]
  result "$1" $? "exit status $ended"
}
repeat() { # TEXT COUNT: the text so often; %d in it counts
  awk -v text="$1" -v count="$2" 'BEGIN { for (i = 0; i < count; i++) printf text, i, i }'
}
repeat '--unknown-%d x\n' 20000 >text
try 'unknown options'
repeat '--num-layers 1\n' 20000 >text
try 'one option again and again'
{ printf -- '--data-path '; repeat '0.%d p%d ' 50000; } >text
try 'values on one line'
{ printf -- '--num-layers '; repeat '(' 100000; } >text
try 'brackets'
{ printf -- '--num-layers '; repeat '$(' 50000; } >text
try 'commands within commands'
{ printf -- '--num-layers '; repeat '${' 50000; } >text
try 'variables within variables'
{ printf -- '--num-layers '; repeat '${A:-' 30000; repeat '}' 30000; } >text
try 'defaults within defaults'
repeat 'if [ 1 = 1 ]; then\n' 30000 >text
try 'branches within branches'
{ echo 'A=x'; repeat 'V%d=$A\n' 20000; echo 'python a.py --num-layers $V19999'; } >text
try 'many variables' 0
{ echo 'A="--x 1"'; repeat 'A+=" --x"\n' 20000; echo 'python a.py $A'; } >text
try 'a growing variable'
{ echo 'A="--num-layers 24 "'; repeat 'A="$A$A$A$A"\n' 30; echo 'python a.py $A'; } >text
try 'a doubling variable'
{ echo 'for a in'; repeat ' %d' 2000; echo '; do for b in'; repeat ' %d' 2000; echo '; do A+=x; done; done'; } | tr '\n' ' ' >text
try 'loops within loops' 0
{ echo 'f0() { A+=x; }'; for i in $(seq 60); do echo "f$i() { f$((i - 1)); f$((i - 1)); }"; done; echo f60; } >text
try 'functions that call functions'
repeat 'cat <<E\n' 3000 >text
try 'here documents without end'
printf '[[ ))\nfor i in a; do echo $i; done\n--num-layers 1' >text
try 'a test that does not end'
repeat 'case x in x) ' 3000 >text
try 'cases within cases'
{ printf 'A=$(('; repeat '(' 5000; } >text
try 'sums within sums'
repeat 'stray ' 20000 >text
try 'words of no option'
name=$(repeat V 250)
{ echo "export $name=x"; echo "python pretrain_gpt.py --num-layers \$$name"; } >text
try 'a name of 250 signs'
{ echo 'ENV_VARS:'; echo "  $name: x"; echo 'MODEL_ARGS:'; echo "  --save: \${$name}"; } >text
try 'a name of 250 signs in YAML'
printf -- '--num-layers 1\0 --x' >text
try 'a NUL byte'
printf -- '--save \377\376 --num-layers x' >text
try 'bytes that are no UTF-8'
printf -- '--num-layers 24 \\\r\n --hidden-size 1024\r\n' >text
try 'line breaks of DOS'
finish
