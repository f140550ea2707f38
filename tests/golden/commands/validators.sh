#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The JSON Schemas, read by validators that are not ours: ajv as editors read schemas (as of draft 7), jsonschema as of
# draft 2020-12, and yaml-language-server where it is installed. What nxcfg accepts they accept: examples, golden files,
# parts. What is misspelt, of another type, or lacks what no other file gives, they refuse. TAP.
# Usage: validators.sh NXCFG ROOT
. "$(dirname "$0")/../../tap.sh"
nxcfg=$(realpath "$1") here=$(realpath "$(dirname "$0")")
cd "$2" || exit 1
export NODE_PATH=/usr/share/nodejs # Debian's modules, for any node
node -e 'require("ajv"); require("js-yaml")' 2>/dev/null || skip_all 'no node with ajv and js-yaml (tools/install check)'
PATH=/usr/bin:$PATH # Debian's jsonschema, if there are several
command -v jsonschema >/dev/null || skip_all 'no jsonschema (tools/install check)'
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

refuse() { # DIALECT TEXT: one more text that is wrong
  wrong=$((wrong + 1))
  printf '%b\n' "$2" >"$work/$1/wrong-$wrong.yaml"
}
wrong=0
for dialect in nx nxdt neox xorl megatron; do
  mkdir "$work/$dialect"
  "$nxcfg" schema $dialect >"$work/$dialect/schema.json" || exit 1
  for file in conf/$dialect/*.y*ml tests/golden/validate/files/*.yaml tests/golden/$dialect/*.y*ml; do
    [ -e "$file" ] && "$nxcfg" validate -q --dialect $dialect "$file" >/dev/null 2>&1 || continue
    cp "$file" "$work/$dialect/right-$(echo "$file" | tr / -)"
  done
done
printf 'optimizer: {type: Adam, params: {lr: 0.1}}\n' >"$work/neox/right-part.yaml"
refuse neox 'optimizer: {params: {lr: 0.1}}'
refuse neox 'hidden-size: wide'
refuse xorl 'data: {datasets: [{type: tokenized}]}'
refuse xorl 'train: {optimizer: adamv}'
refuse nxdt 'trainer: {devices: 0}'
refuse nxdt 'data: [1]'
refuse nx 'mesh: {tensr: 2}'
refuse nx 'mesh: {tensor: two}'
refuse nx 'mesh: two'
refuse megatron 'MODEL_ARGS: {--hidden-sise: 8}'

# Prints for each file of each dialect whether the validator takes it.
for dialect in nx nxdt neox xorl megatron; do
  for file in "$work/$dialect"/*.y*ml; do
    kind=${file##*/}
    echo "${kind%%-*} $dialect/${file##*/}"
  done
done | sort >"$work/wanted"
compare() { # VALIDATOR: what it said, in `said`, is what is wanted
  sort "$work/said" | diff "$work/wanted" - >"$work/difference"
  result "$1 agrees about $(grep -c ^right "$work/wanted") right and $(grep -c ^wrong "$work/wanted") wrong texts" $? \
    "$(cut -c 1-200 "$work/difference" "$work/errors")"
}
node "$here/validators.js" ajv "$work" >"$work/said" 2>"$work/errors"
compare ajv
# jsonschema names what is wrong; what it does not name is right.
for schema in "$work"/*/schema.json; do
  for file in "${schema%/*}"/*.y*ml.json; do printf '%s\0%s\0' -i "$file"; done |
    xargs -0 jsonschema --output pretty "$schema" 2>&1
done | sed -n "s#^===\[ValidationError\]===($work/\(.*\)\.json)===#wrong \1#p" | sort -u >"$work/wrong"
sed 's/^[a-z]* //' "$work/wanted" | while read -r file; do
  grep -qFx "wrong $file" "$work/wrong" && echo "wrong $file" || echo "right $file"
done >"$work/said" 2>"$work/errors"
compare jsonschema
if command -v yaml-language-server >/dev/null; then
  node "$here/validators.js" server "$work" yaml-language-server --stdio >"$work/said" 2>"$work/errors"
  compare yaml-language-server
else
  skip yaml-language-server 'it is not on the PATH'
fi
finish
