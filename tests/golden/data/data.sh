#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What each quick start trains on and holds out with the options of each line of cases.txt, as the plan says it, and
# data.out beside it; UPDATE=1 rewrites that. TAP. Usage: data.sh NXCFG FOLDER SOURCE_ROOT
. "$(dirname "$0")/../../tap.sh"
nxcfg=$(realpath "$1")
folder=$2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$3/conf" || exit 1
set -f
show() { # NAME ARGUMENT...
  echo "== $1"
  shift
  "$nxcfg" plan -o "$work/plan" "$@" >"$work/out" 2>&1 || grep -E '^(error|warning)' "$work/out"
  [ ! -e "$work/plan" ] || { "$nxcfg" show --data "$work/plan" && rm "$work/plan"; }
  echo
}
while IFS='|' read -r file options; do
  case $file in '' | '#'*) continue ;; esac
  file=${file% }
  case $file in
    *.sh | *.args) set -- --dialect megatron --world-size 2 "$file" -- $options ;;
    *)
      set -- "$file"
      for option in $options; do set -- "$@" --set "$option"; done
      ;;
  esac
  show "$file$options" "$@"
done <"$folder/cases.txt" >"$work/shown" 2>&1
golden 'datasets of plans' "$folder/data.out" <"$work/shown"
finish
