/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/emit/emit.h"
#include "compiler/program/emit/emit_forecast.h"

#include "compiler/document/redaction.h"

#include <stdlib.h>
#include <string.h>

/* ---- settings ---- */

/* A value from the environment is not shown: its hash still tells whether two runs had the same. */
static const char *setting_json(nxc_emitter *e, nxc_setting_id id) {
  const nxc_value *value = nxc_settings_value(e->settings, id);
  bool hidden = nxc_settings_from(e->settings, id)->redacted;
  const nxc_value shown = hidden ? nxc_redacted(e->arena, value) : *value;
  return nxc_value_json(e->arena, &shown);
}

static size_t folder_length(const char *name) {
  const char *slash = strrchr(name, '/');
  return slash == NULL ? 0 : (size_t)(slash - name) + 1;
}

/* The file that the others' names are relative to: the one in which the first setting that has a place
 * stands. */
static const char *first_file(const nxc_settings *settings) {
  for (nxc_setting_id id = 0; id < NX_N_SETTINGS; id++) {
    const nxc_provenance *from = nxc_settings_from(settings, id);
    if (from->kind == NXC_FROM_FILE && from->at.source != NULL) return from->at.source->name;
  }
  return "";
}

static const char *relative_name(const char *name, const char *first) {
  size_t folder = folder_length(first);
  if (strncmp(name, first, folder) == 0) return name + folder;
  return name + folder_length(name);
}

void nxc_emit_settings(nxc_emitter *e) {
  const char *first = first_file(e->settings);
  for (nxc_setting_id id = 0; id < NX_N_SETTINGS; id++) {
    if (!nxc_settings_known(e->settings, id)) continue;
    const nxc_provenance *from = nxc_settings_from(e->settings, id);
    const nx_setting_record record = {nxc_emit_provenance_text(e, nxc_setting_path(id)),
                                      nxc_emit_provenance_text(e, setting_json(e, id)),
                                      nxc_setting_rows[id].changes > NXC_CHANGES_NOTHING_KEPT};
    uint32_t index = nxc_emit_record(e, NX_SECTION_SETTINGS, &record);
    const nxc_source *source = from->at.source;
    const char *option = from->option != NULL ? from->option : from->origin;
    const nx_provenance came = {
        .setting = index,
        .kind = nxc_emit_provenance_text(e, nxc_provenance_kind_name(from->kind)),
        .file = source == NULL ? 0 : nxc_emit_provenance_text(e, relative_name(source->name, first)),
        .option = option == NULL ? 0 : nxc_emit_provenance_text(e, option),
        .line = source == NULL ? 0 : from->at.line,
        .column = source == NULL ? 0 : from->at.column};
    nxc_emit_record(e, NX_SECTION_PROVENANCES, &came);
  }
}

static uint32_t find_shown(const nxc_settings *s) {
  return (nxc_flag(s, NX_SETTING_RUN_TENSORBOARD_MEMORY) ? NX_SHOWS_MEMORY : 0u) |
         (nxc_flag(s, NX_SETTING_RUN_TENSORBOARD_LOSS_SCALE) ? NX_SHOWS_LOSS_SCALE : 0u) |
         (nxc_flag(s, NX_SETTING_RUN_TENSORBOARD_PERPLEXITY) ? NX_SHOWS_PERPLEXITY : 0u) |
         (nxc_flag(s, NX_SETTING_RUN_TENSORBOARD_GRADIENT_NORM) ? NX_SHOWS_GRADIENT_NORM : 0u) |
         (nxc_flag(s, NX_SETTING_RUN_TENSORBOARD_TIMERS) ? NX_SHOWS_TIMERS : 0u) |
         (nxc_flag(s, NX_SETTING_RUN_TENSORBOARD_WORLD_SIZE) ? NX_SHOWS_WORLD_SIZE : 0u);
}

