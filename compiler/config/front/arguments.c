/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/front/arguments.h"
#include "compiler/config/front/argument_slips.h"
#include "compiler/config/front/argument_values.h"

#include "compiler/diagnostics/nearest.h"
#include "compiler/document/nodes.h"
#include "compiler/document/scalar.h"
#include "compiler/settings/domain.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

static void report(nxc_arguments *to, const char *id, nxc_span at, const char *fix, const char *message) {
  nxc_report(to->sink, id, NXC_SEVERITY_ERROR, at, fix, "%s", message);
}

static void report_repair(nxc_arguments *to, const char *id, nxc_span at, const char *fix, nxc_repair repair,
                          const char *message) {
  nxc_report_repair(to->sink, id, NXC_SEVERITY_ERROR, at, fix, repair, "%s", message);
}

/* -- into the map ---------------------------------------------------------------------------------------- */

/* Where two options stand: in one list of arguments, in a script, or in two texts. */
typedef enum beside { IN_LIST, IN_SCRIPT, IN_FILES } beside;

/* Where both say the same, nothing is lost; where one file reads another, the last is meant to count. So it
 * mostly is in a script, which runs well: what is common comes first, and what this training has otherwise
 * behind it. A list of arguments is of one piece, and one of the two a mistake. */
static void report_twice(nxc_arguments *to, const nxc_node *earlier, const nxc_node *node, const char *name) {
  static const struct {
    nxc_severity severity;
    const char *message, *fix;
  } kinds[] = {
      [IN_LIST] = {NXC_SEVERITY_ERROR, "--%s is given twice; Megatron takes the last one and says nothing",
                      "keep one of them"},
      [IN_SCRIPT] = {NXC_SEVERITY_WARNING, "--%s is given twice: the last one counts",
                     "keep one of them, unless the last is meant to count"},
      [IN_FILES] = {NXC_SEVERITY_NOTE, "--%s is given in two files: the last one counts", NULL}};
  const nxc_remark remark = {nxc_node_span(earlier), "the first one"};
  bool beside_each_other = earlier->key_at.source == node->key_at.source;
  beside how = !beside_each_other ? IN_FILES : to->script ? IN_SCRIPT : IN_LIST;
  const nxc_value *first = nxc_node_value(to->arena, earlier), *last = nxc_node_value(to->arena, node);
  bool same = first != NULL && last != NULL && nxc_value_equal(first, last);
  const char *message = same ? "--%s is given twice, with the same value" : kinds[how].message;
  nxc_sink_report(to->sink, &(nxc_finding){.id = "NX5906",
                                           .severity = same ? NXC_SEVERITY_NOTE : kinds[how].severity,
                                           .at = node->key_at,
                                           .fix = same ? "keep one of them" : kinds[how].fix,
                                           .remarks = &remark,
                                           .n_remarks = 1,
                                           .message = nxc_arena_printf(to->arena, message, name)});
}

void nxc_arguments_put_node(nxc_arguments *to, const char *name, nxc_span at, nxc_node *node) {
  const nxc_value key = nxc_string_value(name, strlen(name));
  nxc_node_set_key(node, &key, name, at);
  nxc_node *earlier = nxc_node_find_key(to->arena, to->map, &key);
  if (earlier == NULL) {
    nxc_node_append(to->arena, to->map, node);
    return;
  }
  bool gives_way =
      (to->over != NULL && earlier->key_at.source != to->over) || earlier->failed || node->failed;
  if (!gives_way) report_twice(to, earlier, node, name);
  nxc_node_replace(to->arena, earlier, node);
  nxc_node_set_key(node, &key, name, at);
}

/* What a program has of its own is judged here: no binding knows it. */
static void judge_word(nxc_arguments *to, const nxc_option_row *row, const char *name, const nxc_node *node) {
  if (node->failed || nxc_option_find(to->dialect, name) == row) return;
  nxc_verdict verdict = nxc_domain_judge(to->arena, &row->domain, &node->value, false);
  if (verdict.misfit == NXC_NOT_A_WORD)
    report(to, nxc_misfit_id(verdict.misfit), node->at, nxc_misfit_fix(&verdict),
           nxc_arena_printf(to->arena, "--%s %s", name, verdict.problem));
}

