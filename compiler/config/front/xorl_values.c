/* SPDX-License-Identifier: Apache-2.0 */
/* Values as xorl's parser reads them: through their text, by the type of their option; and the entries of
 * data.datasets. */
#include "compiler/config/front/front_xorl.h"

#include "compiler/config/document/nodes.h"
#include "compiler/config/document/scalar.h"
#include "compiler/config/front/arguments.h"

#include <string.h>
#include <strings.h>

typedef struct typing {
  nxc_document *document;
  nxc_arena *arena;
  nxc_sink *sink;
  const nxc_dialect *dialect;
} typing;

/* -- scalars --------------------------------------------------------------------------------------------- */

static bool is_text_type(nxc_type type) {
  return type == NXC_TYPE_STR || type == NXC_TYPE_PATH || type == NXC_TYPE_ENUM || type == NXC_TYPE_LIST_STR;
}

static bool read_switch(const char *text, nxc_value *value) {
  static const char *const words[] = {"no", "yes", "false", "true", "f", "t", "n", "y", "0", "1"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (strcasecmp(text, words[i]) != 0) continue;
    *value = (nxc_value){.kind = NXC_BOOL, .boolean = i % 2 == 1};
    return true;
  }
  return false;
}

/* What Python's str() makes of a value. */
static const char *text_of(nxc_arena *arena, const nxc_value *value) {
  if (value->kind == NXC_BOOL) return value->boolean ? "True" : "False";
  return value->kind == NXC_STRING ? value->text : nxc_value_show(arena, value);
}

static void read_by_type(typing *t, nxc_type type, nxc_node *node) {
  nxc_value read = node->value;
  const char *text = text_of(t->arena, &node->value);
  bool number = node->value.kind == NXC_INT || node->value.kind == NXC_FLOAT, good = false;
  switch (type) {
  case NXC_TYPE_INT:
  case NXC_TYPE_LIST_INT: good = !number && nxc_text_to_int(t->arena, text, &read); break;
  case NXC_TYPE_FLOAT:
  case NXC_TYPE_LIST_FLOAT: good = !number && nxc_text_to_float(t->arena, text, &read); break;
  case NXC_TYPE_INT_OR_FLOAT:
    good = !number && (nxc_text_to_int(t->arena, text, &read) || nxc_text_to_float(t->arena, text, &read));
    break;
  case NXC_TYPE_BOOL: good = read_switch(text, &read); break;
  default:
    if (!is_text_type(type)) return;
    read = nxc_string_value(text, strlen(text));
    good = true;
    break;
  }
  if (good && node->value.kind != NXC_NULL) node->value = read;
  if (is_text_type(type) && *text == '-' && node->value.kind == NXC_STRING)
    nxc_report(t->sink, "NX7903", NXC_SEVERITY_ERROR, node->at, "begin it with another character",
               "%s begins with -, and xorl's parser takes it for an option", text);
}

static void reject_null(typing *t, nxc_node *node, const char *name, const char *what) {
  nxc_report(t->sink, "NX7901", NXC_SEVERITY_ERROR, nxc_node_place(node), "leave the key out",
             "%s: null %s", name, what);
  node->failed = true;
}

static nxc_node *list_around(typing *t, nxc_node *item) {
  nxc_node *list = nxc_node_new(t->arena, NXC_NODE_LIST, item->at);
  nxc_node_set_key(list, &item->key_value, item->key, item->key_at);
  nxc_node_replace(t->arena, item, list);
  list->replaced = item->replaced;
  nxc_node_append(t->arena, list, item);
  return list;
}

static void type_list(typing *t, const nxc_option_row *row, nxc_node *node, const char *name) {
  bool of_maps = row->domain.type == NXC_TYPE_LIST;
  if (node->kind == NXC_NODE_SCALAR && node->value.kind == NXC_NULL) {
    reject_null(t, node, name, "becomes the list [\"null\"] here");
    return;
  }
  if (node->kind == NXC_NODE_SCALAR && !of_maps) node = list_around(t, node);
  for (size_t i = 0; i < node->n_children; i++)
    if (node->children[i]->kind == NXC_NODE_SCALAR) read_by_type(t, row->domain.type, node->children[i]);
}

