#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs each line of cases.txt and compares text, findings and exit status with NAME.out; UPDATE=1 rewrites it. The
# number of settings said is left out. TAP. Usage: convert.sh NXCFG FOLDER ROOT
. "$(dirname "$0")/../../tap.sh"
nxcfg=$(realpath "$1") folder=$2 root=$3
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
ln -s "$root/conf" "$root/tests" "$work" && cd "$work" || exit 99
while IFS='|' read -r name arguments environment; do
  case $name in '' | '#'*) continue ;; esac
  name=$(echo "$name" | tr -d ' ')
  rm -f model.json
  # shellcheck disable=SC2086
  env ${environment:-NX_TEST=} "$nxcfg" convert $arguments >out 2>err </dev/null
  code=$?
  {
    cat out
    if [ -e model.json ]; then
      echo "--- model.json"
      cat model.json
    fi
    echo "--- exit status $code"
    sed 's/: [0-9]* settings said/: ... settings said/' err
  } >found
  golden "$name" "$folder/$name.out" <found
done <"$folder/cases.txt"
finish
