#!/bin/sh
# What runs in threads, which is `nxcfg validate` of many files, in a build with ThreadSanitizer: no race in any format,
# with estimates and without; and ThreadSanitizer is seen to find one. TAP.
# usage: threads.sh SOURCE_ROOT
# SPDX-License-Identifier: Apache-2.0
set -u
source=$(realpath "$1")
. "$(dirname "$0")/lib.sh"
export TSAN_OPTIONS=exitcode=66:halt_on_error=1

cat >race.c <<'C'
#include <pthread.h>
static int shared;
static void *add(void *unused) { for (int i = 0; i < 1000; i++) shared++; return unused; }
int main(void) {
  pthread_t one;
  pthread_create(&one, 0, add, 0);
  add(0);
  pthread_join(one, 0);
  return 0;
}
C
"${CC:-cc}" -g -fsanitize=thread race.c -o race >out 2>&1 || skip_all 'the compiler has no ThreadSanitizer'
./race >out 2>&1
[ $? -eq 66 ] && grep -q 'data race' out || skip_all 'ThreadSanitizer does not run here'

meson setup build "$source" --buildtype=plain -Doptimization=1 -Ddebug=true -Dwerror=false -Druntime=disabled \
  -Db_sanitize=thread -Db_lundef=false >out 2>&1 && ninja -C build nxcfg >out 2>&1
report 'a build with ThreadSanitizer' $?

# Of each kind a few, again and again, so that threads do the same at once; one name after the other as they are found.
mkdir files
for round in 1 2 3; do
  for file in "$source"/conf/*/*.yaml "$source"/conf/*/*.yml "$source"/conf/*/*.sh "$source"/tests/golden/*/files/*.y*ml; do
    cp "$file" "files/$round-$(basename "$(dirname "$file")")-$(basename "$file")"
  done
done
for arguments in '--format text --notes' '--format json' '--format sarif --for nxrun' '--memory 80GB' '--machine h100'; do
  # shellcheck disable=SC2086
  build/nxcfg validate $arguments files files/*.sh >printed 2>out
  status=$?
  [ $status -le 1 ] && [ -s printed ]
  report "validate $arguments: no race" $?
done
finish
