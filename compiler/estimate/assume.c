/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/estimate/assume.h"

#include "compiler/estimate/known.h"

#include <string.h>

enum { MOST_ASSUMPTIONS = NX_N_SETTINGS };

typedef struct attempt {
  nxc_arena *arena;
  nxc_request request; /* with what has been assumed so far */
  nxc_assumption items[MOST_ASSUMPTIONS];
  const char *model;
  nxc_span model_at;
  const char *told; /* the user's own name of the model, or NULL */
  const char *arguments; /* of the script, that a comment of it shows, or NULL */
  bool tried;            /* those */
} attempt;

/* A compilation with what has been assumed so far. */
typedef struct trial {
  nxc_compiled compiled;
  nxc_sink *sink;
  size_t n_errors;
  bool good;
} trial;

static trial compile(const attempt *a) {
  trial t = {.sink = nxc_sink_new(a->arena)};
  t.good = nxc_compile_settings(a->arena, &a->request, t.sink, &t.compiled);
  t.n_errors = nxc_sink_count(t.sink, NXC_SEVERITY_ERROR);
  return t;
}

/* Once each: what is assumed and still unknown stays so. */
static bool assume(attempt *a, nxc_setting_id setting, const char *value, const char *why) {
  size_t n = a->request.n_assumptions;
  for (size_t i = 0; i < n; i++)
    if (a->items[i].setting == setting) return false;
  if (n == MOST_ASSUMPTIONS) return false;
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
    const nxc_value *value =
        names ? given ? bound->value : nxc_option_default(bound->row, binding->version) : NULL;
    if (value == NULL || value->kind != NXC_STRING) continue;
    (*next)++;
    return value->text;
  }
  return NULL;
}

/* Qwen/Qwen3-8B: it says which model, even where nothing here knows it. */
static bool is_identity(const char *text) {
  const char *slash = strchr(text, '/');
  return slash != NULL && strchr("/.~$", *text) == NULL && strchr(slash + 1, '/') == NULL;
}

static const nxc_known_model *find_shape(const char *text, const nxc_settings *s) {
  int64_t layers = known(s, NX_SETTING_MODEL_LAYERS), hidden = known(s, NX_SETTING_MODEL_HIDDEN);
  const nxc_known_model *model = nxc_known_model_in(text, layers, hidden);
  /* Layers that are given may be other than those of the model that is named: the rest is as there. */
  bool free = hidden != 0 || nxc_settings_from(s, NX_SETTING_MODEL_LAYERS)->kind == NXC_FROM_ASSUMED;
  return model == NULL && free ? nxc_known_model_in(text, 0, hidden) : model;
}

/* By an option's value, whose place `at` becomes, then by what the run is called; by the name of the file
 * where the options name none. */
static const nxc_known_model *find_model(const attempt *a, const nxc_compiled *compiled, nxc_span *at) {
  static const char *const kinds[] = {"model", "title"};
  const char *file = a->request.file;
  if (a->told != NULL) return nxc_known_model_in(a->told, 0, 0);
  const nxc_known_model *model = NULL;
  bool other = false;
  const char *text;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    for (size_t next = 0; model == NULL && (text = named(compiled, kinds[i], true, &next)) != NULL;) {
      model = find_shape(text, compiled->settings);
      other = other || is_identity(text);
      if (model != NULL && i == 0) *at = compiled->binding->options[next - 1].at;
    }
  if (model != NULL || other || file == NULL) return model;
  const char *slash = strrchr(file, '/');
  return find_shape(slash ? slash + 1 : file, compiled->settings);
}

static bool assume_model(attempt *a, const nxc_compiled *compiled) {
  bool reads = compiled->binding->model_dialect != NULL && !compiled->binding->has_model_config;
  const nxc_known_model *model = reads ? find_model(a, compiled, &a->model_at) : NULL;
  if (model == NULL) return false;
  a->request.model_text = nxc_source_new(a->arena, model->name, model->config, strlen(model->config));
  a->request.model_assumed = true;
  a->model = model->name;
  return true;
}

static const char *decimal(attempt *a, int64_t number) {
  return nxc_arena_printf(a->arena, "%lld", (long long)number);
}

static bool assume_vocab_of(attempt *a, int64_t vocab, bool usual, const char *whose) {
  const char *why = nxc_arena_printf(a->arena, "%s %s", usual ? "as usual with" : "that of", whose);
  return assume(a, NX_SETTING_MODEL_VOCAB, decimal(a, vocab), why);
}

