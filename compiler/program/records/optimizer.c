/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/records/optimizer.h"

#include "compiler/program/records/read.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers of a rule ---- */

static double beta_of(const nxc_settings *s, size_t index) {
  size_t n;
  const nxc_value *betas = nxc_list(s, NX_SETTING_OPTIMIZER_BETAS, &n);
  return index < n ? betas[index].number : 0;
}

/* Which of the names that an attribute may have; 0 of others. */
static double named(const nx_attr_row *row, const char *text) {
  double index = 0;
  size_t n = strlen(text);
  for (const char *at = row->values; at && *at; at += strspn(at, " "), index++) {
    if (strncmp(at, text, n) == 0 && (at[n] == ' ' || at[n] == '\0')) return index;
    at += strcspn(at, " ");
  }
  return 0;
}

/* A number is the setting of its name; of an unknown one 0. */
static double number_of(const nxc_settings *s, const nx_attr_row *row) {
  const char *name = row->name;
  if (strcmp(name, "beta1") == 0) return beta_of(s, 0);
  if (strcmp(name, "beta2") == 0) return beta_of(s, 1);
  nxc_setting_id id = nxc_setting_find(nxc_arena_printf(nxc_settings_arena(s), "optimizer.%s", name));
  if (id == NX_N_SETTINGS || !nxc_has(s, id)) return 0;
  const nxc_value *value = nxc_settings_value(s, id);
  if (value->kind == NXC_BOOL) return nxc_flag(s, id);
  return value->kind == NXC_STRING ? named(row, value->text) : nxc_number(s, id);
}

static nxc_update update_of(const nxc_settings *s, const nx_optimizer_row *rule) {
  nxc_update update = {.rule = rule};
  const nx_op_row *op = rule ? nx_op_find(rule->op) : NULL;
  for (uint32_t i = 0; op && i < nx_op_n_attrs(op); i++) update.numbers[i] = number_of(s, &op->attrs[i]);
  return update;
}

static bool is_set(const nxc_settings *s, nxc_setting_id id) {
  return nxc_settings_value(s, id)->kind == NXC_BOOL ? nxc_flag(s, id) : nxc_number(s, id) > 0;
}

/* The rule of this name, or the variant of it that other settings choose. Numbers choose only one of that
 * which optimizer.name says: they are its own. */
static const char *variant_of(const nxc_settings *s, const char *name, bool by_numbers) {
  const char *meant = name;
  const nx_optimizer_variant *variant;
  for (uint32_t i = 0; (variant = nx_optimizer_variant_at(i)) != NULL; i++) {
    if (strcmp(variant->rule, meant) != 0) continue;
    nxc_setting_id id =
        nxc_setting_find(nxc_arena_printf(nxc_settings_arena(s), "optimizer.%s", variant->setting));
    bool counts = id != NX_N_SETTINGS && nxc_has(s, id);
    counts = counts && (by_numbers || nxc_settings_value(s, id)->kind == NXC_BOOL);
    if (counts && is_set(s, id) == variant->set) meant = variant->other;
  }
  return meant;
}

const char *nxc_update_name(const nxc_settings *s) {
  return variant_of(s, nxc_text(s, NX_SETTING_OPTIMIZER_NAME), true);
}

/* ---- groups ---- */

/* "name=number", up to a blank; returns where the text goes on, NULL where it is none. */
static const char *read_number(const char *text, const char *name, double *number) {
  size_t n = strlen(name);
  if (strncmp(text, name, n) != 0 || text[n] != '=') return NULL;
  char *end;
  *number = strtod(text + n + 1, &end);
  bool good = end != text + n + 1 && (*end == '\0' || *end == ' ') && isfinite(*number) && *number >= 0;
  return good ? end : NULL;
}

const char *nxc_group_pattern_read(nxc_arena *arena, const char *text, nxc_group_pattern *pattern) {
  size_t n = strcspn(text, " ");
  *pattern = (nxc_group_pattern){nxc_arena_printf(arena, "%.*s", (int)n, text), 1, -1};
  if (n == 0) return "it has no pattern of names";
  for (text += n; *text != '\0';) {
    text += strspn(text, " ");
    const char *end = read_number(text, "lr_factor", &pattern->lr_factor);
    if (end == NULL) end = read_number(text, "weight_decay", &pattern->weight_decay);
    if (end == NULL && *text != '\0')
      return "behind the pattern stands lr_factor=NUMBER or weight_decay=NUMBER";
    if (end) text = end;
  }
  return NULL;
}

static void read_patterns(const nxc_settings *s, nxc_optimizer *o) {
  size_t n;
  const nxc_value *texts = nxc_list(s, NX_SETTING_OPTIMIZER_GROUPS, &n);
  nxc_group_pattern *patterns = nxc_arena_array(nxc_settings_arena(s), n, sizeof *patterns);
  for (size_t i = 0; i < n; i++)
    if (nxc_group_pattern_read(nxc_settings_arena(s), texts[i].text, &patterns[o->n_patterns]) == NULL)
      o->n_patterns++;
  o->patterns = patterns;
}

static void read_decoupled(const nxc_settings *s, nxc_optimizer *o) {
  o->decoupled = nxc_has(s, NX_SETTING_OPTIMIZER_DECOUPLED_LR);
  if (!o->decoupled) return;
  double lr = nxc_number(s, NX_SETTING_OPTIMIZER_DECOUPLED_LR),
         all = nxc_number_or(s, NX_SETTING_OPTIMIZER_LR, 0);
  double least =
      nxc_number_or(s, NX_SETTING_OPTIMIZER_DECOUPLED_MIN_LR, nxc_number(s, NX_SETTING_SCHEDULE_MIN_LR));
  o->decoupled_rate = nxc_learning_rate_between(s, lr, least);
  o->decoupled_factor = all > 0 ? lr / all : 1;
}

