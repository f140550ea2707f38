#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Validates the configurations that NxDT ships: no error, at most three warnings each, and the numbers that the real
# system computes. They are read from $NX_SHARED/corpora/nxdt, beside expected.tsv; without it the test is skipped.
# Usage: corpora.sh NXCFG
nxcfg=$1
folder=$NX_SHARED/corpora/nxdt
if [ -z "$NX_SHARED" ] || [ ! -f "$folder/expected.tsv" ]; then
  echo "1..0 # SKIP NX_SHARED names no folder with corpora/nxdt"
  exit 0
fi
n=0
status=0
tab=$(printf '\t')
complain() {
  good=no
  echo "# $*"
}
has() { # TEXT what the verdict must hold
  case $verdict in *"$1"*) ;; *) complain "the verdict lacks '$1'" ;; esac
}
tail -n +2 "$folder/expected.tsv" >"${TMPDIR:-/tmp}/nxdt-expected.$$"
while IFS=$tab read -r file devices nodes world tensor pipeline chunks context expert zero1 global micro data batches rest; do
  n=$((n + 1))
  good=yes
  found=$("$nxcfg" validate "$folder/$file" 2>&1) || complain "$(printf '%s\n' "$found" | grep '^error')"
  warnings=$(printf '%s\n' "$found" | grep -c '^warning')
  [ "$warnings" -le 3 ] || complain "$warnings warnings"
  verdict=$(printf '%s\n' "$found" | grep ': valid nxdt')
  has " $world ranks "
  has "tensor $tensor"
  [ "$pipeline" = 1 ] || has "pipeline $pipeline"
  [ "${data%.0}" = 1 ] || has "data ${data%.0}"
  has " $batches micro-batch"
  has " of $micro a step"
  if [ $good = yes ]; then echo "ok $n - $file"; else echo "not ok $n - $file"; status=1; fi
done <"${TMPDIR:-/tmp}/nxdt-expected.$$"
rm -f "${TMPDIR:-/tmp}/nxdt-expected.$$"
echo "1..$n"
exit $status
