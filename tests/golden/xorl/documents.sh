#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command line that xorl's own document shows, read from $NX_SHARED, is valid over base.yaml as it stands; and so
# is a file with every default that the document's tables give. TAP. Usage: documents.sh NXCFG FOLDER
. "$(dirname "$0")/../../tap.sh"
nxcfg=$1
folder=$2
document=$NX_SHARED/seeds/xorl-settings.txt
if [ ! -r "$document" ]; then
  skip_all "NX_SHARED names no folder with documents"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
report() { # NAME STATUS
  result "$1" "$2" "$(cat "$work/out" 2>&1)"
}
arguments=$(sed -n 's/.*config.yaml \\ \(--train\.lr .*\)model section$/\1/p' "$document" | tr -d '\\')
[ -n "$arguments" ]
report "the document has a command line" $?
# shellcheck disable=SC2086
"$nxcfg" validate "$folder/base.yaml" --dialect xorl@seed --world-size 32 -- $arguments >"$work/out" 2>&1
report "the document's command line" $?
# Defaults of the tables, as values of a file. What is a word for people (same as ..., null, required) is left out, and
# so are the empty lists and maps, which the real parser refuses.
awk -F' *[|] *' -v out="$work/defaults.yaml" '
  /(^|[0-9])(model|data|train|lora) section$/ {
    section = $1; sub(/ section$/, "", section); sub(/.*[^a-z]/, "", section); print section ":" > out
    if (section == "model") print "  config_path: small" > out
    if (section == "data") print "  datasets: [{path: dummy}]" > out
    if (section == "train") print "  output_dir: out" > out
  }
  /^Dataset entry fields$/ { entries = 1 }
  /^train section$/ { entries = 0 }
  /^[a-z_]+ [|] / && !entries && $2 !~ /null|required|same as|CPU|^[[{]/ {
    value = $2; sub(/ .*/, "", value)
    if ($1 == "init_device") value = "meta"
    print "  " $1 ": " value > out
    n++
  }
  END { exit n < 80 }' "$document"
report "the document's tables have defaults" $?
"$nxcfg" validate "$work/defaults.yaml" --dialect xorl@seed --world-size 8 >"$work/out" 2>&1
report "the document's defaults" $?
# shellcheck disable=SC2046
"$nxcfg" explain --dialect xorl $(sed -n 's/^xorl\t[^\t]*\t\([^\t]*\)\t.*/\1/p' "$NX_SHARED/seeds/options.tsv") \
  >"$work/explained" 2>"$work/out" && [ "$(grep -c ': option of xorl' "$work/explained")" -ge 135 ]
report "every option of the documents is explained" $?
finish
