/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/init_from.h"

#include "compiler/config/binding/family.h"
#include "compiler/config/binding/model_config.h"
#include "compiler/settings/domain.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_BYTES_MAX = 16 * 1024 * 1024 };

typedef struct comparison comparison;
struct comparison {
  nxc_binding *binding; /* of the model that is compiled */
  const char *name;     /* of the file that says things of another */
  const nxc_source *text;
  nxc_setting_id of; /* the setting that names its folder */
  bool has_manifest; /* which says of every fact what it is */
  void (*tell)(const comparison *c, nxc_setting_id id, const char *key, const nxc_value *told);
};

/* The file of this name beside the weights; NULL where there is none. */
static const char *beside(nxc_arena *arena, const char *weights, const char *name) {
  struct stat status;
  const char *slash = strrchr(weights, '/');
  const char *folder = slash ? nxc_arena_strndup(arena, weights, (size_t)(slash - weights)) : ".";
  if (stat(weights, &status) == 0 && S_ISDIR(status.st_mode)) folder = weights;
  const char *path = nxc_arena_printf(arena, "%s/%s", folder, name);
  return access(path, R_OK) == 0 ? path : NULL;
}

/* A run's folder means its newest checkpoint, or that of checkpoint.load_step. */
static const char *newest(const nxc_binding *binding, const char *folder) {
  const char *checkpoints = nxc_arena_printf(binding->arena, "%s/checkpoints", folder);
  const nxc_settings *settings = binding->settings;
  bool named = nxc_has(settings, NX_SETTING_CHECKPOINT_LOAD_STEP);
  int64_t found = -1, wanted = named ? nxc_int(settings, NX_SETTING_CHECKPOINT_LOAD_STEP) : 0;
  DIR *open = opendir(checkpoints);
  if (open == NULL) return folder;
  for (const struct dirent *entry; (entry = readdir(open)) != NULL;) {
    char *end;
    if (strncmp(entry->d_name, "step-", 5) != 0) continue;
    int64_t step = strtoll(entry->d_name + 5, &end, 10);
    bool is_it = end != entry->d_name + 5 && *end == '\0' && (wanted == 0 || step == wanted);
    if (is_it && step > found) {
      found = step;
      folder = nxc_arena_printf(binding->arena, "%s/%s", checkpoints, entry->d_name);
    }
  }
  closedir(open);
  return folder;
}

/* -- comparing ------------------------------------------------------------------------------------------- */

/* A window that is as long as the sequence is none. */
static bool reaches_all(const nxc_settings *settings) {
  const nxc_value *window = nxc_settings_value(settings, NX_SETTING_MODEL_SLIDING_WINDOW);
  return window != NULL && window->kind == NXC_INT && nxc_has(settings, NX_SETTING_MODEL_SEQUENCE) &&
         window->integer >= nxc_int(settings, NX_SETTING_MODEL_SEQUENCE);
}

/* What the model has where the setting itself says nothing. */
static const nxc_value *effective(const comparison *c, nxc_setting_id id) {
  static const nxc_value normalized = {.kind = NXC_BOOL, .boolean = true}, none = {.kind = NXC_NULL};
  const nxc_settings *settings = c->binding->settings;
  if (id == NX_SETTING_MODEL_SLIDING_WINDOW && reaches_all(settings)) return &none;
  bool biased =
      nxc_settings_known(settings, NX_SETTING_MODEL_BIAS) && nxc_flag(settings, NX_SETTING_MODEL_BIAS);
  if (biased && (id == NX_SETTING_MODEL_QKV_BIAS || id == NX_SETTING_MODEL_ATTENTION_OUTPUT_BIAS))
    id = NX_SETTING_MODEL_BIAS;
  bool chosen_alone =
      nxc_has(settings, NX_SETTING_MOE_PRE_SOFTMAX) && !nxc_flag(settings, NX_SETTING_MOE_PRE_SOFTMAX);
  if (id == NX_SETTING_MOE_NORMALIZE_TOP_K && chosen_alone) return &normalized; /* the same numbers */
  if (id == NX_SETTING_MODEL_KV_HEADS && !nxc_has(settings, id)) id = NX_SETTING_MODEL_HEADS;
  const nxc_value *value = nxc_settings_value(settings, id);
  bool says_nothing = value != NULL && value->kind == NXC_NULL && id != NX_SETTING_MODEL_SLIDING_WINDOW;
  return says_nothing ? NULL : value;
}

