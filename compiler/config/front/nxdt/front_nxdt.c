/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/front/nxdt/front_nxdt.h"

#include <ctype.h>
#include <string.h>

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
    const char *top = nxc_arena_strndup(binding->arena, path, strcspn(path, "."));
    bool home = nxc_nearest(top, &sought[i].section, 1) != NULL; /* a misspelt section is said elsewhere */
    if (strcmp(node->key, sought[i].key) != 0 || home || !counts(binding, node)) continue;
    nxc_report(binding->sink, "NX2902", NXC_SEVERITY_WARNING, nxc_node_place(node),
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

void nxc_nxdt_prepare(nxc_binding *binding) {
  check_devices(binding);
  check_keys(binding, binding->document->root, "");
}
