/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier: plan_check_file.c (header, table, hashes), then the records (plan_check_record.h). */
#ifndef NX_PLAN_CHECK_H
#define NX_PLAN_CHECK_H

#include "schema/plan.h"

#include <stdarg.h>

/* Fills the fault and returns false. */
bool nx_fault_set(nx_fault *fault, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The envelope: after it every section lies within the bytes, has its record size, and its hash is right. */
bool nx_plan_check_file(const void *bytes, uint64_t n_bytes, nx_plan *plan, nx_fault *fault);

/* plan_check_datasets.c: what is trained on and evaluated. Texts are checked before. */
bool nx_plan_check_datasets(const nx_plan *plan, nx_fault *fault);

/* SHA-256 over what makes the meaning, and over header and table; also used by whoever writes a plan. `bytes`
 * is a whole file whose header, table, section offsets and section hashes are set. */
void nx_plan_hash_meaning(const uint8_t *bytes, uint8_t plan_id[32]);
void nx_plan_hash_root(const uint8_t *bytes, uint8_t root[32]);

/* Whether an operator's operands and attributes agree with its row in ops.def, on every rank and chunk; `why`
 * says what does not. Values, constants and groups are checked before. */
enum { NX_OP_WHY = 192 };
bool nx_op_check(const nx_plan *plan, const nx_operator *op, char why[NX_OP_WHY]);

/* Bytes of one record of a section; 0 where the type is unknown. */
uint32_t nx_section_record_bytes(uint32_t type);

#endif
