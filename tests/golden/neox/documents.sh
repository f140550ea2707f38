#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The samples of GPT-NeoX's own document of the seed era, read from $NX_SHARED: the whole configuration is valid as it
# stands, and so is each of its extracts as a part, in braces;
# every option of the documents is explained. TAP. Usage: documents.sh NXCFG
nxcfg=$(realpath "$1")
document=$NX_SHARED/seeds/gpt-neox-settings.md.txt
if [ ! -r "$document" ]; then
  echo "1..0 # SKIP NX_SHARED names no folder with documents"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk -v folder="$work" '/^ *```yaml/ { inside = 1; n++; next } /^ *```/ { inside = 0 }
  inside { print > sprintf("%s/%02d.yml", folder, n) }' "$document"
n=0
status=0
judge() { # NAME FILE ARGUMENT...
  n=$((n + 1))
  name=$1
  shift
  if "$nxcfg" validate "$@" >"$work/out" 2>&1; then
    echo "ok $n - $name"
  else
    echo "not ok $n - $name"
    sed 's/^/# /' "$work/out"
    status=1
  fi
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
n=$((n + 1))
# shellcheck disable=SC2046
if "$nxcfg" explain --dialect neox $(sed -n 's/^neox\t[^\t]*\t\([^\t]*\)\t.*/\1/p' "$NX_SHARED/seeds/options.tsv") \
  >"$work/explained" 2>"$work/out" && [ "$(grep -c ': option of neox' "$work/explained")" -ge 126 ]; then
  echo "ok $n - every option of the documents is explained"
else
  echo "not ok $n - every option of the documents is explained"
  sed 's/^/# /' "$work/out"
  status=1
fi
[ $n -gt 5 ] || { echo "not ok $((n += 1)) - the document has samples"; status=1; }
echo "1..$n"
exit $status
