/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/front/argument_values.h"

#include "compiler/document/nodes.h"
#include "compiler/document/repair.h"
#include "compiler/document/scalar.h"
#include "compiler/settings/meant.h"

#include <string.h>

bool nxc_arguments_is_list(const nxc_option_row *row) {
  switch (row->domain.type) {
  case NXC_TYPE_LIST:
  case NXC_TYPE_LIST_INT:
  case NXC_TYPE_LIST_FLOAT:
  case NXC_TYPE_LIST_STR: return true;
  default: return false;
  }
}

static bool read_text(nxc_arena *arena, nxc_type type, const char *text, nxc_value *value) {
  *value = nxc_string_value(text, strlen(text));
  switch (type) {
  case NXC_TYPE_INT:
  case NXC_TYPE_LIST_INT: return nxc_text_to_int(arena, text, value);
  case NXC_TYPE_FLOAT:
  case NXC_TYPE_LIST_FLOAT: return nxc_text_to_float(arena, text, value);
  case NXC_TYPE_INT_OR_FLOAT:
    return nxc_text_to_int(arena, text, value) || nxc_text_to_float(arena, text, value);
  case NXC_TYPE_LIST: /* of numbers and texts */
    if (!nxc_text_to_int(arena, text, value) && !nxc_text_to_float(arena, text, value))
      *value = nxc_string_value(text, strlen(text));
    return true;
  default: return true;
  }
}

nxc_node *nxc_argument_unknown(nxc_arguments *to, const char *name, const nxc_launch_word *word) {
  nxc_node *node = nxc_node_new(to->arena, NXC_NODE_SCALAR, word->at);
  node->raw = word->text;
  node->raw_bytes = strlen(word->text);
  node->value = nxc_string_value(node->raw, node->raw_bytes);
  node->failed = true;
  nxc_report(to->sink, "NX5911", NXC_SEVERITY_NOTE, word->at, NULL,
             "--%s is unknown here: nothing here tells which way the script takes, and only some give %s",
             name, strncmp(word->text, "--", 2) == 0 ? "it" : word->text);
  return node;
}

/* The option with its value, which is not in the map yet. */
static nxc_repair remove_option(const nxc_arguments *to, nxc_node *node, const char *name) {
  node->key = name;
  node->key_at = to->head;
  node->parent = to->map;
  return nxc_repair_remove(to->arena, node, false);
}

nxc_node *nxc_argument_scalar(nxc_arguments *to, const char *name, nxc_type type,
                             const nxc_launch_word *word) {
  if (word->maybe) return nxc_argument_unknown(to, name, word);
  nxc_node *node = nxc_node_new(to->arena, NXC_NODE_SCALAR, word->at);
  node->style = NXC_STYLE_DOUBLE;
  node->raw = word->text;
  node->raw_bytes = strlen(word->text);
  node->environment = word->from_environment;
  bool is_text = type == NXC_TYPE_STR || type == NXC_TYPE_PATH || type == NXC_TYPE_LIST_STR ||
                 type == NXC_TYPE_LIST || type == NXC_TYPE_ANY;
  if (word->unset != NULL && !is_text) {
    node->failed = true;
    node->value = nxc_string_value(node->raw, node->raw_bytes);
    const char *fix = word->argument ? "tell the script's own arguments with --args" : NULL;
    nxc_report(to->sink, "NX5911", NXC_SEVERITY_NOTE, word->at, fix,
               "--%s is unknown here: nothing %s %s%s", name, word->expected ? "gives" : "here tells",
               word->unset, word->expected ? " a value" : "");
    return node;
  }
  if (read_text(to->arena, type, word->text, &node->value)) return node;
  const nxc_option_row *row = nxc_arguments_option(to, name);
  const nxc_domain domain = row ? row->domain : (nxc_domain){.type = type};
  nxc_meant number = nxc_number_meant(to->arena, &domain, word->text);
  const char *meant = number.text;
  bool taken = number.certain && to->relative != NULL && nxc_relative_takes_numbers(to->relative, name);
  if (taken && read_text(to->arena, type, meant, &node->value)) return node;
  node->failed = true;
  const char *shown = word->from_environment ? "the value of the environment" : word->text;
  const char *wanted = type == NXC_TYPE_INT || type == NXC_TYPE_LIST_INT ? "an integer" : "a number";
  nxc_repair repair = {0};
  bool plain = nxc_span_reads(word->at, word->text);
  if (meant != NULL && plain) repair = nxc_repair_span(to->arena, word->at, meant, number.certain);
  bool out = meant == NULL && row != NULL && row->required == NULL && row->initial != NULL;
  if (out && plain) repair = remove_option(to, node, name);
  nxc_report_repair(to->sink, "NX5907", NXC_SEVERITY_ERROR, word->at,
                    meant ? nxc_arena_printf(to->arena, "write %s", meant)
                    : out ? "write a number in digits, or leave the option out"
                          : "write a number in digits",
                    repair, "--%s needs %s, and %s is none", name, wanted, shown);
  return node;
}

nxc_node *nxc_argument_list(nxc_arguments *to, const char *name, nxc_type type, nxc_span at,
                           const nxc_launch_words *values) {
  nxc_node *list = nxc_node_new(to->arena, NXC_NODE_LIST, values->n_items ? values->items[0].at : at);
  for (size_t i = 0; i < values->n_items; i++) {
    nxc_node *item = nxc_argument_scalar(to, name, type, &values->items[i]);
    list->failed = list->failed || item->failed;
    list->environment = list->environment || item->environment;
    nxc_node_append(to->arena, list, item);
  }
  return list;
}

nxc_node *nxc_argument_switch(nxc_arguments *to, nxc_span at) {
  nxc_node *node = nxc_node_new(to->arena, NXC_NODE_SCALAR, at);
  node->value = (nxc_value){.kind = NXC_BOOL, .boolean = true};
  node->raw = "true";
  node->raw_bytes = 4;
  return node;
}
