/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an operator's operands are what ops.def says: number, types, shapes, attributes.
 *
 * Every backend asks at bind, so that kernels may trust their operands. Each operator has one signature, such as
 * "f:TH f:H > f:TH f:T": per operand a class of types and a letter per dimension. Equal letters are equal sizes; an
 * operand of more dimensions than letters has its leading ones multiplied into the first letter. */
#ifndef NXK_OPERATOR_CHECK_H
#define NXK_OPERATOR_CHECK_H

#include "kernels/backend.h"

#include <stdbool.h>

/* False with a sentence in `fault`. */
bool nxk_operator_check(const nxk_operator *operator, nxk_fault *fault);

#endif
