#!/bin/sh
# The rooms of the house know only what they may: who includes what is checked here, file by file, and that no room
# knows, through whatever others, one that knows it.
# SPDX-License-Identifier: Apache-2.0
# usage: check_includes.sh SOURCE_ROOT
set -u
cd "$1" || exit 1
failed=0

# forbid WHAT EXCEPT WHERE... : no file below WHERE (less those that EXCEPT matches) includes WHAT.
forbid() {
  what=$1 except=$2
  shift 2
  found=$(grep -rnE --include='*.[ch]' "#include [\"<]$what" "$@" 2>/dev/null | grep -vE "$except")
  [ -z "$found" ] && return
  echo "$found" | sed "s|^|not allowed here: |"
  failed=1
}

none='^$'
forbid 'runtime/' "$none" schema compiler kernels tokenizer
forbid 'runtime/' '"runtime/(data/dataset|files/)' datasets
forbid 'runtime/' '"runtime/files/fault' chat
forbid 'datasets/' "$none" chat schema compiler kernels runtime tokenizer
forbid 'compiler/' "$none" schema runtime kernels datasets tokenizer
forbid 'kernels/' "$none" schema compiler datasets tokenizer
forbid 'tokenizer/' "$none" schema compiler kernels
forbid 'mpi\.h' '^runtime/(comm/comm_mpi|world/)' schema compiler kernels runtime datasets tokenizer
forbid '(oneapi/dnnl/)?dnnl' '^(kernels/cpu/|tests/bench/)' schema compiler kernels runtime tests
forbid 'CL/' '^kernels/opencl/' schema compiler kernels runtime
forbid 'clblast' '^kernels/opencl/product_clblast' schema compiler kernels runtime
forbid 'yaml\.h' '^(compiler/document/|compiler/config/|compiler/gen/)' schema compiler kernels runtime
forbid 'cyaml/' '^(compiler/config/|compiler/gen/)' schema compiler kernels runtime
forbid 'pcre2\.h' '^(compiler/expression/|compiler/config/|compiler/gen/|tokenizer/pattern\.c)' schema compiler kernels runtime \
  tokenizer
forbid 'utf8proc\.h' '^tokenizer/(unicode|normalize_)' schema compiler kernels runtime tokenizer

# A backend is named by its own room, by tables and by the usage: docs/backends.md says which.
found=$(grep -rnE --include='*.[ch]' '"opencl"|nxk_opencl|NX_TARGET_OPENCL' compiler runtime schema datasets)
if [ -n "$found" ]; then
  echo "$found" | sed "s|^|a backend is named here: |"
  failed=1
fi

# What stands lower must not know what stands higher. From the ground up:
floors='compiler compiler/diagnostics compiler/edit compiler/expression compiler/settings compiler/document compiler/machine
compiler/render compiler/show compiler/config compiler/compare compiler/convert compiler/program compiler/estimate
compiler/tune compiler/commands compiler/server'
below=
for floor in $floors; do
  for lower in $below; do
    [ "$lower" = compiler ] && where="compiler/arena.* compiler/value.* compiler/texts.h" || where=$lower
    # shellcheck disable=SC2086
    forbid "$floor/[^\"]*\"" '\.gen\.h"' $where
  done
  [ "$floor" = compiler ] || :
  below="$below $floor"
done

floors='runtime/files runtime/data runtime/foreign runtime/world runtime/comm runtime/state runtime/checkpoint runtime/logs runtime/step
runtime/calibrate'
below=
for floor in $floors; do
  for lower in $below; do
    forbid "$floor/[^\"]*\"" "$none" $lower
  done
  below="$below $floor"
done

# Rooms are folders. Each line: a room, and one that it includes; tsort names what goes in circles.
circles=$(grep -rHoE --include='*.[ch]' '^ *#include "[^"]+/[^"/]+"' chat compiler datasets kernels runtime schema tokenizer |
  grep -v '\.gen\.h"' | sed -E 's|/[^/]*:[^"]*"| |; s|/[^/ ]*"$||' | awk '$1 != $2' | sort -u | tsort 2>&1 >/dev/null)
if [ -n "$circles" ]; then
  echo "rooms in circles:"
  echo "$circles"
  failed=1
fi
[ $failed -eq 0 ] && echo "includes: every room knows only what it may, and none goes in circles"
exit $failed
