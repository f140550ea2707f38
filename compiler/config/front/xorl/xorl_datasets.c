/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of xorl's data.datasets and data.test_datasets, and lists that may not be empty. */
#include "compiler/config/front/xorl/front_xorl.h"

#include "compiler/diagnostics/nearest.h"
#include "compiler/document/repair.h"

#include <string.h>

/* -- datasets -------------------------------------------------------------------------------------------- */

typedef struct entry {
  nxc_binding *binding;
  nxc_bound *list; /* the option that holds it */
  const nxc_node *node;
  const char *name; /* data.datasets[0] */
} entry;

static void complain(const entry *e, const nxc_node *at, const char *id, const char *fix,
                     const char *message) {
  nxc_report(e->binding->sink, id, NXC_SEVERITY_ERROR, nxc_node_span(at), fix, "%s%s", e->name, message);
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
    if (verdict.misfit != NXC_FITS) {
      nxc_report_repair(e->binding->sink, nxc_misfit_id(verdict.misfit), NXC_SEVERITY_ERROR, child->at,
                        nxc_misfit_fix(&verdict), nxc_misfit_repair(arena, child, &verdict), "%s.%s %s",
                        e->name, child->key, verdict.problem);
      e->list->value = NULL; /* nothing follows from it */
    }
    return;
  }
  const char *names[64];
  size_t n_names = 0;
  for (size_t i = 0; i < dialect->n_options && n_names < 64; i++)
    if (strncmp(dialect->options[i].name, section, strlen(section)) == 0)
      names[n_names++] = dialect->options[i].name + strlen(section);
  nxc_near near = row == NULL ? nxc_near_find(child->key, names, n_names) : (nxc_near){0};
  const char *fix = row ? "leave it out, or read the file with --dialect xorl@later" : "leave it out";
  if (near.name != NULL) fix = nxc_did_you_mean(arena, "", near.name);
  nxc_report_repair(e->binding->sink, row ? "NX1320" : "NX1301", NXC_SEVERITY_ERROR, nxc_node_span(child),
                    fix, nxc_repair_misspelt_key(arena, child, near), "unknown key %s.%s%s", e->name,
                    child->key, row ? " (a later version has it)" : "");
}

static bool is_one_of(const nxc_node *node, const char *const *words) {
  if (node->kind != NXC_NODE_SCALAR || node->value.kind != NXC_STRING) return false;
  for (; *words != NULL; words++)
    if (strcmp(node->value.text, *words) == 0) return true;
  return false;
}

/* Where :// stands in the address of a remote file; NULL: it is a name or a path here. */
static const char *remote_separator(const char *path) {
  static const char *const schemes[] = {"s3", "gs", "gcs", "adl", "abfs", "az", "oci", "https"};
  const char *separator = strstr(path, "://");
  for (size_t i = 0; separator != NULL && i < sizeof schemes / sizeof *schemes; i++)
    if (strncmp(path, schemes[i], strlen(schemes[i])) == 0 && path + strlen(schemes[i]) == separator)
      return separator;
  return NULL;
}

/* Digits, with one point at most. */
static bool is_number_text(const char *text) {
  size_t n_digits = strspn(text, "0123456789");
  size_t n_fraction = text[n_digits] == '.' ? strspn(text + n_digits + 1, "0123456789") : 0;
  size_t n_bytes = n_digits + (text[n_digits] == '.' ? 1 + n_fraction : 0);
  return n_digits + n_fraction > 0 && text[n_bytes] == '\0';
}

