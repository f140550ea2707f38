/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/plan_check_record.h"

bool nx_check_atom(const nx_checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_atom *atom = &plan->atoms[index];
  uint64_t stride = index == 0 ? 1 : (uint64_t)atom[-1].stride * atom[-1].size;
  if (plan->n[NX_SECTION_ATOMS] > NX_MAX_ATOMS)
    return nx_flaw(check, atom, "the mesh has more than %d atoms", NX_MAX_ATOMS);
  bool second = atom->flags == NX_ATOM_PIPELINE && nx_plan_pipeline_atom(plan) != index;
  if (!nx_is_string(plan, atom->name) || atom->size == 0 || atom->stride != stride ||
      atom->flags > NX_ATOM_PIPELINE || second)
    return nx_flaw(check, atom, "mesh atom %u is malformed", index);
  if (index + 1 == plan->n[NX_SECTION_ATOMS] && stride * atom->size != plan->run->n_ranks)
    return nx_flaw(check, atom, "the mesh has %llu ranks and the run %u",
                   (unsigned long long)(stride * atom->size), plan->run->n_ranks);
  return true;
}

static bool check_stages(const nx_checker *check, const nx_group *group, uint64_t *size) {
  const nx_plan *plan = check->plan;
  uint32_t atom = nx_plan_pipeline_atom(plan);
  if (atom == NX_NONE || !(group->atoms & 1u << atom))
    return nx_flaw(check, group, "a group of stages is not over the pipeline");
  if ((uint64_t)group->stages + group->n_stages > plan->n[NX_SECTION_TABLE])
    return nx_flaw(check, group, "a group of stages reads past the table");
  for (uint32_t i = 0; i < group->n_stages; i++) {
    int64_t stage = plan->table[group->stages + i];
    if (stage < 0 || stage >= plan->atoms[atom].size || (i && stage <= plan->table[group->stages + i - 1]))
      return nx_flaw(check, group, "a group of stages does not list them in order");
  }
  *size = *size / plan->atoms[atom].size * group->n_stages;
  return true;
}

bool nx_check_group(const nx_checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_group *group = &plan->groups[index];
  if (!nx_is_string(plan, group->name) || group->atoms >> plan->n[NX_SECTION_ATOMS] != 0)
    return nx_flaw(check, group, "group %u is malformed", index);
  uint64_t size = nx_set_size(plan, group->atoms);
  if (group->n_stages && !check_stages(check, group, &size)) return false;
  if (group->size != size) return nx_flaw(check, group, "group %u has the wrong size", index);
  return true;
}

/* Far above any offset in a plan, and small enough that sums of them do not overflow. */
static bool is_bounded(int64_t number) {
  return number >= -(INT64_C(1) << 48) && number <= INT64_C(1) << 48;
}

bool nx_check_term(const nx_checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_term *term = &plan->terms[index];
  bool listed = term->kind == NX_TERM_ENTRY || term->kind == NX_TERM_CHOICE;
  if (term->atoms != NX_NONE && (term->atoms == 0 || term->atoms >> plan->n[NX_SECTION_ATOMS] != 0))
    return nx_flaw(check, term, "term %u names no atoms", index);
  if (term->kind < NX_TERM_STRIDE || term->kind > NX_TERM_FIRST || term->reserved != 0 ||
      (term->kind != NX_TERM_STRIDE && term->stride != 0) || (!listed && term->table != 0))
    return nx_flaw(check, term, "term %u is malformed", index);
  uint64_t n = nx_term_coordinates(plan, term);
  if (listed && term->table + n > plan->n[NX_SECTION_TABLE])
    return nx_flaw(check, term, "term %u reads past the table", index);
  int64_t farthest;
  if (__builtin_mul_overflow(term->stride, (int64_t)n - 1, &farthest) || !is_bounded(term->stride) ||
      !is_bounded(farthest))
    return nx_flaw(check, term, "term %u is out of bounds", index);
  for (uint64_t at = 0; listed && at < n; at++) {
    int64_t entry = plan->table[term->table + at];
    if (!is_bounded(entry) || (term->kind == NX_TERM_CHOICE && entry != 0 && entry != 1))
      return nx_flaw(check, term, "term %u is out of bounds", index);
  }
  return true;
}

bool nx_check_constant(const nx_checker *check, uint32_t index) {
  const nx_plan *plan = check->plan;
  const nx_constant *constant = &plan->constants[index];
  if ((uint64_t)constant->first_term + constant->n_terms > plan->n[NX_SECTION_TERMS] ||
      constant->n_terms > 2 * NX_MAX_ATOMS + 2 || !is_bounded(constant->base))
    return nx_flaw(check, constant, "constant %u is malformed", index);
  return true;
}