void nxc_arguments_put(nxc_arguments *to, const nxc_option_row *row, const char *name, nxc_span at,
                       const nxc_launch_words *values) {
  nxc_node *node;
  to->head = at;
  if (row != NULL && row->alias_of != NULL) row = nxc_option_find(to->dialect, row->alias_of);
  nxc_type type = row ? row->domain.type : NXC_TYPE_STR;
  if (type == NXC_TYPE_BOOL || (row == NULL && values->n_items == 0)) node = nxc_argument_switch(to, at);
  else if (row != NULL && nxc_arguments_is_list(row)) node = nxc_argument_list(to, name, type, at, values);
  else node = nxc_argument_scalar(to, name, type, &values->items[0]);
  if (row != NULL && type == NXC_TYPE_ENUM) judge_word(to, row, name, node);
  nxc_arguments_put_node(to, name, at, node);
}

/* -- words ----------------------------------------------------------------------------------------------- */

static bool has_own_alone(const nxc_arguments *to) {
  return to->program != NULL && to->program->use == NXC_PROGRAM_OWN;
}

/* As a row of the catalogue would say it. */
static const nxc_option_row *own_option(const nxc_arguments *to, const char *name) {
  if (to->program == NULL || !nxc_program_row_has(to->program, name)) return NULL;
  nxc_option_row *row = nxc_arena_alloc(to->arena, sizeof *row);
  *row = (nxc_option_row){.name = nxc_arena_strdup(to->arena, name),
                          .domain = nxc_program_row_domain(to->arena, to->program, name)};
  return row;
}

/* What stands beside the options in the map. */
static bool is_section(const char *name) {
  return strcmp(name, "environment") == 0 || strcmp(name, "launch") == 0;
}

/* Sections of the catalogue that stand beside the options are none. */
const nxc_option_row *nxc_arguments_option(const nxc_arguments *to, const char *name) {
  if (strchr(name, '.') != NULL || is_section(name)) return NULL;
  const nxc_option_row *row = has_own_alone(to) ? NULL : nxc_option_find(to->dialect, name);
  return row ? row : own_option(to, name);
}

/* -1 and -.5, and neither -1. nor -1e5. */
static bool is_negative_number(const char *text) {
  size_t n_whole = strspn(text + 1, "0123456789");
  if (text[1 + n_whole] == '\0') return n_whole > 0;
  size_t n_fraction = text[1 + n_whole] == '.' ? strspn(text + n_whole + 2, "0123456789") : 0;
  return n_fraction > 0 && text[n_whole + 2 + n_fraction] == '\0';
}

/* As argparse tells options from values: what has blanks is a value, unless a known name stands before =. */
static bool is_option_word(const nxc_arguments *to, const char *text) {
  if (text[0] != '-' || text[1] == '\0' || is_negative_number(text)) return false;
  if (strchr(text, ' ') == NULL) return true;
  const char *equals = strchr(text, '=');
  if (equals == NULL || text[1] != '-') return false;
  const char *name = nxc_arena_strndup(to->arena, text + 2, (size_t)(equals - text - 2));
  return strchr(name, ' ') == NULL || nxc_arguments_option(to, name) != NULL;
}

static const char *with_hyphens(nxc_arena *arena, const char *name) {
  char *text = nxc_arena_strdup(arena, name);
  for (char *c = text; *c != '\0'; c++)
    if (*c == '_') *c = '-';
  return text;
}

/* The option that this is the beginning of, where it is the beginning of one only. */
static const char *completion(const nxc_arguments *to, const char *name) {
  const nxc_option_row *options = to->dialect->options;
  const char *found = NULL;
  size_t n_bytes = strlen(name), n_found = 0, low = 0, high = to->dialect->n_options;
  while (low < high) { /* the first name that is not less */
    size_t middle = low + (high - low) / 2;
    if (strcmp(options[middle].name, name) < 0) low = middle + 1;
    else high = middle;
  }
  for (; low < to->dialect->n_options && strncmp(options[low].name, name, n_bytes) == 0; low++) {
    if (n_bytes < 3 || strchr(options[low].name, '.') != NULL) continue;
    found = options[low].name;
    n_found++;
  }
  return n_found == 1 ? found : NULL;
}

