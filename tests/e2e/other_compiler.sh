#!/bin/sh
# One build by the other compiler, with ThreadSanitizer: it has no warning; its plans are those of the usual nxcfg, byte
# by byte; no race is in `nxcfg validate` of many files, in any format, with estimates and without, nor in two ranks on
# a device of OpenCL whose copies run beside the kernels; their losses are those of the usual nxrun, since what
# differs is the host's part. And ThreadSanitizer is seen to find a race. TAP.
# usage: other_compiler.sh SOURCE_ROOT NXCFG [NXRUN NXDATA MPIEXEC TEXT]
# SPDX-License-Identifier: Apache-2.0
set -u
source=$(realpath "$1") nxcfg=$(realpath "$2") nxdata=$(realpath "$3") nxrun=${4:+$(realpath "$4")} mpiexec=${5:-}
text=${6:+$(realpath "$6")}
. "$(dirname "$0")/lib.sh"
export TSAN_OPTIONS=exitcode=66:halt_on_error=1 NXRUN_OPENCL_OPTIONS=-cl-opt-disable NXRUN_CLBLAST=0
command -v clang >/dev/null || skip_all 'clang is not installed (tools/check installs it)'

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
sanitize=thread
clang -g -fsanitize=thread race.c -o race >out 2>&1 && { ./race >out 2>&1; [ $? -eq 66 ]; } && grep -q 'data race' out ||
  sanitize=none
runtime=disabled
[ -z "$nxrun" ] || ! "$nxrun" --devices | grep -q '^opencl 0' || runtime=enabled

# Not optimized: compiling would take three times as long, and more than all that is run here.
CC=clang meson setup build "$source" --buildtype=plain -Doptimization=0 -Dc_args=-gline-tables-only -Dclblast=disabled \
  -Druntime=$runtime -Db_sanitize=$sanitize -Db_lundef=false >out 2>&1 &&
  nice ninja -C build nxcfg nxdata $([ $runtime = disabled ] || echo nxrun) >out 2>&1
report 'clang builds it without a warning' $?

for config in nx/quickstart.yaml nxdt/quickstart.yaml megatron/quickstart.sh neox/quickstart.yml xorl/quickstart.yaml; do
  (cd "$source" && "$nxcfg" plan "conf/$config" --world-size 2 -o "$folder/usual.plan" &&
    "$folder/build/nxcfg" plan "conf/$config" --world-size 2 -o "$folder/other.plan") >out 2>&1 &&
    cmp usual.plan other.plan >out
  report "the same plan of $config" $?
done

# The same files again and again, so that threads do the same at once; one name after the other as they are found.
races_of_nxcfg() {
  mkdir files
  for round in 1 2; do
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
}

# As many workers as pieces to do, and one: the same dataset.
races_of_nxdata() {
  for part in 1 2 3 4 5 6; do
    awk -v i=$part 'BEGIN { for (n = 0; n < 400; n++) printf "{\"text\": \"word %d of %d, and some more\"}\n", n * i, n }'
  done >many.jsonl
  "$nxdata" build many.jsonl --tokenizer "$source/conf/text/tokenizer" --workers 1 -o one >out 2>&1 &&
    build/nxdata build many.jsonl --tokenizer "$source/conf/text/tokenizer" --workers 4 -o four >out 2>&1 &&
    cmp one.bin four.bin >>out && cmp one.idx four.idx >>out
  report 'workers of nxdata: no race' $?
}

train() { # NXRUN FOLDER
  timeout 300 "$mpiexec" -n 2 "$1" plan.bin --backend opencl --dir "$2" --profile 2-3 >out 2>&1
}
programs() { find kept pocl -type f -name '*.so' -o -path 'kept/*' | sort; }
races_of_nxrun() {
  "$nxdata" build "$text" -o data >out 2>&1 || exit 99
  cat >small.yaml <<'YAML'
mesh: {world: 2}
batch: {micro: 1, global: 4}
model: {layers: 2, hidden: 32, ffn_hidden: 88, heads: 4, kv_heads: 2, sequence: 16, vocab: 256, vocab_divisor: 16}
optimizer: {name: adamw, lr: 1e-3, zero_stage: 1}
reduce: {overlap: true}
schedule: {max_steps: 3}
checkpoint: {every_steps: 1, async: true}
data: {path: [data]}
run: {threads: 1}
YAML
  "$nxcfg" plan small.yaml -o plan.bin >out 2>&1 || { cat out; exit 99; }
  # The usual nxrun builds the programs, so that ThreadSanitizer watches no compiler.
  export TSAN_OPTIONS=exitcode=66 NXRUN_CACHE="$folder/kept" POCL_CACHE_DIR="$folder/pocl"
  train "$nxrun" usual
  report 'two ranks on a device' $?
  programs >before
  train build/nxrun other && ! grep -q 'ThreadSanitizer' out
  report 'by the other compiler: no race' $?
  programs >after
  diff before after >out && [ -s before ]
  report 'and no program was built again' $?
  for run in usual other; do sed 's/,"tokens_per_s.*//' $run/metrics.jsonl >$run.losses; done
  diff usual.losses other.losses >>out && [ "$(wc -l <usual.losses)" -eq 3 ]
  report 'the losses of the usual nxrun, to the last bit' $?
}

[ $sanitize = none ] && skip 'no race in nxcfg' 'ThreadSanitizer does not run here' || { races_of_nxcfg; races_of_nxdata; }
if [ $runtime = disabled ]; then skip 'no race in nxrun' 'no OpenCL device (Debian: pocl-opencl-icd)'
elif [ $sanitize = none ]; then skip 'no race in nxrun' 'ThreadSanitizer does not run here'
else races_of_nxrun; fi
finish
