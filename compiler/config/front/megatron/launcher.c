/* SPDX-License-Identifier: Apache-2.0 */
/* What stands beside the options of the training: what launches it, and the variables that it finds. */
#include "compiler/config/front/megatron/front_megatron.h"
#include "compiler/document/nodes.h"
#include "compiler/document/scalar.h"

#include <ctype.h>
#include <string.h>

/* -- launch and environment ----------------------------------------------------------------------------- */

static nxc_node *section_in(nxc_arguments *to, nxc_node *above, const char *name, nxc_span at) {
  nxc_node *map = nxc_node_child(above, name);
  if (map != NULL) return map;
  nxc_value key = nxc_string_value(name, strlen(name));
  map = nxc_node_new(to->arena, NXC_NODE_MAP, at);
  nxc_node_set_key(map, &key, name, at);
  nxc_node_append(to->arena, above, map);
  return map;
}

static nxc_node *section(nxc_arguments *to, const char *name, nxc_span at) {
  return section_in(to, to->map, name, at);
}

static void put_over(nxc_arguments *to, nxc_node *map, const char *name, const nxc_launch_word *word,
                     nxc_value value) {
  nxc_value key = nxc_string_value(name, strlen(name));
  nxc_node *node = nxc_node_new(to->arena, NXC_NODE_SCALAR, word->at), *before = nxc_node_child(map, name);
  node->raw = word->text;
  node->raw_bytes = strlen(word->text);
  node->value = value;
  node->environment = word->from_environment;
  nxc_node_set_key(node, &key, name, word->at);
  if (before != NULL) *before = *node;
  else nxc_node_append(to->arena, map, node);
}

static void put_beside(nxc_arguments *to, nxc_node *map, const char *name, const nxc_launch_word *word,
                       nxc_value value) {
  if (nxc_node_child(map, name) == NULL) put_over(to, map, name, word, value);
}

/* Of what the command itself says the last counts, and behind it what Slurm is told. */
static void put_launcher(nxc_arguments *to, nxc_node *map, const char *name, const nxc_launch_word *word,
                         nxc_value value, bool in_front) {
  (in_front ? put_over : put_beside)(to, map, name, word, value);
}

/* And is none that torchrun takes: 1e3, 0x10, 1.5, but neither gpu nor 1:4. */
static bool looks_like_number(const nxc_launch_word *word) {
  return word->unset == NULL && isdigit((unsigned char)*word->text) && strchr(word->text, ':') == NULL;
}

/* Numbers of ranks and hosts, which settings have. */
static const struct {
  const char *name, *key;
  bool of_torchrun;
} names[] = {{"nproc-per-node", "nproc-per-node", true},
             {"nnodes", "nnodes", true},
             {"ntasks-per-node", "nproc-per-node", false},
             {"num-gpus", "nproc-per-node", false}, /* of deepspeed */
             {"num-nodes", "nnodes", false},
             {"nodes", "nnodes", false},
             {"N", "nnodes", false}};

/* Whether it says no more than where the ranks meet. */
static bool is_of_meeting(const char *name) {
  static const char *const beginnings[] = {"master-", "rdzv-", "node-rank", "address", "jobid"};
  for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
    if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0) return true;
  return false;
}

static bool is_number_of_ranks(nxc_arena *arena, const char *name, const char *text) {
  nxc_value number;
  bool found = false;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) found = found || strcmp(name, names[i].name) == 0;
  return found && nxc_text_to_int(arena, text, &number);
}

/* Options of whatever launches it, for those who compare two files. What is JSON may hold passwords, and is
 * shown as little as the environment. */
static void keep_options(nxc_arguments *to, const nxc_launch *launched) {
  const nxc_launch_words *words = &launched->launcher;
  for (size_t i = 0; i < words->n_items; i++) {
    const char *text = words->items[i].text, *equals = strchr(text, '=');
    if (text[0] != '-' || text[1 + (text[1] == '-')] == '\0' || words->items[i].unset != NULL) continue;
    char *name = nxc_arena_strndup(to->arena, text, equals ? (size_t)(equals - text) : strlen(text));
    for (char *c = name; *c != '\0'; c++)
      if (*c == '_' || *c == '.') *c = '-';
    name += strspn(name, "-");
    nxc_launch_word value = words->items[i];
    bool behind = equals == NULL && i + 1 < words->n_items && *words->items[i + 1].text != '-';
    if (behind) value = words->items[i + 1];
    if (equals != NULL) value.text = equals + 1;
    if (*name == '\0' || is_of_meeting(name) || value.unset != NULL) continue;
    if (is_number_of_ranks(to->arena, name, value.text)) continue;
    value.from_environment = value.from_environment || strchr(value.text, '{') != NULL;
    nxc_value shown = behind || equals ? nxc_string_value(value.text, strlen(value.text))
                                       : (nxc_value){.kind = NXC_BOOL, .boolean = true};
    nxc_node *launch = section(to, "launch", value.at);
    nxc_node *kept = section_in(to, launch, "options", value.at);
    put_launcher(to, kept, name, &value, shown, i < launched->n_in_front);
  }
}

