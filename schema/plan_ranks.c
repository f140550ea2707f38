/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between ranks: coordinates, stages, numbers, and places in groups. */
#include "schema/plan.h"

static uint32_t coordinate_of(const nx_plan *plan, uint32_t rank, uint32_t atom) {
  return rank / plan->atoms[atom].stride % plan->atoms[atom].size;
}

uint32_t nx_set_coordinate(const nx_plan *plan, uint32_t rank, uint32_t atoms) {
  uint32_t coordinate = 0, scale = 1;
  for (uint32_t atom = 0; atom < plan->n[NX_SECTION_ATOMS]; atom++) {
    if (!(atoms & 1u << atom)) continue;
    coordinate += scale * coordinate_of(plan, rank, atom);
    scale *= plan->atoms[atom].size;
  }
  return coordinate;
}

uint64_t nx_set_size(const nx_plan *plan, uint32_t atoms) {
  uint64_t size = 1;
  for (uint32_t atom = 0; atom < plan->n[NX_SECTION_ATOMS]; atom++)
    if (atoms & 1u << atom) size *= plan->atoms[atom].size;
  return size;
}

/* The value so far, and the term at one of its coordinates. */
static int64_t term_apply(const nx_plan *plan, const nx_term *term, uint32_t coordinate, int64_t value) {
  switch (term->kind) {
  case NX_TERM_STRIDE: return value + term->stride * coordinate;
  case NX_TERM_ENTRY: return value + plan->table[term->table + coordinate];
  case NX_TERM_CHOICE: return plan->table[term->table + coordinate] ? value : 0;
  default: return coordinate == 0 ? value : 0;
  }
}

int64_t nx_constant_value(const nx_plan *plan, uint32_t constant, uint32_t rank, uint32_t chunk) {
  const nx_constant *at = &plan->constants[constant];
  int64_t value = at->base;
  for (uint32_t i = 0; i < at->n_terms; i++) {
    const nx_term *term = &plan->terms[at->first_term + i];
    value = term_apply(plan, term,
                       term->atoms == NX_NONE ? chunk : nx_set_coordinate(plan, rank, term->atoms), value);
  }
  return value;
}

uint64_t nx_term_coordinates(const nx_plan *plan, const nx_term *term) {
  return term->atoms == NX_NONE ? plan->n[NX_SECTION_CHUNKS] : nx_set_size(plan, term->atoms);
}

/* Where no table lists the entries, the first and the last coordinate have the extremes, however many there
 * are. */
void nx_constant_range(const nx_plan *plan, uint32_t index, int64_t *least, int64_t *greatest) {
  *least = *greatest = plan->constants[index].base;
  for (uint32_t i = 0; i < plan->constants[index].n_terms; i++) {
    const nx_term *term = &plan->terms[plan->constants[index].first_term + i];
    bool listed = term->kind == NX_TERM_ENTRY || term->kind == NX_TERM_CHOICE;
    uint64_t n = nx_term_coordinates(plan, term), step = listed || n == 1 ? 1 : n - 1;
    int64_t low = INT64_MAX, high = INT64_MIN;
    for (uint64_t at = 0; at < n; at += step) {
      int64_t a = term_apply(plan, term, (uint32_t)at, *least),
              b = term_apply(plan, term, (uint32_t)at, *greatest);
      low = a < low ? a : low;
      high = b > high ? b : high;
    }
    *least = low, *greatest = high;
  }
}

/* Terms that keep the value or make it 0 change nothing. */
static bool term_is_multiple(const nx_plan *plan, const nx_term *term, int64_t unit) {
  if (term->kind == NX_TERM_STRIDE) return term->stride % unit == 0;
  uint64_t n = term->kind == NX_TERM_ENTRY ? nx_term_coordinates(plan, term) : 0;
  for (uint64_t at = 0; at < n; at++)
    if (plan->table[term->table + at] % unit != 0) return false;
  return true;
}