/* Facts of the model itself: what a run from these weights must share. Adapters beside it are not among them:
 * they are read of no weights. */
static bool is_fact(const comparison *c, nxc_setting_id id) {
  const nxc_setting_row *row = &nxc_setting_rows[id];
  const nxc_settings *settings = c->binding->settings;
  if (id == NX_SETTING_MOE_PRE_SOFTMAX) return false; /* said by whether the chosen ones' weights sum to 1 */
  bool beside = strncmp(row->path, "mesh.", 5) == 0 || strncmp(row->path, "lora.", 5) == 0;
  if (row->changes != NXC_CHANGES_CHECKPOINT || beside) return false;
  if (id == NX_SETTING_MODEL_MAX_POSITIONS &&
      !nxc_is(settings, NX_SETTING_MODEL_POSITION_EMBEDDING, "learned"))
    return false;
  const nxc_value *read = row->read_when ? nxc_binding_evaluate(c->binding, NULL, row->read_when) : NULL;
  return row->read_when == NULL || (read != NULL && nxc_value_is_true(read));
}

static bool is_same(nxc_setting_id id, const nxc_value *a, const nxc_value *b) {
  if (id != NX_SETTING_MODEL_CHECKPOINT_NAMES || a->kind != NXC_STRING || b->kind != NXC_STRING)
    return nxc_value_equal(a, b);
  return nxc_family_same_tensors(nxc_family_find(a->text), nxc_family_find(b->text));
}

static void compare(const comparison *c, nxc_setting_id id, const char *key, const nxc_value *told) {
  nxc_binding *binding = c->binding;
  const nxc_value *value = is_fact(c, id) ? effective(c, id) : NULL;
  if (told == NULL || value == NULL || is_same(id, told, value)) return;
  const char *path = nxc_setting_path(id), *shown = nxc_value_show(binding->arena, told);
  const char *named = strcmp(key, path) == 0 ? "" : nxc_arena_printf(binding->arena, " (%s)", key);
  nxc_report(binding->sink, "NX1321", binding->for_nxrun ? NXC_SEVERITY_ERROR : NXC_SEVERITY_WARNING,
             nxc_settings_span(binding->settings, id),
             nxc_arena_printf(binding->arena, "set %s to %s, or begin from other weights", path, shown),
             "the weights of %s are of another model: %s is %s here, and %s%s in %s", nxc_setting_path(c->of),
             path, nxc_value_show(binding->arena, value), shown, named, c->name);
}

/* -- config.json ----------------------------------------------------------------------------------------- */

static bool is_of_model(const nxc_binding *told, const nxc_provenance *from) {
  return from->option != NULL && nxc_binding_find_model(told, from->option) != NULL;
}

/* Whether the key told a setting, which is compared then. */
static bool tells(const nxc_binding *told, const nxc_bound *bound) {
  for (size_t i = 0; i < bound->row->n_sets; i++) {
    const nxc_provenance *from = nxc_settings_from(told->settings, bound->row->sets[i].setting);
    bool said = from->kind == NXC_FROM_MODEL_CONFIG && from->option != NULL;
    if (said && strcmp(from->option, bound->row->name) == 0) return true;
  }
  return false;
}

/* What no setting can say: a kind of model that nxrun does not have at all. */
static void report_others(const comparison *c, const nxc_binding *told) {
  for (size_t i = 0; i < told->model_dialect->n_options; i++) {
    const nxc_bound *bound = &told->model_options[i];
    if (!bound->given || !bound->refused || tells(told, bound)) continue;
    nxc_report(c->binding->sink, "NX1321", c->binding->for_nxrun ? NXC_SEVERITY_ERROR : NXC_SEVERITY_WARNING,
               bound->at, "begin from other weights",
               "the weights of %s are of a model that nxrun does not have: %s is %s: %s",
               nxc_setting_path(c->of), bound->row->name, nxc_value_show(told->arena, bound->value),
               bound->row->why);
  }
}

