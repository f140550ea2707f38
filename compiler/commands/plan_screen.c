/* SPDX-License-Identifier: Apache-2.0 */
/* What plan prints first: one screen of what matters, in lines of 60 columns and more. */
#include "compiler/commands/plan_report.h"
#include "compiler/commands/summary.h"
#include "compiler/compare/beyond.h"
#include "compiler/diagnostics/characters.h"
#include "compiler/render/screen.h"
#include "compiler/show/plan_dump.h"

#include <inttypes.h>
#include <string.h>

enum { LABEL = 9, LONGEST_VALUE = 48, LONGEST_LIST = 240 };

static const double GIB = 1073741824.0;

static void paragraph(const nxc_plan_report *r, const char *label, const char *text, FILE *out) {
  nxc_print_paragraph(out, LABEL, nxc_arena_printf(r->arena, "%-*s", LABEL, label), text);
}

/* ---- the training
 * ----------------------------------------------------------------------------------------------- */

/* The training as it is, or as it is assumed. */
const nxc_training *nxc_plan_training(const nxc_plan_report *r) {
  const nxc_own_estimate *own = &r->estimate->own;
  if (r->training != NULL) return r->training;
  return own->system != NULL && own->lacks == NULL ? &own->training : NULL;
}

const nxc_settings *nxc_plan_settings(const nxc_plan_report *r) {
  const nxc_settings *assumed = r->estimate->own.compiled.settings;
  return r->training == NULL && assumed != NULL ? assumed : r->compiled->settings;
}

static const char *count_in_words(nxc_arena *arena, double count) {
  if (count >= 1e9) return nxc_arena_printf(arena, "%.4g billion", count / 1e9);
  if (count >= 1e6) return nxc_arena_printf(arena, "%.4g million", count / 1e6);
  return nxc_arena_printf(arena, "%.0f", count);
}

static const char *show_model(nxc_arena *arena, const nxc_training *t) {
  const nxc_model *m = &t->model;
  const nxc_layer_spec *layer = &m->specs[0];
  const char *text =
      nxc_arena_printf(arena, "%s parameters: %lld layer%s, width %lld, %lld heads",
                       count_in_words(arena, (double)nxc_training_parameters(t)), (long long)m->layers,
                       m->layers == 1 ? "" : "s", (long long)m->hidden, (long long)layer->attention.heads);
  if (layer->attention.kv_heads != layer->attention.heads)
    text = nxc_arena_printf(arena, "%s, %lld of keys and values", text, (long long)layer->attention.kv_heads);
  if (m->mixture != NULL)
    text = nxc_arena_printf(arena, "%s, %lld experts of which a token goes to %lld", text,
                            (long long)m->mixture->n_experts, (long long)m->mixture->top_k);
  else text = nxc_arena_printf(arena, "%s, network %lld", text, (long long)layer->ffn.width);
  return nxc_arena_printf(arena, "%s, vocabulary %lld", text, (long long)m->vocab);
}

static const char *show_layout(nxc_arena *arena, const nxc_settings *s, const nxc_training *t) {
  const char *text = nxc_mesh_show(arena, s);
  if (t == NULL) return text;
  if (t->layout.expert > 1)
    text = nxc_arena_printf(arena, "%s; experts over %u", text, (unsigned)t->layout.expert);
  if (t->layout.n_chunks > t->layout.pipeline)
    text = nxc_arena_printf(arena, "%s; %u chunks of layers a stage", text,
                            (unsigned)(t->layout.n_chunks / t->layout.pipeline));
  return t->sharding.stage > 0 ? nxc_arena_printf(arena, "%s; ZeRO %d", text, (int)t->sharding.stage) : text;
}

static const char *show_batch(nxc_arena *arena, const nxc_settings *s, const nxc_training *t) {
  const char *text = nxc_batches_show(arena, s);
  if (t == NULL) return text;
  if (t->batch.n_phases > 0)
    text = nxc_arena_printf(arena, "%s; it grows from %lld sequences in %zu sizes", text,
                            (long long)t->batch.phases[0].global, t->batch.n_phases);
  return nxc_arena_printf(arena, "%lld sequences of %lld = %lld tokens; %s", (long long)t->batch.global,
                          (long long)t->model.sequence, (long long)(t->batch.global * t->model.sequence),
                          text);
}

