/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/files/reading.h"

#include <stdatomic.h>
#include <stddef.h>

static _Atomic(const char *) reading_path;
static _Atomic(const void *) reading_at;
static _Atomic uint64_t count;

/* One thread writes, so a load and a store are an increment. */
static void turn(void) {
  atomic_store_explicit(&count, atomic_load_explicit(&count, memory_order_relaxed) + 1, memory_order_release);
}

void nxr_reading_begin(const char *path, const void *at) {
  atomic_store_explicit(&reading_path, path, memory_order_relaxed);
  atomic_store_explicit(&reading_at, at, memory_order_relaxed);
  turn();
}

void nxr_reading_end(void) {
  turn();
}

uint64_t nxr_reading_count(void) {
  return atomic_load_explicit(&count, memory_order_acquire);
}

const char *nxr_reading_path(const void **at) {
  *at = atomic_load_explicit(&reading_at, memory_order_relaxed);
  return atomic_load_explicit(&reading_path, memory_order_relaxed);
}