/* --nproc_per_node 8, --nnodes=2: numbers only, since torchrun takes words and ranges too; what Slurm is told
 * stands behind it. */
void nxc_megatron_read_launcher(nxc_arguments *to, const nxc_launch *launch) {
  const nxc_launch_words *words = &launch->launcher;
  nxc_megatron_check_launcher(to, launch);
  keep_options(to, launch);
  for (size_t i = 0; i < words->n_items; i++) {
    const char *text = words->items[i].text, *equals = strchr(text, '=');
    char *name = nxc_arena_strndup(to->arena, text, equals ? (size_t)(equals - text) : strlen(text));
    for (char *c = name; *c != '\0'; c++)
      if (*c == '_') *c = '-';
    name += strspn(name, "-");
    nxc_launch_word value = words->items[i];
    if (equals != NULL) value.text = equals + 1;
    else if (i + 1 < words->n_items) value = words->items[i + 1];
    nxc_value number;
    for (size_t j = 0; j < sizeof names / sizeof *names; j++) {
      if (strcmp(name, names[j].name) != 0 || value.from_environment) continue;
      if (nxc_text_to_int(to->arena, value.text, &number) && number.digits == NULL && number.integer > 0)
        put_launcher(to, section(to, "launch", value.at), names[j].key, &value, number,
                     i < launch->n_in_front);
      else if (names[j].of_torchrun && looks_like_number(&value))
        nxc_report(to->sink, "NX5907", NXC_SEVERITY_ERROR, value.at, "write a number from 1 on",
                   "torchrun's --%s needs an integer above 0, and %s is none", name, value.text);
    }
  }
}

void nxc_megatron_put_program(nxc_arguments *to, const nxc_launch *launch, const char *name) {
  const nxc_launch_word word = {.text = name, .at = launch->at};
  put_beside(to, section(to, "launch", launch->at), "program", &word, nxc_string_value(name, strlen(name)));
}

/* Exported, or of a name that the training minds: many a script writes those in front of the command. */
static bool reaches_training(const nxc_arguments *to, const nxc_assigned *assigned) {
  const char *name = nxc_arena_printf(to->arena, "environment.%s", assigned->name);
  const nxc_option_row *row = nxc_option_find(to->dialect, name);
  return assigned->exported || (row != NULL && strcmp(row->name, name) == 0);
}

/* Whether it holds options that the program is given: the command reads it, and not the training. */
static bool is_of_command(const nxc_launch *launch, const char *text) {
  for (const char *at = strstr(text, "--"); at != NULL; at = strstr(at + 2, "--")) {
    size_t n = strcspn(at, " =\t\n");
    for (size_t i = 0; n > 2 && i < launch->arguments.n_items; i++) {
      const char *word = launch->arguments.items[i].text;
      if (strncmp(word, at, n) == 0 && (word[n] == '\0' || word[n] == '=')) return true;
    }
  }
  return false;
}

/* Variables that the text sets for the training. */
void nxc_megatron_read_environment(nxc_arguments *to, const nxc_launch *launch, const nxc_source *first,
                                   bool whole) {
  nxc_value number;
  const nxc_assigned *world = NULL;
  for (size_t i = 0; i < launch->n_assigned; i++)
    if (strcmp(launch->assigned[i].name, "WORLD_SIZE") == 0) world = &launch->assigned[i];
  if (world != NULL && !world->array && world->words.n_items == 1 &&
      nxc_text_to_int(to->arena, world->words.items[0].text, &number) && number.digits == NULL &&
      number.integer > 0)
    put_beside(to, section(to, "launch", world->at), "world", &world->words.items[0], number);
  if (!whole) return;
  nxc_span at = launch->n_assigned ? launch->assigned[0].at : (nxc_span){.source = first, 1, 1, 1};
  nxc_node *map = section(to, "environment", at);
  for (size_t i = 0; i < launch->n_assigned; i++) {
    const nxc_assigned *assigned = &launch->assigned[i];
    if (assigned->array || assigned->words.n_items != 1 || !reaches_training(to, assigned)) continue;
    const nxc_launch_word *word = &assigned->words.items[0];
    if (is_of_command(launch, word->text)) continue;
    put_beside(to, map, assigned->name, word, nxc_string_value(word->text, strlen(word->text)));
  }
}

void nxc_megatron_set_variable(nxc_arguments *to, const char *name, const char *value, nxc_span at) {
  const nxc_launch_word word = {.text = value, .at = at};
  put_over(to, section(to, "environment", at), name, &word, nxc_string_value(value, strlen(value)));
}
