/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that are no option: is it a variable, a misspelling, a key of another section, or the user's own? */
#include "compiler/config/binding/dialect.h"
#include "compiler/config/binding/dialect_words.h"
#include "compiler/config/binding/key_patterns.h"
#include "compiler/diagnostics/nearest.h"
#include "compiler/document/repair.h"

#include <string.h>

/* Every suggestion looks at all options and siblings; a file with more unknown keys is no configuration. */
enum { SUGGESTIONS_MAX = 100 };

bool nxc_section_is_open(const char *const *strict_sections, const char *name) {
  if (strict_sections == NULL) return false;
  while (*strict_sections != NULL && strncmp(name, *strict_sections, strlen(*strict_sections)) != 0)
    strict_sections++;
  return *strict_sections == NULL;
}

/* Every name that may follow the section of `name`, the next step of each option below it; those that are
 * not given first. */
static size_t names_beside(nxc_binding *binding, const char *name, const char ***names) {
  const nxc_dialect *dialect = binding->dialect;
  nxc_arena *arena = binding->arena;
  size_t n_section = (size_t)(nxc_name_last(name) - name), first = 0, end = dialect->n_options, n_names = 0;
  if (n_section > 0)
    end = nxc_dialect_section(dialect, nxc_arena_strndup(arena, name, n_section - 1), &first);
  const char **steps = nxc_arena_array(arena, end - first + 1, sizeof *steps);
  bool *given = nxc_arena_array(arena, end - first + 1, sizeof *given);
  size_t n_steps = 0;
  for (size_t i = first; i < end; i++) { /* options of one step stand together */
    const char *rest = dialect->options[i].name + n_section;
    size_t n_bytes = strcspn(rest, ".");
    if (*rest == '*') continue;
    bool again =
        n_steps > 0 && strncmp(steps[n_steps - 1], rest, n_bytes) == 0 && steps[n_steps - 1][n_bytes] == '\0';
    if (!again) steps[n_steps++] = rest[n_bytes] == '\0' ? rest : nxc_arena_strndup(arena, rest, n_bytes);
    given[n_steps - 1] = given[n_steps - 1] || binding->options[i].given;
  }
  const char **own = NULL;
  size_t n_own = 0;
  if (binding->program != NULL && n_section == 0)
    n_own = nxc_program_row_names(arena, binding->program, &own);
  *names = nxc_arena_array(arena, n_steps + n_own + 1, sizeof **names);
  for (size_t i = 0; i < n_own; i++) (*names)[n_names++] = own[i];
  for (int wanted = 0; wanted < 2; wanted++)
    for (size_t i = 0; i < n_steps; i++)
      if (given[i] == wanted) (*names)[n_names++] = steps[i];
  return n_names;
}

/* The nearest option or section beside this key; of two alike rather one that is not given. */
static nxc_near nearest_beside(nxc_binding *binding, const char *name) {
  const char **beside;
  size_t n_beside = names_beside(binding, name, &beside);
  nxc_near near = nxc_near_find(nxc_name_last(name), beside, n_beside);
  int n_section = (int)(nxc_name_last(name) - name);
  if (near.name != NULL) near.name = nxc_arena_printf(binding->arena, "%.*s%s", n_section, name, near.name);
  return near;
}

/* An option that its row says this word is often written for. */
static const char *known_misspelling(const nxc_dialect *dialect, const char *name) {
  const char *word = nxc_name_last(name);
  for (size_t i = 0; i < dialect->n_options; i++) {
    const nxc_option_row *row = &dialect->options[i];
    for (size_t j = 0; j < row->n_nearest_to; j++) {
      if (strcmp(row->nearest_to[j], word) == 0 || strcmp(row->nearest_to[j], name) == 0) return row->name;
    }
  }
  return NULL;
}

/* Required and not given: what stands in the wrong place is missed there. */
static bool is_missed(nxc_binding *binding, const nxc_option_row *row) {
  const nxc_bound *bound = &binding->options[row - binding->dialect->options];
  return row->required != NULL && !nxc_binding_is_given(binding, row->name) &&
         nxc_binding_is_true(binding, bound, row->required);
}

typedef struct namesake {
  const char *name; /* NULL: there is none */
  bool alone, missed;
} namesake;

/* An option with the same last step in another section, rather one that is missed; in a section - and _ are
 * as good. */
