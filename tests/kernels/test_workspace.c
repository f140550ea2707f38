/* SPDX-License-Identifier: Apache-2.0 */
/* What schema/workspace.c says of an operator is what its kernels reserve: of every operator of operators.txt
 * as it is and with longer extents, and of every update, of a whole tensor and of a part. OpenCL's kernels
 * get what it says. usage: test_workspace operators.txt */
#include "kernels/sized.h"
#include "schema/optimizers.h"
#include "tests/kernels/records.h"
#include "tests/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static nxk_operator record_operation(const test_record *record, const record_operator *op,
                                     test_variant variant, int64_t times) {
  nxk_operator o = {.op = op->op, .n_in = op->n_in, .n_out = op->n_out, .n_attrs = op->n_attrs};
  memcpy(o.attrs, op->attrs, sizeof o.attrs);
  for (uint32_t i = 0; i < op->n_in + op->n_out; i++) {
    const record_value *value = &record->values[op->args[i]];
    o.args[i] = (nxk_tensor){.dtype = record_dtype(value, variant),
                             .n_dims = value->n_dims,
                             .dims = {1, 1, 1, 1},
                             .shift_constant = UINT32_MAX};
    for (uint32_t dim = 0; dim < value->n_dims; dim++)
      o.args[i].dims[dim] = value->dims[dim] * (value->dims[dim] > 1 ? times : 1);
  }
  return o;
}

static void say(const nxk_operator *operator, const char *where, uint64_t asked, nx_workspace said) {
  printf("# %s on %s: its kernels reserve %llu bytes, and %llu to %llu were said\n",
         nx_op_find(operator->op)->name, where, (unsigned long long)asked, (unsigned long long)said.least,
         (unsigned long long)said.most);
}

/* A kernel's own record, in whole slabs, and what a product packs stand beside it. */
static uint64_t spare_of(const nxk_operator *operator) {
  nx_op op = operator->op;
  bool multiplies = nx_op_find(op)->class == NX_PRODUCT || op == NX_OP_soap || op == NX_OP_muon ||
                    op == NX_OP_adaptive_muon;
  return multiplies ? NX_WORKSPACE_USUAL : 128 << 10;
}

static bool on_cpu(const nxk_operator *operator, nx_target target, uint32_t n_threads, uint64_t ceiling,
                   uint64_t *reserved) {
  nxk_device_options options = {.n_threads = n_threads, .target = target, .workspace_bytes = ceiling};
  const nxk_backend *cpu = nxk_backend_find("cpu");
  nxk_device *device;
  nxk_kernel *kernel;
  nxk_fault fault = {""};
  if (!cpu || !cpu->open(&options, &device, &fault)) return false;
  bool bound = cpu->bind(device, operator, &kernel, &fault);
  *reserved = cpu->workspace_bytes(device);
  cpu->close(device);
  return bound;
}

static bool cpu_agrees(const nxk_operator *operator, uint32_t n_threads) {
  uint64_t reserved, spare = spare_of(operator);
  nx_sized_operator sized = nxk_sized(operator);
  nx_workspace said = nx_workspace_of(&sized, NX_TARGET_CPU_AVX2, n_threads);
  if (!on_cpu(operator, NX_TARGET_CPU_AVX2, n_threads, 0, &reserved)) return true; /* ref has it */
  bool good = reserved <= said.most + spare && said.least <= reserved && said.least <= said.most;
  if (!good) say(operator, "cpu", reserved, said);
  uint64_t again;
  if (good && said.least > 2 && on_cpu(operator, NX_TARGET_CPU_AVX2, n_threads, said.least - 1, &again)) {
    printf("# %s on cpu runs within less than what it is said to need\n", nx_op_find(operator->op)->name);
    return false;
  }
  return good;
}

static bool record_agrees(const test_record *record) {
  bool good = true;
  for (uint32_t i = 0; i < record->n_operators; i++)
    for (test_variant variant = VARIANT_F32; variant <= VARIANT_BF16; variant++)
      for (int64_t times = 1; times <= 8; times += 7) {
        if (!record->variants[variant]) continue;
        nxk_operator operator= record_operation(record, &record->operators[i], variant, times);
        good = cpu_agrees(&operator, 1) && cpu_agrees(&operator, 3) && good;
      }
  return good;
}

static nxk_tensor matrix(nx_dtype type, int64_t rows, int64_t columns) {
  return (nxk_tensor){
      .dtype = type, .n_dims = 2, .dims = {rows, columns, 1, 1}, .shift_constant = UINT32_MAX};
}

/* Of a matrix that is whole, or of which there is a half. */
static nxk_operator update_of(const nx_optimizer_row *rule, nx_dtype type, int64_t rows, int64_t columns,
                              bool parted) {
  uint32_t n_states = nx_optimizer_n_states(rule), n = 0;
  nxk_operator o = {.op = rule->op};
  for (int whole = 0; whole <= parted; whole++) {
    int64_t own = parted && !whole ? rows / 2 : rows;
    uint32_t scalars = whole ? 0 : NX_UPDATE_END - 1;
    o.args[n++] = matrix(NX_f32, own, columns);
    for (uint32_t i = 0; i < n_states; i++) {
      nx_state_shape shape = rule->states[i].shape;
      o.args[n++] = shape == NX_SAME ? matrix(type, own, columns)
                    : shape == NX_ROWS ? matrix(NX_f32, 2 * own, own)
                                       : matrix(NX_f32, 2 * columns, columns);
    }
    o.args[n++] = matrix(type, own, columns);
    for (uint32_t i = 0; i < scalars; i++)
      o.args[n++] = matrix(i + 1 == scalars ? NX_i64 : NX_f64, 1, 1);
  }
  o.n_in = n;
  for (uint32_t i = 0; i <= n_states; i++) o.args[n++] = o.args[i];
  o.n_out = 1 + n_states;
  const nx_op_row *row = nx_op_find(rule->op);
  o.n_attrs = nx_op_n_attrs(row);
  for (uint32_t i = 0; i < o.n_attrs; i++) {
    o.attrs[i].kind = row->attrs[i].type == NX_REAL ? NXK_REAL : NXK_INT;
    if (o.attrs[i].kind == NXK_REAL) o.attrs[i].real = 0.5;
    else o.attrs[i].integer = 1;
  }
  return o;
}

static bool update_agrees(const nx_optimizer_row *rule) {
  static const int64_t extents[][2] = {{6, 4}, {96, 1600}, {1200, 64}};
  bool good = true;
  for (size_t i = 0; i < sizeof extents / sizeof *extents; i++)
    for (int form = 0; form < 4; form++) {
      bool parted = form & 1 && rule->kind != NX_ELEMENT && rule->op != NX_OP_soap;
      nxk_operator operator=
          update_of(rule, form & 2 ? NX_bf16 : NX_f32, extents[i][0], extents[i][1], parted);
      good = cpu_agrees(&operator, 2) && good;
    }
  return good;
}

int main(int argc, char **argv) {
  record_list list = {0};
  if (argc != 2 || !records_read(argv[1], &list)) return 99;
  for (uint32_t i = 0; i < list.n_records; i++)
    if (!list.records[i].bench) tap_report(record_agrees(&list.records[i]), "%s", list.records[i].name);
  free(list.records);
  for (uint32_t op = 0; op < NX_OP_END; op++)
    if (nx_optimizer_of(op))
      tap_report(update_agrees(nx_optimizer_of(op)), "%s", nx_op_find((nx_op)op)->name);
  return tap_end();
}
