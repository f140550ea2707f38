/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/front/argument_slips.h"

#include "compiler/document/nodes.h"
#include "compiler/document/repair.h"
#include "compiler/settings/meant.h"

#include <ctype.h>
#include <string.h>

static void report(nxc_arguments *to, const char *id, nxc_span at, const char *fix, nxc_repair repair,
                   const char *message) {
  nxc_report_repair(to->sink, id, NXC_SEVERITY_ERROR, at, fix, repair, "%s", message);
}

/* Whether the word stands as it is behind the option that is read: where a variable has a part in it, it is
 * written elsewhere, and others may use it. */
static bool is_plain(const nxc_arguments *to, const nxc_launch_word *word) {
  nxc_span head = to->head, at = word->at;
  bool behind = head.source == at.source && at.source != NULL &&
                (at.line > head.line || (at.line == head.line && at.column > head.column));
  return behind && !word->from_environment && nxc_span_reads(at, word->text);
}

/* From one span to the end of another in the same line. */
static nxc_repair remove_words(nxc_arguments *to, nxc_span first, nxc_span last, bool safe) {
  if (first.source == NULL || first.source != last.source || first.line != last.line) return (nxc_repair){0};
  return nxc_repair_remove_words(to->arena, first.source, nxc_span_offset(first, false),
                                 nxc_span_offset(last, true), safe);
}

static bool has_own_alone(const nxc_arguments *to) {
  return to->program != NULL && to->program->use == NXC_PROGRAM_OWN;
}

const nxc_option_row *nxc_argument_behind_few(nxc_arguments *to, const char *name, nxc_span at,
                                              size_t n_dashes) {
  const nxc_option_row *row = has_own_alone(to) ? NULL : nxc_arguments_option(to, name);
  if (row == NULL) return NULL;
  nxc_arena *arena = to->arena;
  const char *shown = nxc_arena_printf(arena, "%s%s", n_dashes ? "-" : "", name);
  report(to, "NX5901", at, nxc_arena_printf(arena, "write --%s", name),
         nxc_repair_word(arena, at, shown, nxc_arena_printf(arena, "--%s", name), true),
         nxc_arena_printf(arena, "options have two hyphens in front, and %s has %s", shown,
                          n_dashes ? "one" : "none"));
  return row;
}

bool nxc_argument_is_bare(const nxc_arguments *to, const char *text) {
  return to->relative == NULL && !has_own_alone(to) && strchr(text, '-') != NULL &&
         nxc_arguments_option(to, text) != NULL;
}

static bool is_option(const nxc_arguments *to, const char *text, size_t n_bytes) {
  return nxc_arguments_option(to, nxc_arena_strndup(to->arena, text, n_bytes)) != NULL;
}

/* The longest option in front of a number. */
static size_t before_number(const nxc_arguments *to, const char *name) {
  size_t n = strlen(name);
  while (n > 0 && strchr("0123456789.eE-+", name[n - 1]) != NULL) n--;
  for (; name[n] != '\0'; n++)
    if (n > 0 && (isdigit((unsigned char)name[n]) || name[n] == '.') && is_option(to, name, n)) return n;
  return 0;
}

size_t nxc_argument_glued(nxc_arguments *to, const nxc_launch_word *word, size_t n_dashes,
                          size_t *n_between) {
  const char *name = word->text + n_dashes, *colon = strchr(name, ':');
  if (n_dashes != 2 || to->relative != NULL || has_own_alone(to) || nxc_arguments_option(to, name) != NULL)
    return 0;
  size_t n = colon != NULL && colon[1] != '\0' && is_option(to, name, (size_t)(colon - name))
                 ? (size_t)(colon - name)
                 : before_number(to, name);
  if (n == 0) return 0;
  *n_between = name[n] == ':';
  size_t at = nxc_span_offset(word->at, false) + n_dashes + n;
  nxc_edit edit = {word->at.source, at, at + *n_between, " "};
  const nxc_repair repair = {&edit, 1, true};
  bool reads =
      word->at.source != NULL &&
      nxc_span_reads((nxc_span){word->at.source, word->at.line, word->at.column, (uint32_t)(n_dashes + n)},
                     nxc_arena_strndup(to->arena, word->text, n_dashes + n));
  report(
      to, "NX5901", word->at,
      nxc_arena_printf(to->arena, "write --%.*s %s", (int)n, name, name + n + *n_between),
      reads ? nxc_repair_copy(to->arena, &repair) : (nxc_repair){0},
      nxc_arena_printf(to->arena, "a blank, or =, stands between an option and its value, and in %s does not",
                       word->text));
  return n;
}

bool nxc_argument_parts(nxc_arguments *to, const nxc_launch_word *word) {
  if (strcmp(word->text, "=") != 0 && strcmp(word->text, ":") != 0) return false;
  nxc_repair repair = {0};
  if (is_plain(to, word)) repair = remove_words(to, word->at, word->at, true);
  report(to, "NX5905", word->at, "leave it out", repair,
         nxc_arena_printf(to->arena, "%s stands alone, and becomes the value of the option in front",
                          word->text));
  return true;
}

