#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the systems' own authors ship is judged without a warning, but for what is a mistake there, too, which is named
# here. TAP; skipped where the files are not (NX_SHARED). Usage: quiet.sh NXCFG
. "$(dirname "$0")/../../tap.sh"
nxcfg=$(realpath "$1")
[ -d "${NX_SHARED:-/nonexistent}/corpora/nxdt" ] || skip_all 'NX_SHARED is not set'
cd "$NX_SHARED/corpora" || exit 1

quiet() { # FOLDER KNOWN ARGUMENT...: no warning but those ids
  folder=$1 known=$2
  shift 2
  found=$("$nxcfg" validate -q --format short "$@" "$folder" | grep 'warning\[' | grep -vE "warning\[($known)\]")
  [ -z "$found" ]
  result "$folder: no warning" $? "$found"
  found=$("$nxcfg" validate --format sarif "$@" "$folder" | grep -c '"level": "note"')
  [ "$found" = 0 ]
  result "$folder: no note in SARIF" $? "$found notes"
}

quiet nxdt 'NX1102|NX1108' # None and $HOME, which are texts there
quiet neox 'NX1102|NX1105|NX6106' --partial # a quoted None; 1.0e_8; a type beside fp16 that the section does not read
finish