/* Of a tokenizer that an option names: the one that has this name, or what most of its type have. */
static bool assume_tokenizer(attempt *a, const nxc_compiled *compiled, bool given, bool usual) {
  const char *text;
  for (size_t next = 0; (text = named(compiled, "tokenizer", given, &next)) != NULL;) {
    const nxc_known_tokenizer *tokenizer = nxc_known_tokenizer_in(text);
    const nxc_known_model *model = nxc_known_model_in(text, 0, 0);
    if (!usual && model != NULL && model->vocab != 0)
      return assume_vocab_of(a, model->vocab, false, model->name);
    if (tokenizer != NULL && tokenizer->usual == usual)
      return assume_vocab_of(a, tokenizer->vocab, usual, tokenizer->source);
  }
  return false;
}

/* What is named counts before what is usual, and of the names the tokenizer's before the model's. */
static bool assume_vocab(attempt *a, const nxc_compiled *compiled) {
  if (assume_tokenizer(a, compiled, true, false)) return true;
  bool known_shape = nxc_has(compiled->settings, NX_SETTING_MODEL_LAYERS);
  nxc_span at;
  const nxc_known_model *model = known_shape ? find_model(a, compiled, &at) : NULL;
  if (model != NULL && model->vocab != 0) return assume_vocab_of(a, model->vocab, false, model->name);
  return assume_tokenizer(a, compiled, true, true) || assume_tokenizer(a, compiled, false, false) ||
         assume_tokenizer(a, compiled, false, true) ||
         assume(a, NX_SETTING_MODEL_VOCAB, "50257", "as of GPT-2");
}

/* ---- the world ---- */

static int64_t product_of_known(const nxc_settings *s, const nxc_setting_id *ids, size_t n_ids) {
  int64_t product = 1;
  for (size_t i = 0; i < n_ids; i++)
    if (known(s, ids[i]) > 0) product *= known(s, ids[i]);
  return product;
}

/* Ranks of one copy of the model. */
static int64_t ranks_of_copy(const nxc_settings *s) {
  const nxc_setting_id ids[] = {NX_SETTING_MESH_TENSOR, NX_SETTING_MESH_PIPELINE, NX_SETTING_MESH_CONTEXT};
  return product_of_known(s, ids, sizeof ids / sizeof *ids);
}

/* Fewer ranks than these cannot hold the experts once, or as many copies of the state as are asked for. */
static int64_t fewest_ranks(const nxc_settings *s) {
  const nxc_setting_id ids[] = {NX_SETTING_MESH_PIPELINE, NX_SETTING_MESH_EXPERT,
                                NX_SETTING_MESH_EXPERT_TENSOR};
  int64_t experts = product_of_known(s, ids, sizeof ids / sizeof *ids), copy = ranks_of_copy(s);
  int64_t copies = known(s, NX_SETTING_MESH_REPLICATE) > 1 ? known(s, NX_SETTING_MESH_REPLICATE) : 1;
  return experts > copy * copies ? experts : copy * copies;
}

/* The first world with which nothing more is wrong than without; the first of all where there is none
 * near. */
static const char *smallest_world(attempt *a, const trial *before) {
  enum { MOST_TRIALS = 4 };
  int64_t copy = ranks_of_copy(before->compiled.settings), fewest = fewest_ranks(before->compiled.settings);
  int64_t first = (fewest + copy - 1) / copy * copy;
  const char *given = a->request.world_size, *world = NULL;
  for (int i = 0; i < MOST_TRIALS && world == NULL && first << i < INT32_MAX; i++) {
    a->request.world_size = decimal(a, first << i);
    trial t = compile(a);
    if (t.compiled.settings != NULL && t.n_errors <= before->n_errors) world = a->request.world_size;
  }
  a->request.world_size = given;
  return world ? world : decimal(a, first);
}

static bool assume_world(attempt *a, const trial *before) {
  return assume(a, NX_SETTING_MESH_WORLD, smallest_world(a, before), "the smallest that the layout allows");
}

/* ---- what is usual ---- */

static bool assume_global(attempt *a, const nxc_settings *s) {
  int64_t ranks = known(s, NX_SETTING_MESH_WORLD), copy = ranks_of_copy(s);
  int64_t micro = known(s, NX_SETTING_BATCH_MICRO), data = ranks > copy ? ranks / copy : 1;
  return assume(a, NX_SETTING_BATCH_GLOBAL, decimal(a, (micro > 0 ? micro : 1) * data),
                "one micro-batch a rank");
}

