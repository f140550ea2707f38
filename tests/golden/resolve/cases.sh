#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cases.sh NXCFG FOLDER: every FOLDER/cases/NAME.yaml resolved must print FOLDER/cases/NAME.out (YAML, findings, exit
# status). A line `# args: ...` in the file adds arguments, `# env: NAME=VALUE` sets a variable. UPDATE=1 rewrites.
. "$(dirname "$0")/../../tap.sh"
nxcfg=$(realpath "$1")
cd "$2/cases" || exit 1
unset NX_GOLDEN_SET NX_GOLDEN_UNSET
temporary=$(mktemp)
trap 'rm -f "$temporary"' EXIT
for file in *.yaml; do
  case $file in *.layer.yaml) continue ;; esac
  name=${file%.yaml}
  {
    # The files are ours, so their arguments may be split by the shell.
    env $(sed -n 's/^# env: //p' "$file") "$nxcfg" resolve "$file" $(sed -n 's/^# args: //p' "$file") 2>&1
    echo "exit $?"
  } >"$temporary"
  golden "$name" "$name.out" <"$temporary"
done
finish
