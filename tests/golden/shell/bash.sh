#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs each snippet with bash and with the follower of shell texts, and compares the arguments that `python x.py` gets; TAP.
# Snippets stand between lines of %. In the second file a snippet ends with lines of what must come out, behind a line =.
# Usage: bash.sh SHELL_WORDS SNIPPETS UNKNOWN
words=$(realpath "$1") snippets=$(realpath "$2") unknown=$(realpath "$3")
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99
awk 'BEGIN { RS = "\n%\n" } { file = sprintf("known.%04d", NR); printf "%s\n", $0 > file; close(file) }' "$snippets"
awk 'BEGIN { RS = "\n%\n" } { split($0, half, "\n=\n"); file = sprintf("open.%04d", NR); printf "%s\n", half[1] > file; close(file)
  printf "%s\n", half[2] > file ".out"; close(file ".out") }' "$unknown"
n=0 status=0
compare() { # FILE WANTED
  n=$((n + 1))
  found=$("$words" "$1" 2>&1)
  name=$(head -1 "$1" | tr -d '#')
  if [ "$found" = "$2" ]; then echo "ok $n - $name"; return; fi
  echo "not ok $n - $name"
  { sed 's/^/# | /' "$1"; diff <(printf '%s\n' "$2") <(printf '%s\n' "$found") | sed 's/^/# /'; }
  status=1
}
for file in known.????; do
  # shellcheck disable=SC2016
  wanted=$(env -i PATH="$PATH" bash --norc -c 'python() { shift; [ $# -eq 0 ] || printf "<%s>\n" "$@" >&5; echo . >&5; }; source "$1"' bash "$file" 5>&1 >/dev/null 2>&1)
  compare "$file" "$wanted"
done
for file in open.????; do compare "$file" "$(cat "$file.out")"; done
echo "1..$n"
exit $status