/* Programs with a parser of their own take the beginning of an option, where it is of one only. */
static const nxc_option_row *own_completion(const nxc_arguments *to, const char *name) {
  const char **names, *found = NULL;
  size_t n_names = nxc_program_row_names(to->arena, to->program, &names), n_found = 0;
  for (size_t i = 0; i < n_names; i++) {
    if (strncmp(names[i], name, strlen(name)) != 0) continue;
    found = names[i];
    n_found++;
  }
  return n_found == 1 ? own_option(to, found) : NULL;
}

/* Reports forms that argparse refuses although they look right; gives the option that is meant, or NULL. */
static const nxc_option_row *find_meant(nxc_arguments *to, const char *name, nxc_span at) {
  nxc_arena *arena = to->arena;
  if (has_own_alone(to)) return own_completion(to, name);
  if (to->relative != NULL && nxc_relative_has(to->relative, name)) return NULL;
  const char *hyphens = with_hyphens(arena, name), *whole = completion(to, hyphens);
  const nxc_option_row *row = nxc_arguments_option(to, hyphens);
  if (row != NULL && !to->underscores) {
    report_repair(to, "NX5901", at, nxc_arena_printf(arena, "write --%s", hyphens),
                  nxc_repair_word(arena, at, name, hyphens, true),
                  nxc_arena_printf(arena,
                                   "options are written with hyphens on the command line, and --%s is not",
                                   name));
  } else if (row == NULL && whole != NULL && to->program == NULL && !to->own) {
    row = nxc_arguments_option(to, whole);
    report_repair(to, "NX5902", at, nxc_arena_printf(arena, "write --%s", whole),
                  nxc_repair_word(arena, at, name, whole, true),
                  nxc_arena_printf(arena, "Megatron takes no abbreviations, and --%s is one of --%s", name,
                                   whole));
  }
  return row;
}

/* Words behind everything that could take them, as one finding; gives the index behind them. */
static size_t report_strays(nxc_arguments *to, const nxc_launch_words *words, size_t from, bool ended) {
  size_t end = from + 1;
  while (end < words->n_items && (ended || (!is_option_word(to, words->items[end].text) &&
                                            !nxc_argument_is_bare(to, words->items[end].text))))
    end++;
  nxc_argument_strays(to, &words->items[from], end - from);
  return end;
}

/* The words behind an option that may be its values; *next receives the index of the one behind them. */
static nxc_launch_words values_behind(nxc_arguments *to, const nxc_launch_words *words, size_t from,
                                      size_t n_max, size_t *next) {
  nxc_launch_words values = {0};
  bool more = from + 1 < words->n_items && !is_option_word(to, words->items[from + 1].text);
  if (more && nxc_argument_parts(to, &words->items[from])) from++;
  while (from < words->n_items && values.n_items < n_max && !is_option_word(to, words->items[from].text)) {
    if (words->items[from].many && (values.n_items > 0 || n_max > 1)) break; /* of the next option, or none */
    values.items = nxc_arena_grow(to->arena, values.items, values.n_items, sizeof *values.items);
    values.items[values.n_items++] = words->items[from++];
  }
  *next = from;
  return values;
}

/* --name=value as two words. */
static nxc_launch_word part_of(nxc_arguments *to, const nxc_launch_word *word, size_t from, size_t n_bytes) {
  nxc_launch_word part = *word;
  part.text = nxc_arena_strndup(to->arena, word->text + from, n_bytes);
  uint32_t column = 0, length = 0;
  for (size_t i = 0; i < from + n_bytes; i++)
    *(i < from ? &column : &length) += ((unsigned char)word->text[i] & 0xC0) != 0x80;
  if (part.at.source != NULL && column < part.at.length) {
    part.at.column += column;
    part.at.length = length ? length : 1;
  }
  return part;
}

/* A word that nothing here tells: it may be an option as well as a value. */
static bool is_untold(const nxc_launch_word *word) {
  return word->unset != NULL && strcmp(word->unset, word->text) == 0;
}

/* A word that may be none, or several, of which nothing here tells. */
static bool is_many(const nxc_launch_words *words, size_t i) {
  return i < words->n_items && words->items[i].many;
}

