/* SPDX-License-Identifier: Apache-2.0 */
/* Counts allocations in this process: the program's own malloc stands before libc's for every library, MPI
 * included. Those of the program's own code (not of shared libraries) are counted apart. Include once per
 * program. Where AddressSanitizer has the allocator, nothing is counted. */
#ifndef COUNT_ALLOCATIONS_H
#define COUNT_ALLOCATIONS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COUNT_NOTHING
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define COUNT_NOTHING
#endif

extern void *__libc_malloc(size_t n_bytes);
extern void *__libc_calloc(size_t n, size_t n_bytes);
extern void *__libc_realloc(void *old, size_t n_bytes);
extern const char __executable_start, etext;

static _Atomic uint64_t allocations, allocations_here;

#ifndef COUNT_NOTHING
static inline void count_one(const void *caller) {
  const char *from = caller;
  atomic_fetch_add(&allocations, 1);
  if (from >= &__executable_start && from < &etext) atomic_fetch_add(&allocations_here, 1);
}

void *malloc(size_t n_bytes);
void *calloc(size_t n, size_t n_bytes);
void *realloc(void *old, size_t n_bytes);

void *malloc(size_t n_bytes) {
  count_one(__builtin_return_address(0));
  return __libc_malloc(n_bytes);
}

void *calloc(size_t n, size_t n_bytes) {
  count_one(__builtin_return_address(0));
  return __libc_calloc(n, n_bytes);
}

void *realloc(void *old, size_t n_bytes) {
  count_one(__builtin_return_address(0));
  return __libc_realloc(old, n_bytes);
}
#endif

static inline uint64_t count_allocations(bool of_libraries_too) {
  return of_libraries_too ? atomic_load(&allocations) : atomic_load(&allocations_here);
}

#endif
