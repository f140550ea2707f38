/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/convert/convert.h"
#include "compiler/config/fronts.h"

#include "compiler/compare/beyond.h"
#include "compiler/convert/compose.h"
#include "compiler/document/canon.h"
#include "compiler/document/nodes.h"

#include <assert.h>
#include <string.h>

typedef struct converter {
  nxc_arena *arena;
  const nxc_conversion_request *request;
  const nxc_compiled *source;
  const nxc_settings *wanted; /* without what must not be shown */
  const nxc_beyond *beyond;   /* what settings do not say */
  size_t n_beyond;
  const nxc_front *front;     /* of the dialect that is converted to */
  const nxc_dialect *dialect;
  const char *version;        /* whose options are composed; NULL: any */
  bool insist[NX_N_SETTINGS]; /* settings that a default turned out not to say */
  nxc_compiled back;   /* the text, read back */
  nxc_conversion *out;
} converter;

static bool stays(const converter *c) {
  return c->dialect == c->source->dialect && !c->request->anew;
}

static void add_unsaid(converter *c, nxc_unsaid one) {
  nxc_conversion *out = c->out;
  out->unsaid = nxc_arena_grow(c->arena, out->unsaid, out->n_unsaid, sizeof one);
  out->unsaid[out->n_unsaid++] = one;
}

/* -- what must not be shown ------------------------------------------------------------------------------ */

static const char not_shown[] = "a secret, or a value of the environment; --reveal writes it";

/* A tree as a value. Secrets stay references where the dialect's loader follows them. False: nothing may be
 * written here. */
static bool flatten(converter *c, const nxc_node *node, nxc_value *value) {
  if (!c->request->reveal && nxc_node_is_secret(node) && nxc_node_final(node)->kind == NXC_NODE_SCALAR) {
    bool follows = c->front->resolve == nxc_resolve && node->derivation && !strstr(node->raw, "$<");
    *value = (nxc_value){.kind = NXC_MISSING, .text = node->raw, .n_bytes = node->raw_bytes};
    return follows;
  }
  node = nxc_node_final(node);
  if (node->kind == NXC_NODE_SCALAR) {
    *value = node->value;
    return true;
  }
  bool is_map = node->kind == NXC_NODE_MAP, whole = true;
  nxc_value *items = nxc_arena_array(c->arena, 2 * node->n_children + 1, sizeof *items);
  size_t n_items = 0;
  for (size_t i = 0; i < node->n_children; i++) {
    const nxc_node *child = node->children[i];
    bool may = flatten(c, child, &items[is_map ? 2 * n_items + 1 : n_items]);
    if (is_map) items[2 * n_items] = child->key_value;
    n_items += may;
    whole = whole && may;
    if (is_map && !may)
      add_unsaid(c, (nxc_unsaid){nxc_node_path(c->arena, child), "(not shown)", NULL, not_shown});
  }
  *value = (nxc_value){.kind = is_map ? NXC_MAP : NXC_LIST, .items = items, .n_items = n_items};
  return is_map || whole;
}

static const nxc_settings *settings_to_say(converter *c) {
  nxc_settings *settings = nxc_settings_copy(c->arena, c->source->settings);
  for (size_t id = 0; id < NX_N_SETTINGS && !c->request->reveal; id++)
    if (nxc_settings_from(settings, (nxc_setting_id)id)->redacted)
      nxc_settings_clear(settings, (nxc_setting_id)id);
  return settings;
}

/* -- the text -------------------------------------------------------------------------------------------- */

static bool is_from_outside(const nxc_settings *settings, nxc_setting_id id) {
  nxc_provenance_kind kind = nxc_settings_from(settings, id)->kind;
  return kind == NXC_FROM_CLI || kind == NXC_FROM_PROJECT;
}

/* Given as a setting, not as an option, so that the tree of the file lacks it. */
static bool is_beside_file(const converter *c, nxc_setting_id id) {
  const nxc_provenance *from = nxc_settings_from(c->wanted, id);
  const nxc_bound *bound = from->option ? nxc_binding_find(c->source->binding, from->option) : NULL;
  return is_from_outside(c->wanted, id) && (bound == NULL || !bound->given);
}

/* Options that say what the command line, and not the file, says about settings. */
static void compose_outside(converter *c, const nxc_binding *composed, nxc_node *root) {
  for (size_t i = 0; i < composed->dialect->n_options; i++) {
    const nxc_bound *bound = &composed->options[i];
    for (size_t id = 0; bound->given && id < NX_N_SETTINGS; id++) {
      bool beside = is_beside_file(c, (nxc_setting_id)id);
      if (beside && nxc_option_speaks_of(c->arena, bound->row, (nxc_setting_id)id))
        nxc_compose_put(c->arena, root, bound->row->name, bound->value);
    }
  }
}

