#!/bin/sh
# What conf/ shows: each configuration stands in the table of conf/README.md, opens with what it shows and the commands
# that run it, is valid for nxrun without a warning, and trains by those very commands: 2 steps, of which the second
# stands on the first's update, of one configuration, or with `all` of each. TAP.
# usage: examples.sh quick|all SOURCE_ROOT NXCFG NXDATA [NXRUN]
# SPDX-License-Identifier: Apache-2.0
set -u
. "$(dirname "$0")/../tap.sh"
what=$1 source=$(realpath "$2") nxcfg=$(realpath "$3") nxdata=$(realpath "$4") nxrun=${5:+$(realpath "$5")}
train=conf/nxdt/orpo.yaml
steps=2
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99

ls_configurations() { # one a line, in the folder that holds conf/
  ls conf/*/*.yaml conf/*/*.yml conf/*/*.sh
}

mkdir -p bin build/data
ln -s "$source/conf" conf
if [ "$what" = all ]; then
  train=$(ls_configurations)
fi
ln -s "$nxcfg" bin/nxcfg
ln -s "$nxdata" bin/nxdata
printf '#!/bin/sh\nexec "%s" "$@" --stop-after %s\n' "$nxrun" $steps >bin/nxrun
chmod +x bin/nxrun
PATH=$work/bin:$PATH
nxdata build conf/text/devil.txt -o build/data/devil >/dev/null || exit 99

# A file's commands are the comments of its head that are indented.
commands_of() {
  awk 'NR == 1 && /^#!/ { next } !/^#/ { exit } /^#   / { print substr($0, 5) }' "$1"
}

# As its first nxcfg command reads it.
validate() {
  commands_of "$1" |
    sed -n '/^nxcfg/{s/ &&.*//; s/ #.*//; s/ -o [^ ]*//; s/^nxcfg [a-z]* /nxcfg validate --for nxrun -W error /p; q;}' >judge
  [ -s judge ] && sh judge >out 2>&1 && grep -q ': valid' out
}

runs() {
  commands_of "$1" >commands
  rm -rf runs prepared run.plan
  sh -e commands >out 2>&1 && { ! grep -q nxrun commands || grep -q "\"step\": *$steps," runs/*/metrics.jsonl; }
}

ls_configurations | sort >files
sed -n 's/^| \[[^]]*\](\([^)]*\)) .*/conf\/\1/p' conf/README.md | sort | diff files - >out 2>&1
result "conf/README.md lists what is there" $? "$(cat out)"
if [ "$what" = quick ]; then
  while read -r file; do
    validate "$file"
    result "$file is valid" $? "$(cat out)"
  done <files
fi
if [ -z "$nxrun" ] || ! grep -q avx512f /proc/cpuinfo; then
  skip "examples train" "it needs nxrun and AVX-512"
  finish
fi
for file in $train; do
  runs "$file" </dev/null
  result "$file does what it says" $? "$(cat out)"
done
finish