static uint32_t find_rules(const nxc_settings *s) {
  return (nxc_flag(s, NX_SETTING_EVALUATE_ONLY) ? NX_RUN_ONLY_EVALUATES : 0u) |
         (nxc_is(s, NX_SETTING_CHECKPOINT_WEIGHTS, "model") ? NX_RUN_MODEL_WEIGHTS : 0u) |
         (nxc_flag(s, NX_SETTING_RUN_STOP_AT_NAN) ? 0u : NX_RUN_GOES_ON_AT_NAN) |
         (nxc_flag(s, NX_SETTING_CHECKPOINT_HUGGING_FACE) ? 0u : NX_RUN_BARE_WEIGHTS) |
         (nxc_flag(s, NX_SETTING_CHECKPOINT_ASYNC) ? NX_RUN_SAVES_ASIDE : 0u) |
         (nxc_is(s, NX_SETTING_CHECKPOINT_WHEN_BUSY, "skip") ? NX_RUN_SKIPS_SAVES : 0u) |
         (nxc_is(s, NX_SETTING_CHECKPOINT_ON_FAILURE, "continue") ? NX_RUN_SAVES_MAY_FAIL : 0u) |
         (nxc_flag(s, NX_SETTING_RUN_PROGRESS_FILE) ? NX_RUN_KEEPS_PROGRESS : 0u) |
         (nxc_is(s, NX_SETTING_RUN_LOG_FORM, "json") ? NX_RUN_LOGS_JSON : 0u) |
         (nxc_flag(s, NX_SETTING_RUN_LOG_FLOPS) ? NX_RUN_LOGS_FLOPS : 0u) |
         (nxc_flag(s, NX_SETTING_LORA_DOUBLE_QUANTIZATION) ? NX_RUN_NESTED_SCALES : 0u);
}

/* Where nothing is evaluated that says which checkpoints are best, the newest are. */
static void emit_kept(const nxc_emitter *e, nx_run_names *names) {
  const nxc_settings *s = e->settings;
  names->keep = (int32_t)nxc_int(s, NX_SETTING_CHECKPOINT_KEEP);
  names->best = (int32_t)nxc_int(s, NX_SETTING_CHECKPOINT_BEST);
  names->best_evaluation = NX_NONE;
  if (nxc_is(s, NX_SETTING_CHECKPOINT_BEST_MODE, "max")) names->rules |= NX_RUN_BEST_IS_GREATEST;
  uint32_t rule = 0;
  if (names->best == 0) return;
  if (nxc_best_number(nxc_text(s, NX_SETTING_CHECKPOINT_BEST_METRIC), &rule)) {
    names->rules |= rule;
    if (rule == NX_RUN_BEST_BY_STEP) names->rules &= ~(uint32_t)NX_RUN_BEST_IS_GREATEST;
    return;
  }
  names->best_evaluation =
      nxc_evaluation_named(&e->training->evaluations, nxc_text(s, NX_SETTING_CHECKPOINT_BEST_METRIC));
  if (names->best_evaluation != NX_NONE) return;
  if (names->keep >= 0 && (names->best < 0 || names->best > names->keep)) names->keep = names->best;
  names->best = 0;
}

static const char *text_or_none(const nxc_settings *s, nxc_setting_id id) {
  return nxc_has(s, id) ? nxc_text(s, id) : "";
}

/* That of the run, or else that of the texts that nxdata makes tokens of. */
static const char *tokenizer_of(const nxc_settings *s) {
  const char *named = text_or_none(s, NX_SETTING_RUN_TOKENIZER);
  return named[0] != '\0' ? named : text_or_none(s, NX_SETTING_DATA_TOKENIZER);
}

static uint64_t int_or_none(const nxc_settings *s, nxc_setting_id id) {
  return nxc_has(s, id) ? (uint64_t)nxc_int(s, id) : 0;
}

static double number_or_none(const nxc_settings *s, nxc_setting_id id) {
  return nxc_has(s, id) ? nxc_number(s, id) : 0;
}

/* Which of its words an enum has; schema/settings.yaml has them in the plan's order. */
static uint8_t find_word(const nxc_settings *s, nxc_setting_id id) {
  const nxc_domain *domain = &nxc_setting_rows[id].domain;
  uint8_t at = 0;
  while (at + 1u < domain->n_values && !nxc_is(s, id, domain->values[at])) at++;
  return at;
}

/* A head of values has not been in the model whose weights it begins with, which had an output layer. */
static nx_strictness strictness_of(const nxc_emitter *e) {
  nx_strictness said = find_word(e->settings, NX_SETTING_CHECKPOINT_STRICTNESS);
  return said == NX_STRICT_RAISE && e->training->objective.row->has_values ? NX_STRICT_LOG_ALL : said;
}