static namesake same_key_elsewhere(nxc_binding *binding, const char *name) {
  const nxc_dialect *dialect = binding->dialect;
  const char *word = nxc_name_last(name);
  bool folds = word != name;
  namesake found = {.alone = true};
  for (size_t i = 0; i < dialect->n_options; i++) {
    const nxc_option_row *row = &dialect->options[i];
    if (row->alias_of != NULL) continue;
    const char *last = nxc_name_last(row->name);
    if (folds ? !nxc_same_folded(last, word) : strcmp(last, word) != 0) continue;
    bool missed = is_missed(binding, row);
    if (found.name == NULL || (missed && !found.missed))
      found = (namesake){row->name, found.name == NULL || missed, missed};
    else if (missed || !found.missed) found.alone = false;
  }
  return found;
}

/* The sibling above that is an empty section and would hold this key: its lines are not indented. */
static const char *empty_section_above(nxc_binding *binding, const nxc_node *node, const char *name) {
  enum { LOOKED_AT_MAX = 256 };
  size_t n_section = (size_t)(nxc_name_last(name) - name);
  for (size_t n = 1; node->parent && n <= node->index && n <= LOOKED_AT_MAX; n++) {
    const nxc_node *sibling = node->parent->children[node->index - n];
    if (sibling->kind != NXC_NODE_SCALAR || sibling->value.kind != NXC_NULL || sibling->key == NULL) continue;
    const char *inside =
        nxc_arena_printf(binding->arena, "%.*s%s.%s", (int)n_section, name, sibling->key, node->key);
    if (nxc_option_find(binding->dialect, inside) != NULL) return sibling->key;
  }
  return NULL;
}

static void report_with(nxc_binding *binding, const nxc_node *node, nxc_severity severity, const char *fix,
                        nxc_repair repair, const char *name, const char *more) {
  const char *id = severity == NXC_SEVERITY_ERROR ? "NX1301" : "NX1302";
  nxc_report_repair(binding->sink, id, severity, nxc_node_span(node), fix, repair, "unknown key %s%s", name,
                    more);
}

static void report(nxc_binding *binding, const nxc_node *node, nxc_severity severity, const char *fix,
                   const char *name, const char *more) {
  report_with(binding, node, severity, fix, (nxc_repair){0}, name, more);
}

/* What no option is near to. */
static const char remove_it[] = "leave it out, or write the option that is meant";

static void report_needless(nxc_binding *binding, const nxc_node *node, nxc_severity severity,
                            const char *name, const char *more) {
  nxc_repair repair = {0};
  if (severity == NXC_SEVERITY_ERROR) repair = nxc_repair_remove(binding->arena, node, false);
  report_with(binding, node, severity, remove_it, repair, name, more);
}

static void report_misspelt(nxc_binding *binding, const nxc_node *node, const char *name, nxc_near meant) {
  report_with(binding, node, NXC_SEVERITY_ERROR, nxc_did_you_mean(binding->arena, "", meant.name),
              nxc_binding_rename(binding, node, name, meant.name, meant.certain), name, "");
}

/* All that a map holds may be read by interpolations although the map itself is not. */
static void doubt_inside(nxc_binding *binding, const nxc_node *map, const char *name) {
  for (size_t i = 0; i < map->n_children; i++) {
    const nxc_node *child = map->children[i];
    if (child->key == NULL) continue;
    binding->unknown =
        nxc_arena_grow(binding->arena, binding->unknown, binding->n_unknown, sizeof *binding->unknown);
    binding->unknown[binding->n_unknown++] =
        (struct nxc_unknown_key){child, nxc_name_below(binding->arena, name, child->key)};
  }
}

static void doubt(nxc_bound *bound, const nxc_node *node) {
  if (bound->given) return;
  bound->given = bound->lacks = true;
  bound->node = node;
  bound->at = nxc_node_span(node);
  bound->value = NULL;
}

void nxc_binding_doubt_section(nxc_binding *binding, const char *section, const nxc_node *node) {
  size_t first, end = nxc_dialect_section(binding->dialect, section, &first);
  for (size_t i = first; i < end; i++) doubt(&binding->options[i], node);
}

/* What the user meant is there after all, though what it says is not known. */
static const char *take_for(nxc_binding *binding, const nxc_node *node, const char *meant) {
  bool fresh = !nxc_binding_is_given(binding, meant);
  nxc_sink_withdraw(binding->sink, "NX1202", meant);
  const nxc_option_row *row = nxc_option_find(binding->dialect, meant);
  if (row != NULL && row->alias_of != NULL) row = nxc_option_find(binding->dialect, row->alias_of);
  if (row != NULL) doubt(&binding->options[row - binding->dialect->options], node);
  bool section = row == NULL || row->domain.type == NXC_TYPE_MAP;
  return fresh && section && nxc_node_final(node)->kind == NXC_NODE_MAP ? meant : NULL;
}

