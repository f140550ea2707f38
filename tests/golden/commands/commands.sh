#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs each line of cases.txt, as TAP; a line "env NAME=VALUE" sets a variable for the lines behind it, and "env" alone
# sets none any more. Usage: commands.sh NXCFG FOLDER
. "$(dirname "$0")/../../tap.sh"
nxcfg=$(realpath "$1")
cd "$2" || exit 1
variable=
trim() {
  printf '%s' "$1" | sed 's/^ *//; s/ *$//'
}
while IFS= read -r line; do
  case $line in
  '' | '#'*) continue ;;
  'env '*) variable=${line#env } && continue ;;
  env) variable= && continue ;;
  esac
  wanted=$(trim "${line%%|*}")
  rest=${line#*|}
  # shellcheck disable=SC2086
  printed=$(env $variable "$nxcfg" ${rest%%|*} 2>&1 </dev/null)
  found=$?
  bad=
  if [ "$found" != "$wanted" ]; then bad="exit status $found"; fi
  case $rest in *'|'*) rest=${rest#*|} ;; *) rest= ;; esac
  while [ -n "$rest" ]; do
    text=$(trim "${rest%%|*}")
    case $text in
    '!'*) case $printed in *"${text#?}"*) bad="$bad; prints ${text#?}" ;; esac ;;
    *) case $printed in *"$text"*) ;; *) bad="$bad; does not print $text" ;; esac ;;
    esac
    case $rest in *'|'*) rest=${rest#*|} ;; *) rest= ;; esac
  done
  [ -z "$bad" ]
  result "$line" $? "$bad
$printed"
done <cases.txt
finish