/* The settings that the file alone would make. */
static nxc_binding *read_config(nxc_binding *binding, const nxc_source *text) {
  static const nxc_origin nowhere;
  nxc_settings *settings = nxc_settings_new(binding->arena);
  nxc_sink *unheard = nxc_sink_new(binding->arena);
  const nxc_value *sequence = nxc_settings_value(binding->settings, NX_SETTING_MODEL_SEQUENCE);
  const nxc_provenance from = {.kind = NXC_FROM_CLI};
  if (sequence != NULL) nxc_settings_set(settings, NX_SETTING_MODEL_SEQUENCE, sequence, &from, unheard);
  nxc_binding *told = nxc_binding_new(binding->arena, nxc_dialect_find("hf_config"), NULL, NULL, &nowhere,
                                      settings, unheard);
  told->for_nxrun = true;
  if (!nxc_binding_read_model_text(told, text)) return NULL;
  nxc_binding_apply(told);
  return told;
}

/* What means nothing in the model of the file, or follows from another of its settings. */
static bool is_idle(nxc_binding *told, nxc_setting_id id) {
  const char *when = nxc_setting_rows[id].read_when;
  const nxc_value *read = when ? nxc_binding_evaluate(told, NULL, when) : NULL;
  bool part_of_bias = id == NX_SETTING_MODEL_QKV_BIAS || id == NX_SETTING_MODEL_ATTENTION_OUTPUT_BIAS;
  return (read != NULL && !nxc_value_is_true(read)) ||
         (part_of_bias && nxc_flag(told->settings, NX_SETTING_MODEL_BIAS));
}

/* Whose names the tensors have follows from the file, unless it is given. */
static bool takes_names(const comparison *c, nxc_setting_id id, const nxc_binding *told) {
  nxc_settings *settings = c->binding->settings;
  bool given = nxc_settings_from(settings, id)->kind >= NXC_FROM_ASSUMED;
  if (id != NX_SETTING_MODEL_CHECKPOINT_NAMES || given) return false;
  const nxc_value *names = nxc_settings_value(told->settings, id);
  if (names != NULL)
    nxc_settings_set(settings, id, names, nxc_settings_from(told->settings, id), c->binding->sink);
  return true;
}

/* What the code of a known family never does is a fact too, though no key says it. */
static bool is_silent(const comparison *c, const nxc_binding *told, nxc_setting_id id) {
  static const nxc_setting_id none[] = {
      NX_SETTING_MODEL_SLIDING_WINDOW,  NX_SETTING_MODEL_ATTENTION_SCALE, NX_SETTING_MODEL_ATTENTION_SOFT_CAP,
      NX_SETTING_MODEL_OUTPUT_SOFT_CAP, NX_SETTING_MODEL_GATE_LIMIT,      NX_SETTING_MODEL_NO_ROPE_EVERY,
      NX_SETTING_MODEL_UNIQUE_LAYERS,   NX_SETTING_MODEL_LATENT_RANK,     NX_SETTING_MODEL_ATTENTION_PATTERN};
  const nxc_value *value = nxc_settings_value(told->settings, id);
  if (c->has_manifest || value == NULL || nxc_settings_from(told->settings, id)->kind != NXC_FROM_DEFAULT)
    return false;
  if (id == NX_SETTING_MODEL_FUSED_QKV) return false; /* how a checkpoint of this run lies */
  bool is_none = value->kind != NXC_NULL;             /* null is often what follows from something else */
  for (size_t i = 0; !is_none && i < sizeof none / sizeof *none; i++) is_none = none[i] == id;
  return is_none;
}

/* What the file does not say is as transformers has it, if the family is known. */
static void tell_config(const comparison *c, const nxc_source *text) {
  nxc_binding *told = read_config(c->binding, text);
  if (told == NULL) {
    nxc_report(c->binding->sink, "NX1315", NXC_SEVERITY_WARNING, (nxc_span){text, 1, 1, 1},
               "put the config.json of the model beside its weights",
               "this is no config.json: the weights beside it cannot be compared with the model");
    return;
  }
  bool known = nxc_binding_read_family(told) != NULL;
  if (c->tell == compare) report_others(c, told);
  for (size_t i = 0; i < NX_N_SETTINGS; i++) {
    nxc_setting_id id = (nxc_setting_id)i;
    const nxc_provenance *from = nxc_settings_from(told->settings, id);
    bool said = from->kind == NXC_FROM_MODEL_CONFIG;
    bool meant = known && (is_of_model(told, from) || id == NX_SETTING_MODEL_ROPE_SCALING);
    bool all =
        known && (c->tell == compare ? is_silent(c, told, id) : nxc_settings_known(told->settings, id));
    if ((said || meant || all) && !is_idle(told, id) && !takes_names(c, id, told))
      c->tell(c, id, from->option ? from->option : all ? nxc_setting_path(id) : "rope_scaling",
              nxc_settings_value(told->settings, id));
  }
}

