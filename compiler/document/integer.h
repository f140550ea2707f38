/* SPDX-License-Identifier: Apache-2.0 */
/* Integers of any length, as far as configurations need them: reading digits, and arithmetic that stays
 * exact.
 *
 * A value outside int64_t keeps its decimal digits (value.h). Arithmetic is done in 128 bits; operands or
 * results beyond that are refused with a problem text, never rounded. */
#ifndef NXC_CONFIG_INTEGER_H
#define NXC_CONFIG_INTEGER_H

#include "compiler/value.h"

bool nxc_integer_sexagesimal(nxc_arena *arena, const char *text, bool negative, nxc_value *value,
                             const char **problem);
/* Python's operators; op is '+', '-', '*' or '/' (floor division). */
bool nxc_integer_compute(nxc_arena *arena, char op, const nxc_value *a, const nxc_value *b, nxc_value *result,
                         const char **problem);
double nxc_integer_to_double(const nxc_value *integer);
/* The integer nearest to an integral double. */
bool nxc_integer_from_double(nxc_arena *arena, double number, nxc_value *value, const char **problem);

#endif
