#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is printed fits a screen that is narrower than most. TAP. Usage: narrow.sh NXCFG FOLDER
. "$(dirname "$0")/../../tap.sh"
nxcfg=$(realpath "$1")
cd "$2" || exit 1
too_wide() { # COLUMNS ARGUMENT...: lines of more than 60, but for words that are as long as most of one
  screen=$1
  shift
  LC_ALL=C COLUMNS=$screen "$nxcfg" "$@" 2>&1 |
    awk '{ long = 0; for (i = 1; i <= NF; i++) long += length($i) > 45 } length > 60 && !long'
}
fits() { # NAME ARGUMENT...: in 60 columns what needs more in 100
  name=$1
  shift
  found=$(too_wide 60 "$@")
  [ -z "$found" ] && [ -n "$(too_wide 100 "$@")" ]
  result "$name in 60 columns" $? "$found"
}
fits 'an estimate' plan ../../../conf/nxdt/llama-7b.yaml --machine trn2
fits 'a learning rate' plan ../../../conf/nxdt/llama-7b.yaml --lr
fits 'help' validate --help
fits 'an explanation' explain NX2005
finish
