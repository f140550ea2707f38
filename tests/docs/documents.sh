#!/bin/sh
# The documents say what is so. Every block ```console of README.md and docs/ runs: lines that begin with $ (and go on
# with >) are commands, those below are what they print; a line `...` stands for any lines, `...` at the end of a line for any text. The blocks
# of a document run in order, in a folder of its own that has conf/, schema/ and machines/, and the dataset in
# build/data; the programs are on the PATH. A comment above a block may say <!-- numbers differ -->. Other blocks hold no commands, unless <!-- not run: why --> stands above. Links lead somewhere. TAP.
# usage: documents.sh SOURCE_ROOT NXCFG NXDATA [NXRUN]
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../tap.sh"
set -u
source=$(realpath "$1") nxcfg=$(realpath "$2") nxdata=$(realpath "$3") nxrun=${4:+$(realpath "$4")}
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99

mkdir -p bin data
ln -s "$nxcfg" "$nxdata" ${nxrun:+"$nxrun"} bin
PATH=$work/bin:$PATH
nxdata build "$source/conf/text/devil.txt" -o data/devil >/dev/null || exit 99
(cd "$source" && find README.md conf/README.md docs -name '*.md' | sort) >documents

# The examples' plans are for the default target.
missing=
[ -n "$nxrun" ] || missing="nxrun is not built"
grep -q avx512f /proc/cpuinfo || missing="the processor has no AVX-512"

number() { # FILE: every number is the same, however wide
  sed -E 's/[0-9]+([.:][0-9]+)*(e[-+][0-9]+)?/0/g; s/  +/ /g' "$1" >numbered
  mv numbered "$1"
}

run_block() { # FILE: the first line says how it is marked
  : >"$work/wrong"
  mark=$(head -n 1 "$1")
  sed 1d "$1" | awk '/^\$ / { i++; printf "" >("shown." i) }
                     /^\$ / || /^> / { print substr($0, 3) >("command." i); next }
                     { print >("shown." i) }'
  i=1
  while [ -f command.$i ]; do
    sh command.$i >printed 2>&1
    status=$?
    case $(cat command.$i shown.$i) in # what ends a run is shown, and does not hide behind `...`
      *'
nxrun: '* | *'
nxdata: '*) ;;
      nxrun* | nxdata* | mpiexec*) [ $status = 0 ] || [ $status = 3 ] || { echo "exit status $status"; cat printed; } >>"$work/wrong" ;;
    esac
    cp shown.$i shown
    case $mark in *"numbers differ"*) number printed; number shown ;; esac
    awk -f "$here/compare_lines.awk" printed shown >>"$work/wrong"
    [ ! -s "$work/wrong" ] || { sed 's/^/command: /' command.$i >>"$work/wrong"; break; }
    i=$((i + 1))
  done
  rm -f command.* shown.*
}

check_document() { # NAME
  rm -rf "$work/folder" && mkdir -p "$work/folder/build" && cd "$work/folder" || exit 99
  cp -r "$work/data" build/data
  ln -s "$source/conf" "$source/schema" "$source/machines" .
  awk -v blocks="$work/block." -f "$here/blocks.awk" "$source/$1" >"$work/wrong"
  report "$1: commands stand where they run"
  for block in "$work"/block.*; do
    [ -f "$block" ] || continue
    name="$1, line $(sed -n '1s/ .*//p' "$block"): $(sed -n 2p "$block" | cut -c3-60 | tr -d '\\')"
    if grep -q nxrun "$block" && [ -n "$missing" ]; then
      skip "$name" "$missing"
    else
      run_block "$block"
      report "$name"
    fi
  done
  rm -f "$work"/block.*
  cd "$work" || exit 99
}

report() { # NAME: passed if the file `wrong` is empty
  [ ! -s "$work/wrong" ]
  result "$1" $? "$(cat "$work/wrong")"
}

# Places that links may lead to: files, and headings as GitHub names them.
anchors() {
  awk '/^```/ { inside = !inside } !inside && /^#+ / { sub(/^#+ /, ""); print tolower($0) }' "$1" |
    sed 's/`//g; s/[^a-z0-9 _-]//g; s/ /-/g'
}

check_links() {
  : >"$work/wrong"
  while read -r document; do
    awk '/^```/ { inside = !inside } !inside' "$source/$document" | grep -oE '\]\([^)]+\)' | sed 's/^](//; s/)$//' |
      while read -r link; do
        case $link in http*) continue ;; '#'*) file=$document ;; *) file=$(dirname "$document")/${link%%#*} ;; esac
        [ -e "$source/$file" ] || { echo "$document links to $link, which is not there"; continue; }
        case $link in *'#'*) anchors "$source/$file" | grep -qx "${link#*#}" || echo "$document: no heading for $link" ;; esac
      done >>"$work/wrong"
  done <documents
  report "links lead somewhere"
}

# Files that a document names between backquotes.
check_files() {
  while read -r document; do
    grep -oE '`(chat|compiler|conf|datasets|docs|kernels|machines|man|runtime|schema|tests|tokenizer|tools)/[A-Za-z0-9_./*-]*`' \
      "$source/$document" | tr -d '`' | sort -u | while read -r name; do
      # shellcheck disable=SC2086 # a pattern
      (cd "$source" && ls -d $(echo "$name" | sed 's/NAME/*/') >/dev/null 2>&1) || echo "$document names $name, which is not there"
    done
  done <documents >"$work/wrong"
  report "files that documents name"
}

check_links
check_files
while read -r document; do
  check_document "$document" </dev/null
done <documents
finish
