/* SPDX-License-Identifier: Apache-2.0 */
/* Values as xorl's parser reads them: through their text, by the type of their option. */
#include "compiler/config/front/xorl/front_xorl.h"

#include "compiler/document/nodes.h"
#include "compiler/document/repair.h"
#include "compiler/document/scalar.h"
#include "compiler/config/front/arguments.h"
#include "compiler/config/front/lenient.h"

#include <string.h>
#include <strings.h>

typedef struct typing {
  nxc_document *document;
  nxc_arena *arena;
  nxc_sink *sink;
  bool nullable; /* the option at hand */
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

/* What argparse takes for an option where it wants a value: it begins with -, and is no number, and has no
 * blank. */
static bool looks_like_option(const char *text) {
  size_t n_digits = strspn(text + 1, "0123456789");
  const char *rest = text + 1 + n_digits;
  bool fraction = *rest == '.' && rest[1] != '\0' && rest[1 + strspn(rest + 1, "0123456789")] == '\0';
  bool number = (n_digits > 0 && *rest == '\0') || fraction;
  return *text == '-' && text[1] != '\0' && !number && strchr(text, ' ') == NULL;
}

/* Where a whole number may be null, some texts mean null. */
static bool means_null(const typing *t, const char *text) {
  static const char *const words[] = {"null", "None", "none", ""};
  bool found = false;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) found = found || strcmp(text, words[i]) == 0;
  return found && t->nullable;
}

static void read_by_type(typing *t, nxc_type type, nxc_node *node) {
  nxc_value read = node->value;
  const char *text = text_of(t->arena, &node->value);
  bool number = node->value.kind == NXC_INT || node->value.kind == NXC_FLOAT, good = false;
  switch (type) {
  case NXC_TYPE_INT:
    if (node->value.kind == NXC_STRING && means_null(t, text)) node->value = (nxc_value){.kind = NXC_NULL};
    else good = !number && nxc_text_to_int(t->arena, text, &read);
    break;
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
  if (is_text_type(type) && node->value.kind == NXC_STRING && looks_like_option(text))
    nxc_report(t->sink, "NX7903", NXC_SEVERITY_ERROR, node->at, "begin it with another character",
               "%s begins with -, and xorl's parser takes it for an option", text);
}

static void reject_null(typing *t, nxc_node *node, const char *name, const char *what) {
  nxc_report_repair(t->sink, "NX7901", NXC_SEVERITY_ERROR, nxc_node_span(node), "leave the key out",
                    nxc_repair_remove(t->arena, node, false), "%s: null %s", name, what);
  node->failed = true;
}

/* A name on a report does no harm; a model or a checkpoint of this name is looked for. */
static void read_null_as_text(typing *t, const nxc_option_row *row, nxc_node *node, const char *name) {
  bool looked_for = row->status != NXC_CHECKED || strncmp(name, "model.", 6) == 0;
  bool reported = strcmp(name, "train.output_dir") == 0 || strncmp(name, "train.wandb_", 12) == 0;
  if (looked_for && !reported) {
    reject_null(t, node, name, "becomes the text \"null\" here");
    return;
  }
  nxc_report(t->sink, "NX7901", NXC_SEVERITY_WARNING, nxc_node_span(node), "leave the key out",
             "%s: null becomes the text \"null\" here", name);
  node->value = nxc_string_value("null", 4);
}

static void place_at(nxc_node *node, nxc_span at) {
  node->at = at;
  if (node->key != NULL) node->key_at = at;
  for (size_t i = 0; i < node->n_children; i++) place_at(node->children[i], at);
}

/* A list or a map may be written as a text in JSON. */
static nxc_node *read_json(typing *t, nxc_node *node) {
  bool text = node->kind == NXC_NODE_SCALAR && node->value.kind == NXC_STRING;
  if (!text || strchr("{[", node->value.text[strspn(node->value.text, " ")]) == NULL || !*node->value.text)
    return node;
  const nxc_reading reading = {.pyyaml = true};
  const nxc_source *source = nxc_source_new(t->arena, node->at.source->name, node->value.text,
                                            node->value.n_bytes);
  nxc_document *document = nxc_document_read(t->arena, source, &reading, nxc_sink_new(t->arena));
  nxc_node *read = document->root;
  if (!document->complete || read->kind == NXC_NODE_SCALAR) return node;
  nxc_node_set_key(read, &node->key_value, node->key, node->key_at);
  place_at(read, node->at);
  read->key_at = node->key_at;
  nxc_node_replace(t->arena, node, read);
  read->replaced = node->replaced;
  return read;
}

/* PyYAML makes a date of it, which xorl cannot write as JSON and stops. */
static bool is_date(const nxc_node *node) {
  static const char *const shape = "dddd-dd-dd";
  bool text = node->kind == NXC_NODE_SCALAR && node->value.kind == NXC_STRING;
  bool plain = text && node->style == NXC_STYLE_PLAIN;
  if (!plain || strlen(node->raw) != strlen(shape)) return false;
  for (size_t i = 0; shape[i] != '\0'; i++)
    if (shape[i] == 'd' ? node->raw[i] < '0' || node->raw[i] > '9' : node->raw[i] != shape[i]) return false;
  return true;
}

static bool reject_date(typing *t, nxc_node *node, const char *name) {
  bool argument = node->at.source != NULL && strcmp(node->at.source->name, "<arguments>") == 0;
  if (argument || !is_date(node)) return false;
  nxc_report(t->sink, "NX7917", NXC_SEVERITY_ERROR, node->at,
             nxc_arena_printf(t->arena, "write '%s'", node->raw),
             "%s: %s is a date in YAML, and xorl stops at it", name, node->raw);
  node->failed = true;
  return true;
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
  if (of_maps) node = read_json(t, node);
  bool null = node->kind == NXC_NODE_SCALAR && node->value.kind == NXC_NULL;
  if (null && !of_maps) reject_null(t, node, name, "becomes the list [\"null\"] here");
  if (null) return;
  if (node->kind == NXC_NODE_SCALAR && !of_maps) node = list_around(t, node);
  for (size_t i = 0; i < node->n_children; i++)
    if (node->children[i]->kind == NXC_NODE_SCALAR) read_by_type(t, row->domain.type, node->children[i]);
}

static void type_option(typing *t, const nxc_option_row *row, nxc_node *node, const char *name) {
  bool text = node->kind == NXC_NODE_SCALAR && node->value.kind == NXC_STRING;
  bool angle = text && strstr(node->raw, "$<") != NULL;
  bool free = row->domain.type == NXC_TYPE_ANY || row->domain.type == NXC_TYPE_MAP;
  if (angle || reject_date(t, node, name)) return;
  if (free) {
    read_json(t, node);
    return;
  }
  t->nullable = row->domain.nullable;
  if (nxc_arguments_is_list(row)) {
    type_list(t, row, node, name);
    return;
  }
  if (node->kind != NXC_NODE_SCALAR) return;
  bool wants_text = row->domain.type == NXC_TYPE_STR || row->domain.type == NXC_TYPE_PATH;
  if (wants_text && nxc_is_quoted_null(node))
    nxc_report(t->sink, "NX1102", NXC_SEVERITY_WARNING, node->at, "leave the key out",
               "\"%s\" in quotes is a text, not an empty value", node->value.text);
  if (node->value.kind == NXC_NULL) {
    bool word = row->domain.type == NXC_TYPE_ENUM || row->domain.type == NXC_TYPE_BOOL;
    if (wants_text) read_null_as_text(t, row, node, name);
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
