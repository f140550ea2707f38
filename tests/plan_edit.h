/* SPDX-License-Identifier: Apache-2.0 */
/* Plans changed on purpose: find a record in a plan's bytes, change it, seal the hashes again. For tests
 * alone. */
#ifndef NX_TEST_PLAN_EDIT_H
#define NX_TEST_PLAN_EDIT_H

#include "schema/plan_check.h"

/* A whole file, 64-byte aligned, freed by the caller; NULL when it can not be read. */
uint8_t *plan_read(const char *path, uint64_t *n_bytes);
bool plan_write(const char *path, const uint8_t *bytes, uint64_t n_bytes);
/* NULL where the plan has no such section, record or operator. */
nx_section *plan_section(uint8_t *bytes, nx_section_type type);
void *plan_record(uint8_t *bytes, nx_section_type type, uint32_t index);
nx_operator *plan_operator(uint8_t *bytes, nx_op op);
nx_attribute *plan_attribute(uint8_t *bytes, const nx_operator *op, uint32_t index);
uint32_t *plan_argument(uint8_t *bytes, const nx_operator *op, uint32_t index);
/* Makes all hashes right: of every section and what is above them, or of what is above them alone. */
void plan_seal(uint8_t *bytes);
void plan_seal_header(uint8_t *bytes);

#endif