static const nxc_node *make_tree(converter *c) {
  const char *model_option = c->request->model_path && !stays(c) ? c->front->model_option : NULL;
  const nxc_composing composing = {.wanted = c->wanted,
                                   .dialect = c->dialect,
                                   .version = c->version,
                                   .model_option = model_option,
                                   .model_path = c->request->model_path,
                                   .insist = c->insist};
  nxc_binding *composed = nxc_compose(c->arena, &composing);
  if (stays(c)) {
    nxc_node *root = c->source->document->root;
    compose_outside(c, composed, root);
    return root;
  }
  nxc_node *root = nxc_node_new(c->arena, NXC_NODE_MAP, (nxc_span){0});
  nxc_compose_into(composed, root);
  if (model_option == NULL) return root;
  nxc_node *model = nxc_node_new(c->arena, NXC_NODE_MAP, (nxc_span){0});
  nxc_compose_model_into(composed, model);
  nxc_buffer json = {.arena = c->arena};
  nxc_write_json(&json, nxc_node_value(c->arena, model));
  nxc_buffer_puts(&json, "\n");
  c->out->model_text = json.bytes;
  return root;
}

static const nxc_source *write_text(converter *c) {
  nxc_value tree;
  nxc_buffer text = {.arena = c->arena};
  flatten(c, make_tree(c), &tree);
  c->front->write(&text, &tree);
  c->out->text = text.bytes;
  return nxc_source_new(c->arena, "the converted text", text.bytes, text.n_bytes);
}

/* -- what can say a setting ------------------------------------------------------------------------------ */

static const char *join(nxc_arena *arena, const char *names, const char *name) {
  return nxc_arena_printf(arena, "%s%s%s", names, *names ? ", " : "", name);
}

static const char *options_that_say(converter *c, const nxc_dialect *dialect, nxc_setting_id id) {
  const char *names = "";
  for (size_t i = 0; i < dialect->n_options; i++) {
    const nxc_option_row *row = &dialect->options[i];
    bool here = row->alias_of == NULL && nxc_in_version(row->versions, row->n_versions, c->back.version);
    if (here && nxc_option_speaks_of(c->arena, row, id)) names = join(c->arena, names, row->name);
  }
  return names;
}

/* Whether whatever option says the setting always says the same. */
static bool is_constant(converter *c, nxc_setting_id id) {
  size_t n_constant = 0;
  for (size_t i = 0; i < c->dialect->n_options; i++) {
    const nxc_option_row *row = &c->dialect->options[i];
    for (size_t k = 0; k < row->n_sets; k++) {
      if (row->sets[k].setting != id) continue;
      if (nxc_expression_of(c->arena, row->sets[k].expression)->n_names > 0) return false;
      n_constant++;
    }
  }
  return n_constant > 0;
}

static const nxc_rule_row *rule_that_derives(const nxc_dialect *dialect, nxc_setting_id id) {
  for (size_t i = 0; i < nxc_n_rules; i++) {
    const nxc_rule_row *rule = &nxc_rules[i];
    bool own = rule->dialect != NULL && strcmp(rule->dialect, dialect->name) == 0;
    if (own && rule->derives == id) return rule;
  }
  return NULL;
}

/* No file of the dialect says how many ranks there are: its launcher does. */
static bool is_launchers(converter *c, nxc_setting_id id) {
  return id == NX_SETTING_MESH_WORLD && *options_that_say(c, c->dialect, id) == '\0' &&
         rule_that_derives(c->dialect, id) == NULL;
}

/* -- reading back ---------------------------------------------------------------------------------------- */

static void read_back(converter *c, const nxc_source *text) {
  nxc_sink *sink = nxc_sink_new(c->arena);
  nxc_request request = {.file = c->request->from.file, .text = text, .dialect = c->request->to};
  if (stays(c)) {
    request.model_config = c->request->from.model_config;
    request.model_text = c->request->from.model_text;
  }
  if (c->out->model_text != NULL)
    request.model_text =
        nxc_source_new(c->arena, c->request->model_path, c->out->model_text, strlen(c->out->model_text));
  bool known = nxc_has(c->wanted, NX_SETTING_MESH_WORLD);
  if (known && is_launchers(c, NX_SETTING_MESH_WORLD))
    c->out->world_size = nxc_settings_show(c->wanted, NX_SETTING_MESH_WORLD);
  request.world_size = c->out->world_size;
  nxc_compile_settings(c->arena, &request, sink, &c->back);
  for (size_t i = 0; i < nxc_sink_n_findings(sink); i++) {
    const nxc_finding *finding = nxc_sink_finding(sink, i);
    if (finding->severity != NXC_SEVERITY_ERROR) continue;
    const char *why = nxc_arena_printf(c->arena, "%s refuses it: %s (%s)", c->dialect->name, finding->message,
                                       finding->id);
    add_unsaid(c, (nxc_unsaid){.why = why, .finding = finding->id});
  }
}

