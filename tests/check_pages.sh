#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The manual pages: each is roff without a warning, and each page that it refers to is there, unless the system has it.
# TAP. Usage: check_pages.sh PAGE...
if ! command -v groff >/dev/null; then
  echo "1..0 # SKIP groff is not installed"
  exit 0
fi
n=0
status=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
result() { # NAME; what is wrong stands in $work/wrong
  n=$((n + 1))
  if [ -s "$work/wrong" ]; then
    echo "not ok $n - $1"
    sed 's/^/# /' "$work/wrong" | head -20
    status=1
  else
    echo "ok $n - $1"
  fi
}
for page in "$@"; do
  basename "$page"
done >"$work/pages"
for page in "$@"; do
  name=$(basename "$page")
  groff -man -Tutf8 -ww -rLL=100n "$page" 2>"$work/wrong" >/dev/null
  result "$name has no warning"
  grep -q '^\.SH SEE ALSO' "$page" || echo "it has no SEE ALSO" >"$work/wrong"
  sed -n 's/^\.BR \(nx[^ ]*\) (\([157]\)).*/\1.\2/p' "$page" | tr -d '\\' | sort -u | grep -vxF -f "$work/pages" |
    sed 's/$/ is referred to/' >>"$work/wrong"
  result "$name refers to pages that are there"
done
echo "1..$n"
exit $status
