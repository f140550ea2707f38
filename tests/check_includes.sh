#!/bin/sh
# The rooms of the house know only what they may: who includes what is checked here, file by file.
# SPDX-License-Identifier: Apache-2.0
# usage: check_includes.sh SOURCE_ROOT
set -u
cd "$1" || exit 1
failed=0

# forbid WHAT WHERE... : no file below WHERE (less those that the exceptions name) includes WHAT.
forbid() {
  what=$1 except=$2
  shift 2
  found=$(grep -rnE --include='*.[ch]' "#include [\"<]$what" "$@" 2>/dev/null | grep -vE "$except")
  [ -z "$found" ] && return
  echo "$found" | sed "s|^|not allowed here: |"
  failed=1
}

none='^$'
forbid 'runtime/' "$none" schema compiler kernels
forbid 'compiler/' "$none" schema runtime kernels
forbid 'kernels/' "$none" schema compiler
forbid 'mpi\.h' '^runtime/(comm_mpi|world)' schema compiler kernels runtime
forbid '(oneapi/dnnl/)?dnnl' '^(kernels/cpu/|tests/bench/)' schema compiler kernels runtime tests
forbid 'cuda' '^kernels/cuda/' schema compiler kernels runtime
forbid 'yaml\.h' '^(compiler/config/|compiler/gen/)' schema compiler kernels runtime
forbid 'cyaml/' '^(compiler/config/|compiler/gen/)' schema compiler kernels runtime
forbid 'pcre2\.h' '^(compiler/config/|compiler/gen/)' schema compiler kernels runtime
[ $failed -eq 0 ] && echo "includes: every room knows only what it may"
exit $failed