static const struct usual {
  nxc_setting_id setting;
  const char *value, *why;
} usual[] = {{NX_SETTING_MODEL_SEQUENCE, "4096", "a usual length"},
             {NX_SETTING_BATCH_MICRO, "1", "the smallest"},
             {NX_SETTING_MESH_NODES, "1", "a machine has hosts of its own size"},
             {NX_SETTING_RUN_SEED, "1", "no estimate depends on it"},
             {NX_SETTING_OPTIMIZER_LR, "0.0003", "no estimate depends on it"},
             {NX_SETTING_SCHEDULE_MIN_LR, "0", "no estimate depends on it"},
             {NX_SETTING_SCHEDULE_MAX_STEPS, "1000", "no estimate depends on it"},
             {NX_SETTING_CHECKPOINT_EVERY_STEPS, "1000", "no estimate depends on it"},
             {NX_SETTING_EVALUATE_EVERY_STEPS, "1000", "a usual interval"}};

/* What scripts leave to their arguments; of a model whose shape is known. */
static const struct usual left_open[] = {
    {NX_SETTING_MESH_TENSOR, "1", "nothing tells it; --assume does"},
    {NX_SETTING_MESH_PIPELINE, "1", "nothing tells it; --assume does"},
    {NX_SETTING_MESH_CONTEXT, "1", "nothing tells it; --assume does"},
    {NX_SETTING_MESH_EXPERT, "1", "nothing tells it; --assume does"},
    {NX_SETTING_OPTIMIZER_ZERO_STAGE, "0", "nothing tells it; --assume does"},
    {NX_SETTING_OFFLOAD_OPTIMIZER, "0", "nothing tells it; --assume does"},
    {NX_SETTING_OFFLOAD_PARAMETERS, "false", "nothing tells it; --assume does"},
    {NX_SETTING_MODEL_POSITION_EMBEDDING, "none", "others change an estimate little"}};

static bool assume_all(attempt *a, const nxc_settings *s, const struct usual *rows, size_t n_rows) {
  bool assumed = false;
  for (size_t i = 0; i < n_rows; i++)
    if (!nxc_settings_known(s, rows[i].setting))
      assumed = assume(a, rows[i].setting, rows[i].value, rows[i].why) || assumed;
  return assumed;
}

static bool assume_usual(attempt *a, const nxc_compiled *compiled) {
  const nxc_settings *s = compiled->settings;
  bool assumed =
      !nxc_has(s, NX_SETTING_MODEL_VOCAB) &&
      (nxc_has(s, NX_SETTING_MODEL_VOCAB_PADDED)
           ? assume(a, NX_SETTING_MODEL_VOCAB, decimal(a, nxc_int(s, NX_SETTING_MODEL_VOCAB_PADDED)),
                    "no more than it is padded to")
           : assume_vocab(a, compiled));
  return assume_all(a, s, usual, sizeof usual / sizeof *usual) || assumed;
}

/* What a condition hangs on, or a word that is not known here: as nx has it. */
static bool assume_defaults(attempt *a, const nxc_settings *s) {
  nxc_setting_id ids[NX_N_SETTINGS];
  bool assumed = false;
  size_t n = nxc_settings_unknown_for_plan(s, ids);
  for (size_t i = 0; i < n; i++) {
    const nxc_value *initial = nxc_setting_rows[ids[i]].initial;
    if (initial == NULL) continue;
    const char *value = initial->kind == NXC_STRING ? initial->text : nxc_value_show(a->arena, initial);
    assumed = assume(a, ids[i], value, "nothing tells it; --assume does") || assumed;
  }
  return assumed;
}

/* ---- all ---- */

static bool lacks_layers(const nxc_settings *s) {
  const nxc_setting_id shape[] = {NX_SETTING_MODEL_LAYERS, NX_SETTING_MODEL_HIDDEN, NX_SETTING_MODEL_HEADS,
                                  NX_SETTING_MODEL_FFN_HIDDEN};
  for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
    if (!nxc_has(s, shape[i])) return true;
  return false;
}

static bool lacks_shape(const nxc_settings *s) {
  return lacks_layers(s) || !nxc_has(s, NX_SETTING_MODEL_VOCAB);
}

