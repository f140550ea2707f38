/* SPDX-License-Identifier: Apache-2.0 */
/* Changes fields of a plan's records, the same ones for the same seed. Its hashes are to be made right
 * afterwards. */
#ifndef TESTS_FUZZ_PLAN_MUTATE_H
#define TESTS_FUZZ_PLAN_MUTATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Freed by the caller; aligned as a plan is. */
uint8_t *plan_copy(const uint8_t *bytes, size_t n_bytes);
/* Whether the sections lie where hashes of them can be taken. */
bool plan_has_sections(const uint8_t *bytes, size_t n_bytes);
void plan_mutate(uint8_t *bytes, size_t n_bytes, uint64_t seed);

#endif
