#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cases.sh NXCFG FOLDER: every FOLDER/cases/NAME.yaml resolved must print FOLDER/cases/NAME.out (YAML, findings, exit
# status). A line `# args: ...` in the file adds arguments, `# env: NAME=VALUE` sets a variable. UPDATE=1 rewrites.
nxcfg=$(realpath "$1")
cd "$2/cases" || exit 1
unset NX_GOLDEN_SET NX_GOLDEN_UNSET
count=0
temporary=$(mktemp)
trap 'rm -f "$temporary"' EXIT
for file in *.yaml; do
  case $file in *.layer.yaml) continue ;; esac
  count=$((count + 1))
  name=${file%.yaml}
  {
    # The files are ours, so their arguments may be split by the shell.
    env $(sed -n 's/^# env: //p' "$file") "$nxcfg" resolve "$file" $(sed -n 's/^# args: //p' "$file") 2>&1
    echo "exit $?"
  } >"$temporary"
  [ -n "$UPDATE" ] && cp "$temporary" "$name.out"
  if cmp -s "$temporary" "$name.out"; then
    echo "ok $count - $name"
  else
    echo "not ok $count - $name"
    diff "$name.out" "$temporary" | sed 's/^/# /'
  fi
done
echo "1..$count"
