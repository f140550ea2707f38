#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The manual pages: each is roff without a warning, and each page that it refers to is there, unless the system has it;
# so is each option of our programs that it names.
# TAP. Usage: check_pages.sh PAGE...
. "$(dirname "$0")/tap.sh"
command -v groff >/dev/null || skip_all "groff is not installed"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
judge() { # NAME; what is wrong stands in $work/wrong
  [ ! -s "$work/wrong" ]
  result "$1" $? "$(head -n 20 "$work/wrong")"
}
for page in "$@"; do
  basename "$page"
done >"$work/pages"
for page in "$@"; do
  case $page in */nx[a-z]*.1) tr -d '\\' <"$page" >"$work/$(basename "$page" .1)" ;; esac
done
for page in "$@"; do
  name=$(basename "$page")
  groff -man -Tutf8 -ww -rLL=100n "$page" 2>"$work/wrong" >/dev/null
  judge "$name has no warning"
  grep -q '^\.SH SEE ALSO' "$page" || echo "it has no SEE ALSO" >"$work/wrong"
  sed -n 's/^\.BR \(nx[^ ]*\) (\([157]\)).*/\1.\2/p' "$page" | tr -d '\\' | sort -u | grep -vxF -f "$work/pages" |
    sed 's/$/ is referred to/' >>"$work/wrong"
  judge "$name refers to pages that are there"
  tr -d '\\' <"$page" | grep -oE '\bnx(run|data|cfg)( [a-z-]+)? --[a-z][a-z-]+' | sort -u |
    while read -r program words; do
      grep -qF -e "${words##* }" "$work/$program" || echo "$program has no ${words##* }"
    done >"$work/wrong"
  judge "$name names options that are there"
done
finish
