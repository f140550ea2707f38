#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each figure of machines/*.yaml has a source, as TAP: beside it, on the line above, or in the table of
# docs/forecasts.md, whose rows are all needed. Usage: figures.sh SOURCE_ROOT
. "$(dirname "$0")/../tap.sh"
cd "$1" || exit 1
told=$(sed -n "/^## Where a machine's figures/,/^## The best/p" docs/forecasts.md | sed -n 's/^| \(`[^|]*\) |.*/\1/p' | tr -d '`,')
bare=$(mktemp) || exit 99
trap 'rm -f "$bare"' EXIT
for file in machines/*.yaml; do
  # A figure without a comment of its own, or in front of it.
  awk '/^ *#/ { above = 1; next }
    /^ *[a-z_0-9]+:.*[0-9]/ && !/#/ && !above && !/^(name|also|ranks_per_host|threads):/ { sub(/^ */, ""); sub(/:.*/, ""); print }
    { above = 0 }' "$file" | sort -u >"$bare.one"
  missing=$(for key in $(cat "$bare.one"); do case " $(echo $told) " in *" $key "*) ;; *) echo "$key" ;; esac; done)
  cat "$bare.one" >>"$bare"
  [ -z "$missing" ]
  result "$file: each figure has a source" $?
  [ -z "$missing" ] || echo "# without one:" $missing
done
rm -f "$bare.one"
unused=$(for key in $told; do grep -qx "$key" "$bare" || echo "$key"; done)
[ -n "$told" ] && [ -z "$unused" ]
result "the table tells what stands nowhere else" $?
[ -z "$unused" ] || echo "# told beside each figure:" $unused
finish
