#!/bin/sh
# Options in man pages and in --help are the same. TAP.
# usage: options.sh SOURCE_ROOT NXCFG NXDATA [NXRUN]
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../tap.sh"
set -u
source=$(realpath "$1") nxcfg=$(realpath "$2") nxdata=$(realpath "$3") nxrun=${4:+$(realpath "$4")}
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99

report() { # NAME: passed if the file `wrong` is empty
  [ ! -s wrong ]
  result "$1" $? "$(cat wrong)"
}

# Long options wherever they stand; short ones where a line lists them or in [brackets].
options_of_help() {
  grep -oE '(^ +|\[)-[a-zA-Z]\>|--[a-z][a-z-]*' | grep -oE -e '-.*' | sort -u
}

# What the tags of the page (the line after .TP) define.
options_of_page() {
  awk '/^\.TP/ { tag = 1; next } tag { tag = 0; if ($2 ~ /^"?\\-/) print }' "$1" | sed 's/\\-/-/g' |
    grep -oE -e ' "?-{1,2}[a-zA-Z][a-z-]*' | tr -d ' "' | sort -u
}

compare_options() { # NAME: the file `help` against the page
  options_of_help <help >of_help
  options_of_page "$source/man/$1.1" >of_page
  {
    comm -23 of_help of_page | sed "s/.*/$1: & is in --help, not in man\/$1.1/"
    comm -13 of_help of_page | sed "s/.*/$1: & is in man\/$1.1, not in --help/"
    [ -s of_help ] || echo "$1 --help shows no option"
  } >wrong
  report "options of $1"
}

"$nxcfg" --help >help || echo "nxcfg --help fails"
for command in $(sed -n 's/^  \([a-z]*\)  *.*/\1/p' help); do
  "$nxcfg" "$command" --help >>help || echo "nxcfg $command --help fails"
done
compare_options nxcfg
"$nxdata" --help >help
compare_options nxdata
if [ -n "$nxrun" ]; then
  "$nxrun" --help >help
  compare_options nxrun
fi
finish
