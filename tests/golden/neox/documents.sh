#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The samples of GPT-NeoX's own document of the seed era, read from $NX_SHARED: the whole configuration is valid as it
# stands, and so is each of its extracts as a part, in braces;
# every option of the documents is explained. TAP. Usage: documents.sh NXCFG
. "$(dirname "$0")/../../tap.sh"
nxcfg=$(realpath "$1")
document=$NX_SHARED/seeds/gpt-neox-settings.md.txt
if [ ! -r "$document" ]; then
  skip_all "NX_SHARED names no folder with documents"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk -v folder="$work" '/^ *```yaml/ { inside = 1; n++; next } /^ *```/ { inside = 0 }
  inside { print > sprintf("%s/%02d.yml", folder, n) }' "$document"
judge() { # NAME FILE ARGUMENT...
  name=$1
  shift
  printed=$("$nxcfg" validate "$@" 2>&1)
  result "$name" $? "$printed"
}
judge "the sample" "$work/01.yml" --dialect neox@seed --world-size 8
judge "the sample, its dialect detected" "$work/01.yml" --world-size 64
for file in "$work"/[0-9]*.yml; do
  [ "$file" = "$work/01.yml" ] && continue
  opened=$(tr -cd '{' <"$file" | wc -c)
  closed=$(tr -cd '}' <"$file" | wc -c)
  [ "$opened" = "$closed" ] || continue # the document leaves one sample open
  { echo '{' && cat "$file" && echo '}'; } >"$work/part.yml"
  judge "extract $(basename "$file" .yml)" "$work/part.yml" --dialect neox@seed --partial
done
# shellcheck disable=SC2046
"$nxcfg" explain --dialect neox $(sed -n 's/^neox\t[^\t]*\t\([^\t]*\)\t.*/\1/p' "$NX_SHARED/seeds/options.tsv") \
  >"$work/explained" 2>"$work/out" && [ "$(grep -c ': option of neox' "$work/explained")" -ge 126 ]
result "every option of the documents is explained" $? "$(cat "$work/out")"
[ $n -gt 5 ]
result "the document has samples" $?
finish