void nxc_plan_summary(const nxc_plan_report *r, const char *lines[NXC_N_SUMMARY]) {
  const nxc_training *t = nxc_plan_training(r);
  const nxc_settings *s = nxc_plan_settings(r);
  const char *assumed = nxc_assumed_show(r->arena, &r->estimate->own.assumed);
  lines[0] = t ? nxc_arena_printf(r->arena, "model: %s", show_model(r->arena, t)) : "";
  lines[1] = nxc_arena_printf(r->arena, "layout: %s", show_layout(r->arena, s, t));
  lines[2] = nxc_arena_printf(r->arena, "batch: %s", show_batch(r->arena, s, t));
  lines[3] = *assumed ? nxc_arena_printf(r->arena, "assumed: %s", assumed) : "";
}

static void print_training(const nxc_plan_report *r, FILE *out) {
  const char *lines[NXC_N_SUMMARY];
  nxc_plan_summary(r, lines);
  fprintf(out, "%s: %s\n", nxc_screen_shortened(r->arena, r->file, 60), r->compiled->dialect->name);
  for (int i = 0; i < NXC_N_SUMMARY; i++) {
    size_t n = strcspn(lines[i], ":");
    if (*lines[i] != '\0') paragraph(r, nxc_arena_strndup(r->arena, lines[i], n), lines[i] + n + 2, out);
  }
}

/* ---- memory
 * ----------------------------------------------------------------------------------------------------- */

enum { N_COLUMNS = 2 };

/* Of a row of the table: its name, and each of its numbers without unit. */
static int name_width(FILE *out) {
  return nxc_screen_columns(out) < 70 ? 32 : 36;
}

static int number_width(FILE *out) {
  return nxc_screen_columns(out) < 70 ? 8 : 11;
}

/* Behind what stands before it, in the rest of the line. */
static void print_share(FILE *out, double share) {
  enum { MOST = 28, BEFORE = 42 };
  int columns = nxc_screen_columns(out) - BEFORE;
  nxc_print_bar(out, columns < 0 ? 0 : columns > MOST ? MOST : columns, share);
}

static void print_row(const char *name, const nxc_column columns[N_COLUMNS], const double bytes[N_COLUMNS],
                      FILE *out) {
  if (bytes[0] <= 0 && bytes[1] <= 0) return;
  fprintf(out, "  %-*s", name_width(out), name);
  for (int i = 0; i < N_COLUMNS; i++) {
    if (columns[i].whose == NULL) continue;
    if (bytes[i] > 0) fprintf(out, " %*.3f GiB", number_width(out), bytes[i] / GIB);
    else fprintf(out, " %*s", number_width(out) + 4, "-");
  }
  putc('\n', out);
}

static void print_memory_bar(const nxc_plan_report *r, const nxc_column *column, FILE *out) {
  const nxc_estimate *e = r->estimate;
  if (column->whose == NULL || e->limit_bytes == 0) return;
  double share = column->total / (double)e->limit_bytes;
  fprintf(out, "  %-8.8s ", column->whose);
  print_share(out, share);
  fprintf(out, " %.0f %% of %.4g GiB%s\n", 100 * share, (double)e->limit_bytes / GIB,
          share <= 1                                               ? ""
          : column->total - column->held <= (double)e->limit_bytes ? ": may not fit"
                                                                   : ": does not fit");
}

/* Where the arenas lie in a device, what its host needs beside them. */
static void print_host(const nx_plan *plan, FILE *out) {
  uint64_t most = 0;
  if (!nx_target_find(plan->run->target)->on_device) return;
  for (uint32_t stage = 0; stage < nx_plan_n_stages(plan); stage++) {
    uint64_t bytes = nx_plan_staging_bytes(plan, stage);
    if (bytes > most) most = bytes;
  }
  fprintf(out, "  of nxrun all of it on the device; on its host %.3f GiB for messages\n", (double)most / GIB);
}

