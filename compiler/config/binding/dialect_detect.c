/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/binding/dialect_detect.h"
#include "compiler/config/binding/dialect.h"

#include <string.h>

/* How well a document's keys fit a dialect. */
typedef struct fit {
  size_t n_known, n_others; /* keys that are options, and keys that are neither options nor sections */
  size_t n_top_known, n_top_others; /* of the root; sections are known */
  bool telling; /* a section of it stands there, or an option of two words: not just a name */
} fit;

static void count_keys(nxc_arena *arena, const nxc_dialect *dialect, const nxc_node *map, const char *section,
                       fit *counted) {
  for (size_t i = 0; i < map->n_children; i++) {
    const nxc_node *child = map->children[i];
    if (child->key == NULL) continue;
    const char *name = nxc_name_below(arena, section, child->key);
    const nxc_option_row *row = nxc_option_find(dialect, name);
    bool holds = nxc_dialect_has_section(dialect, name), own = row != NULL && strcmp(row->name, name) == 0;
    bool descends = child->kind == NXC_NODE_MAP && holds;
    counted->n_known += own && !descends;
    counted->n_others += row == NULL && !holds;
    if (descends) count_keys(arena, dialect, child, name, counted);
  }
}

/* A section that is all the users' own, such as hydra, tells nothing. */
static bool is_own_section(const nxc_dialect *dialect, const char *name) {
  size_t first, end = nxc_dialect_section(dialect, name, &first);
  while (first < end && strchr(dialect->options[first].name, '*') != NULL) first++;
  return first < end;
}

static fit fit_of(const nxc_document *document, const nxc_dialect *dialect) {
  fit counted = {0};
  count_keys(document->arena, dialect, document->root, "", &counted);
  for (size_t i = 0; i < document->root->n_children; i++) {
    const nxc_node *child = document->root->children[i];
    if (child->key == NULL) continue;
    bool option = nxc_option_find(dialect, child->key) != NULL, map = child->kind == NXC_NODE_MAP;
    bool known = option || (map && nxc_dialect_has_section(dialect, child->key)),
         own = map && is_own_section(dialect, child->key);
    counted.n_top_known += known;
    counted.n_top_others += !known;
    counted.telling = counted.telling || own || (option && strchr(child->key, '_') != NULL);
  }
  return counted;
}

/* Files of other programs share a few names with a dialect; its own have few others, or a few mistakes. */
static bool is_told(const fit *counted) {
  enum { MISTAKES_MAX = 2 };
  bool few = counted->n_others <= MISTAKES_MAX || counted->n_known > 2 * counted->n_others;
  return counted->telling && few && counted->n_top_known >= counted->n_top_others;
}

/* Sections without a key that is known count too. */
static size_t score_of(const fit *counted) {
  return counted->n_known + counted->n_top_known;
}

static const char *doubt(const nxc_document *document, const char *name, const fit *counted) {
  nxc_arena *arena = document->arena;
  bool map = document->root->kind == NXC_NODE_MAP, list = document->root->kind == NXC_NODE_LIST;
  if (map && document->root->n_children == 0) return "it is empty";
  if (!map && document->complete) return list ? "it is a list, and no map of keys" : "it holds no key";
  if (score_of(counted) == 0) return "no key of it is known";
  if (is_told(counted)) return "its keys belong to several alike";
  return nxc_arena_printf(arena, "%zu of its keys %s of %s, and %zu %s", counted->n_known,
                          counted->n_known == 1 ? "is" : "are", name, counted->n_others,
                          counted->n_others == 1 ? "is not" : "are not");
}

/* Whether the key alone names a dialect: a section of it, or an option of two words. */
static bool is_telling_key(const nxc_dialect *dialect, const char *key) {
  return is_own_section(dialect, key) || (strchr(key, '_') != NULL && nxc_option_find(dialect, key) != NULL);
}

static bool line_hints(const nxc_dialect *dialect, const nxc_source *text) {
  for (uint32_t line = 1; line <= text->n_lines; line++) {
    char key[64];
    size_t n_key;
    const char *bytes = nxc_source_line_key(text, line, &n_key);
    if (n_key == 0 || n_key >= sizeof key) continue;
    memcpy(key, bytes, n_key);
    key[n_key] = '\0';
    if (is_telling_key(dialect, key)) return true;
  }
  return false;
}

bool nxc_dialect_hinted(const nxc_document *document, bool (*told_by_keys)(const char *dialect)) {
  for (size_t i = 0; i < nxc_n_dialects; i++) {
    const nxc_dialect *dialect = &nxc_dialects[i];
    if (strcmp(dialect->name, "hf_config") == 0 || !told_by_keys(dialect->name)) continue;
    if (!document->complete) {
      if (document->root->at.source != NULL && line_hints(dialect, document->root->at.source)) return true;
      continue;
    }
    fit counted = fit_of(document, dialect);
    if (counted.telling && counted.n_top_known >= counted.n_top_others) return true;
  }
  return false;
}

/* Whether it is what --model-config takes: a file that says which kind of model it is, and more in the words
 * of config.json than in those of the dialect that fits best. */
static bool is_model_config(const nxc_document *document, size_t score_of_best) {
  const nxc_dialect *words = nxc_dialect_find("hf_config");
  bool typed = false;
  for (size_t i = 0; i < document->root->n_children; i++)
    typed |= document->root->children[i]->key && strcmp(document->root->children[i]->key, "model_type") == 0;
  if (!typed || words == NULL) return false;
  fit counted = fit_of(document, words);
  return score_of(&counted) > score_of_best;
}

const nxc_dialect *nxc_dialect_detect(const nxc_document *document, bool (*told_by_keys)(const char *dialect),
                                      nxc_sink *sink) {
  const nxc_dialect *best = NULL;
  fit most = {0};
  bool tie = false;
  const char *names = "";
  for (size_t i = 0; i < nxc_n_dialects; i++) {
    const nxc_dialect *dialect = &nxc_dialects[i];
    if (strcmp(dialect->name, "hf_config") == 0) continue; /* comes with --model-config only */
    names = nxc_arena_printf(document->arena, "%s%s%s", names, *names ? " or " : "", dialect->name);
    if (!told_by_keys(dialect->name)) continue;
    fit counted = fit_of(document, dialect);
    tie = score_of(&counted) > score_of(&most) ? false : tie || score_of(&counted) == score_of(&most);
    if (score_of(&counted) <= score_of(&most)) continue;
    most = counted;
    best = dialect;
  }
  nxc_span at = {.source = document->root->at.source, .line = 1, .column = 1, .length = 1};
  if (is_model_config(document, score_of(&most))) {
    nxc_report(sink, "NX1310", NXC_SEVERITY_ERROR, at,
               "name the configuration that trains it, and this file with --model-config",
               "this is a model's config.json, and no training");
    return NULL;
  }
  if (best != NULL && !tie && is_told(&most)) return best;
  nxc_report(sink, "NX1310", NXC_SEVERITY_ERROR, at,
             nxc_arena_printf(document->arena, "give --dialect %s", names),
             "cannot tell which dialect this is: %s", doubt(document, best ? best->name : "", &most));
  return NULL;
}
