/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/front/nxdt/front_nxdt.h"

#include "compiler/config/front/arguments.h"
#include "compiler/config/front/lenient.h"
#include "compiler/diagnostics/nearest.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* Their keys become arguments of a constructor, or fields of a dataclass. */
const char *const nxc_nxdt_strict_sections[] = {"trainer.", "exp_manager.", "model.optim.", NULL};

/* -- the launcher's count of devices --------------------------------------------------------------------- */

/* Where a line of the text has `devices:`; 0: nowhere. */
static uint32_t column_of_devices(const nxc_source *source, uint32_t line) {
  size_t n_line;
  const char *text = nxc_source_line(source, line, &n_line);
  static const char word[] = "devices:";
  for (size_t i = 0; i + sizeof word - 1 <= n_line; i++)
    if (memcmp(text + i, word, sizeof word - 1) == 0) return (uint32_t)i + 1;
  return 0;
}

/* Whether the second word of the line is a number, which is what the launcher takes. */
static bool second_word_counts(const nxc_source *source, uint32_t line) {
  size_t n_line, at = 0;
  const char *text = nxc_source_line(source, line, &n_line);
  while (at < n_line && isspace((unsigned char)text[at])) at++;
  while (at < n_line && !isspace((unsigned char)text[at])) at++;
  while (at < n_line && isspace((unsigned char)text[at])) at++;
  size_t start = at;
  while (at < n_line && isdigit((unsigned char)text[at])) at++;
  return at > start && (at == n_line || isspace((unsigned char)text[at]));
}

/* The example launcher greps the file for `devices:`, whatever line that is in. */
static void check_devices(nxc_binding *binding) {
  const nxc_source *source = binding->document->root->at.source;
  nxc_span first = {0}, second = {0};
  for (uint32_t line = 1; source != NULL && line <= source->n_lines && second.source == NULL; line++) {
    uint32_t column = column_of_devices(source, line);
    if (column == 0) continue;
    nxc_span here = {.source = source, .line = line, .column = column, .length = 8};
    if (first.source == NULL) first = here;
    else second = here;
  }
  if (first.source == NULL) return;
  const nxc_remark remark = {first, "the launcher finds this line too"};
  nxc_finding finding = {.id = "NX2901", .severity = NXC_SEVERITY_WARNING};
  if (second.source != NULL) {
    finding.at = second;
    finding.message = "NxDT's launcher counts the devices by searching the text for devices:, which stands "
                      "in several lines, comments among them";
    finding.fix = "write another word here";
    finding.remarks = &remark;
    finding.n_remarks = 1;
  } else if (!second_word_counts(source, first.line)) {
    finding.at = first;
    finding.message = "NxDT's launcher counts the devices by searching the text for devices:, and takes the "
                      "next word, which is no number here";
    finding.fix = "write devices: and the number on a line of their own";
  } else {
    return;
  }
  nxc_sink_report(binding->sink, &finding);
}

/* -- keys that NxDT looks for everywhere ----------------------------------------------------------------- */

static const struct {
  const char *key, *section; /* where it belongs */
} sought[] = {{"context_parallel_size", "distributed_strategy"},
              {"seq_length", "data"},
              {"max_prompt_length", "model_alignment_strategy"},
              {"peft", "model_alignment_strategy"}};

/* NxDT passes over 0, False and what else is false. */
static bool counts(nxc_binding *binding, const nxc_node *node) {
  const nxc_value *value = node->kind == NXC_NODE_SCALAR ? nxc_node_value(binding->arena, node) : NULL;
  return value == NULL ? node->n_children > 0 : nxc_value_is_true(value);
}

static void check_key(nxc_binding *binding, const nxc_node *node, const char *path) {
  for (size_t i = 0; i < sizeof sought / sizeof *sought; i++) {
    if (strcmp(node->key, sought[i].key) != 0 || !counts(binding, node)) continue;
    const char *top = nxc_arena_strndup(binding->arena, path, strcspn(path, "."));
    if (nxc_nearest(top, &sought[i].section, 1) != NULL) continue; /* a misspelt section is said elsewhere */
    nxc_report(binding->sink, "NX2902", NXC_SEVERITY_WARNING, nxc_node_span(node),
               "give this key another name",
               "NxDT looks for %s in the whole file, and may take %s for the one of %s", node->key, path,
               sought[i].section);
  }
}