void nxc_argument_of_switch(nxc_arguments *to, const nxc_launch_word *value, const char *name,
                            nxc_span head) {
  const char *says = nxc_boolean_meant(value->text).text;
  bool no = says != NULL && strcmp(says, "False") == 0;
  const char *shown = value->from_environment ? "this value" : value->text;
  const char *fix =
      no ? nxc_arena_printf(to->arena, "leave --%s out altogether", name) : "leave the value out";
  nxc_repair repair = {0};
  nxc_span from = value->at; /* of --name=value the = goes too */
  bool glued = from.source == head.source && from.line == head.line &&
               from.column == head.column + head.length + 1 &&
               from.source->text[nxc_span_offset(head, true)] == '=';
  if (glued) from.column--;
  if (is_plain(to, value)) repair = remove_words(to, no ? head : from, value->at, !no && says != NULL);
  report(
      to, "NX5903", value->at, fix, repair,
      nxc_arena_printf(to->arena, "--%s is a switch and takes no value; Megatron stops at %s", name, shown));
}

/* A word that a variable gives stands elsewhere: the line that uses it is what is wrong. */
static nxc_span place_of(const nxc_arguments *to, const nxc_launch_word *word) {
  nxc_span head = to->head, at = word->at;
  bool behind = head.source == NULL || (head.source == at.source && at.line >= head.line);
  return behind ? at : head;
}

static size_t behind_word(const char *text, size_t at, size_t end) {
  while (at < end && strchr(" \t\\\r\n", text[at]) == NULL) at++;
  return at;
}

/* Words that variables give stand in the line of the option, behind its own value; none where quotes or
 * commands make other words of the line. */
static nxc_repair remove_behind_value(nxc_arguments *to, size_t n_words) {
  const nxc_source *source = to->head.source;
  if (source == NULL || to->head.line > source->n_lines) return (nxc_repair){0};
  const char *text = source->text;
  size_t at = nxc_span_offset(to->head, true), end = source->line_start[to->head.line], kept = 0, n = 0;
  for (;;) {
    while (at < end && text[at] == ' ') at++;
    size_t behind = behind_word(text, at, end);
    if (behind == at) break;
    if (memchr(text + at, '"', behind - at) != NULL || memchr(text + at, '(', behind - at) != NULL)
      return (nxc_repair){0};
    if (n++ == 0) kept = behind;
    at = behind;
  }
  while (at > kept && text[at - 1] == ' ') at--;
  return n == n_words + 1 ? nxc_repair_removes(to->arena, source, kept, at, false) : (nxc_repair){0};
}

void nxc_argument_strays(nxc_arguments *to, const nxc_launch_word *words, size_t n_words) {
  const char *shown = words->from_environment ? "this value" : words->text;
  const char *message =
      n_words == 1 ? nxc_arena_printf(to->arena, "%s belongs to no option", shown)
                   : nxc_arena_printf(to->arena, "%s and %zu more belong to no option", shown, n_words - 1);
  nxc_repair repair = {0};
  bool punctuation = strspn(words->text, ",;: ") == strlen(words->text);
  if (is_plain(to, words) && is_plain(to, &words[n_words - 1]))
    repair = remove_words(to, words->at, words[n_words - 1].at, n_words == 1 && punctuation);
  else repair = remove_behind_value(to, n_words);
  report(to, "NX5905", place_of(to, words), "write the option that it belongs to in front, or leave it out",
         repair, message);
}

/* It is there, whatever was to be its value. */
static const nxc_node *put_unknown(nxc_arguments *to, const char *name, nxc_span at) {
  nxc_node *node = nxc_node_new(to->arena, NXC_NODE_SCALAR, at);
  node->failed = true;
  node->raw = "";
  nxc_arguments_put_node(to, name, at, node);
  return node;
}

bool nxc_argument_missing(nxc_arguments *to, const nxc_option_row *row, const char *name, nxc_span head,
                          const nxc_launch_word *behind) {
  const char *text = behind ? behind->text : "";
  bool meant = text[0] == '-' && (isdigit((unsigned char)text[1]) || text[1] == '.');
  const char *fix = meant ? nxc_arena_printf(to->arena, "write --%s=%s", name, text)
                          : "give the value, or leave the option out";
  const char *why = meant ? nxc_arena_printf(to->arena, ": argparse takes %s for an option", text) : "";
  nxc_repair repair = {0};
  if (meant && is_plain(to, behind) && head.source == behind->at.source && head.line == behind->at.line) {
    nxc_edit edit = {head.source, nxc_span_offset(head, true), nxc_span_offset(behind->at, false), "="};
    repair = nxc_repair_copy(to->arena, &(nxc_repair){&edit, 1, true});
  }
  const nxc_node *node = put_unknown(to, name, head);
  bool needed = row->required != NULL || row->initial == NULL;
  if (!meant && !needed) repair = nxc_repair_remove(to->arena, node, false);
  report(to, "NX5904", head, fix, repair,
         nxc_arena_printf(to->arena, "a value is missing behind --%s%s", name, why));
  return meant;
}
