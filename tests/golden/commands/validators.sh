#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The JSON Schemas, read by validators that are not ours, where they are installed (check-jsonschema, ajv-cli): examples
# of conf/ are valid, and so are parts of files; what is misspelt, or lacks what no other file gives, is not. TAP.
# Usage: validators.sh NXCFG ROOT
. "$(dirname "$0")/../../tap.sh"
nxcfg=$(realpath "$1")
cd "$2/conf" || exit 1
command -v check-jsonschema >/dev/null || command -v ajv >/dev/null || skip_all 'neither check-jsonschema nor ajv is there'
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
for dialect in nx nxdt neox xorl; do "$nxcfg" schema $dialect >"$work/$dialect.json" || exit 1; done

judge() { # VALIDATOR DIALECT FILE...
  validator=$1 schema=$work/$2.json
  shift 2
  case $validator in
  check-jsonschema) check-jsonschema --schemafile "$schema" "$@" ;;
  ajv)
    for file; do ajv validate --spec=draft2020 --strict=false -s "$schema" -d "$file" || return 1; done ;;
  esac >"$work/printed" 2>&1
}
refused() { # VALIDATOR DIALECT TEXT
  printf '%s\n' "$3" >"$work/wrong.yaml"
  ! judge "$1" "$2" "$work/wrong.yaml"
  result "$1: $2 refuses $3" $? "$(cat "$work/printed")"
}
for validator in check-jsonschema ajv; do
  command -v $validator >/dev/null || continue
  for dialect in nx nxdt neox xorl; do
    judge $validator $dialect "$dialect"/*.y*ml
    result "$validator: examples of $dialect" $? "$(cat "$work/printed")"
  done
  printf 'optimizer: {type: Adam, params: {lr: 0.1}}\n' >"$work/part.yaml"
  judge $validator neox "$work/part.yaml"
  result "$validator: a part of GPT-NeoX's files" $? "$(cat "$work/printed")"
  refused $validator neox 'optimizer: {params: {lr: 0.1}}'
  refused $validator xorl 'data: {datasets: [{type: tokenized}]}'
  refused $validator nx 'mesh: {tensr: 2}'
done
finish
