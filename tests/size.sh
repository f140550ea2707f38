#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# nxcfg is small: what is installed of it, without symbols. TAP; skipped without strip. Usage: size.sh NXCFG MEBIBYTES
. "$(dirname "$0")/tap.sh"
command -v strip >/dev/null || skip_all 'strip is not here'
bare=$(mktemp)
trap 'rm -f "$bare"' EXIT
strip -o "$bare" "$1"
bytes=$(stat -c %s "$bare")
[ "$bytes" -le $(($2 * 1024 * 1024)) ]
result "nxcfg has at most $2 MiB" $? "$bytes bytes"
finish