/* One option and what belongs to it; gives the index of the next word. */
static size_t read_option(nxc_arguments *to, const nxc_launch_words *words, size_t i) {
  const nxc_launch_word *word = &words->items[i];
  size_t n_dashes = strspn(word->text, "-"), n_bytes = strlen(word->text), next = i + 1;
  if (n_dashes > 2) n_dashes = 2;
  if (word->text[n_dashes] == '$' && word->unset != NULL) { /* --$DTYPE: any option, or several */
    to->open = true;
    return next;
  }
  const char *equals = strchr(word->text, '=');
  size_t n_name = (equals ? (size_t)(equals - word->text) : n_bytes) - n_dashes, n_between = 1;
  if (equals == NULL) {
    size_t n_glued = nxc_argument_glued(to, word, n_dashes, &n_between);
    if (n_glued > 0) equals = word->text + n_dashes + (n_name = n_glued);
  }
  const nxc_launch_word head = part_of(to, word, 0, n_dashes + n_name);
  const char *name = head.text + n_dashes;
  to->head = head.at;
  const nxc_option_row *row =
      n_dashes == 2 ? nxc_arguments_option(to, name) : nxc_argument_behind_few(to, name, head.at, n_dashes);
  if (row == NULL && n_dashes == 2) {
    row = find_meant(to, name, head.at);
    const char *hyphens = row != NULL ? row->name : to->underscores ? with_hyphens(to->arena, name) : name;
    if (row != NULL || nxc_past_option_find(to->dialect->name, hyphens) != NULL) name = hyphens;
  }
  if (row == NULL && is_section(name)) name = nxc_arena_printf(to->arena, "--%s", name);
  to->settled = row != NULL && !word->maybe && !(to->relative && nxc_relative_lists(to->relative, name));
  const nxc_option_row *target = row;
  if (row != NULL && row->alias_of != NULL) target = nxc_option_find(to->dialect, row->alias_of);
  bool is_switch = target != NULL && target->domain.type == NXC_TYPE_BOOL;
  bool is_list = target != NULL && nxc_arguments_is_list(target);
  nxc_launch_words values = {0};
  if (equals != NULL) {
    size_t n_front = n_dashes + n_name + n_between;
    nxc_launch_word value = part_of(to, word, n_front, n_bytes - n_front);
    if (is_switch) nxc_argument_of_switch(to, &value, name, head.at);
    values.items = nxc_arena_grow(to->arena, NULL, 0, sizeof value);
    values.items[values.n_items++] = value;
  } else {
    size_t n_max = is_list || row == NULL ? words->n_items : is_switch && is_many(words, next) ? 0 : 1;
    if (is_switch && next < words->n_items && nxc_argument_is_bare(to, words->items[next].text)) n_max = 0;
    values = values_behind(to, words, next, n_max, &next);
    if (is_switch && values.n_items > 0 && is_untold(&values.items[0])) values.n_items = 0, next--;
    if (is_switch && values.n_items > 0 && !values.items[0].maybe)
      nxc_argument_of_switch(to, &values.items[0], name, head.at);
  }
  if (word->maybe) {
    nxc_arguments_put_node(to, row ? row->name : name, head.at, nxc_argument_unknown(to, name, word));
    return next;
  }
  bool needed = target != NULL && !is_switch && target->domain.type != NXC_TYPE_LIST && values.n_items == 0;
  bool foreign = row == NULL && to->relative != NULL && values.n_items == 0; /* few of those are switches */
  bool empty = is_list && values.n_items == 0 && equals == NULL; /* what stands behind it are its values */
  if ((needed || foreign || empty) && is_many(words, next))
    values = (nxc_launch_words){&words->items[next++], 1}, needed = false;
  if (needed) {
    const nxc_launch_word *behind = next < words->n_items ? &words->items[next] : NULL;
    next += nxc_argument_missing(to, target, name, head.at, behind);
    return next;
  }
  nxc_arguments_put(to, row, name, head.at, &values);
  bool lists = to->relative != NULL && nxc_relative_lists(to->relative, name);
  bool several = lists && next < words->n_items && !is_option_word(to, words->items[next].text);
  if (several)
    to->map->children[to->map->n_children - 1]->failed = true; /* more than an option here can say */
  return next;
}