/* -- manifest.json --------------------------------------------------------------------------------------- */

static void tell_manifest(const comparison *c, const nxc_source *text) {
  json_t *root = json_loadb(text->text, text->n_bytes, 0, NULL), *value;
  const char *path;
  json_object_foreach(json_object_get(root, "settings"), path, value) {
    nxc_setting_id id = nxc_setting_find(path);
    if (id == NX_N_SETTINGS) continue;
    nxc_value told = nxc_value_of_json(c->binding->arena, value);
    nxc_verdict verdict = nxc_domain_judge(c->binding->arena, &nxc_setting_rows[id].domain, &told, true);
    bool says_nothing = told.kind == NXC_NULL && id != NX_SETTING_MODEL_SLIDING_WINDOW;
    if (verdict.misfit == NXC_FITS && !says_nothing) c->tell(c, id, path, verdict.value);
  }
  json_decref(root);
}

/* -- all ------------------------------------------------------------------------------------------------- */

typedef struct description {
  const char *name;
  void (*tell)(const comparison *c, const nxc_source *text);
} description;

static const description descriptions[] = {{"config.json", tell_config}, {"manifest.json", tell_manifest}};
enum { N_DESCRIPTIONS = sizeof descriptions / sizeof *descriptions };

/* What stands beside the weights is told; false where nothing does. */
static bool tell_one(comparison *c, const char *weights, const description *of) {
  c->name = beside(c->binding->arena, weights, of->name);
  c->text = c->name ? nxc_source_read_file(c->binding->arena, c->name, TEXT_BYTES_MAX) : NULL;
  if (c->text != NULL) of->tell(c, c->text);
  return c->text != NULL;
}

static bool tell(comparison *c, const char *weights) {
  bool found = false;
  c->has_manifest = beside(c->binding->arena, weights, "manifest.json") != NULL;
  for (size_t i = 0; i < N_DESCRIPTIONS; i++) found = tell_one(c, weights, &descriptions[i]) || found;
  return found;
}

/* The manifest says everything, where there is one. */
static bool tell_best(comparison *c, const char *weights) {
  for (size_t i = N_DESCRIPTIONS; i > 0; i--)
    if (tell_one(c, weights, &descriptions[i - 1])) return true;
  return false;
}

void nxc_init_from_check(nxc_binding *binding) {
  const nxc_settings *settings = binding->settings;
  comparison c = {.binding = binding, .of = NX_SETTING_RUN_INIT_FROM, .tell = compare};
  if (nxc_has(settings, c.of)) tell(&c, nxc_text(settings, c.of));
  c.of = NX_SETTING_MODEL_FROM_CHECKPOINT;
  if (nxc_has(settings, c.of)) tell_best(&c, newest(binding, nxc_text(settings, c.of)));
}

/* -- a model that is the checkpoint's -------------------------------------------------------------------- */

static bool is_given(const nxc_settings *settings, nxc_setting_id id) {
  return nxc_settings_from(settings, id)->kind >= NXC_FROM_FILE;
}

/* What Megatron takes of a checkpoint only where nothing is given. */
static bool stays_as_given(const nxc_settings *settings, nxc_setting_id id) {
  static const nxc_setting_id sizes[] = {
      NX_SETTING_MODEL_LAYERS,        NX_SETTING_MODEL_HIDDEN,   NX_SETTING_MODEL_FFN_HIDDEN,
      NX_SETTING_MODEL_HEADS,         NX_SETTING_MODEL_HEAD_DIM, NX_SETTING_MODEL_SEQUENCE,
      NX_SETTING_MODEL_MAX_POSITIONS, NX_SETTING_MODEL_VOCAB};
  bool is_size = false;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) is_size = is_size || sizes[i] == id;
  return is_size && is_given(settings, id);
}

