#!/bin/sh
# Builds with AddressSanitizer, LeakSanitizer and UndefinedBehaviorSanitizer what these tests need, and runs those that
# do not measure: units, golden files, fuzz corpora, kernels. Warnings are no errors here: the code that the sanitizers
# insert confuses the compiler's own analysis. Nothing is optimized: that takes a third of the time to compile, and what
# runs is hardly slower. Of what only repeats the same code an eighth is tried (NX_TEST_SHARE). The build stays, so that
# the next run compiles what has changed alone.
# SPDX-License-Identifier: Apache-2.0
# usage: sanitized.sh SOURCE_ROOT BUILD
set -eu
source=$1 build=$2 log=$2.log
[ -e "$build/build.ninja" ] || {
  rm -rf "$build"
  meson setup "$build" "$source" --buildtype=plain -Doptimization=0 -Dc_args=-g1 -Dwerror=false \
    -Db_sanitize=address,undefined >"$log" 2>&1 || { cat "$log"; exit 1; }
}
# What else is needed, `meson test` builds.
nice ninja -C "$build" nxcfg >"$log" 2>&1 || { tail -n 100 "$log"; exit 1; }
export NX_TEST_SHARE=8 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
nice -n 5 meson test -C "$build" --print-errorlogs --timeout-multiplier 10 \
  --suite unit --suite golden --suite fuzz --suite kernels
