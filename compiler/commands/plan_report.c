/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/plan_report.h"

#include "compiler/compare/beyond.h"
#include "compiler/config/exports.h"
#include "compiler/diagnostics/characters.h"
#include "compiler/program/program.h"
#include "compiler/render/screen.h"
#include "compiler/show/plan_dump.h"

#include <string.h>

/* ---- numbers that follow
 * ---------------------------------------------------------------------------------------- */

static nxc_derived from_setting(const nxc_plan_report *r, const char *name, const char *words,
                                nxc_setting_id id) {
  bool known = nxc_has(r->compiled->settings, id);
  return (nxc_derived){name, words, "", known, known ? (double)nxc_int(r->compiled->settings, id) : 0};
}

void nxc_plan_derive(const nxc_plan_report *r, nxc_derived rows[NXC_N_DERIVED]) {
  const nxc_training *t = r->training;
  bool known = t != NULL;
  rows[0] = from_setting(r, "data_parallel", "data-parallel size", NX_SETTING_MESH_DATA);
  rows[1] =
      from_setting(r, "micro_batches", "micro-batches per step and rank", NX_SETTING_BATCH_ACCUMULATION);
  rows[2] =
      (nxc_derived){"parameters", "parameters", "", known, known ? (double)nxc_training_parameters(t) : 0};
  rows[3] = (nxc_derived){"tokens_per_step", "tokens per step", "", known,
                      known ? (double)(t->batch.global * t->model.sequence) : 0};
  rows[4] = (nxc_derived){"flops_per_step", "operations per step", "FLOP", known,
                          known ? nxc_training_flops(t) : 0};
}

static void print_derived(const nxc_plan_report *r, FILE *out) {
  nxc_derived rows[NXC_N_DERIVED];
  nxc_plan_derive(r, rows);
  fputs("derived\n", out);
  for (int i = 0; i < NXC_N_DERIVED; i++) {
    fprintf(out, "  %-32s ", rows[i].words);
    bool large = rows[i].value >= 100000, counted = *rows[i].unit == '\0';
    if (!rows[i].known) fputs("unknown", out);
    else if (large) nxc_print_quantity(out, rows[i].value, rows[i].unit);
    else fprintf(out, "%.0f%s%s", rows[i].value, counted ? "" : " ", rows[i].unit);
    if (rows[i].known && large && counted) fprintf(out, " (%.0f)", rows[i].value);
    fputc('\n', out);
  }
}

/* ---- settings
 * --------------------------------------------------------------------------------------------------- */

static bool same_section(const char *a, const char *b) {
  size_t n = strcspn(a, ".");
  return n == strcspn(b, ".") && strncmp(a, b, n) == 0;
}

static void print_settings(const nxc_plan_report *r, FILE *out) {
  const char *last = "";
  for (nxc_setting_id id = 0; id < NX_N_SETTINGS; id++) {
    const char *path = nxc_setting_path(id);
    if (!nxc_settings_known(r->compiled->settings, id) && !nxc_setting_is_wanted(id)) continue;
    if (!same_section(path, last)) fprintf(out, "%.*s\n", (int)strcspn(path, "."), path);
    last = path;
    const char *value = nxc_characters_shown(r->arena, nxc_settings_show(r->compiled->settings, id));
    nxc_print_filled(out, 8, nxc_arena_printf(r->arena, "  %-32s %-20s ", path, value), 0,
                     nxc_characters_shown(r->arena, nxc_settings_show_origin(r->compiled->settings, id)), "");
  }
}

static void print_unfollowed(const nxc_plan_report *r, FILE *out) {
  size_t n;
  const nxc_beyond *items = nxc_beyond_unfollowed(r->arena, r->compiled, &n);
  if (n > 0) fputs("not followed: they change the training, and no setting says how\n", out);
  for (size_t i = 0; i < n; i++) {
    fprintf(out, "  %-32s %-20s ", items[i].name,
            items[i].value ? nxc_characters_shown(r->arena, items[i].value) : "unknown");
    if (items[i].at.source != NULL) {
      nxc_characters_print(items[i].at.source->name, out);
      fprintf(out, ":%u", items[i].at.line);
    }
    fputc('\n', out);
  }
}

/* ---- ranks and memory
 * ------------------------------------------------------------------------------------------- */

/* The ranks of the group of rank 0: "0, 2, 4, ..., 14". */
static void print_members(const nx_atom *atom, FILE *out) {
  uint32_t n_shown = atom->size > 6 ? 3 : atom->size;
  for (uint32_t i = 0; i < n_shown; i++) fprintf(out, "%s%u", i ? ", " : "", i * atom->stride);
  if (n_shown < atom->size) fprintf(out, ", ..., %u", (atom->size - 1) * atom->stride);
}

static void print_layout(const nxc_plan_report *r, FILE *out) {
  const nx_plan *plan = &r->plan->plan;
  fprintf(out, "ranks\n  %u on %u host%s", plan->run->n_ranks, plan->run->n_hosts,
          plan->run->n_hosts == 1 ? "" : "s");
  if (plan->run->n_threads > 1) fprintf(out, ", %u threads each", plan->run->n_threads);
  fputc('\n', out);
  for (uint32_t i = 0; i < plan->n[NX_SECTION_ATOMS]; i++) {
    const nx_atom *atom = &plan->atoms[i];
    if (atom->size == 1) continue;
    fprintf(out, "  %-10s %4u, rank 0 with ", nx_plan_string(plan, atom->name), atom->size);
    print_members(atom, out);
    fputc('\n', out);
  }
}