/* When checkpoints are written, beside save_every. */
static void emit_saves(nxc_emitter *e, nx_run_names *names) {
  const nxc_settings *s = e->settings;
  const char *folder = text_or_none(s, NX_SETTING_CHECKPOINT_TEMPORARY_DIRECTORY);
  names->save_after_s = 60 * number_or_none(s, NX_SETTING_CHECKPOINT_EVERY_MINUTES);
  names->save_samples = int_or_none(s, NX_SETTING_CHECKPOINT_EVERY_SAMPLES);
  names->save_epochs = number_or_none(s, NX_SETTING_CHECKPOINT_EVERY_EPOCHS);
  names->retain_every = (uint32_t)int_or_none(s, NX_SETTING_CHECKPOINT_RETAIN_EVERY);
  names->keep_states = (uint32_t)int_or_none(s, NX_SETTING_CHECKPOINT_KEEP_OPTIMIZER);
  names->checkpoints = nxc_emit_provenance_text(e, text_or_none(s, NX_SETTING_CHECKPOINT_DIRECTORY));
  names->temporary_every = (uint32_t)int_or_none(s, NX_SETTING_CHECKPOINT_TEMPORARY_EVERY);
  names->temporary = nxc_emit_provenance_text(e, folder[0] ? folder : "temporary");
  names->link_name = nxc_emit_provenance_text(e, text_or_none(s, NX_SETTING_CHECKPOINT_LINK_NAME));
  names->strictness = (uint8_t)strictness_of(e);
  names->timers = (uint8_t)nxc_int(s, NX_SETTING_RUN_TIMERS);
  names->timers_over = find_word(s, NX_SETTING_RUN_TIMERS_OVER);
  names->stragglers = (uint16_t)nxc_int(s, NX_SETTING_RUN_STRAGGLERS);
}

static const char *join_numbers(nxc_emitter *e, nxc_setting_id id) {
  size_t n_items = 0;
  const nxc_value *items = nxc_has(e->settings, id) ? nxc_list(e->settings, id, &n_items) : NULL;
  const char *text = "";
  for (size_t i = 0; i < n_items; i++)
    text = nxc_arena_printf(e->arena, "%s%s%lld", text, i ? "," : "", (long long)items[i].integer);
  return text;
}

/* A list of words, with line feeds between them. */
static const char *join_words(nxc_emitter *e, nxc_setting_id id) {
  size_t n = 0;
  const nxc_value *words = nxc_has(e->settings, id) ? nxc_list(e->settings, id, &n) : NULL;
  const char *joined = "";
  for (size_t i = 0; i < n; i++)
    joined = nxc_arena_printf(e->arena, "%s%s%s", joined, i ? "\n" : "", words[i].text);
  return joined;
}

static void emit_tokenizer(nxc_emitter *e, nx_run_names *names) {
  const nxc_settings *s = e->settings;
  names->tokenizer = nxc_emit_provenance_text(e, tokenizer_of(s));
  names->tokenizer_merges = nxc_emit_provenance_text(e, text_or_none(s, NX_SETTING_RUN_TOKENIZER_MERGES));
  names->tokenizer_pattern = nxc_emit_provenance_text(e, text_or_none(s, NX_SETTING_RUN_TOKENIZER_PATTERN));
  names->tokenizer_special = nxc_emit_provenance_text(e, join_words(e, NX_SETTING_RUN_TOKENIZER_SPECIAL));
  names->tokenizer_n_special = (uint32_t)int_or_none(s, NX_SETTING_RUN_TOKENIZER_SPECIAL_IDS);
}

static void emit_wandb(nxc_emitter *e, nx_run_names *names) {
  const nxc_settings *s = e->settings;
  names->wandb = nxc_emit_provenance_text(e, text_or_none(s, NX_SETTING_RUN_WANDB));
  names->wandb_every = (uint32_t)nxc_int(s, NX_SETTING_RUN_WANDB_EVERY);
  names->wandb_project = nxc_emit_provenance_text(e, text_or_none(s, NX_SETTING_RUN_WANDB_PROJECT));
  names->wandb_entity = nxc_emit_provenance_text(e, text_or_none(s, NX_SETTING_RUN_WANDB_ENTITY));
  names->wandb_name = nxc_emit_provenance_text(e, text_or_none(s, NX_SETTING_RUN_WANDB_NAME));
  names->wandb_group = nxc_emit_provenance_text(e, text_or_none(s, NX_SETTING_RUN_WANDB_GROUP));
  names->wandb_tags = nxc_emit_provenance_text(e, join_words(e, NX_SETTING_RUN_WANDB_TAGS));
}

static uint32_t schedule_rule_of(const nxc_settings *s) {
  if (nxc_is(s, NX_SETTING_CHECKPOINT_SCHEDULE, "same")) return NX_SCHEDULE_SAME;
  return nxc_is(s, NX_SETTING_CHECKPOINT_SCHEDULE, "checkpoint") ? NX_SCHEDULE_OF_CHECKPOINT
                                                                 : NX_SCHEDULE_OF_PLAN;
}

