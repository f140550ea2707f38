# SPDX-License-Identifier: Apache-2.0
# What the tests of programs share: a folder of their own, in which they stand, and TAP. Sourced, after the
# arguments have been made absolute. The file `out` holds what the last command said.
. "$(dirname "$0")/../tap.sh"
folder=$(mktemp -d) || exit 99
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 99

report() { # NAME STATUS: 0 is good; otherwise `out` says why it is not
  result "$1" "$2" "$(tail -n 40 out 2>&1)"
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
  [ $good -eq 0 ] || echo "# status $got, not $status; $lines lines with: $pattern" >&2
  report "$name" $good
}

# A dataset `data`, and base.yaml: a small model that is trained on it, its other lines as they are given.
small_training() { # [LINE]...
  awk 'BEGIN { for (i = 0; i < 3000; i++) printf "%d ", i * i * 7919 % 10007 }' >text
  "$nxdata" build text -o data >/dev/null || exit 99
  printf '%s\n' "$@" >base.yaml
  cat >>base.yaml <<'END'
model: {layers: 2, hidden: 32, ffn_hidden: 64, heads: 4, kv_heads: 2, sequence: 16, vocab: 250, vocab_divisor: 8}
data: {path: [data]}
run: {name: run}
END
}

# NAME.bin, of base.yaml and these settings and options of nxcfg.
plan() { # NAME [SETTING|OPTION]...
  name=$1
  shift
  for setting; do
    case $setting in *=*) set -- "$@" --set "$setting" ;; *) set -- "$@" "$setting" ;; esac
    shift
  done
  "$nxcfg" plan base.yaml "$@" -o "$name.bin" >out 2>&1 || { sed 's/^/# /' out; exit 99; }
}