static void check_entry(const entry *e) {
  static const char *const types[] = {"tokenized", NULL};
  static const char *const formats[] = {"json", "csv", "parquet", "arrow", "text", NULL};
  for (size_t i = 0; i < e->node->n_children; i++) check_entry_key(e, e->node->children[i]);
  const nxc_node *type = nxc_node_child(e->node, "type"), *format = given(e, "ds_type"),
                 *files = given(e, "data_files");
  const nxc_node *path = given(e, "path"), *shards = given(e, "shards");
  if (path == NULL)
    complain(e, e->node, "NX7910", "give the folder or file, or the name on Hugging Face, as path",
             " has no path");
  bool other = type != NULL && type->kind == NXC_NODE_SCALAR && !is_one_of(type, types);
  if (other)
    nxc_report_repair(e->binding->sink, "NX7911", NXC_SEVERITY_ERROR, nxc_node_span(type), "write tokenized",
                      nxc_repair_text(e->binding->arena, type, "tokenized", false),
                      "%s.type must be tokenized: no other kind is read", e->name);
  const char *where = path != NULL && path->value.kind == NXC_STRING ? path->value.text : NULL;
  bool dummy = where != NULL && strcmp(where, "dummy") == 0;
  const char *separator = where != NULL ? remote_separator(where) : NULL;
  if (where != NULL && is_number_text(where))
    complain(e, path, "NX7918", "name the folder with ./ before it",
             ".path is a number in quotes, which xorl reads as a number all the same, and stops");
  if (files != NULL && format == NULL && separator == NULL && !dummy)
    complain(e, files, "NX7912", "give ds_type: json, csv, parquet, arrow or text",
             " has data_files but no ds_type");
  if (format != NULL && !dummy && !is_one_of(format, formats))
    complain(e, format, "NX7913", "write the format of the files",
             ".ds_type must be json, csv, parquet, arrow or text");
  if (separator != NULL && strstr(separator + 3, "://") != NULL)
    complain(e, path, "NX7914", "write one address", ".path is no address: it has :// twice");
  if (shards != NULL && given(e, "preprocess_shards") != NULL)
    nxc_report(e->binding->sink, "NX7915", NXC_SEVERITY_WARNING, nxc_node_span(shards), "keep one of them",
               "%s has shards and preprocess_shards, and xorl then ignores preprocess_shards", e->name);
}

static void check_datasets(nxc_binding *binding, const char *option) {
  nxc_bound *bound = nxc_binding_find(binding, option);
  const nxc_node *list = bound != NULL && bound->node != NULL ? nxc_node_final(bound->node) : NULL;
  if (list == NULL || list->kind != NXC_NODE_LIST) return;
  entry e = {.binding = binding, .list = bound, .name = option};
  if (list->n_children == 0 && strcmp(option, "data.datasets") == 0)
    nxc_report(binding->sink, "NX7916", NXC_SEVERITY_ERROR, bound->at, "give it an entry with path and type",
               "%s names no dataset", option);
  for (size_t i = 0; i < list->n_children; i++) {
    e.node = nxc_node_final(list->children[i]);
    e.name = nxc_arena_printf(binding->arena, "%s[%zu]", option, i);
    if (e.node->kind == NXC_NODE_MAP) check_entry(&e);
    else complain(&e, list->children[i], "NX7910", "write it as a map with path", " is no map");
  }
}

/* Since the seed era lists may be empty, but for two. */
static bool may_be_empty(const char *version, const char *option) {
  return strcmp(version, "seed") != 0 && strncmp(option, "train.no_decay_", 15) != 0;
}

static void check_empty_lists(nxc_binding *binding) {
  for (size_t i = 0; i < binding->dialect->n_options; i++) {
    const nxc_bound *bound = &binding->options[i];
    if (!bound->given || bound->node == NULL || bound->row->domain.type == NXC_TYPE_LIST) continue;
    const nxc_node *node = nxc_node_final(bound->node);
    bool empty = node->kind == NXC_NODE_LIST && node->n_children == 0;
    if (empty && !may_be_empty(binding->version, bound->row->name))
      nxc_report(binding->sink, "NX7902", NXC_SEVERITY_ERROR, bound->at, "leave the key out",
                 "%s is an empty list, which xorl's parser refuses", bound->row->name);
  }
}

void nxc_xorl_prepare(nxc_binding *binding) {
  check_empty_lists(binding);
  check_datasets(binding, "data.datasets");
  check_datasets(binding, "data.test_datasets");
}