bool nx_constant_is_multiple(const nx_plan *plan, uint32_t constant, uint64_t unit) {
  const nx_constant *at = &plan->constants[constant];
  bool is = at->base % (int64_t)unit == 0;
  for (uint32_t i = 0; i < at->n_terms; i++)
    is = is && term_is_multiple(plan, &plan->terms[at->first_term + i], (int64_t)unit);
  return is;
}

/* The rank with the coordinates of `rank` on the atoms outside the group, and 0 on those in it. */
static uint32_t group_origin(const nx_plan *plan, uint32_t atoms, uint32_t rank) {
  for (uint32_t atom = 0; atom < plan->n[NX_SECTION_ATOMS]; atom++)
    if (atoms & 1u << atom) rank -= coordinate_of(plan, rank, atom) * plan->atoms[atom].stride;
  return rank;
}

/* Coordinates of an atom that take part in a group. */
static uint32_t n_taking_part(const nx_plan *plan, const nx_group *group, uint32_t atom) {
  bool some = group->n_stages && atom == nx_plan_pipeline_atom(plan);
  return some ? group->n_stages : plan->atoms[atom].size;
}

uint32_t nx_group_member(const nx_plan *plan, uint32_t group, uint32_t rank, uint32_t index) {
  const nx_group *at = &plan->groups[group];
  uint32_t member = group_origin(plan, at->atoms, rank);
  for (uint32_t atom = 0; atom < plan->n[NX_SECTION_ATOMS]; atom++) {
    if (!(at->atoms & 1u << atom)) continue;
    uint32_t n = n_taking_part(plan, at, atom), coordinate = index % n;
    if (n != plan->atoms[atom].size) coordinate = (uint32_t)plan->table[at->stages + coordinate];
    member += coordinate * plan->atoms[atom].stride;
    index /= n;
  }
  return member;
}

static uint32_t place_of_stage(const nx_plan *plan, const nx_group *group, uint32_t stage) {
  uint32_t position = 0;
  while (position < group->n_stages && plan->table[group->stages + position] != stage) position++;
  return position;
}

uint32_t nx_group_position(const nx_plan *plan, uint32_t group, uint32_t rank) {
  const nx_group *at = &plan->groups[group];
  uint32_t position = 0, scale = 1;
  if (!nx_group_has_stage(plan, group, nx_plan_stage(plan, rank))) return NX_NONE;
  for (uint32_t atom = 0; atom < plan->n[NX_SECTION_ATOMS]; atom++) {
    if (!(at->atoms & 1u << atom)) continue;
    uint32_t n = n_taking_part(plan, at, atom), coordinate = coordinate_of(plan, rank, atom);
    if (n != plan->atoms[atom].size) coordinate = place_of_stage(plan, at, coordinate);
    position += scale * coordinate;
    scale *= n;
  }
  return position;
}

bool nx_group_crosses_stages(const nx_plan *plan, uint32_t group) {
  uint32_t atom = nx_plan_pipeline_atom(plan);
  return atom != NX_NONE && group != NX_NONE && plan->groups[group].atoms & 1u << atom &&
         n_taking_part(plan, &plan->groups[group], atom) > 1;
}

bool nx_group_has_stage(const nx_plan *plan, uint32_t group, uint32_t stage) {
  const nx_group *at = &plan->groups[group];
  return at->n_stages == 0 || place_of_stage(plan, at, stage) < at->n_stages;
}

uint32_t nx_plan_pipeline_atom(const nx_plan *plan) {
  for (uint32_t atom = 0; atom < plan->n[NX_SECTION_ATOMS]; atom++)
    if (plan->atoms[atom].flags & NX_ATOM_PIPELINE) return atom;
  return NX_NONE;
}

uint32_t nx_plan_n_stages(const nx_plan *plan) {
  uint32_t atom = nx_plan_pipeline_atom(plan);
  return atom == NX_NONE ? 1 : plan->atoms[atom].size;
}

uint32_t nx_plan_stage(const nx_plan *plan, uint32_t rank) {
  uint32_t atom = nx_plan_pipeline_atom(plan);
  return atom == NX_NONE ? 0 : coordinate_of(plan, rank, atom);
}
