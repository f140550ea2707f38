#!/bin/sh
# The documents say what is so: options in man pages and --help agree, files that README names exist, and the
# commands of its marked blocks print what it shows. TAP.
# usage: check_docs.sh SOURCE_ROOT NXCFG NXDATA [NXRUN]
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/tap.sh"
set -u
source=$1 nxcfg=$(realpath "$2") nxdata=$(realpath "$3") nxrun=${4:+$(realpath "$4")}
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99

report() { # NAME: passed if the file `wrong` is empty
  [ ! -s wrong ]
  result "$1" $? "$(cat wrong)"
}

# -- options -----------------------------------------------------

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

# -- files that README names -----------------------------------------------------

: >wrong
grep -oE '(^|[^A-Za-z0-9_./-])(compiler|conf|kernels|man|runtime|schema|tests|tools)/[A-Za-z0-9_./*-]*' \
  "$source/README.md" | grep -oE '[a-z]+/.*' | sed 's/[.]$//' | sort -u >named
while read -r name; do
  # shellcheck disable=SC2086 # a pattern
  (cd "$source" && ls -d $name >/dev/null 2>&1) || echo "README names $name, which is not there" >>wrong
done <named
[ -s named ] || echo "README names no file" >wrong
report "files that README names"

# -- examples -----------------------------------------------------

mkdir build
ln -s "$source/conf" conf
ln -s "$nxcfg" build/nxcfg
ln -s "$nxdata" build/nxdata
[ -z "$nxrun" ] || ln -s "$nxrun" build/nxrun
mkdir build/data
build/nxdata build conf/text/devil.txt -o build/data/devil >/dev/null || exit 99

# Block i as block.i; the first line says how it is marked.
awk '/^<!-- run/ { mark = $0; next }
     mark != "" && /^```console/ { i++; file = "block." i; print mark >file; inside = 1; mark = ""; next }
     inside && /^```/ { inside = 0; next }
     inside { print >file }' "$source/README.md" "$source"/docs/*.md

# Lines of `shown` must be those of `printed`, in order; a line `...` stands for any lines, `...` at the end of
# a line for any text.
compare_lines() {
  awk 'NR == FNR { printed[++n_printed] = $0; next }
       $0 == "..." { gap = 1; next }
       {
         want = $0
         open = sub(/\.\.\.$/, "", want)
         for (found = 0; at < n_printed && !found;) {
           at++
           found = open ? index(printed[at], want) == 1 : printed[at] == want
           if (!found && !gap) break
         }
         if (!found) {
           print "README shows: " $0
           print gap ? "which is not printed after: " printed[last] : "printed is: " printed[at]
           exit
         }
         last = at
         gap = 0
       }
       END { if (!gap && at < n_printed && found) print "README ends, but there is: " printed[at + 1] }
      ' printed shown
}

number() { # FILE: every number is the same
  sed -E 's/[0-9]+([.:][0-9]+)*(e[-+][0-9]+)?/0/g' "$1" >numbered
  mv numbered "$1"
}

run_block() { # FILE
  : >wrong
  mark=$(head -n 1 "$1")
  sed 1d "$1" | awk '/^\$ / { i++; print substr($0, 3) >("command." i); printf "" >("shown." i); next }
                     { print >("shown." i) }'
  i=1
  while [ -f command.$i ]; do
    sh command.$i >printed 2>&1
    cp shown.$i shown
    case $mark in *"numbers differ"*) number printed; number shown ;; esac
    compare_lines >>wrong
    [ ! -s wrong ] || { sed 's/^/command: /' command.$i >>wrong; break; }
    i=$((i + 1))
  done
  rm -f command.* shown.*
}

# The examples' plans are for the default target.
missing=
[ -n "$nxrun" ] || missing="nxrun is not built"
grep -q avx512f /proc/cpuinfo || missing="the processor has no AVX-512"
for block in block.*; do
  if grep -q nxrun "$block" && [ -n "$missing" ]; then
    skip "$block" "$missing"
    continue
  fi
  run_block "$block"
  report "README $block: $(sed -n 2p "$block" | cut -c1-60)"
done
finish