void nxc_emit_run_names(nxc_emitter *e) {
  const nxc_settings *s = e->settings;
  const char *name = nxc_text(s, NX_SETTING_RUN_NAME);
  const char *directory = nxc_has(s, NX_SETTING_RUN_DIRECTORY) ? nxc_text(s, NX_SETTING_RUN_DIRECTORY) : name;
  bool profiles = nxc_has(s, NX_SETTING_RUN_PROFILE_FIRST) && nxc_has(s, NX_SETTING_RUN_PROFILE_LAST);
  bool limited = nxc_has(s, NX_SETTING_RUN_STOP_AFTER_MINUTES);
  nx_run_names names = {
      .name = nxc_emit_provenance_text(e, name),
      .directory = nxc_emit_provenance_text(e, directory),
      .log_every = (uint32_t)nxc_int(s, NX_SETTING_RUN_LOG_EVERY),
      .save_every = (uint32_t)int_or_none(s, NX_SETTING_CHECKPOINT_EVERY_STEPS),
      .resume = nxc_flag(s, NX_SETTING_CHECKPOINT_RESUME),
      .deadline_s = nxc_has(s, NX_SETTING_RUN_DEADLINE_S) ? nxc_number(s, NX_SETTING_RUN_DEADLINE_S)
                                                          : NXC_DEADLINE_UNKNOWN_S,
      .tensorboard = nxc_emit_provenance_text(e, text_or_none(s, NX_SETTING_RUN_TENSORBOARD)),
      .tensorboard_every = (uint32_t)nxc_int(s, NX_SETTING_RUN_TENSORBOARD_EVERY),
      .tensorboard_shows = find_shown(s),
      .load = nxc_emit_provenance_text(e, text_or_none(s, NX_SETTING_CHECKPOINT_LOAD)),
      .load_step = int_or_none(s, NX_SETTING_CHECKPOINT_LOAD_STEP),
      .load_weights = nxc_flag(s, NX_SETTING_CHECKPOINT_WEIGHTS_ONLY),
      .load_states = nxc_flag(s, NX_SETTING_CHECKPOINT_LOAD_OPTIMIZER),
      .load_required = nxc_flag(s, NX_SETTING_CHECKPOINT_REQUIRED),
      .schedule = schedule_rule_of(s),
      .save_optimizer = nxc_flag(s, NX_SETTING_CHECKPOINT_SAVE_OPTIMIZER),
      .profile_first = profiles ? (uint64_t)nxc_int(s, NX_SETTING_RUN_PROFILE_FIRST) : 0,
      .profile_last = profiles ? (uint64_t)nxc_int(s, NX_SETTING_RUN_PROFILE_LAST) : 0,
      .profile_ranks =
          nxc_emit_provenance_text(e, profiles ? join_numbers(e, NX_SETTING_RUN_PROFILE_RANKS) : ""),
      .profile_directory =
          nxc_emit_provenance_text(e, text_or_none(s, NX_SETTING_RUN_PROFILE_DIRECTORY)),
      .compare_every = (uint32_t)int_or_none(s, NX_SETTING_RUN_COMPARE_COPIES_EVERY),
      .stop_every = (uint32_t)int_or_none(s, NX_SETTING_RUN_STOP_EVERY),
      .stop_after_s = limited ? 60 * nxc_number(s, NX_SETTING_RUN_STOP_AFTER_MINUTES) : 0,
      .file_bytes = (uint64_t)nxc_int(s, NX_SETTING_CHECKPOINT_FILE_BYTES),
      .rules = find_rules(s)};
  emit_kept(e, &names);
  emit_saves(e, &names);
  emit_tokenizer(e, &names);
  emit_wandb(e, &names);
  nxc_emit_record(e, NX_SECTION_RUN_NAMES, &names);
}

/* Those of one prefix make one dataset; their strings ascend, since they are new where they are first said.
 */
static void emit_recipe(nxc_emitter *e, const nxc_recipe *recipe, uint32_t *last_prefix) {
  uint32_t prefix = nxc_emit_string(e, recipe->prefix);
  if (prefix > *last_prefix) {
    nx_recipe record = recipe->record;
    record.prefix = *last_prefix = prefix;
    record.input = nxc_emit_string(e, recipe->input);
    record.field = nxc_emit_string(e, recipe->field);
    record.labels = nxc_emit_string(e, recipe->labels);
    record.rejected = nxc_emit_string(e, recipe->rejected);
    record.reward = nxc_emit_string(e, recipe->reward);
    record.part = nxc_emit_string(e, recipe->part);
    record.tokenizer = nxc_emit_string(e, recipe->tokenizer);
    record.template = nxc_emit_string(e, recipe->template);
    nxc_emit_record(e, NX_SECTION_RECIPES, &record);
  }
  for (size_t i = 0; i < recipe->n_parts; i++) emit_recipe(e, recipe->parts[i], last_prefix);
}

