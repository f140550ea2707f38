/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank's kernels may work in: as much as the setting says, or as the greediest operator asks for. */
#include "compiler/program/emit/emit.h"

#include <string.h>

static nx_sized_operator sized_of(const nx_plan *plan, const nx_operator *op) {
  nx_sized_operator s = {.op = op->op, .n_in = op->n_in, .n_out = op->n_out};
  for (uint32_t i = 0; i < (uint32_t)op->n_in + op->n_out; i++) {
    const nx_value *value = &plan->values[plan->arguments[op->first_argument + i]];
    s.args[i] = (nx_sized_operand){.dtype = value->dtype, .n_dims = value->n_dims};
    memcpy(s.args[i].dims, value->dims, sizeof value->dims);
  }
  for (uint32_t i = 0; i < op->n_attrs; i++) {
    const nx_attribute *attribute = &plan->attributes[op->first_attribute + i];
    if (attribute->kind == NX_ATTRIBUTE_INT) s.attrs[i] = attribute->integer;
  }
  return s;
}

nxc_workspace nxc_workspace_of(const nx_plan *plan, nx_target target, uint32_t n_threads) {
  nxc_workspace all = {{0, 0}, NULL};
  for (uint32_t i = 0; i < plan->n[NX_SECTION_OPERATORS]; i++) {
    const nx_operator *op = &plan->operators[i];
    if (nx_op_is_collective(nx_op_find(op->op))) continue;
    nx_sized_operator sized = sized_of(plan, op);
    nx_workspace one = nx_workspace_of(&sized, target, n_threads);
    if (one.most > all.bytes.most) all.bytes.most = one.most;
    if (one.least <= all.bytes.least) continue;
    all.bytes.least = one.least;
    all.op = op;
  }
  return all;
}

/* Of the sections as they are so far. */
static uint64_t asked_for(const nxc_emitter *e, nx_target target, uint32_t n_threads) {
  nx_plan plan = {.values = (const void *)e->sections[NX_SECTION_VALUES].bytes,
                  .operators = (const void *)e->sections[NX_SECTION_OPERATORS].bytes,
                  .arguments = (const void *)e->sections[NX_SECTION_ARGUMENTS].bytes,
                  .attributes = (const void *)e->sections[NX_SECTION_ATTRIBUTES].bytes};
  plan.n[NX_SECTION_OPERATORS] = e->sections[NX_SECTION_OPERATORS].n_records;
  return nxc_workspace_of(&plan, target, n_threads).bytes.most;
}

uint64_t nxc_emit_workspace(const nxc_emitter *e, nx_target target, uint32_t n_threads) {
  const nxc_settings *s = e->settings;
  if (nxc_has(s, NX_SETTING_RUN_WORKSPACE_BYTES))
    return (uint64_t)nxc_int(s, NX_SETTING_RUN_WORKSPACE_BYTES);
  uint64_t least = asked_for(e, target, n_threads) + NX_WORKSPACE_SPARE;
  return least > NX_WORKSPACE_USUAL ? least : NX_WORKSPACE_USUAL;
}