/* -- comparing ------------------------------------------------------------------------------------------- */

static bool is_same(const nxc_value *one, const nxc_value *other) {
  return one == NULL || other == NULL ? one == other : nxc_value_equal(one, other);
}

typedef enum meaning { MEANS_NOTHING, MAY_MEAN, MEANS_SOMETHING } meaning;

static meaning meaning_in(const nxc_compiled *compiled, nxc_setting_id id) {
  const char *condition = nxc_setting_rows[id].read_when;
  if (condition == NULL) return MEANS_SOMETHING;
  const nxc_value *read = nxc_binding_evaluate(compiled->binding, NULL, condition);
  return read == NULL ? MAY_MEAN : nxc_value_is_true(read) ? MEANS_SOMETHING : MEANS_NOTHING;
}

static bool differs(const converter *c, nxc_setting_id id) {
  if (c->back.settings == NULL) return nxc_settings_known(c->source->settings, id);
  meaning here = meaning_in(c->source, id), there = meaning_in(&c->back, id);
  bool nothing = here == MEANS_NOTHING || there == MEANS_NOTHING;
  if (nothing && here != MEANS_SOMETHING && there != MEANS_SOMETHING) return false;
  return !is_same(nxc_settings_value(c->source->settings, id), nxc_settings_value(c->back.settings, id));
}

/* The setting that a derived one differs because of, where that is listed itself. */
static const char *cause_of(const converter *c, nxc_setting_id id) {
  const nxc_provenance *from = nxc_settings_from(c->source->settings, id);
  const nxc_rule_row *rule = from->kind == NXC_FROM_RULE ? nxc_rule_find(from->origin) : NULL;
  for (size_t i = 0; rule != NULL && rule->dialect == NULL && i < from->n_inputs; i++)
    if (differs(c, from->inputs[i])) return nxc_setting_path(from->inputs[i]);
  return NULL;
}

static const char *why_unsaid(converter *c, nxc_setting_id id) {
  const char *name = c->dialect->name, *options = options_that_say(c, c->dialect, id);
  const nxc_rule_row *rule = rule_that_derives(c->dialect, id);
  const char *cause = cause_of(c, id);
  if (nxc_settings_from(c->source->settings, id)->redacted && !c->request->reveal) return not_shown;
  if (cause != NULL) return nxc_arena_printf(c->arena, "follows from %s", cause);
  if (!nxc_settings_known(c->source->settings, id))
    return nxc_arena_printf(c->arena, "it is not known here, and %s decides", name);
  if (is_launchers(c, id)) return nxc_arena_printf(c->arena, "the launcher of %s says it, no file", name);
  bool in_model = c->front->model_option != NULL && c->back.binding != NULL &&
                  *options_that_say(c, c->back.binding->model_dialect, id) != '\0';
  if (in_model && c->out->model_text == NULL)
    return nxc_arena_printf(
        c->arena, "%s reads it in the model's config.json, which --model-config-out writes", name);
  if (is_constant(c, id)) return nxc_arena_printf(c->arena, "in %s it never is anything else", name);
  if (*options != '\0') return nxc_arena_printf(c->arena, "%s cannot say it", options);
  if (rule != NULL) return nxc_arena_printf(c->arena, "%s derives it otherwise (%s)", name, rule->id);
  return nxc_arena_printf(c->arena, "%s has no option for it", name);
}

static void compare(converter *c) {
  for (nxc_setting_id id = 0; id < NX_N_SETTINGS; id++) {
    bool outside = is_launchers(c, id) && !(nxc_settings_known(c->source->settings, id) &&
                                            !is_from_outside(c->source->settings, id));
    bool unsaid = differs(c, id) || (is_launchers(c, id) && !outside);
    if (nxc_setting_rows[id].shorthand) continue;
    if (!unsaid) {
      c->out->n_said += nxc_settings_known(c->source->settings, id);
      continue;
    }
    bool known = nxc_settings_known(c->source->settings, id);
    nxc_unsaid one = {.name = nxc_setting_path(id), .why = why_unsaid(c, id)};
    one.value = known ? nxc_settings_show(c->source->settings, id) : "unknown";
    bool known_there = c->back.settings != NULL && nxc_settings_known(c->back.settings, id);
    if (differs(c, id) && c->back.settings != NULL)
      one.there = known_there ? nxc_settings_show(c->back.settings, id) : "unknown";
    add_unsaid(c, one);
  }
}

/* -- what only the first system reads -------------------------------------------------------------------- */

/* Options, and keys that are none, whose meaning no setting holds. What the training does not depend on is
 * left out; what it may depend on is unsaid. */
