# SPDX-License-Identifier: Apache-2.0
# TAP, for test scripts; sourced.
n=0 any_failed=0
unset COLUMNS # what is printed would be as wide

result() { # NAME STATUS [TEXT]: 0 is good; otherwise the end of TEXT, for people, says why it is not
  n=$((n + 1))
  if [ "$2" -eq 0 ]; then
    echo "ok $n - $1"
    return
  fi
  echo "not ok $n - $1"
  [ -z "${3:-}" ] || printf '%s\n' "$3" | tail -n 40 | sed 's/^/# /' >&2
  any_failed=1
}

golden() { # NAME FILE: what comes in is what the file says; UPDATE=1 rewrites it
  came=$(cat && echo .)
  [ -z "${UPDATE:-}" ] || printf '%s' "${came%.}" >"$2"
  difference=$(printf '%s' "${came%.}" | diff "$2" - 2>&1)
  result "$1" $? "$difference"
}

skip() { # NAME WHY
  n=$((n + 1))
  echo "ok $n - $1 # SKIP $2"
}

skip_all() { # WHY: ends the script
  echo "1..0 # SKIP $1"
  exit 0
}

finish() { # ends the script
  echo "1..$n"
  exit $any_failed
}
