/* SPDX-License-Identifier: Apache-2.0 */
/* An operator as schema/workspace.h knows it. */
#ifndef NXK_SIZED_H
#define NXK_SIZED_H

#include "kernels/backend.h"
#include "schema/workspace.h"

#include <string.h>

static inline nx_sized_operator nxk_sized(const nxk_operator *operator) {
  nx_sized_operator s = {.op = operator->op, .n_in = operator->n_in, .n_out = operator->n_out};
  for (uint32_t i = 0; i < operator->n_in + operator->n_out; i++) {
    const nxk_tensor *x = &operator->args[i];
    s.args[i] = (nx_sized_operand){.dtype = x->dtype, .n_dims = x->n_dims};
    memcpy(s.args[i].dims, x->dims, sizeof x->dims);
  }
  for (uint32_t i = 0; i < operator->n_attrs; i++)
    if (operator->attrs[i].kind == NXK_INT) s.attrs[i] = operator->attrs[i].integer;
  return s;
}

#endif
