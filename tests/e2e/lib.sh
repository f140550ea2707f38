# SPDX-License-Identifier: Apache-2.0
# What the tests of programs share: a folder of their own, in which they stand, and TAP. Sourced, after the
# arguments have been made absolute. The file `out` holds what the last command said.
. "$(dirname "$0")/../tap.sh"
folder=$(mktemp -d) || exit 99
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 99

report() { # NAME STATUS: 0 is good; otherwise `out` says why it is not
  result "$1" "$2" "$(tail -n 20 out 2>&1)"
}

passes() { # NAME COMMAND...
  name=$1
  shift
  timeout 120 "$@" >out 2>&1
  report "$name" $?
}

# The command ends within 100 s with the status, and exactly one line that it prints has the pattern.
expect() { # NAME STATUS PATTERN COMMAND...
  name=$1 status=$2 pattern=$3
  shift 3
  timeout 100 "$@" >out 2>&1
  got=$?
  lines=$(grep -c -e "$pattern" out)
  [ $got -eq "$status" ] && [ "$lines" -eq 1 ]
  good=$?
  [ $good -eq 0 ] || echo "# status $got, not $status; $lines lines with: $pattern"
  report "$name" $good
}