/* Megatron takes what is given where it finds no checkpoint, and demands these then. */
static bool is_whole_without(const nxc_settings *settings, const char *folder) {
  static const nxc_setting_id demanded[] = {NX_SETTING_MODEL_LAYERS, NX_SETTING_MODEL_HIDDEN,
                                            NX_SETTING_MODEL_HEADS, NX_SETTING_MODEL_SEQUENCE,
                                            NX_SETTING_MODEL_MAX_POSITIONS};
  bool whole = access(folder, F_OK) != 0;
  for (size_t i = 0; i < sizeof demanded / sizeof *demanded; i++)
    whole = whole && is_given(settings, demanded[i]);
  return whole;
}

static bool is_taken(nxc_setting_id id) {
  const nxc_setting_row *row = &nxc_setting_rows[id];
  bool beside_it = strncmp(row->path, "mesh.", 5) == 0 || strncmp(row->path, "lora.", 5) == 0;
  bool drops = id == NX_SETTING_MODEL_HIDDEN_DROPOUT || id == NX_SETTING_MODEL_ATTENTION_DROPOUT;
  return drops || id == NX_SETTING_MODEL_SEQUENCE || (row->changes == NXC_CHANGES_CHECKPOINT && !beside_it);
}

static void take(const comparison *c, nxc_setting_id id, const char *key, const nxc_value *told) {
  nxc_settings *settings = c->binding->settings;
  const nxc_provenance *before = nxc_settings_from(settings, id);
  if (told == NULL || !is_taken(id) || stays_as_given(settings, id)) return;
  const char *option = strcmp(key, nxc_setting_path(id)) == 0 ? NULL : key;
  const nxc_provenance from = {.kind = NXC_FROM_MODEL_CONFIG, .at = {c->text, 1, 1, 1}, .option = option};
  bool differs = before->kind >= NXC_FROM_FILE && !nxc_value_equal(before->value, told);
  if (differs)
    nxc_report(c->binding->sink, "NX1323", NXC_SEVERITY_NOTE, before->at, "leave it out",
               "%s is %s in %s, which counts over %s", nxc_setting_path(id),
               nxc_value_show(c->binding->arena, told), c->name, before->option);
  nxc_value *kept = nxc_arena_alloc(c->binding->arena, sizeof *kept);
  *kept = *told;
  nxc_settings_override(settings, id, kept, &from, c->binding->sink);
}

void nxc_init_from_take_model(nxc_binding *binding, bool required) {
  const nxc_settings *settings = binding->settings;
  const nxc_setting_id id = NX_SETTING_MODEL_FROM_CHECKPOINT;
  if (!nxc_has(settings, id)) return;
  const char *folder = nxc_text(settings, id);
  comparison c = {.binding = binding, .of = id, .tell = take};
  if (binding->model_taken || tell_best(&c, newest(binding, folder))) return;
  /* What it goes on from is what it has saved: none yet, or of the model that is given here. */
  if (nxc_has(settings, NX_SETTING_CHECKPOINT_RESUME) && nxc_flag(settings, NX_SETTING_CHECKPOINT_RESUME))
    return;
  if (is_whole_without(settings, folder)) {
    nxc_report(binding->sink, "NX1323", NXC_SEVERITY_WARNING, nxc_settings_span(settings, id),
               "compile where the checkpoint is, if its model may be another",
               "%s is not here: the model is as it is given, as Megatron has it without a checkpoint",
               *folder ? folder : "a checkpoint without a name");
    return;
  }
  bool refused = required && binding->for_nxrun;
  nxc_report(
      binding->sink, "NX1401", refused ? NXC_SEVERITY_ERROR : NXC_SEVERITY_NOTE,
      nxc_settings_span(settings, id),
      "name a checkpoint of nxrun or of the system, or a folder with a config.json, or leave it out and "
      "give the sizes",
      "nxrun cannot execute %s: the plan needs the model before it runs, and %s has no manifest.json, "
      "no config.json and no arguments that nxcfg can read",
      nxc_setting_name_in_dialect(settings, id), *folder ? folder : "an empty name");
}