static void check_keys(nxc_binding *binding, const nxc_node *map, const char *above) {
  for (size_t i = 0; map->kind == NXC_NODE_MAP && i < map->n_children; i++) {
    const nxc_node *child = map->children[i];
    if (child->key == NULL) continue;
    const char *path =
        *above ? nxc_arena_printf(binding->arena, "%s.%s", above, child->key) : child->key;
    check_key(binding, child, path);
    check_keys(binding, child, path);
  }
}

/* -- values that are taken though they are of another type ----------------------------------------------- */

static bool is_among(const char *text, const char *const *words) {
  for (; *words != NULL; words++)
    if (strcasecmp(text, *words) == 0) return true;
  return false;
}

/* Of a text or a number, as OmegaConf fills a field that has a type. */
static bool take_truth(nxc_arena *arena, const nxc_value *value, nxc_value *taken) {
  static const char *const yes[] = {"yes", "y", "on", "true", NULL};
  static const char *const no[] = {"no", "n", "off", "false", NULL};
  nxc_value number = *value;
  bool text = value->kind == NXC_STRING, truth = text && is_among(value->text, yes);
  bool counts = text ? nxc_text_to_int(arena, value->text, &number) : value->kind == NXC_INT;
  *taken = (nxc_value){.kind = NXC_BOOL, .boolean = counts ? number.integer != 0 : truth};
  return counts || truth || (text && is_among(value->text, no));
}

static nxc_value text_of(nxc_arena *arena, const nxc_value *value) {
  bool truth = value->kind == NXC_BOOL;
  const char *text = !truth ? nxc_value_show(arena, value) : value->boolean ? "True" : "False";
  return (nxc_value){.kind = NXC_STRING, .text = text, .n_bytes = strlen(text)};
}

static bool take_field(nxc_arena *arena, const nxc_misfit_value *misfit, nxc_value *taken) {
  const nxc_value *value = misfit->value;
  bool text = value->kind == NXC_STRING, scalar = value->kind != NXC_LIST && value->kind != NXC_MAP;
  switch (misfit->bound->row->domain.type) {
  case NXC_TYPE_BOOL: return take_truth(arena, value, taken);
  case NXC_TYPE_INT: return text && nxc_text_to_int(arena, value->text, taken);
  case NXC_TYPE_FLOAT: return text && nxc_text_to_float(arena, value->text, taken);
  case NXC_TYPE_STR:
  case NXC_TYPE_PATH:
    *taken = text_of(arena, value);
    return scalar && value->kind != NXC_NULL && value->kind != NXC_MISSING;
  default: return false;
  }
}

/* exp_manager is a dataclass, whose fields are converted. Elsewhere Python asks whether a value is true, of
 * None too, and compares one option with True itself; a Trainer's None is its own default. */
static bool take(nxc_arena *arena, const nxc_misfit_value *misfit, nxc_value *taken) {
  const nxc_option_row *row = misfit->bound->row;
  if (strncmp(row->name, "exp_manager.", 12) == 0) return take_field(arena, misfit, taken);
  if (strncmp(row->name, "trainer.", 8) == 0) return nxc_take_bit(misfit, taken);
  bool none = row->domain.type == NXC_TYPE_BOOL && misfit->value->kind == NXC_NULL;
  if (none) *taken = (nxc_value){.kind = NXC_BOOL};
  bool compared = strcmp(row->name, "neuron_experimental_compress_rg") == 0;
  return none || (nxc_take_bit(misfit, taken) && !(compared && taken->boolean));
}

void nxc_nxdt_prepare(nxc_binding *binding) {
  nxc_take_misfits(binding, take);
  nxc_note_null_texts(binding);
  check_devices(binding);
  check_keys(binding, binding->document->root, "");
}
