/* SPDX-License-Identifier: Apache-2.0 */
/* The backend opencl has kernels for every operator that is no collective. Needs no device. */
#include "kernels/opencl/opencl.h"
#include "tests/tap.h"

int main(void) {
  for (uint32_t op = 0; op < NX_OP_END; op++) {
    const nx_op_row *row = nx_op_find((nx_op)op);
    const nxk_operator operator= {.op = (nx_op)op };
    if (row && !nx_op_is_collective(row)) tap_report(ocl_row_of(&operator) != NULL, "%s", row->name);
  }
  return tap_end();
}