/* Weight decay goes from its start to its end, and stays there. */
static nxc_learning_rate read_weight_decay(const nxc_settings *s) {
  double end = nxc_number(s, NX_SETTING_OPTIMIZER_WEIGHT_DECAY);
  nx_segment whole = {.kind = NX_SEGMENT_CONSTANT, .every = 1, .span = 1, .from = end, .to = end},
             growth = whole;
  double steps = nxc_number_or(s, NX_SETTING_OPTIMIZER_WEIGHT_DECAY_STEPS,
                               (double)nxc_int_or(s, NX_SETTING_SCHEDULE_MAX_STEPS, 1));
  int64_t unit = nxc_learning_rate_unit(s);
  if (nxc_is(s, NX_SETTING_OPTIMIZER_WEIGHT_DECAY_GROWTH, "linear")) growth.kind = NX_SEGMENT_LINEAR;
  if (nxc_is(s, NX_SETTING_OPTIMIZER_WEIGHT_DECAY_GROWTH, "cosine")) growth.kind = NX_SEGMENT_COSINE;
  if (growth.kind == NX_SEGMENT_CONSTANT) return (nxc_learning_rate){.segments = {whole}, .n_segments = 1};
  growth.from = nxc_number_or(s, NX_SETTING_OPTIMIZER_START_WEIGHT_DECAY, end);
  growth.span = (steps > 0 ? steps : 1) * (double)unit;
  whole.first = (int64_t)floor(growth.span) + 1, whole.origin = (double)whole.first;
  return (nxc_learning_rate){.segments = {growth, whole}, .n_segments = 2, .by_samples = unit > 1};
}

nxc_optimizer nxc_optimizer_read(const nxc_settings *s) {
  nxc_optimizer o = {
      .update = update_of(s, nx_optimizer_find(nxc_update_name(s))),
      .maximizes = nxc_flag(s, NX_SETTING_OPTIMIZER_MAXIMIZE),
      .goes_on = !nxc_flag(s, NX_SETTING_RUN_STOP_AT_NAN) && !nxc_is(s, NX_SETTING_PRECISION_COMPUTE, "fp16"),
      .norm_weight_decay = nxc_flag(s, NX_SETTING_OPTIMIZER_NORM_WEIGHT_DECAY),
      .qk_norm_weight_decay = nxc_flag(s, NX_SETTING_OPTIMIZER_QK_NORM_WEIGHT_DECAY),
      .blockwise = nxc_flag(s, NX_SETTING_OPTIMIZER_BLOCKWISE),
      .matrix_routers = nxc_flag(s, NX_SETTING_OPTIMIZER_MATRIX_ROUTERS),
      .stacked_scale = nxc_flag(s, NX_SETTING_OPTIMIZER_STACKED_SCALE),
      .matrix_parts = nxc_int_or(s, NX_SETTING_OPTIMIZER_MATRIX_PARTS, 1),
      .expert_parts = nxc_int_or(s, NX_SETTING_OPTIMIZER_EXPERT_PARTS, 1),
      .weight_decay = read_weight_decay(s),
      .clip_norm = nxc_number_or(s, NX_SETTING_OPTIMIZER_CLIP_NORM, DBL_MAX),
      .begins_anew = nxc_has(s, NX_SETTING_CHECKPOINT_LOAD) &&
                     !nxc_flag(s, NX_SETTING_CHECKPOINT_WEIGHTS_ONLY) &&
                     !nxc_flag(s, NX_SETTING_CHECKPOINT_LOAD_OPTIMIZER)};
  if (o.update.rule && o.update.rule->op == NX_OP_onebitadam)
    o.compresses_from = (int64_t)o.update.numbers[NX_onebitadam_freeze_step] - 1;
  double lr = nxc_number_or(s, NX_SETTING_OPTIMIZER_LR, 0);
  o.others = update_of(s, nx_optimizer_find(variant_of(s, nxc_text(s, NX_SETTING_OPTIMIZER_OTHERS), false)));
  o.matrix_factor = lr > 0 ? nxc_number_or(s, NX_SETTING_OPTIMIZER_MATRIX_LR, lr) / lr : 1;
  o.joined = nxc_list(s, NX_SETTING_OPTIMIZER_JOINED, &o.n_joined);
  read_decoupled(s, &o);
  read_patterns(s, &o);
  return o;
}

nxc_sharding nxc_sharding_read(const nxc_settings *s) {
  nxc_sharding sharding = {.stage = (uint32_t)nxc_int(s, NX_SETTING_OPTIMIZER_ZERO_STAGE),
                           .reshard_after_forward = nxc_flag(s, NX_SETTING_OPTIMIZER_RESHARD_AFTER_FORWARD),
                           .overlap_reduce = nxc_flag(s, NX_SETTING_REDUCE_OVERLAP),
                           .overlap_gather = nxc_flag(s, NX_SETTING_GATHER_OVERLAP),
                           .in_pairs = nxc_is(s, NX_SETTING_RUN_REPRODUCIBLE, "elastic"),
                           .bucket_elements = (uint64_t)nxc_int_or(s, NX_SETTING_REDUCE_BUCKET_ELEMENTS, 0)};
  sharding.reduce_once = sharding.in_pairs || nxc_flag(s, NX_SETTING_REDUCE_ONCE);
  if (sharding.stage == 3) sharding.keep_below = (uint64_t)nxc_int(s, NX_SETTING_GATHER_KEEP_BELOW);
  return sharding;
}