/* Where stages differ by more than a tenth: the one that needs least beside the one that needs most. */
static void print_stages(const nxc_own_estimate *own, FILE *out) {
  uint32_t most = 0, least = 0;
  if (own->stage_bytes == NULL) return;
  for (uint32_t stage = 1; stage < own->training.layout.pipeline; stage++) {
    if (own->stage_bytes[stage] > own->stage_bytes[most]) most = stage;
    if (own->stage_bytes[stage] < own->stage_bytes[least]) least = stage;
  }
  if (own->stage_bytes[least] > 0.9 * own->stage_bytes[most]) return;
  fprintf(out, "  stage %u of %s needs that, stage %u %.1f GiB\n", most, own->system, least,
          own->stage_bytes[least] / GIB);
}

static void print_memory(const nxc_plan_report *r, const nxc_column columns[N_COLUMNS], FILE *out) {
  double bytes[N_COLUMNS];
  fprintf(out, "%-*s", name_width(out) + 2, "memory of the rank that needs most");
  for (int i = 0; i < N_COLUMNS; i++)
    if (columns[i].whose != NULL) fprintf(out, " %*s", number_width(out) + 4, columns[i].whose);
  putc('\n', out);
  for (int part = 0; part < NXC_N_MEMORY_PARTS; part++) {
    for (int i = 0; i < N_COLUMNS; i++) bytes[i] = columns[i].parts[part];
    print_row(nxc_memory_part_names[part], columns, bytes, out);
  }
  for (int i = 0; i < N_COLUMNS; i++) bytes[i] = columns[i].beside;
  print_row("allocator, driver, communicators", columns, bytes, out);
  for (int i = 0; i < N_COLUMNS; i++) bytes[i] = columns[i].total;
  print_row("in all", columns, bytes, out);
  print_stages(&r->estimate->own, out);
  for (int i = 0; i < N_COLUMNS; i++) print_memory_bar(r, &columns[i], out);
  if (r->plan != NULL) print_host(&r->plan->plan, out);
}

/* ---- time
 * ------------------------------------------------------------------------------------------------------- */

static void print_spent(const char *name, double seconds, double step_s, FILE *out) {
  if (seconds < 5e-3 * step_s) return; /* --format json has all */
  fprintf(out, "  %-18s %9.*f s %5.1f %%  ", name, nxc_decimals(seconds), seconds, 100 * seconds / step_s);
  print_share(out, seconds / step_s);
  putc('\n', out);
}

static double ranks_of(const nxc_plan_report *r) {
  const nxc_training *t = nxc_plan_training(r);
  return t != NULL ? t->layout.world : r->plan->plan.run->n_ranks;
}

/* "9.87 h", "41 days" */
static const char *show_duration(nxc_arena *arena, double seconds) {
  static const struct {
    double s;
    const char *name;
  } units[] = {{86400, "days"}, {3600, "h"}, {60, "min"}};
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    double number = seconds / units[i].s;
    if (number >= 3) return nxc_arena_printf(arena, "%.*f %s", nxc_decimals(number), number, units[i].name);
  }
  return nxc_arena_printf(arena, "%.*f s", nxc_decimals(seconds), seconds);
}

/* Of all steps, where the configuration says how many there are; a batch that grows is counted as it does. */
static void print_whole(const nxc_plan_report *r, const nxc_column *column, FILE *out) {
  const nxc_training *t = nxc_plan_training(r);
  const nxc_settings *s = nxc_plan_settings(r);
  bool told = nxc_has(s, NX_SETTING_SCHEDULE_MAX_STEPS) &&
              nxc_settings_from(s, NX_SETTING_SCHEDULE_MAX_STEPS)->kind != NXC_FROM_ASSUMED;
  if (t == NULL || !told) return;
  int64_t steps = nxc_int(s, NX_SETTING_SCHEDULE_MAX_STEPS);
  double tokens = (double)nxc_batch_samples_before(&t->batch, steps) * (double)t->model.sequence;
  double seconds = tokens / column->tokens_per_s;
  double hours = seconds / 3600 * t->layout.world;
  const char *spent = nxc_arena_printf(r->arena, "%s, %s tokens, ", show_duration(r->arena, seconds),
                                       nxc_in_words(r->arena, tokens));
  nxc_print_paragraph(out, 4, "  training   ",
                      nxc_arena_printf(r->arena, "%s%s device-hours", spent, nxc_in_words(r->arena, hours)));
}