/* What each pipeline stage holds. */
static void print_stages(const nxc_plan_report *r, FILE *out) {
  const nx_plan *plan = &r->plan->plan;
  uint32_t n_stages = nx_plan_n_stages(plan);
  if (n_stages == 1) return;
  fputs("pipeline stages\n", out);
  for (uint32_t stage = 0; stage < n_stages; stage++) {
    uint64_t bytes = 0;
    fprintf(out, "  %-10u ", stage);
    for (uint32_t kind = 0; kind < NX_N_ARENAS; kind++) bytes += nx_plan_stage_bytes(plan, stage, kind);
    nxc_print_quantity(out, (double)bytes, "B");
    fputs(" a rank; layers", out);
    for (uint32_t c = 0, n = 0; c < plan->n[NX_SECTION_CHUNKS]; c++) {
      const nx_chunk *chunk = &plan->chunks[c];
      if (chunk->stage == stage)
        fprintf(out, "%s %u to %u", n++ ? "," : "", chunk->first_layer,
                chunk->first_layer + chunk->n_layers - 1);
    }
    fputc('\n', out);
  }
}

uint64_t nxc_plan_memory(const nxc_plan_report *r, uint64_t bytes[NX_N_ARENAS], uint64_t *copy_bytes) {
  uint64_t sum = 0;
  *copy_bytes = nx_plan_copy_bytes(&r->plan->plan, nxc_forecast_memory(&r->plan->plan, bytes));
  for (int kind = 0; kind < NX_N_ARENAS; kind++) sum += bytes[kind];
  return sum;
}

static void print_bytes(const char *name, uint64_t bytes, const char *meaning, FILE *out) {
  char text[32] = "";
  FILE *memory = fmemopen(text, sizeof text, "w");
  if (memory != NULL) {
    nxc_print_quantity(memory, (double)bytes, "B");
    fclose(memory);
  }
  fprintf(out, "  %-10s %9s  %s\n", name, text, meaning);
}

static void print_memory(const nxc_plan_report *r, FILE *out) {
  uint64_t bytes[NX_N_ARENAS], copy, sum = nxc_plan_memory(r, bytes, &copy);
  fputs("memory per rank\n", out);
  for (uint32_t kind = 0; kind < NX_N_ARENAS; kind++)
    if (bytes[kind]) print_bytes(nx_arena_name(kind), bytes[kind], nx_arena_meaning(kind), out);
  print_bytes("sum", sum, "of these", out);
  print_bytes("workspace", r->plan->plan.run->workspace_bytes, "at most, for the kernels", out);
  if (copy) print_bytes("copy", copy, "at most, of a checkpoint that is being written", out);
}

/* They run in the memory of the forward pass, between steps. */
static void print_evaluations(const nxc_plan_report *r, FILE *out) {
  const nx_plan *plan = &r->plan->plan;
  if (plan->n[NX_SECTION_EVALUATIONS]) fputs("evaluations, in the memory of the forward pass\n", out);
  for (uint32_t i = 0; i < plan->n[NX_SECTION_EVALUATIONS]; i++) {
    fputs("  ", out);
    nxc_print_evaluation(plan, &plan->evaluations[i], out);
    fputc('\n', out);
  }
}

/* ---- what the original system's environment is
 * ------------------------------------------------------------------ */

static void print_exports(const nxc_plan_report *r, FILE *out) {
  size_t n_exports;
  const nxc_export *exports = nxc_exports(r->arena, r->compiled, &n_exports);
  if (n_exports > 0) fprintf(out, "environment of %s\n", r->compiled->dialect->name);
  for (size_t i = 0; i < n_exports; i++) {
    const nxc_export *e = &exports[i];
    fprintf(out, "  %s=%s  (%s)", e->name, e->value, e->from);
    if (e->ambient != NULL && e->joined) fprintf(out, ", behind %s, which is set here", e->ambient);
    else if (e->ambient != NULL)
      fprintf(out, ", but it is %s here, which would win there", *e->ambient ? e->ambient : "empty");
    putc('\n', out);
  }
}

void nxc_plan_print(const nxc_plan_report *r, FILE *out) {
  fprintf(out, "%s: %s\n", nxc_characters_shown(r->arena, r->file), r->compiled->dialect->name);
  print_settings(r, out);
  print_unfollowed(r, out);
  print_derived(r, out);
  print_exports(r, out);
  nxc_plan_print_estimate(r, out);
  if (r->plan != NULL) {
    print_layout(r, out);
    print_stages(r, out);
    print_memory(r, out);
    print_evaluations(r, out);
    nxc_forecast_print(r->estimate, &r->plan->plan, out);
    if (r->estimate->forecast_made) nxc_deadline_print(&r->plan->plan, r->compiled->settings, out);
  }
  nxc_plan_print_end(r, out);
}