static void emit_recipes(nxc_emitter *e, const nxc_dataset *set, uint32_t *last_prefix) {
  for (uint32_t i = 0; i < set->record.n_sources; i++)
    if (set->sources[i].recipe) emit_recipe(e, set->sources[i].recipe, last_prefix);
}

static void emit_source(nxc_emitter *e, const nxc_dataset_source *source) {
  nx_source record = source->record;
  record.prefix = nxc_emit_string(e, source->prefix);
  for (size_t i = 0; source->recipe && i < source->recipe->n_parts; i++)
    nxc_emit_string(e, source->recipe->parts[i]->prefix);
  record.rejected = nxc_emit_string(e, source->rejected);
  record.labels = nxc_emit_string(e, source->labels);
  record.rejected_labels = nxc_emit_string(e, source->rejected_labels);
  record.rewards = nxc_emit_string(e, source->rewards);
  nxc_emit_record(e, NX_SECTION_SOURCES, &record);
}

void nxc_emit_datasets(nxc_emitter *e) {
  const nxc_datasets *datasets = &e->training->datasets;
  const nxc_data *data = &e->training->data;
  uint32_t first_source = 0;
  for (uint32_t i = 0; i < datasets->n; i++) {
    nx_dataset record = datasets->sets[i].record;
    record.sampler = data->sampler, record.packing = data->packing,
    record.packing_group = (uint32_t)data->packing_group, record.long_samples = data->long_samples;
    record.name = nxc_emit_string(e, datasets->sets[i].name);
    record.first_source = first_source;
    first_source += record.n_sources;
    nxc_emit_record(e, NX_SECTION_DATASETS, &record);
    for (uint32_t at = 0; at < record.n_sources; at++) emit_source(e, &datasets->sets[i].sources[at]);
  }
  uint32_t last_prefix = 0;
  for (uint32_t i = 0; i < datasets->n; i++) emit_recipes(e, &datasets->sets[i], &last_prefix);
}

static int compare_steps(const void *left, const void *right) {
  const uint64_t *a = left, *b = right;
  return *a < *b ? -1 : *a > *b;
}

/* Powers of checkpoint.growth below the last step, rounded down, from `steps` on (NULL: they are counted). */
static size_t list_powers(const nxc_settings *s, uint64_t *steps) {
  size_t n = 0;
  if (!nxc_has(s, NX_SETTING_CHECKPOINT_GROWTH)) return 0;
  double last = (double)nxc_int(s, NX_SETTING_SCHEDULE_MAX_STEPS);
  for (double power = 1; power < last; power *= nxc_number(s, NX_SETTING_CHECKPOINT_GROWTH), n++)
    if (steps) steps[n] = (uint64_t)power;
  return n;
}

static void emit_skipped(nxc_emitter *e) {
  const nxc_training *t = e->training;
  for (size_t i = 0; i < t->n_skipped; i++) nxc_emit_record(e, NX_SECTION_SKIPPED, &t->skipped[i]);
}

static void emit_extra_saves(nxc_emitter *e) {
  size_t n_given = 0, n_powers = list_powers(e->settings, NULL);
  bool some = nxc_has(e->settings, NX_SETTING_CHECKPOINT_EXTRA_STEPS);
  const nxc_value *given = some ? nxc_list(e->settings, NX_SETTING_CHECKPOINT_EXTRA_STEPS, &n_given) : NULL;
  size_t n = n_given + n_powers;
  uint64_t *steps = nxc_arena_array(e->arena, n, sizeof *steps);
  for (size_t i = 0; i < n_given; i++) steps[i] = (uint64_t)given[i].integer;
  list_powers(e->settings, steps + n_given);
  if (n) qsort(steps, n, sizeof *steps, compare_steps);
  for (size_t i = 0; i < n; i++)
    if (i == 0 || steps[i] != steps[i - 1]) nxc_emit_record(e, NX_SECTION_EXTRA_SAVES, &steps[i]);
}

void nxc_emit_evaluations(nxc_emitter *e) {
  const nxc_evaluations *evaluations = &e->training->evaluations;
  for (uint32_t i = 0; i < evaluations->n; i++) {
    nx_evaluation record = evaluations->at[i].record;
    record.name = nxc_emit_provenance_text(e, evaluations->at[i].name);
    nxc_emit_record(e, NX_SECTION_EVALUATIONS, &record);
  }
  emit_extra_saves(e);
  emit_skipped(e);
}