static void print_time(const nxc_plan_report *r, const nxc_column *column, FILE *out) {
  const nxc_estimate *e = r->estimate;
  if (!column->timed) return;
  nxc_print_paragraph(
      out, 2, "", nxc_arena_printf(r->arena, "time of a step of %s on %s", column->whose, e->machine->name));
  if (e->forecast_made) {
    for (int class = 0; class < NXC_N_COSTS; class ++)
      print_spent(nxc_cost_names[class], e->forecast.class_s[class], column->step_s, out);
    print_spent("bubble", e->forecast.bubble_s, column->step_s, out);
  } else {
    for (int part = 0; part < NXC_N_SPENT; part++)
      print_spent(nxc_spent_names[part], e->own.time.parts[part], column->step_s, out);
  }
  nxc_print_paragraph(
      out, 4,
      nxc_arena_printf(r->arena, "  %-18s %9.*f s, ", "in all", nxc_decimals(column->step_s), column->step_s),
      nxc_arena_printf(r->arena, "%.0f tokens/s, %.1f %% of the peak (MFU)", column->tokens_per_s,
                       100 * column->utilisation));
  fprintf(out, "  of a rank  %.0f tokens/s, ", column->tokens_per_s / ranks_of(r));
  nxc_print_quantity(out, column->flops_per_s, "FLOP/s of the model\n");
  print_whole(r, column, out);
  if (!e->forecast_made) nxc_own_print_evaluations(&e->own, out);
  if (!e->forecast_made) return;
  nxc_forecast_print_evaluations(&e->forecast, &r->plan->plan, out);
  nxc_deadline_print(&r->plan->plan, r->compiled->settings, out);
  nxc_forecast_print_cautions(e, &r->plan->plan, out);
}

void nxc_plan_print_estimate(const nxc_plan_report *r, FILE *out) {
  const nxc_own_estimate *own = &r->estimate->own;
  const nxc_column columns[N_COLUMNS] = {nxc_own_column(own),
                                         nxc_nxrun_column(r->estimate, r->plan ? &r->plan->plan : NULL)};
  if (columns[0].whose != NULL || columns[1].whose != NULL) print_memory(r, columns, out);
  for (int i = 0; i < N_COLUMNS; i++) print_time(r, &columns[i], out);
  if (own->lacks != NULL)
    paragraph(r, own->system, nxc_arena_printf(r->arena, "is not estimated: %s", own->lacks), out);
  if (own->lacks != NULL && own->remedy != NULL) paragraph(r, "fix", own->remedy, out);
}

/* ---- what is set
 * ------------------------------------------------------------------------------------------------ */

/* What the lines about the model, the layout and the batch say already. */
static bool is_told(const nxc_plan_report *r, nxc_setting_id id) {
  static const nxc_setting_id told[] = {
      NX_SETTING_MESH_WORLD,     NX_SETTING_MESH_TENSOR,         NX_SETTING_MESH_PIPELINE,
      NX_SETTING_MESH_CONTEXT,   NX_SETTING_MESH_EXPERT,         NX_SETTING_BATCH_MICRO,
      NX_SETTING_BATCH_GLOBAL,   NX_SETTING_MODEL_LAYERS,        NX_SETTING_MODEL_HIDDEN,
      NX_SETTING_MODEL_HEADS,    NX_SETTING_MODEL_KV_HEADS,      NX_SETTING_MODEL_VOCAB,
      NX_SETTING_MODEL_SEQUENCE, NX_SETTING_OPTIMIZER_ZERO_STAGE};
  bool dense = nxc_plan_training(r) != NULL && nxc_plan_training(r)->model.mixture == NULL;
  for (size_t i = 0; i < sizeof told / sizeof *told; i++)
    if (told[i] == id) return nxc_plan_training(r) != NULL;
  return dense && id == NX_SETTING_MODEL_FFN_HIDDEN;
}

/* Given by whoever wrote the configuration, other than what the catalogue has, and not told above. */
static bool is_set(const nxc_plan_report *r, nxc_setting_id id) {
  const nxc_settings *s = r->compiled->settings;
  if (is_told(r, id)) return false;
  const nxc_value *value = nxc_settings_value(s, id), *initial = nxc_setting_rows[id].initial;
  if (nxc_settings_from(s, id)->kind < NXC_FROM_MODEL_CONFIG || value == NULL) return false;
  return initial == NULL || !nxc_value_equal(value, initial);
}