/* The section that a map is meant for whose keys are mostly its options; none where it is there. */
static nxc_near misspelt_section(nxc_binding *binding, const nxc_node *map, const char *name) {
  nxc_near none = {0}, meant = {0};
  if (map->kind == NXC_NODE_MAP && map->n_children > 0) meant = nearest_beside(binding, name);
  if (meant.name == NULL || nxc_binding_is_given(binding, meant.name)) return none;
  size_t n_known = 0, first;
  for (size_t i = 0; i < map->n_children; i++) {
    if (map->children[i]->key == NULL) continue;
    const char *inside = nxc_name_below(binding->arena, meant.name, map->children[i]->key);
    n_known += nxc_option_find(binding->dialect, inside) != NULL ||
               nxc_dialect_section(binding->dialect, inside, &first) > first;
  }
  return 2 * n_known > map->n_children ? meant : none;
}

/* A word of another system, and what it is called here. */
static const char *report_foreign(nxc_binding *binding, const nxc_node *node, const char *name,
                                  nxc_severity severity, const nxc_foreign_word *word) {
  nxc_arena *arena = binding->arena;
  const char *whole = strcmp(word->option, name) ? nxc_arena_printf(arena, " (%s)", word->option) : "";
  bool map = node->kind == NXC_NODE_MAP;
  const char *advice = map          ? "write what it holds option by option, such as %s"
                       : word->here ? "write %s here"
                                    : "say it with %s";
  const char *named = word->here ? word->here : word->otherwise;
  nxc_repair repair = {0};
  if (word->here != NULL && !map) repair = nxc_binding_rename(binding, node, name, word->here, false);
  if (word->here == NULL && severity == NXC_SEVERITY_ERROR)
    repair = nxc_repair_remove(binding->arena, node, false);
  report_with(binding, node, severity, named ? nxc_arena_printf(arena, advice, named) : remove_it, repair,
              name,
              nxc_arena_printf(arena, "; it is a %s of %s%s%s", map ? "section" : "word", word->system, whole,
                               word->here ? "" : ", and no option here takes its value"));
  return word->here && severity == NXC_SEVERITY_ERROR ? take_for(binding, node, word->here) : NULL;
}

/* -- what an unknown key may be -------------------------------------------------------------------------- */

typedef struct unknown_key {
  nxc_binding *binding;
  const nxc_node *node;
  const char *name;
  bool shares; /* others than this dialect read the file too */
  bool open, suggests;
  nxc_severity severity;
  const char *section; /* that was meant, and is read as if it stood there */
} unknown_key;

static bool is_known_to_another(unknown_key *key) {
  const nxc_binding *binding = key->binding;
  return (binding->own_keys != NULL && nxc_key_patterns_match(binding->own_keys, key->name)) ||
         key->node->reader != NULL ||
         (binding->program != NULL && nxc_program_row_has(binding->program, key->name)) ||
         (binding->relative != NULL && nxc_relative_has(binding->relative, key->name));
}

static bool is_perhaps_the_programs(unknown_key *key) {
  if (key->binding->program == NULL || !nxc_program_row_has_any(key->binding->program)) return false;
  report(key->binding, key->node, NXC_SEVERITY_NOTE, NULL, key->name,
         ": the program that the script starts may have it");
  return true;
}

static bool is_misspelt_section(unknown_key *key) {
  nxc_near section = {0};
  if (key->suggests) section = misspelt_section(key->binding, key->node, key->name);
  if (section.name == NULL) return false;
  report_misspelt(key->binding, key->node, key->name, section);
  key->section = take_for(key->binding, key->node, section.name);
  return true;
}

static bool is_read_by_interpolation(unknown_key *key) {
  if (!nxc_node_is_read(key->node)) return false;
  if (key->node->kind == NXC_NODE_MAP) doubt_inside(key->binding, key->node, key->name);
  return true;
}

static bool is_of_the_past(unknown_key *key) {
  return nxc_binding_report_past(key->binding, key->node, key->name, key->open);
}

static bool is_one_of_many(unknown_key *key) {
  if (key->suggests) return false;
  report_needless(key->binding, key->node, key->severity, key->name, "");
  return true;
}

static bool is_not_indented(unknown_key *key) {
  nxc_arena *arena = key->binding->arena;
  const char *empty = empty_section_above(key->binding, key->node, key->name);
  if (empty == NULL) return false;
  report(key->binding, key->node, NXC_SEVERITY_ERROR, nxc_arena_printf(arena, "indent it below %s:", empty),
         key->name,
         nxc_arena_printf(arena, "; it belongs to the section %s above, which is empty", empty));
  return true;
}

static bool find_foreign(const unknown_key *key, nxc_foreign_word *word) {
  bool map = key->node->kind == NXC_NODE_MAP;
  return nxc_foreign_word_find(key->binding->dialect, key->binding->version, key->name, map, word);
}