static void list_left(converter *c) {
  const char *dialect = c->source->dialect->name;
  c->out->left = "";
  for (size_t i = 0; i < c->n_beyond && !stays(c); i++) {
    const nxc_beyond *one = &c->beyond[i];
    if (!one->given || !one->read || one->followed) continue;
    if (!nxc_beyond_counts(one)) {
      c->out->left = join(c->arena, c->out->left, one->name);
      continue;
    }
    const char *why =
        nxc_arena_printf(c->arena, "%s alone has it, and nxcfg does not follow it further", dialect);
    const char *value = one->value ? one->value : "unknown";
    add_unsaid(c, (nxc_unsaid){.name = one->name, .value = value, .why = why, .is_option = true});
  }
}

/* -- the whole ------------------------------------------------------------------------------------------- */

static const char *name_of_source(const nxc_conversion_request *request) {
  const char *file = request->from.file;
  return file == NULL ? "arguments" : strcmp(file, "-") == 0 ? "standard input" : file;
}

static const char *comment(converter *c) {
  nxc_buffer text = {.arena = c->arena};
  const nxc_conversion *out = c->out;
  nxc_buffer_puts(&text, "");
  if (!stays(c))
    nxc_buffer_puts(&text, nxc_arena_printf(c->arena, "# %s, converted by nxcfg from %s\n", c->dialect->name,
                                            name_of_source(c->request)));
  if (out->n_unsaid > 0) nxc_buffer_puts(&text, "# Not said here:\n");
  for (size_t i = 0; i < out->n_unsaid; i++) {
    const nxc_unsaid *one = &out->unsaid[i];
    nxc_buffer_puts(&text, "#   ");
    nxc_buffer_puts(&text, nxc_unsaid_show(c->arena, one));
    nxc_buffer_puts(&text, "\n");
  }
  return text.bytes;
}

static void convert_once(converter *c) {
  read_back(c, write_text(c));
  c->out->dialect = c->dialect->name;
  c->out->version = c->back.version;
  c->out->first = c->source->dialect->name;
  compare(c);
  list_left(c);
  c->out->text = nxc_arena_printf(c->arena, "%s%s", comment(c), c->out->text);
}

const char *nxc_unsaid_show(nxc_arena *arena, const nxc_unsaid *unsaid) {
  if (unsaid->name == NULL) return unsaid->why;
  const char *there = unsaid->there ? nxc_arena_printf(arena, " (there %s)", unsaid->there) : "";
  return nxc_arena_printf(arena, "%s = %s%s: %s", unsaid->name, unsaid->value, there, unsaid->why);
}

/* Once, and where something is unsaid once more, with a word about that; the better one counts. */
static void convert_to_version(converter *c, const char *version, nxc_conversion *to) {
  nxc_conversion tried = {0};
  c->out = to;
  c->version = version;
  memset(c->insist, 0, sizeof c->insist);
  convert_once(c);
  if (to->n_unsaid == 0) return;
  for (nxc_setting_id id = 0; id < NX_N_SETTINGS; id++) c->insist[id] = differs(c, id);
  c->out = &tried;
  convert_once(c);
  if (tried.n_unsaid < to->n_unsaid) *to = tried;
}

/* A dialect with releases is written in the newest of those that say most. */
static void convert_best(converter *c) {
  const char *version;
  c->front = nxc_front_find(c->arena, c->request->to, &version);
  assert(c->front != NULL);
  c->dialect = nxc_dialect_find(c->front->dialect);
  bool releases = c->front->versions != NULL && !c->front->dated;
  bool choice = releases && strchr(c->request->to, '@') == NULL && !stays(c);
  const char *const only[] = {version, NULL};
  const char *const *versions = choice ? c->front->versions : only;
  nxc_conversion *best = c->out, tried;
  for (size_t i = 0; i == 0 || (versions[i] != NULL && best->n_unsaid > 0); i++) {
    tried = (nxc_conversion){0};
    convert_to_version(c, versions[i], &tried);
    if (i == 0 || tried.n_unsaid < best->n_unsaid) *best = tried;
  }
  c->out = best;
}

bool nxc_convert(nxc_arena *arena, const nxc_conversion_request *request, nxc_sink *sink,
                 nxc_conversion *conversion) {
  nxc_compiled source;
  *conversion = (nxc_conversion){0};
  bool good = nxc_compile_settings(arena, &request->from, sink, &source);
  conversion->unreadable = source.unreadable;
  if (!good) return false;
  converter c = {.arena = arena, .request = request, .source = &source, .out = conversion};
  c.wanted = settings_to_say(&c);
  c.beyond = nxc_beyond_settings(arena, &source, &c.n_beyond);
  convert_best(&c);
  return true;
}
