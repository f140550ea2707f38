#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What reads files of NX_SHARED passes without them: it says that it skips, and why. TAP.
# Usage: check_skips.sh -- PROGRAM [ARGUMENT]... [-- PROGRAM [ARGUMENT]...]...
. "$(dirname "$0")/tap.sh"
unset NX_SHARED
try() { # PROGRAM [ARGUMENT]...
  name=$(basename "$1")
  printed=$("$@" 2>&1)
  result "$name ends well" $? "$printed"
  grep -q '# SKIP NX_SHARED ' <<<"$printed"
  result "$name says what it skips" $? "$printed"
  ! grep -q '^not ok' <<<"$printed"
  result "$name fails in nothing" $? "$printed"
}
command=()
for word in "$@" --; do
  if [ "$word" != -- ]; then
    command+=("$word")
  elif [ ${#command[@]} -gt 0 ]; then
    try "${command[@]}"
    command=()
  fi
done
finish