/* A word that is often written for an option may have been said of something else, as steps of a share: only
 * a value that the option takes tells that it is the same. */
static bool fits(const unknown_key *key, const char *meant) {
  const nxc_option_row *row = nxc_option_find(key->binding->dialect, meant);
  const nxc_value *value = nxc_node_value(key->binding->arena, key->node);
  return value != NULL &&
         nxc_domain_judge(key->binding->arena, &row->domain, value, false).misfit == NXC_FITS;
}

/* Of several words another system's own is likelier than a word of this one that is only near. */
static bool is_misspelt(unknown_key *key) {
  nxc_binding *binding = key->binding;
  nxc_near meant = {known_misspelling(binding->dialect, key->name), false};
  bool known = meant.name != NULL;
  if (known) meant.certain = fits(key, meant.name);
  else meant = nearest_beside(binding, key->name);
  if (meant.name != NULL && !meant.certain && same_key_elsewhere(binding, key->name).missed) return false;
  if (meant.name == NULL) return false;
  nxc_foreign_word word = {0};
  if (!known && strpbrk(key->name, "-_") != NULL && !nxc_same_folded(meant.name, key->name) &&
      find_foreign(key, &word) && (word.here != NULL || nxc_same_folded(word.option, key->name))) {
    key->section = report_foreign(binding, key->node, key->name, NXC_SEVERITY_ERROR, &word);
    return true;
  }
  report_misspelt(binding, key->node, key->name, meant);
  key->section = take_for(binding, key->node, meant.name);
  return true;
}

static bool is_in_the_wrong_section(unknown_key *key) {
  nxc_binding *binding = key->binding;
  const namesake found = same_key_elsewhere(binding, key->name);
  const char *elsewhere = found.name;
  if (elsewhere == NULL) return false;
  bool there = key->node->kind != NXC_NODE_MAP && nxc_binding_is_given(binding, elsewhere);
  nxc_repair repair = {0};
  if (!there)
    repair = nxc_binding_rename(binding, key->node, key->name, elsewhere, found.alone && !key->open);
  else if (!key->open) repair = nxc_repair_remove(binding->arena, key->node, false);
  report_with(
      binding, key->node, key->severity,
      there ? "leave it out" : nxc_arena_printf(binding->arena, "move it to %s", elsewhere), repair,
      key->name,
      nxc_arena_printf(binding->arena, "; there is %s%s", elsewhere, there ? ", which is given" : ""));
  if (!key->open) key->section = take_for(binding, key->node, elsewhere);
  return true;
}

static bool is_foreign(unknown_key *key) {
  nxc_foreign_word word = {0};
  if (!find_foreign(key, &word)) return false;
  key->section = report_foreign(key->binding, key->node, key->name, key->severity, &word);
  return true;
}

static bool is_misspelt_of_a_fork(unknown_key *key) {
  const nxc_relative *relative = key->binding->relative;
  const char *own = relative ? nxc_relative_nearest(key->binding->arena, relative, key->name) : NULL;
  if (own == NULL) return false;
  report_misspelt(key->binding, key->node, key->name, (nxc_near){own, true});
  return true;
}

static bool is_unheard_of(unknown_key *key) {
  const nxc_relative *relative = key->binding->relative;
  const char *more = relative ? nxc_arena_printf(key->binding->arena, "; nor has %s it", relative->name)
                     : key->shares ? "; no option of a training, nor of the program as far as it is known"
                     : key->open   ? "; nothing reads it, unless a module of your own does"
                                   : "";
  report_needless(key->binding, key->node, key->severity, key->name, more);
  return true;
}

/* The first that it is decides; those before is_of_the_past need not be mistakes. */
static bool (*const guesses[])(unknown_key *) = {
    is_known_to_another, is_perhaps_the_programs, is_misspelt_section,     is_read_by_interpolation,
    is_of_the_past,      is_one_of_many,          is_not_indented,         is_misspelt,
    is_in_the_wrong_section, is_foreign,          is_misspelt_of_a_fork,   is_unheard_of,
};

const char *nxc_binding_report_unknown(nxc_binding *binding, size_t index) {
  unknown_key key = {binding, binding->unknown[index].node, binding->unknown[index].name};
  bool grown = binding->relative != NULL && !binding->relative->past;
  key.shares = binding->document->part || grown || binding->own_program ||
               (binding->program != NULL && binding->program->use == NXC_PROGRAM_SHARES);
  key.open = key.shares || nxc_section_is_open(binding->strict_sections, key.name);
  key.severity = key.open ? NXC_SEVERITY_WARNING : NXC_SEVERITY_ERROR;
  key.suggests = index < SUGGESTIONS_MAX;
  for (size_t i = 0; !guesses[i](&key); i++) continue;
  return key.section;
}