static void print_section(const nxc_plan_report *r, const char *section, FILE *out) {
  const nxc_settings *s = r->compiled->settings;
  const char *text = "";
  size_t n = strlen(section);
  for (nxc_setting_id id = 0; id < NX_N_SETTINGS; id++) {
    const char *path = nxc_setting_path(id), *dot = strchr(path, '.');
    bool here = dot == NULL ? n == 0 : (size_t)(dot - path) == n && strncmp(path, section, n) == 0;
    if (!here || !is_set(r, id)) continue;
    const char *value = nxc_characters_shown(r->arena, nxc_settings_show(s, id));
    value = nxc_screen_shortened(r->arena, value, LONGEST_VALUE);
    text = nxc_arena_printf(r->arena, "%s%s%s %s", text, *text ? ", " : "", dot ? dot + 1 : path, value);
  }
  nxc_print_paragraph(out, 4 + LABEL, nxc_arena_printf(r->arena, "  %-10s ", n ? section : "beside"), text);
}

/* "a = 1, b = 2": given options that change the training, and that no setting follows. "" for none; behind
 * about `most` characters the others are counted. */
static const char *list_unfollowed(const nxc_plan_report *r, size_t most) {
  size_t n;
  const nxc_beyond *items = nxc_beyond_unfollowed(r->arena, r->compiled, &n);
  const char *text = "";
  for (size_t i = 0; i < n; i++) {
    if (strlen(text) > most) return nxc_arena_printf(r->arena, "%s and %zu more", text, n - i);
    text = nxc_arena_printf(r->arena, "%s%s%s = %s", text, i ? ", " : "", items[i].name,
                            items[i].value ? nxc_characters_shown(r->arena, items[i].value) : "unknown");
  }
  return text;
}

/* Settings of a section may stand apart. */
static bool begins_section(nxc_setting_id id, size_t n) {
  const char *path = nxc_setting_path(id);
  for (nxc_setting_id before = 0; before < id; before++)
    if (strncmp(nxc_setting_path(before), path, n + 1) == 0) return false;
  return true;
}

/* Each section once, where its first setting stands. */
static void print_settings(const nxc_plan_report *r, FILE *out) {
  size_t n_set = 0;
  for (nxc_setting_id id = 0; id < NX_N_SETTINGS; id++) n_set += is_set(r, id);
  nxc_print_paragraph(out, 2, "further settings that are not defaults: ",
                      nxc_arena_printf(r->arena, "%zu (--all lists each with its source)", n_set));
  for (nxc_setting_id id = 0; id < NX_N_SETTINGS; id++) {
    const char *path = nxc_setting_path(id), *dot = strchr(path, '.');
    if (dot == NULL) continue;
    size_t n = (size_t)(dot - path);
    if (begins_section(id, n)) print_section(r, nxc_arena_strndup(r->arena, path, n), out);
  }
  print_section(r, "", out);
  const char *unfollowed = list_unfollowed(r, LONGEST_LIST);
  nxc_print_paragraph(out, 4 + LABEL, "  unfollowed ", unfollowed);
}

/* ---- the end
 * ---------------------------------------------------------------------------------------------------- */

static void print_obstacles(const nxc_plan_report *r, FILE *out) {
  if (nxc_sink_n_findings(r->obstacles) == 0) return;
  const char *why = nxc_obstacles_show(r->obstacles, r->arena);
  const char *text = nxc_arena_printf(r->arena, "no plan yet: %s", why);
  paragraph(r, "nxrun", text, out);
}

void nxc_plan_print_end(const nxc_plan_report *r, FILE *out) {
  char id[65];
  print_obstacles(r, out);
  if (r->plan != NULL) {
    nx_hex(r->plan->plan.header->plan_id, id);
    fprintf(out, "plan_id %s\n", id);
  }
  if (r->estimate->limit_bytes > 0 && !r->estimate->memory_judged) fputs("memory is not judged\n", out);
  if (r->written != NULL)
    fprintf(out, "wrote %s, %" PRIu64 " bytes\n", nxc_characters_shown(r->arena, r->written),
            r->plan->n_bytes);
}

void nxc_plan_print_screen(const nxc_plan_report *r, FILE *out) {
  print_training(r, out);
  nxc_plan_print_estimate(r, out);
  if (r->written == NULL) print_settings(r, out);
  nxc_plan_print_end(r, out);
}