const nxc_relative *nxc_arguments_relative(const nxc_arguments *to, const nxc_launch_words *words) {
  nxc_relative_given *given = nxc_arena_array(to->arena, words->n_items, sizeof *given);
  size_t n = 0;
  for (size_t i = 0; i < words->n_items; i++) {
    const char *text = words->items[i].text;
    if (strncmp(text, "--", 2) != 0) continue;
    const char *name = nxc_arena_strndup(to->arena, text + 2, strcspn(text + 2, "="));
    given[n++] = (nxc_relative_given){name, "", nxc_option_find(to->dialect, name) != NULL};
  }
  return nxc_relative_of_options(to->dialect->name, given, n);
}

/* Many with underscores, and none with hyphens, are no slip. */
static const nxc_launch_word *first_of_underscores(const nxc_arguments *to, const nxc_launch_words *words) {
  enum { MANY = 5 };
  const nxc_launch_word *first = NULL;
  size_t n = 0;
  for (size_t i = 0; i < words->n_items; i++) {
    const char *text = words->items[i].text;
    if (strncmp(text, "--", 2) != 0) continue;
    const char *name = nxc_arena_strndup(to->arena, text + 2, strcspn(text + 2, "="));
    bool known = nxc_arguments_option(to, with_hyphens(to->arena, name)) != NULL;
    if (known && strchr(name, '-') != NULL) return NULL;
    if (!known || strchr(name, '_') == NULL) continue;
    if (n++ == 0) first = &words->items[i];
  }
  return n >= MANY ? first : NULL;
}

static void find_underscores(nxc_arguments *to, const nxc_launch_words *words) {
  const nxc_launch_word *first = has_own_alone(to) ? NULL : first_of_underscores(to, words);
  if (first == NULL || to->underscores) return;
  to->underscores = true;
  nxc_report(to->sink, "NX5901", NXC_SEVERITY_WARNING, first->at,
             "have that code itself judge it, or write hyphens",
             "options are written with hyphens on the command line, and all of these with underscores, as "
             "Megatron-LLM has them");
}

void nxc_arguments_read(nxc_arguments *to, const nxc_launch_words *words) {
  bool ended = false, many = false;
  if (to->relative == NULL) to->relative = nxc_arguments_relative(to, words);
  find_underscores(to, words);
  for (size_t i = 0; i < words->n_items;) {
    many = many || is_many(words, i);
    const char *text = words->items[i].text;
    if (!ended && strcmp(text, "--") == 0) ended = ++i > 0;
    else if (!ended && is_option_word(to, text)) i = read_option(to, words, i);
    else if (is_many(words, i))
      to->open = to->open || !words->items[i].expected, i++; /* not set here: no word */
    else if (is_untold(&words->items[i])) to->open = true, i++;
    else if (words->items[i].maybe || has_own_alone(to) || (to->relative != NULL && !to->settled))
      i++; /* an option of such a code may take more words than one */
    else if (!ended && nxc_argument_is_bare(to, text)) i = read_option(to, words, i);
    else i = report_strays(to, words, i, ended);
  }
  to->open = to->open || (many && to->map->n_children == 0); /* all options come from there */
}

void nxc_arguments_report_unknown(nxc_arguments *to, const char *program) {
  const char **names;
  size_t n_names = nxc_program_row_names(to->arena, to->program, &names);
  for (size_t i = 0; i < to->map->n_children; i++) {
    const nxc_node *node = to->map->children[i];
    bool is_short = strlen(node->key) < 2; /* -o */
    if (is_short || nxc_program_row_has(to->program, node->key)) continue;
    if (nxc_program_row_has_any(to->program)) continue;
    nxc_near near = nxc_near_find(node->key, names, n_names);
    nxc_report_repair(to->sink, near.name ? "NX1301" : "NX1302",
                      near.name ? NXC_SEVERITY_ERROR : NXC_SEVERITY_WARNING, nxc_node_span(node),
                      nxc_did_you_mean(to->arena, "--", near.name),
                      nxc_repair_misspelt(to->arena, nxc_node_span(node), node->key, near),
                      "%s has no option --%s that is known here", program, node->key);
  }
}