static void type_option(typing *t, const nxc_option_row *row, nxc_node *node, const char *name) {
  bool text = node->kind == NXC_NODE_SCALAR && node->value.kind == NXC_STRING;
  bool angle = text && strstr(node->raw, "$<") != NULL;
  if (angle || row->domain.type == NXC_TYPE_ANY || row->domain.type == NXC_TYPE_MAP) return;
  if (nxc_arguments_is_list(row)) {
    type_list(t, row, node, name);
    return;
  }
  if (node->kind != NXC_NODE_SCALAR) return;
  if (node->value.kind == NXC_NULL) {
    bool wants_text = row->domain.type == NXC_TYPE_STR || row->domain.type == NXC_TYPE_PATH;
    bool word = row->domain.type == NXC_TYPE_ENUM || row->domain.type == NXC_TYPE_BOOL;
    if (wants_text) reject_null(t, node, name, "becomes the text \"null\" here");
    if (word) reject_null(t, node, name, "is no word that xorl's parser takes here");
    return;
  }
  read_by_type(t, row->domain.type, node);
}

void nxc_xorl_type(nxc_document *document, nxc_sink *sink) {
  typing t = {.document = document, .arena = document->arena, .sink = sink};
  t.dialect = nxc_dialect_find("xorl");
  for (size_t i = 0; i < document->root->n_children; i++) {
    const nxc_node *section = document->root->children[i];
    if (section->kind != NXC_NODE_MAP || section->key == NULL) continue;
    for (size_t k = 0; k < section->n_children; k++) {
      nxc_node *child = section->children[k];
      const char *name = nxc_arena_printf(t.arena, "%s.%s", section->key, child->key);
      const nxc_option_row *row = nxc_option_find(t.dialect, name);
      if (row != NULL) type_option(&t, row, child, name);
    }
  }
}

/* -- datasets -------------------------------------------------------------------------------------------- */

typedef struct entry {
  nxc_binding *binding;
  const nxc_node *node;
  const char *name; /* data.datasets[0] */
} entry;

static void complain(const entry *e, const nxc_node *at, const char *id, const char *fix,
                     const char *message) {
  nxc_report(e->binding->sink, id, NXC_SEVERITY_ERROR, nxc_node_place(at), fix, "%s%s", e->name, message);
}

/* A key that is there and not null. */
static const nxc_node *given(const entry *e, const char *key) {
  const nxc_node *node = nxc_node_child(e->node, key);
  return node != NULL && (node->kind != NXC_NODE_SCALAR || node->value.kind != NXC_NULL) ? node : NULL;
}

static void check_entry_key(const entry *e, const nxc_node *child) {
  nxc_arena *arena = e->binding->arena;
  const nxc_dialect *dialect = e->binding->dialect;
  static const char section[] = "data.datasets[].";
  const nxc_option_row *row = nxc_option_find(dialect, nxc_arena_printf(arena, "%s%s", section, child->key));
  if (row != NULL && nxc_in_version(row->versions, row->n_versions, e->binding->version)) {
    const nxc_value *value = nxc_node_value(arena, child);
    nxc_domain domain = row->domain;
    if (domain.type == NXC_TYPE_ENUM) domain.type = NXC_TYPE_STR; /* rules about words follow */
    nxc_verdict verdict = value ? nxc_domain_judge(arena, &domain, value, false) : (nxc_verdict){0};
    if (verdict.misfit != NXC_FITS)
      nxc_report(e->binding->sink, nxc_misfit_id(verdict.misfit), NXC_SEVERITY_ERROR, child->at, verdict.fix,
                 "%s.%s %s", e->name, child->key, verdict.problem);
    return;
  }
  const char *names[64];
  size_t n_names = 0;
  for (size_t i = 0; i < dialect->n_options && n_names < 64; i++)
    if (strncmp(dialect->options[i].name, section, strlen(section)) == 0)
      names[n_names++] = dialect->options[i].name + strlen(section);
  const char *nearest = row == NULL ? nxc_nearest(child->key, names, n_names) : NULL;
  const char *fix = nearest ? nxc_arena_printf(arena, "did you mean %s?", nearest) : NULL;
  nxc_report(e->binding->sink, row ? "NX1320" : "NX1301", NXC_SEVERITY_ERROR, nxc_node_place(child), fix,
             "unknown key %s.%s%s", e->name, child->key, row ? " (a later version has it)" : "");
}

