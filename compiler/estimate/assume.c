/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/estimate/assume.h"

#include "compiler/estimate/known.h"

#include <string.h>

enum { MOST_ASSUMPTIONS = 64 };

typedef struct attempt {
  nxc_arena *arena;
  nxc_request request; /* with what has been assumed so far */
  nxc_assumption items[MOST_ASSUMPTIONS];
  const char *model;
} attempt;

static bool compile(const attempt *a, nxc_compiled *compiled, size_t *n_errors) {
  nxc_sink *trial = nxc_sink_new(a->arena);
  nxc_compile_settings(a->arena, &a->request, trial, compiled);
  *n_errors = nxc_sink_count(trial, NXC_SEVERITY_ERROR);
  return compiled->settings != NULL;
}

static bool assume(attempt *a, nxc_setting_id setting, const char *value, const char *why) {
  if (a->request.n_assumptions == MOST_ASSUMPTIONS) return false;
  a->items[a->request.n_assumptions++] = (nxc_assumption){setting, value, why};
  return true;
}

/* ---- what the file names ---- */

static int64_t known(const nxc_settings *settings, nxc_setting_id id) {
  return nxc_has(settings, id) ? nxc_int(settings, id) : 0;
}

/* The n-th option whose value names something of this kind; given ones first. NULL: there are no more. */
static const char *named(const nxc_compiled *compiled, const char *kind, bool given, size_t *next) {
  const nxc_binding *binding = compiled->binding;
  for (; *next < binding->dialect->n_options; (*next)++) {
    const nxc_bound *bound = &binding->options[*next];
    bool names = bound->row->names != NULL && strcmp(bound->row->names, kind) == 0 && bound->given == given;
    const nxc_value *value = names ? given ? bound->value : nxc_option_default(bound->row, binding->version) : NULL;
    if (value == NULL || value->kind != NXC_STRING) continue;
    (*next)++;
    return value->text;
  }
  return NULL;
}

/* By an option's value, by the name of the file at last. */
static const nxc_known_model *find_model(const nxc_compiled *compiled, const char *file) {
  int64_t layers = known(compiled->settings, NX_SETTING_MODEL_LAYERS);
  int64_t hidden = known(compiled->settings, NX_SETTING_MODEL_HIDDEN);
  const nxc_known_model *model = NULL;
  const char *text;
  for (size_t next = 0; model == NULL && (text = named(compiled, "model", true, &next)) != NULL;)
    model = nxc_known_model_in(text, layers, hidden);
  const char *slash = file ? strrchr(file, '/') : NULL;
  if (model == NULL && file != NULL) model = nxc_known_model_in(slash ? slash + 1 : file, layers, hidden);
  return model;
}

static bool assume_model(attempt *a, const nxc_compiled *compiled) {
  bool reads = compiled->binding->model_dialect != NULL && !compiled->binding->has_model_config;
  const nxc_known_model *model = reads ? find_model(compiled, a->request.file) : NULL;
  if (model == NULL) return false;
  a->request.model_text = nxc_source_new(a->arena, model->name, model->config, strlen(model->config));
  a->request.model_assumed = true;
  a->model = model->name;
  return true;
}

static const char *decimal(attempt *a, int64_t number) {
  return nxc_arena_printf(a->arena, "%lld", (long long)number);
}

static bool assume_vocab(attempt *a, const nxc_compiled *compiled) {
  for (int round = 0; round < 2; round++) {
    const char *text;
    for (size_t next = 0; (text = named(compiled, "tokenizer", round == 0, &next)) != NULL;) {
      const nxc_known_tokenizer *tokenizer = nxc_known_tokenizer_in(text);
      const nxc_known_model *model = nxc_known_model_in(text, 0, 0);
      if (model != NULL)
        return assume(a, NX_SETTING_MODEL_VOCAB, decimal(a, model->vocab),
                      nxc_arena_printf(a->arena, "that of %s", model->name));
      if (tokenizer != NULL)
        return assume(a, NX_SETTING_MODEL_VOCAB, decimal(a, tokenizer->vocab),
                      nxc_arena_printf(a->arena, "%s %s", tokenizer->usual ? "as usual with" : "that of", tokenizer->source));
    }
  }
  return assume(a, NX_SETTING_MODEL_VOCAB, "50257", "as of GPT-2");
}

/* ---- the world ---- */

