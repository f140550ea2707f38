/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/mesh/mesh.h"

#include "schema/plan_check.h"

#include <stdio.h>
#include <string.h>

/* In the order in which a set is named after them. */
static const char *const axis_names[NXC_N_NAMED_AXES] = {
    [NXC_AXIS_PIPELINE] = "pipeline",   [NXC_AXIS_DATA] = "data",
    [NXC_AXIS_REPLICATE] = "replicate", [NXC_AXIS_SHARD] = "shard",
    [NXC_AXIS_CONTEXT] = "context",     [NXC_AXIS_RING] = "ring",
    [NXC_AXIS_ULYSSES] = "ulysses",     [NXC_AXIS_TENSOR] = "tensor",
    [NXC_AXIS_KV_GROUP] = "kv_group",   [NXC_AXIS_KV_REPLICA] = "kv_replica",
    [NXC_AXIS_EXPERT] = "expert",       [NXC_AXIS_EXPERT_DATA] = "expert_data",
    [NXC_AXIS_EXPERT_TENSOR] = "expert_tensor",
};

/* A factor spans the ranks from stride `start` up to stride `end`. */
typedef struct factor {
  nxc_axis_id axis;
  uint64_t start, end;
} factor;

enum { MAX_FACTORS = 8 };

/* One way to write the number of ranks as a product, the fastest factor first. */
typedef struct factorisation {
  factor factors[MAX_FACTORS];
  uint32_t n;
} factorisation;

static uint64_t n_ranks(const factorisation *f) {
  return f->n ? f->factors[f->n - 1].end : 1;
}

static void push(factorisation *f, nxc_axis_id axis, uint32_t size) {
  uint64_t start = n_ranks(f);
  f->factors[f->n++] = (factor){axis, start, start * size};
}

/* ---- the order ---- */

/* A name in the order, and the factors that it stands for in either factorisation. */
enum { MAX_PARTS = 2 };
typedef struct step {
  const char *name;
  nxc_axis_id dense[MAX_PARTS];
  uint32_t dense_sizes[MAX_PARTS]; /* 0: none */
  nxc_axis_id expert;
  uint32_t expert_size; /* 0: none */
  bool taken;
} step;

enum { N_STEPS = 5 };

static step *find_step(step steps[N_STEPS], const char *name, size_t length) {
  for (int i = 0; i < N_STEPS; i++)
    if (strlen(steps[i].name) == length && strncmp(steps[i].name, name, length) == 0) return &steps[i];
  return NULL;
}

static bool take_step(step *at, factorisation *dense, factorisation *expert) {
  if (at == NULL || at->taken) return false;
  at->taken = true;
  for (int part = 0; part < MAX_PARTS; part++)
    if (at->dense_sizes[part]) push(dense, at->dense[part], at->dense_sizes[part]);
  if (at->expert_size) push(expert, at->expert, at->expert_size);
  return true;
}

static bool is_trivial(const step *at) {
  return at->taken || (at->dense_sizes[0] <= 1 && at->dense_sizes[1] <= 1 && at->expert_size <= 1);
}

static bool follow_order(const char *order, step steps[N_STEPS], factorisation *dense, factorisation *expert,
                         nx_fault *fault) {
  for (const char *at = order;; at++) {
    size_t length = strcspn(at, "-");
    if (!take_step(find_step(steps, at, length), dense, expert))
      return nx_fault_set(
          fault, 0,
          "a rank order names each of tp, cp, ep, dp and pp once at most, with - between them, "
          "and not \"%s\"",
          order);
    at += length;
    if (*at == '\0') break;
  }
  for (int i = 0; i < N_STEPS; i++)
    if (!is_trivial(&steps[i]))
      return nx_fault_set(fault, 0, "the rank order \"%s\" leaves out %s, whose degree is not 1", order,
                          steps[i].name);
  return true;
}

/* ---- the refinement ---- */

static void describe(const factorisation *f, const char *title, char *text, size_t room) {
  size_t length = (size_t)snprintf(text, room, "%s:", title);
  for (uint32_t i = 0; i < f->n && length < room; i++) {
    const factor *at = &f->factors[i];
    const char *name = axis_names[at->axis];
    if (strncmp(name, "expert_", 7) == 0) name += 7;
    length += (size_t)snprintf(text + length, room - length, "%s %s %llu", i ? " x" : "", name,
                               (unsigned long long)(at->end / at->start));
  }
}

