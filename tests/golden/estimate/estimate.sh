#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs each line of cases.txt and compares what is printed (of a plan, the forecast) and the exit status with NAME.out,
# as TAP; UPDATE=1 rewrites. Usage: estimate.sh NXCFG FOLDER
nxcfg=$(realpath "$1")
cd "$2" || exit 1
n=0
status=0
while IFS= read -r line; do
  case $line in '' | '#'*) continue ;; esac
  n=$((n + 1))
  name=${line%% |*}
  # shellcheck disable=SC2086
  found=$("$nxcfg" ${line#*| } 2>&1 </dev/null; echo "exit $?")
  found=$(printf '%s\n' "$found" | sed -e '/^model.yaml: nx$/,/^  workspace/d' -e '/^plan_id/d')
  [ -z "$UPDATE" ] || printf '%s\n' "$found" >"$name.out"
  if [ "$found" = "$(cat "$name.out")" ]; then
    echo "ok $n - $line"
  else
    echo "not ok $n - $line"
    printf '%s\n' "$found" | diff "$name.out" - | sed 's/^/# /'
    status=1
  fi
done <cases.txt
for file in no.plan*; do # what does not fit is not written
  [ ! -e "$file" ] || { echo "not ok $((n + 1)) - $file was written"; rm -f "$file"; n=$((n + 1)); status=1; }
done
echo "1..$n"
exit $status