static const char *smallest_world(attempt *a, const nxc_compiled *compiled, size_t n_errors) {
  const nxc_settings *s = compiled->settings;
  int64_t unit = 1;
  const nxc_setting_id degrees[] = {NX_SETTING_MESH_TENSOR, NX_SETTING_MESH_PIPELINE, NX_SETTING_MESH_CONTEXT};
  for (size_t i = 0; i < sizeof degrees / sizeof *degrees; i++)
    if (known(s, degrees[i]) > 0) unit *= known(s, degrees[i]);
  const char *first = decimal(a, unit), *given = a->request.world_size;
  for (int64_t data = 1; data <= 1024 && unit * data < INT32_MAX; data *= 2) {
    nxc_compiled trial;
    size_t n_then;
    a->request.world_size = decimal(a, unit * data);
    bool good = compile(a, &trial, &n_then) && n_then <= n_errors;
    const char *world = a->request.world_size;
    a->request.world_size = given;
    if (good) return world;
  }
  return first;
}

static bool assume_world(attempt *a, const nxc_compiled *compiled, size_t n_errors) {
  return assume(a, NX_SETTING_MESH_WORLD, smallest_world(a, compiled, n_errors), "the smallest that the layout allows");
}

/* ---- what is usual ---- */

static bool assume_global(attempt *a, const nxc_compiled *compiled) {
  const nxc_settings *s = compiled->settings;
  int64_t ranks = known(s, NX_SETTING_MESH_WORLD), copies = 1;
  const nxc_setting_id degrees[] = {NX_SETTING_MESH_TENSOR, NX_SETTING_MESH_PIPELINE, NX_SETTING_MESH_CONTEXT};
  for (size_t i = 0; i < sizeof degrees / sizeof *degrees; i++)
    if (known(s, degrees[i]) > 0) copies *= known(s, degrees[i]);
  int64_t micro = known(s, NX_SETTING_BATCH_MICRO), data = ranks > copies ? ranks / copies : 1;
  return assume(a, NX_SETTING_BATCH_GLOBAL, decimal(a, (micro > 0 ? micro : 1) * data), "one micro-batch a rank");
}

static const struct {
  nxc_setting_id setting;
  const char *value, *why;
} usual[] = {{NX_SETTING_MODEL_SEQUENCE, "4096", "a usual length"},
             {NX_SETTING_BATCH_MICRO, "1", "the smallest"},
             {NX_SETTING_OPTIMIZER_LR, "0.0003", "no estimate depends on it"},
             {NX_SETTING_SCHEDULE_MAX_STEPS, "1000", "no estimate depends on it"}};

/* The next of what is unknown; false where nothing more can be assumed. */
static bool assume_next(attempt *a, const nxc_compiled *compiled, size_t n_errors) {
  const nxc_settings *s = compiled->settings;
  const nxc_setting_id shape[] = {NX_SETTING_MODEL_LAYERS, NX_SETTING_MODEL_HIDDEN, NX_SETTING_MODEL_HEADS,
                                  NX_SETTING_MODEL_FFN_HIDDEN, NX_SETTING_MODEL_VOCAB};
  for (size_t i = 0; i < sizeof shape / sizeof *shape && a->model == NULL; i++)
    if (!nxc_has(s, shape[i]) && assume_model(a, compiled)) return true;
  if (!nxc_has(s, NX_SETTING_MODEL_VOCAB)) return assume_vocab(a, compiled);
  for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
    if (!nxc_settings_known(s, usual[i].setting)) return assume(a, usual[i].setting, usual[i].value, usual[i].why);
  if (!nxc_has(s, NX_SETTING_MESH_WORLD)) return assume_world(a, compiled, n_errors);
  return !nxc_has(s, NX_SETTING_BATCH_GLOBAL) && assume_global(a, compiled);
}

bool nxc_assume_compile(nxc_arena *arena, const nxc_request *request, const nxc_assumption *given, size_t n_given,
                        nxc_sink *sink, nxc_compiled *compiled, nxc_assumed *assumed) {
  attempt a = {.arena = arena, .request = *request};
  nxc_compiled trial;
  size_t n_errors;
  a.request.assumptions = a.items;
  for (size_t i = 0; i < n_given; i++) assume(&a, given[i].setting, given[i].value, given[i].why);
  for (int round = 0; round < MOST_ASSUMPTIONS && compile(&a, &trial, &n_errors); round++)
    if (!assume_next(&a, &trial, n_errors)) break;
  nxc_assumption *items = nxc_arena_array(arena, MOST_ASSUMPTIONS, sizeof *items);
  memcpy(items, a.items, sizeof a.items);
  a.request.assumptions = items;
  *assumed = (nxc_assumed){items, a.request.n_assumptions, a.model};
  return nxc_compile_settings(arena, &a.request, sink, compiled);
}