/* The factorisations as users know them: tensor, context and data not taken apart. */
static bool refuse(const nxc_degrees *d, const factorisation *dense, const factorisation *expert,
                   nx_fault *fault) {
  static const nxc_axis_id wholes[NXC_N_NAMED_AXES] = {
      [NXC_AXIS_KV_REPLICA] = NXC_AXIS_TENSOR, [NXC_AXIS_KV_GROUP] = NXC_AXIS_TENSOR,
      [NXC_AXIS_ULYSSES] = NXC_AXIS_CONTEXT,   [NXC_AXIS_RING] = NXC_AXIS_CONTEXT,
      [NXC_AXIS_SHARD] = NXC_AXIS_DATA,        [NXC_AXIS_REPLICATE] = NXC_AXIS_DATA,
  };
  factorisation whole = {.n = 0};
  char dense_text[256], expert_text[256];
  for (uint32_t i = 0; i < dense->n; i++) {
    const factor *at = &dense->factors[i];
    nxc_axis_id axis = wholes[at->axis] ? wholes[at->axis] : at->axis;
    if (whole.n && whole.factors[whole.n - 1].axis == axis)
      whole.factors[whole.n - 1].end = at->end;
    else
      push(&whole, axis, (uint32_t)(at->end / at->start));
  }
  describe(&whole, "dense", dense_text, sizeof dense_text);
  describe(expert, "expert", expert_text, sizeof expert_text);
  return nx_fault_set(fault, 0,
                      "the ranks of dense layers and of experts have no common refinement in the order %s "
                      "(%s; %s)",
                      d->order, dense_text, expert_text);
}

/* The next stride after `at` at which a factor of either begins or ends. */
static uint64_t next_cut(const factorisation *a, uint64_t at, uint64_t best) {
  for (uint32_t i = 0; i < a->n; i++)
    if (a->factors[i].end > at && a->factors[i].end < best) best = a->factors[i].end;
  return best;
}

static const factor *factor_over(const factorisation *f, uint64_t start, uint64_t end) {
  for (uint32_t i = 0; i < f->n; i++)
    if (f->factors[i].start <= start && f->factors[i].end >= end) return &f->factors[i];
  return NULL;
}

/* An atom is called as the dense factor that it is, or is a part of. */
static void add_atom(nxc_mesh *mesh, const factorisation *dense, const factorisation *expert, uint64_t start,
                     uint64_t end) {
  const factor *in_dense = factor_over(dense, start, end), *in_expert = factor_over(expert, start, end);
  uint32_t atom = mesh->n_atoms++;
  bool whole = in_dense->start == start && in_dense->end == end;
  mesh->size[atom] = (uint32_t)(end / start);
  mesh->stride[atom] = (uint32_t)start;
  snprintf(mesh->name[atom], sizeof mesh->name[atom], "%s%s%s", axis_names[in_dense->axis], whole ? "" : ".",
           whole ? "" : axis_names[in_expert->axis]);
  mesh->axes[in_dense->axis] |= 1u << atom;
  if (in_expert && in_expert->axis != in_dense->axis) mesh->axes[in_expert->axis] |= 1u << atom;
}

static bool refine(const nxc_degrees *d, const factorisation *dense, const factorisation *expert,
                   nxc_mesh *mesh, nx_fault *fault) {
  uint64_t start = 1, all = n_ranks(dense);
  while (start < all) {
    uint64_t end = next_cut(expert, start, next_cut(dense, start, all));
    if (end % start != 0 || mesh->n_atoms == NXC_N_ATOMS) return refuse(d, dense, expert, fault);
    add_atom(mesh, dense, expert, start, end);
    start = end;
  }
  return true;
}

static const factor *pipeline_of(const factorisation *f) {
  for (uint32_t i = 0; i < f->n; i++)
    if (f->factors[i].axis == NXC_AXIS_PIPELINE) return &f->factors[i];
  return NULL;
}

/* A stage has the same ranks for both. */
static bool is_pipeline_common(const factorisation *dense, const factorisation *expert) {
  const factor *a = pipeline_of(dense), *b = pipeline_of(expert);
  return !a || !b || a->end == a->start || (a->start == b->start && a->end == b->end);
}

