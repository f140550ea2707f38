/* SPDX-License-Identifier: Apache-2.0 */
/* What a target asks of the machine, and whether it is there. */
#include "kernels/cpu/cpu.h"
#include "schema/plan.h"

#include <cpuid.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { REQUEST_PERMISSION = 0x1023, AMX_TILE_DATA = 18 }; /* arch_prctl(2), Documentation/x86/xstate.rst */

typedef struct cpu_feature {
  const char *name;
  uint32_t leaf, subleaf, word /* 1 ebx, 2 ecx, 3 edx, 0 eax */, bit;
  uint32_t from_target; /* targets from this one on need it */
} cpu_feature;

/* Intel's SDM, CPUID. */
static const cpu_feature FEATURES[] = {
  {"avx2", 7, 0, 1, 5, NX_TARGET_CPU_AVX2},        {"fma", 1, 0, 2, 12, NX_TARGET_CPU_AVX2},
  {"f16c", 1, 0, 2, 29, NX_TARGET_CPU_AVX2},       {"avx512f", 7, 0, 1, 16, NX_TARGET_CPU_AVX512},
  {"avx512dq", 7, 0, 1, 17, NX_TARGET_CPU_AVX512}, {"avx512bw", 7, 0, 1, 30, NX_TARGET_CPU_AVX512},
  {"avx512vl", 7, 0, 1, 31, NX_TARGET_CPU_AVX512}, {"avx512_bf16", 7, 1, 0, 5, NX_TARGET_CPU_AMX},
  {"amx_tile", 7, 0, 3, 24, NX_TARGET_CPU_AMX},    {"amx_bf16", 7, 0, 3, 22, NX_TARGET_CPU_AMX},
};

static bool feature_present(const cpu_feature *feature) {
  uint32_t word[4];
  if (!__get_cpuid_count(feature->leaf, feature->subleaf, &word[0], &word[1], &word[2], &word[3]))
    return false;
  return word[feature->word] >> feature->bit & 1;
}

/* Registers that the kernel saves at a switch of tasks: without it the instructions fault. */
static bool state_enabled(uint32_t target) {
  uint32_t eax, ebx, ecx, edx, low, high;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx >> 27 & 1)) return false;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  uint32_t needed = target == NX_TARGET_CPU_AVX2 ? 0x6 : target == NX_TARGET_CPU_AVX512 ? 0xE6 : 0x600E6;
  return (low & needed) == needed;
}

bool cpu_target_check(uint32_t target, nxk_fault *fault) {
  const nx_target_row *row = nx_target_find(target);
  if (!row) return cpu_fail(fault, "target %u is not known", target);
  if (strcmp(row->backend, "cpu") != 0)
    return cpu_fail(fault, "the plan is for %s: give --backend %s, or compile it for another run.target",
                    row->name, row->backend);
  char missing[256] = "";
  for (size_t i = 0; i < sizeof FEATURES / sizeof *FEATURES; i++) {
    if (target < FEATURES[i].from_target || feature_present(&FEATURES[i])) continue;
    strcat(missing, " ");
    strcat(missing, FEATURES[i].name);
  }
  if (missing[0])
    return cpu_fail(fault, "the plan is for %s, and this CPU lacks%s: compile it for another run.target",
                    row->name, missing);
  if (!state_enabled(target))
    return cpu_fail(fault, "the plan is for %s, and this system does not save its registers", row->name);
  return true;
}

/* Measured: Zen 5 multiplies bf16 1.8 times as fast as fp32 with avx512_bf16; Intel's cores without AMX are
 * slower in bf16 than in fp32 (1.9 s against 1.3 s for one model's step). Decided by what the CPU is, never
 * by timing, so that a machine always gives the same bits. */
bool cpu_has_fast_bf16(uint32_t target) {
  static const cpu_feature bf16 = {"avx512_bf16", 7, 1, 0, 5, 0};
  if (target == NX_TARGET_CPU_AMX) return true;
  if (target != NX_TARGET_CPU_AVX512 || !feature_present(&bf16)) return false;
  uint32_t eax, name[3];
  if (!__get_cpuid(0, &eax, &name[0], &name[2], &name[1])) return false;
  return memcmp(name, "AuthenticAMD", sizeof name) == 0;
}

bool cpu_amx_permit(nxk_fault *fault) {
  if (syscall(SYS_arch_prctl, REQUEST_PERMISSION, AMX_TILE_DATA) == 0) return true;
  return cpu_fail(fault, "the plan is for cpu-amx, and this system does not let a process use AMX");
}
