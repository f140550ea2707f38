/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/fronts.h"
#include "compiler/convert/converter.h"

#include "compiler/convert/compose.h"
#include "compiler/diagnostics/characters.h"
#include "compiler/document/canon.h"
#include "compiler/document/nodes.h"
#include "compiler/document/scalar.h"

#include <assert.h>
#include <string.h>

/* A tree as a value. Secrets stay references where the dialect's loader follows them. False: nothing may be
 * written here. */
static bool flatten(nxc_converter *c, const nxc_node *node, nxc_value *value) {
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
      nxc_converter_add(c, (nxc_unsaid){nxc_node_path(c->arena, child), "(not shown)", NULL, nxc_not_shown});
  }
  *value = (nxc_value){.kind = is_map ? NXC_MAP : NXC_LIST, .items = items, .n_items = n_items};
  return is_map || whole;
}

static const nxc_settings *settings_to_say(nxc_converter *c) {
  nxc_settings *settings = nxc_settings_copy(c->arena, c->source->settings);
  for (size_t id = 0; id < NX_N_SETTINGS && !c->request->reveal; id++)
    if (nxc_settings_from(settings, (nxc_setting_id)id)->redacted)
      nxc_settings_clear(settings, (nxc_setting_id)id);
  return settings;
}

/* -- the text -------------------------------------------------------------------------------------------- */

/* Given as a setting, not as an option, so that the tree of the file lacks it. */
static bool is_beside_file(const nxc_converter *c, nxc_setting_id id) {
  const nxc_provenance *from = nxc_settings_from(c->wanted, id);
  const nxc_bound *bound = from->option ? nxc_binding_find(c->source->binding, from->option) : NULL;
  return nxc_converter_is_outside(c->wanted, id) && (bound == NULL || !bound->given);
}

/* Options that say what the command line, and not the file, says about settings. */
static void compose_outside(nxc_converter *c, const nxc_binding *composed, nxc_node *root) {
  for (size_t i = 0; i < composed->dialect->n_options; i++) {
    const nxc_bound *bound = &composed->options[i];
    for (size_t id = 0; bound->given && id < NX_N_SETTINGS; id++) {
      bool beside = is_beside_file(c, (nxc_setting_id)id);
      if (beside && nxc_option_speaks_of(c->arena, bound->row, (nxc_setting_id)id))
        nxc_compose_put(c->arena, root, bound->row->name, bound->value);
    }
  }
}

/* Options that the dialect demands, and nothing of the training asks for. */
static void list_filled(nxc_converter *c, const nxc_binding *composed) {
  c->out->filled = "";
  for (size_t i = 0; i < composed->dialect->n_options; i++) {
    const nxc_bound *bound = &composed->options[i];
    if (!c->filled[i] || bound->value == NULL) continue;
    const char *one =
        nxc_arena_printf(c->arena, "%s = %s", bound->row->name, nxc_value_show(c->arena, bound->value));
    c->out->filled = nxc_converter_join(c->arena, c->out->filled, one);
  }
}