static bool is_one_of(const nxc_node *node, const char *const *words) {
  if (node->kind != NXC_NODE_SCALAR || node->value.kind != NXC_STRING) return false;
  for (; *words != NULL; words++)
    if (strcmp(node->value.text, *words) == 0) return true;
  return false;
}

static void check_entry(const entry *e) {
  static const char *const types[] = {"tokenized", NULL};
  static const char *const formats[] = {"json", "csv", "parquet", "arrow", "text", NULL};
  for (size_t i = 0; i < e->node->n_children; i++) check_entry_key(e, e->node->children[i]);
  const nxc_node *type = given(e, "type"), *format = given(e, "ds_type"), *files = given(e, "data_files");
  const nxc_node *path = given(e, "path"), *shards = given(e, "shards");
  if (path == NULL) complain(e, e->node, "NX7910", NULL, " has no path");
  if (type != NULL && !is_one_of(type, types))
    complain(e, type, "NX7911", "write tokenized", ".type must be tokenized: no other kind is read");
  if (files != NULL && format == NULL)
    complain(e, files, "NX7912", "give ds_type: json, csv, parquet, arrow or text",
             " has data_files but no ds_type");
  if (format != NULL && !is_one_of(format, formats))
    complain(e, format, "NX7913", NULL, ".ds_type must be json, csv, parquet, arrow or text");
  if (path != NULL && path->value.kind == NXC_STRING && strstr(path->value.text, "://") != NULL) {
    size_t n_scheme = strcspn(path->value.text, ":");
    bool whole = n_scheme > 0 && path->value.text[n_scheme + 3] != '\0';
    if (!whole) complain(e, path, "NX7914", NULL, ".path is no whole address");
  }
  if (shards != NULL && given(e, "preprocess_shards") != NULL)
    complain(e, shards, "NX7915", "keep one of them",
             " has shards and preprocess_shards, which are alternatives");
}

static void check_datasets(nxc_binding *binding, const char *option) {
  const nxc_bound *bound = nxc_binding_find(binding, option);
  const nxc_node *list = bound != NULL && bound->node != NULL ? nxc_node_final(bound->node) : NULL;
  if (list == NULL || list->kind != NXC_NODE_LIST) return;
  entry e = {.binding = binding, .name = option};
  if (list->n_children == 0 && strcmp(option, "data.datasets") == 0)
    nxc_report(binding->sink, "NX7916", NXC_SEVERITY_ERROR, bound->at, NULL, "%s names no dataset", option);
  for (size_t i = 0; i < list->n_children; i++) {
    e.node = nxc_node_final(list->children[i]);
    e.name = nxc_arena_printf(binding->arena, "%s[%zu]", option, i);
    if (e.node->kind == NXC_NODE_MAP) check_entry(&e);
    else complain(&e, list->children[i], "NX7910", "write it as a map with path", " is no map");
  }
}

/* A list that may be null may be empty too, since the versions after the seed era. */
static void check_empty_lists(nxc_binding *binding) {
  bool seed = strcmp(binding->version, "seed") == 0;
  for (size_t i = 0; i < binding->dialect->n_options; i++) {
    nxc_bound *bound = &binding->options[i];
    bool of_maps = bound->row->domain.type == NXC_TYPE_LIST;
    if (!bound->given || bound->node == NULL || of_maps) continue;
    const nxc_node *node = nxc_node_final(bound->node);
    const nxc_value *initial = nxc_option_default(bound->row, binding->version);
    bool optional = initial != NULL && initial->kind == NXC_NULL;
    if (node->kind == NXC_NODE_LIST && node->n_children == 0 && (seed || !optional))
      nxc_report(binding->sink, "NX7902", NXC_SEVERITY_ERROR, bound->at, "leave the key out",
                 "%s is an empty list, which xorl's parser refuses", bound->row->name);
  }
}

void nxc_xorl_prepare(nxc_binding *binding) {
  check_empty_lists(binding);
  check_datasets(binding, "data.datasets");
  check_datasets(binding, "data.test_datasets");
}