static void name_unions(nxc_mesh *mesh) {
  static const nxc_axis_id unions[][3] = {
      {NXC_AXIS_TENSOR, NXC_AXIS_KV_GROUP, NXC_AXIS_KV_REPLICA},
      {NXC_AXIS_CONTEXT, NXC_AXIS_RING, NXC_AXIS_ULYSSES},
      {NXC_AXIS_DATA, NXC_AXIS_REPLICATE, NXC_AXIS_SHARD},
  };
  for (size_t i = 0; i < sizeof unions / sizeof *unions; i++)
    mesh->axes[unions[i][0]] = mesh->axes[unions[i][1]] | mesh->axes[unions[i][2]];
  mesh->axes[NXC_AXIS_WORLD] = (1u << mesh->n_atoms) - 1;
  mesh->axes[NXC_AXIS_STAGE] = mesh->axes[NXC_AXIS_WORLD] & ~mesh->axes[NXC_AXIS_PIPELINE];
}

bool nxc_mesh_new(const nxc_degrees *d, nxc_mesh *mesh, nx_fault *fault) {
  uint32_t in_stage = d->kv_replica * d->kv_group * d->ulysses * d->ring * d->shard * d->replicate;
  uint32_t in_expert = d->has_experts ? d->expert_tensor * d->expert : 0;
  step steps[N_STEPS] = {
      {.name = "tp",
       .dense = {NXC_AXIS_KV_REPLICA, NXC_AXIS_KV_GROUP},
       .dense_sizes = {d->kv_replica, d->kv_group},
       .expert = NXC_AXIS_EXPERT_TENSOR,
       .expert_size = in_expert ? d->expert_tensor : 0},
      {.name = "cp", .dense = {NXC_AXIS_ULYSSES, NXC_AXIS_RING}, .dense_sizes = {d->ulysses, d->ring}},
      {.name = "ep", .expert = NXC_AXIS_EXPERT, .expert_size = in_expert ? d->expert : 0},
      {.name = "dp",
       .dense = {NXC_AXIS_SHARD, NXC_AXIS_REPLICATE},
       .dense_sizes = {d->shard, d->replicate},
       .expert = NXC_AXIS_EXPERT_DATA,
       .expert_size = in_expert ? in_stage / in_expert : 0},
      {.name = "pp",
       .dense = {NXC_AXIS_PIPELINE},
       .dense_sizes = {d->pipeline},
       .expert = NXC_AXIS_PIPELINE,
       .expert_size = in_expert ? d->pipeline : 0},
  };
  factorisation dense = {.n = 0}, expert = {.n = 0};
  *mesh = (nxc_mesh){.n_ranks = in_stage * d->pipeline};
  for (int atom = 0; atom < NXC_N_ATOMS; atom++) mesh->size[atom] = 1;
  if (!follow_order(d->order, steps, &dense, &expert, fault)) return false;
  if (in_expert && in_stage % in_expert != 0)
    return nx_fault_set(fault, 0,
                        "expert tensor %u x expert %u do not divide the %u ranks of a pipeline stage",
                        d->expert_tensor, d->expert, in_stage);
  if (!is_pipeline_common(&dense, &expert)) return refuse(d, &dense, &expert, fault);
  if (!refine(d, &dense, &expert, mesh, fault)) return false;
  name_unions(mesh);
  return true;
}

uint32_t nxc_axis(const nxc_mesh *mesh, nxc_axis_id axis) {
  return mesh->axes[axis];
}

uint32_t nxc_mesh_size(const nxc_mesh *mesh, uint32_t atoms) {
  uint32_t size = 1;
  for (uint32_t atom = 0; atom < mesh->n_atoms; atom++)
    if (atoms & 1u << atom) size *= mesh->size[atom];
  return size;
}

const char *nxc_mesh_set_name(nxc_arena *arena, const nxc_mesh *mesh, uint32_t atoms) {
  const char *name = "";
  for (nxc_axis_id axis = 0; axis < NXC_N_NAMED_AXES; axis++) {
    uint32_t set = mesh->axes[axis];
    if (set == 0 || (atoms & set) != set) continue;
    name = nxc_arena_printf(arena, "%s%s%s", name, *name ? "+" : "", axis_names[axis]);
    atoms &= ~set;
  }
  for (uint32_t atom = 0; atom < mesh->n_atoms; atom++)
    if (atoms & 1u << atom)
      name = nxc_arena_printf(arena, "%s%s%s", name, *name ? "+" : "", mesh->name[atom]);
  return name;
}