static const nxc_node *make_tree(nxc_converter *c) {
  const char *model_option =
      c->request->model_path && !nxc_converter_stays(c) ? c->front->model_option : NULL;
  const nxc_composing composing = {.wanted = c->wanted,
                                   .dialect = c->dialect,
                                   .version = c->version,
                                   .model_option = model_option,
                                   .model_path = c->request->model_path,
                                   .insist = c->insist,
                                   .refused = c->refused,
                                   .filled = c->filled};
  nxc_binding *composed = nxc_compose(c->arena, &composing);
  if (nxc_converter_stays(c)) {
    c->out->filled = "";
    nxc_node *root = c->source->document->root;
    compose_outside(c, composed, root);
    return root;
  }
  list_filled(c, composed);
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

static void put(nxc_arena *arena, nxc_value *map, const char *key, nxc_value value) {
  nxc_value *items = nxc_arena_array(arena, 2 * map->n_items + 2, sizeof *items);
  if (map->n_items > 0) memcpy(items, map->items, 2 * map->n_items * sizeof *items);
  items[2 * map->n_items] = nxc_string_value(key, strlen(key));
  items[2 * map->n_items + 1] = value;
  *map = (nxc_value){.kind = NXC_MAP, .items = items, .n_items = map->n_items + 1};
}

/* The program that trains a model of this kind, beside what launches it. */
static void put_program(nxc_converter *c, nxc_value *tree) {
  const nxc_value *kind = nxc_settings_value(c->wanted, NX_SETTING_MODEL_KIND);
  const nxc_document *from = c->source->document;
  bool own = from->program != NULL && from->program->use == NXC_PROGRAM_TRAINS &&
             strcmp(from->program->system, c->dialect->name) == 0;
  const char *program = own ? from->program_name
                        : kind != NULL && kind->kind == NXC_STRING
                            ? nxc_program_of_kind(c->dialect->name, kind->text)
                            : NULL;
  if (program == NULL) return;
  const nxc_value name = nxc_string_value(program, strlen(program));
  for (size_t i = 0; i < tree->n_items; i++) {
    nxc_value *launch = (nxc_value *)&tree->items[2 * i + 1];
    if (launch->kind != NXC_MAP || strcmp(tree->items[2 * i].text, "launch") != 0) continue;
    put(c->arena, launch, "program", name);
    return;
  }
  nxc_value launch = {.kind = NXC_MAP};
  put(c->arena, &launch, "program", name);
  put(c->arena, tree, "launch", launch);
}

static const nxc_source *write_text(nxc_converter *c) {
  nxc_value tree;
  nxc_buffer text = {.arena = c->arena};
  flatten(c, make_tree(c), &tree);
  put_program(c, &tree);
  c->front->write(&text, &tree);
  c->out->text = text.bytes;
  return nxc_source_new(c->arena, "the converted text", text.bytes, text.n_bytes);
}

/* -- reading back ---------------------------------------------------------------------------------------- */

static void read_back(nxc_converter *c, const nxc_source *text) {
  nxc_sink *sink = nxc_sink_new(c->arena);
  nxc_request request = {.file = c->request->from.file, .text = text, .dialect = c->request->to};
  if (nxc_converter_stays(c)) {
    request.model_config = c->request->from.model_config;
    request.model_text = c->request->from.model_text;
  }
  if (c->out->model_text != NULL)
    request.model_text =
        nxc_source_new(c->arena, c->request->model_path, c->out->model_text, strlen(c->out->model_text));
  bool known = nxc_has(c->wanted, NX_SETTING_MESH_WORLD);
  if (known && nxc_converter_is_launchers(c, NX_SETTING_MESH_WORLD))
    c->out->world_size = nxc_settings_show(c->wanted, NX_SETTING_MESH_WORLD);
  request.world_size = c->out->world_size;
  nxc_compile_settings(c->arena, &request, sink, &c->back);
  c->findings = sink;
  for (size_t i = 0; i < nxc_sink_n_findings(sink); i++) {
    const nxc_finding *finding = nxc_sink_finding(sink, i);
    if (finding->severity != NXC_SEVERITY_ERROR) continue;
    const char *why =
        nxc_arena_printf(c->arena, "%s refuses it: %s (%s)", c->dialect->name, finding->message, finding->id);
    nxc_converter_add(c, (nxc_unsaid){.why = why, .finding = finding->id});
  }
}

/* -- the whole ------------------------------------------------------------------------------------------- */

static const char *name_of_source(const nxc_conversion_request *request) {
  const char *file = request->from.file;
  return file == NULL ? "arguments" : strcmp(file, "-") == 0 ? "standard input" : file;
}

static const char *comment(nxc_converter *c) {
  nxc_buffer text = {.arena = c->arena};
  const nxc_conversion *out = c->out;
  nxc_buffer_puts(&text, "");
  if (!nxc_converter_stays(c))
    nxc_buffer_puts(&text, nxc_arena_printf(c->arena, "# %s" NXC_CONVERTED " %s\n", c->dialect->name,
                                            nxc_characters_shown(c->arena, name_of_source(c->request))));
  if (out->filled != NULL && *out->filled != '\0')
    nxc_buffer_puts(&text, nxc_arena_printf(c->arena, "# Filled in, since %s demands it: %s\n",
                                            c->dialect->name, out->filled));
  if (out->n_unsaid > 0) nxc_buffer_puts(&text, "# Not said here:\n");
  for (size_t i = 0; i < out->n_unsaid; i++) {
    const nxc_unsaid *one = &out->unsaid[i];
    nxc_buffer_puts(&text, "#   ");
    nxc_buffer_puts(&text, nxc_unsaid_show(c->arena, one));
    nxc_buffer_puts(&text, "\n");
  }
  return text.bytes;
}

const char *nxc_unsaid_show(nxc_arena *arena, const nxc_unsaid *unsaid) {
  if (unsaid->name == NULL) return unsaid->why;
  const char *there = unsaid->there ? nxc_arena_printf(arena, " (there %s)", unsaid->there) : "";
  return nxc_arena_printf(arena, "%s = %s%s: %s", unsaid->name, unsaid->value, there, unsaid->why);
}

/* A text, and what its reader makes of it. */
typedef struct attempt {
  nxc_conversion out;
  nxc_compiled back;
  nxc_sink *findings;
} attempt;

static attempt convert_once(nxc_converter *c) {
  attempt tried = {0};
  nxc_conversion *kept = c->out;
  c->out = &tried.out;
  read_back(c, write_text(c));
  c->out->dialect = c->dialect->name;
  c->out->version = c->back.version;
  c->out->first = c->source->dialect->name;
  nxc_converter_compare(c);
  nxc_converter_list_left(c);
  c->out->text = nxc_arena_printf(c->arena, "%s%s", comment(c), c->out->text);
  c->out = kept;
  tried.back = c->back;
  tried.findings = c->findings;
  return tried;
}

static size_t count_refusals(const attempt *one) {
  size_t n = 0;
  for (size_t i = 0; i < one->out.n_unsaid; i++) n += one->out.unsaid[i].name == NULL;
  return n;
}

/* Whether leaving the option to its default makes no other model and reads no other data. */
static bool may_be_left(nxc_converter *c, const nxc_option_row *row) {
  for (nxc_setting_id id = 0; id < NX_N_SETTINGS; id++) {
    nxc_changes changes = nxc_setting_rows[id].changes;
    bool kept = changes == NXC_CHANGES_CHECKPOINT || changes == NXC_CHANGES_DATA_ORDER;
    if (kept && nxc_option_speaks_of(c->arena, row, id)) return false;
  }
  return true;
}

/* The next option to try without, which stands at this place of the text; NULL: none is left. */
static const nxc_option_row *option_at(nxc_converter *c, const attempt *one, nxc_span at, const bool *kept) {
  for (size_t i = 0; one->back.binding != NULL && at.source != NULL && i < c->dialect->n_options; i++) {
    const nxc_bound *bound = &one->back.binding->options[i];
    bool here = bound->given && bound->at.source == at.source && bound->at.line == at.line;
    if (here && !kept[i] && c->refused[i] == NULL && may_be_left(c, bound->row)) return bound->row;
  }
  return NULL;
}

/* An option that a finding is about, or else one that it names; false: there is none left to try. */
static bool find_refused(nxc_converter *c, const attempt *one, const bool *kept, size_t *option) {
  const nxc_option_row *row = NULL;
  const nxc_finding *finding = NULL;
  for (size_t i = 0; row == NULL && i < nxc_sink_n_findings(one->findings); i++) {
    finding = nxc_sink_finding(one->findings, i);
    if (finding->severity != NXC_SEVERITY_ERROR) continue;
    row = option_at(c, one, finding->at, kept);
    for (size_t k = 0; row == NULL && k < finding->n_remarks; k++)
      row = option_at(c, one, finding->remarks[k].at, kept);
  }
  if (row == NULL) return false;
  *option = (size_t)(row - c->dialect->options);
  c->refused[*option] = nxc_arena_printf(c->arena, "%s refuses %s here: %s (%s)", c->dialect->name, row->name,
                                         finding->message, finding->id);
  return true;
}

/* What the dialect's own rules refuse is left to its default, where the text is then refused less. */
static void leave_refused(nxc_converter *c, attempt *best) {
  enum { TRIES_MAX = 16 };
  bool *kept = nxc_arena_array(c->arena, c->dialect->n_options, sizeof *kept);
  memset(kept, 0, c->dialect->n_options * sizeof *kept);
  size_t option;
  for (int i = 0; i < TRIES_MAX && find_refused(c, best, kept, &option); i++) {
    attempt tried = convert_once(c);
    if (count_refusals(&tried) < count_refusals(best)) {
      *best = tried;
    } else {
      c->refused[option] = NULL;
      kept[option] = true;
    }
  }
}

/* Once, and where something is unsaid once more, with a word about that; the better one counts. */
static void convert_to_version(nxc_converter *c, const char *version, nxc_conversion *to) {
  c->version = version;
  memset(c->insist, 0, sizeof c->insist);
  memset(c->refused, 0, c->dialect->n_options * sizeof *c->refused);
  attempt best = convert_once(c);
  if (best.out.n_unsaid > 0) {
    for (nxc_setting_id id = 0; id < NX_N_SETTINGS; id++) c->insist[id] = nxc_converter_differs(c, id);
    attempt tried = convert_once(c);
    if (tried.out.n_unsaid < best.out.n_unsaid) best = tried;
    else memset(c->insist, 0, sizeof c->insist);
  }
  if (!nxc_converter_stays(c)) leave_refused(c, &best);
  *to = best.out;
}

/* A dialect with releases is written in the newest of those that say most. */
static void convert_best(nxc_converter *c) {
  const char *version;
  c->front = nxc_front_find(c->arena, c->request->to, &version);
  assert(c->front != NULL);
  c->dialect = nxc_dialect_find(c->front->dialect);
  c->refused = nxc_arena_array(c->arena, c->dialect->n_options, sizeof *c->refused);
  c->filled = nxc_arena_array(c->arena, c->dialect->n_options, sizeof *c->filled);
  bool releases = c->front->versions != NULL && !c->front->dated;
  bool choice = releases && strchr(c->request->to, '@') == NULL && !nxc_converter_stays(c);
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
  nxc_converter c = {.arena = arena, .request = request, .source = &source, .out = conversion};
  c.wanted = settings_to_say(&c);
  c.beyond = nxc_beyond_settings(arena, &source, &c.n_beyond);
  convert_best(&c);
  return true;
}