bool nxc_is_other_kind(const nxc_settings *s) {
  return nxc_has(s, NX_SETTING_MODEL_KIND) && !nxc_is(s, NX_SETTING_MODEL_KIND, "decoder");
}

/* Also where it is that of a config.json that says nothing. */
static bool is_shapeless(const nxc_settings *s) {
  return lacks_shape(s) || nxc_is_other_kind(s) ||
         nxc_settings_from(s, NX_SETTING_MODEL_LAYERS)->kind == NXC_FROM_DIALECT_DEFAULT;
}

/* What a script takes for itself, as one that is called with a size of the model. */
static bool assume_arguments(attempt *a, const trial *before) {
  const nxc_settings *s = before->compiled.settings;
  const char *example = before->compiled.document->example;
  bool lacks = lacks_layers(s) || !nxc_has(s, NX_SETTING_MESH_TENSOR) ||
               !nxc_has(s, NX_SETTING_MESH_PIPELINE) || !nxc_has(s, NX_SETTING_MODEL_SEQUENCE) ||
               !nxc_has(s, NX_SETTING_BATCH_MICRO);
  if (a->tried || example == NULL || !lacks) return false;
  nxc_request given = a->request;
  a->tried = true;
  a->request.script_arguments = a->arguments = example;
  a->request.followed = NULL; /* without them */
  trial t = compile(a);
  if (t.compiled.settings != NULL && !lacks_layers(t.compiled.settings)) return true;
  a->request = given;
  a->arguments = NULL;
  return false;
}

/* The next of what is unknown, what others follow from first; false where nothing more can be assumed. */
static bool assume_next(attempt *a, const trial *t) {
  const nxc_settings *s = t->compiled.settings;
  if (s == NULL || nxc_is_other_kind(s)) return false;
  if (assume_arguments(a, t)) return true;
  if (t->compiled.binding->elsewhere && !a->request.assumes_defaults)
    return a->request.assumes_defaults = true;
  if (a->model == NULL && lacks_layers(s) && assume_model(a, &t->compiled)) return true;
  if (assume_usual(a, &t->compiled)) return true;
  if (!lacks_shape(s) && assume_all(a, s, left_open, sizeof left_open / sizeof *left_open)) return true;
  if (!nxc_has(s, NX_SETTING_MESH_WORLD)) return assume_world(a, t);
  if (!nxc_has(s, NX_SETTING_BATCH_GLOBAL) && assume_global(a, s)) return true;
  return !lacks_shape(s) && assume_defaults(a, s);
}

/* What was assumed and nothing else gives. */
static nxc_assumed in_use(const attempt *a, const nxc_settings *s) {
  nxc_assumption *items = nxc_arena_array(a->arena, MOST_ASSUMPTIONS, sizeof *items);
  nxc_assumed assumed = {
      .items = items, .model = a->model, .model_at = a->model_at, .arguments = a->arguments};
  for (size_t i = 0; i < a->request.n_assumptions && s != NULL; i++)
    if (nxc_settings_from(s, a->items[i].setting)->kind == NXC_FROM_ASSUMED)
      items[assumed.n_items++] = a->items[i];
  return assumed;
}

bool nxc_assume_compile(nxc_arena *arena, const nxc_request *request, const nxc_assumption *given,
                        size_t n_given, nxc_sink *sink, nxc_compiled *compiled, nxc_assumed *assumed) {
  attempt *a = nxc_arena_alloc(arena, sizeof *a); /* what is compiled points into it */
  *a = (attempt){.arena = arena, .request = *request};
  a->request.assumptions = a->items;
  for (size_t i = 0; i < n_given; i++) {
    if (given[i].setting == NXC_ASSUMES_MODEL) a->told = given[i].value;
    else assume(a, given[i].setting, given[i].value, given[i].why);
  }
  trial t = compile(a);
  while (assume_next(a, &t)) t = compile(a);
  bool defaults = a->request.assumes_defaults && !request->assumes_defaults;
  if (defaults && t.compiled.settings != NULL && is_shapeless(t.compiled.settings)) {
    a->request.assumes_defaults = false; /* they are those of another model */
    t = compile(a);
  }
  nxc_sink_take(sink, t.sink);
  *assumed = in_use(a, t.compiled.settings);
  assumed->request = a->request;
  assumed->defaults = a->request.assumes_defaults;
  *compiled = t.compiled;
  return t.good;
}
