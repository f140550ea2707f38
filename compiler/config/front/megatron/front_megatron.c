/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/front/megatron/front_megatron.h"

#include "compiler/document/names.h"
#include "compiler/document/nodes.h"
#include "compiler/document/scalar.h"

#include <assert.h>
#include <ctype.h>
#include <fnmatch.h>
#include <string.h>

const char *const nxc_megatron_versions[] = {"later", "dev", "0.16", "0.11", "0.10", "0.9", NULL};

/* -- whose text ------------------------------------------------------------------------------------------ */

/* Options that every training has, and other programs do not; not in a comment. */
static bool names_option(const char *line, size_t n_bytes) {
  for (size_t i = 1; i < n_bytes; i++)
    if (line[i] == '#' && isspace((unsigned char)line[i - 1])) n_bytes = i;
  static const char *const telling[] = {"--num-layers", "--micro-batch-size", "--tensor-model-parallel-size",
                                        "--hidden-size", "--seq-length"};
  for (size_t i = 0; i < sizeof telling / sizeof *telling; i++)
    if (memmem(line, n_bytes, telling[i], strlen(telling[i])) != NULL) return true;
  return false;
}

static bool starts_with(const char *line, size_t n_bytes, const char *text) {
  return n_bytes >= strlen(text) && strncmp(line, text, strlen(text)) == 0;
}

/* A text for a shell, by its first line or its name. */
static bool is_shell_script(const nxc_source *source) {
  size_t n_bytes = 0, n_name = strlen(source->name);
  const char *first = source->n_lines > 0 ? nxc_source_line(source, 1, &n_bytes) : "";
  bool marked = starts_with(first, n_bytes, "#!") && memmem(first, n_bytes, "sh", 2) != NULL;
  return marked || (n_name > 3 && strcmp(source->name + n_name - 3, ".sh") == 0);
}

/* A section that only other dialects have: one stray option does not make the file Megatron's. */
static bool is_foreign(const nxc_source *source) {
  static const char *const sections[] = {"distributed_strategy:", "exp_manager:", "model_source:", "mesh:"};
  for (uint32_t line = 1; line <= source->n_lines; line++) {
    size_t n_bytes;
    const char *text = nxc_source_line(source, line, &n_bytes);
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
      if (starts_with(text, n_bytes, sections[i])) return true;
  }
  return false;
}

bool nxc_megatron_claims(const nxc_source *source) {
  static const char *const keys[] = {"MODEL_ARGS:", "ARGS:", "tensor_model_parallel_size:"};
  size_t n_sections = 0;
  bool first = true;
  if (is_foreign(source)) return false;
  for (uint32_t line = 1; line <= source->n_lines; line++) {
    size_t n_bytes, n_blank = 0;
    const char *text = nxc_source_line(source, line, &n_bytes);
    while (n_blank < n_bytes && isspace((unsigned char)text[n_blank])) n_blank++;
    if (n_blank == n_bytes || text[n_blank] == '#') continue;
    bool option = starts_with(text + n_blank, n_bytes - n_blank, "--") && n_bytes - n_blank > 3;
    if (first && option && isalpha((unsigned char)text[n_blank + 2])) return true;
    first = false;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
      if (starts_with(text, n_bytes, keys[i])) return true;
    n_sections +=
        starts_with(text, n_bytes, "language_model:") + starts_with(text, n_bytes, "model_parallel:");
    if (n_sections == 2 || names_option(text, n_bytes)) return true;
  }
  return is_shell_script(source);
}

/* -- beside the options ---------------------------------------------------------------------------------- */

typedef struct front {
  const nxc_front_texts *texts;
  nxc_arguments to;
  nxc_document *document;
  nxc_variable *variables; /* each once */
  size_t n_variables;
  nxc_names *names; /* of the variables */
  bool unreadable;
  const char *program, *program_model; /* what is started, where it is no training of a decoder */
  nxc_span *launches;
  size_t n_launches;
} front;

static nxc_node *section(front *f, const char *name, nxc_span at) {
  nxc_node *map = nxc_node_child(f->to.map, name);
  if (map != NULL) return map;
  nxc_value key = nxc_string_value(name, strlen(name));
  map = nxc_node_new(f->to.arena, NXC_NODE_MAP, at);
  nxc_node_set_key(map, &key, name, at);
  nxc_node_append(f->to.arena, f->to.map, map);
  return map;
}

static void put_beside(front *f, nxc_node *map, const char *name, const nxc_launch_word *word, nxc_value value) {
  if (nxc_node_child(map, name) != NULL) return;
  nxc_value key = nxc_string_value(name, strlen(name));
  nxc_node *node = nxc_node_new(f->to.arena, NXC_NODE_SCALAR, word->at);
  node->raw = word->text;
  node->raw_bytes = strlen(word->text);
  node->value = value;
  node->environment = word->from_environment;
  nxc_node_set_key(node, &key, name, word->at);
  nxc_node_append(f->to.arena, map, node);
}

/* --nproc_per_node 8, --nnodes=2: numbers only, since torchrun takes words and ranges too. */
static void read_launcher(front *f, const nxc_launch_words *words) {
  static const char *const names[] = {"nproc-per-node", "nnodes"};
  for (size_t i = 0; i < words->n_items; i++) {
    const char *text = words->items[i].text, *equals = strchr(text, '=');
    char *name = nxc_arena_strndup(f->to.arena, text, equals ? (size_t)(equals - text) : strlen(text));
    for (char *c = name; *c != '\0'; c++)
      if (*c == '_') *c = '-';
    name += strspn(name, "-");
    nxc_launch_word value = words->items[i];
    if (equals != NULL) value.text = equals + 1;
    else if (i + 1 < words->n_items) value = words->items[i + 1];
    nxc_value number;
    for (size_t j = 0; j < sizeof names / sizeof *names; j++) {
      if (strcmp(name, names[j]) != 0 || value.from_environment) continue;
      if (nxc_text_to_int(f->to.arena, value.text, &number) && number.digits == NULL && number.integer > 0)
        put_beside(f, section(f, "launch", value.at), names[j], &value, number);
    }
  }
}

/* Exported, or of a name that the training minds: many a script writes those in front of the command. */
static bool reaches_training(const front *f, const nxc_assigned *assigned) {
  const char *name = nxc_arena_printf(f->to.arena, "environment.%s", assigned->name);
  const nxc_option_row *row = nxc_option_find(f->to.dialect, name);
  return assigned->exported || (row != NULL && strcmp(row->name, name) == 0);
}

/* Variables that the text sets for the training. */
static void read_environment(front *f, const nxc_script *script, const nxc_launch *launch) {
  nxc_value number;
  const nxc_assigned *world = NULL;
  for (size_t i = 0; i < launch->n_assigned; i++)
    if (strcmp(launch->assigned[i].name, "WORLD_SIZE") == 0) world = &launch->assigned[i];
  if (world != NULL && !world->array && world->words.n_items == 1 &&
      nxc_text_to_int(f->to.arena, world->words.items[0].text, &number) && number.digits == NULL &&
      number.integer > 0)
    put_beside(f, section(f, "launch", world->at), "world", &world->words.items[0], number);
  if (!script->is_script) return;
  nxc_span at = launch->n_assigned ? launch->assigned[0].at : (nxc_span){.source = f->texts->first, 1, 1, 1};
  nxc_node *map = section(f, "environment", at);
  for (size_t i = 0; i < launch->n_assigned; i++) {
    const nxc_assigned *assigned = &launch->assigned[i];
    if (assigned->array || assigned->words.n_items != 1 || !reaches_training(f, assigned)) continue;
    const nxc_launch_word *word = &assigned->words.items[0];
    put_beside(f, map, assigned->name, word, nxc_string_value(word->text, strlen(word->text)));
  }
}

static void take_variables(front *f, const nxc_script *script) {
  for (size_t i = 0; i < script->n_variables; i++) {
    const nxc_variable *variable = &script->variables[i];
    if (isdigit((unsigned char)*variable->name)) continue; /* $1 is the script's own argument */
    void **known = nxc_names_slot(f->names, variable->name, strlen(variable->name));
    if (*known != NULL) continue;
    *known = f;
    f->variables = nxc_arena_grow(f->to.arena, f->variables, f->n_variables, sizeof *f->variables);
    f->variables[f->n_variables++] = *variable;
  }
}

/* -- programs -------------------------------------------------------------------------------------------- */

typedef struct program {
  const char *pattern, *what, *model;
  bool judged;
} program;

static const program programs[] = {
#define PROGRAM(pattern, what, model, judged) {pattern, what, model, judged},
#include "schema/programs.def"
#undef PROGRAM
};

/* NULL: it trains a decoder. */
static const program *find_program(const char *path) {
  for (size_t i = 0; path != NULL && i < sizeof programs / sizeof *programs; i++)
    if (fnmatch(programs[i].pattern, path, 0) == 0) return &programs[i];
  return NULL;
}

/* Whether it is worth judging: a training, or a program that shares its options. */
static bool is_judged(const nxc_launch *launch) {
  const program *found = find_program(launch->program);
  if (found != NULL) return found->judged;
  for (size_t i = 0; i < launch->arguments.n_items; i++) {
    const nxc_launch_word *word = &launch->arguments.items[i];
    if (word->many || names_option(word->text, strlen(word->text))) return true;
  }
  return launch->program == NULL || strstr(launch->program, "pretrain") != NULL;
}

/* Keeps the launches that are worth judging, or all where none is. */
static void select_launches(nxc_script *script) {
  size_t n_kept = 0;
  for (size_t i = 0; i < script->n_launches; i++) n_kept += is_judged(&script->launches[i]);
  if (n_kept == 0) return;
  n_kept = 0;
  for (size_t i = 0; i < script->n_launches; i++)
    if (is_judged(&script->launches[i])) script->launches[n_kept++] = script->launches[i];
  script->n_launches = n_kept;
}

/* The one that is named, or else the first. */
static const nxc_launch *choose_launch(front *f, nxc_script *script) {
  select_launches(script);
  f->launches = nxc_arena_array(f->to.arena, script->n_launches, sizeof *f->launches);
  f->n_launches = script->n_launches;
  for (size_t i = 0; i < script->n_launches; i++) f->launches[i] = script->launches[i].at;
  size_t named = f->texts->launch;
  const nxc_launch *chosen = &script->launches[named > 0 && named <= script->n_launches ? named - 1 : 0];
  const program *found = find_program(chosen->program);
  if (found != NULL) {
    const char *slash = strrchr(chosen->program, '/');
    f->program = nxc_arena_printf(f->to.arena, "%s (%s)", found->what, slash ? slash + 1 : chosen->program);
    f->program_model = found->model;
    f->to.own_options = true;
  }
  return chosen;
}

/* -- texts ----------------------------------------------------------------------------------------------- */

/* A script that starts no program may be read by one that does: what it does not give is unknown. False: it
 * has nothing of a training. */
static bool check_launch(front *f, const nxc_source *source, const nxc_script *script,
                         const nxc_launch *launch) {
  const nxc_launch_words *words = &launch->arguments;
  bool options = words->n_items > 0 && strncmp(words->items[0].text, "--", 2) == 0;
  bool alone = !script->is_script && (options || !is_shell_script(source));
  if (alone || launch->program != NULL) return true;
  bool helps = script->is_script && words->n_items > 0;
  f->to.open = true;
  nxc_report(f->to.sink, "NX5922", helps ? NXC_SEVERITY_NOTE : NXC_SEVERITY_ERROR, launch->at,
             helps ? NULL : "give the script that starts the training",
             helps ? "this script starts no program that is known here: its options are a part of a training"
                   : "this script starts no training, and holds no options of one");
  return helps;
}

static void read_source(front *f, const nxc_source *source) {
  const nxc_launch *launch = NULL;
  nxc_script script = {.arena = f->to.arena};
  if (nxc_megatron_is_yaml(source)) {
    f->unreadable = !nxc_megatron_read_yaml(&f->to, source, &script) || f->unreadable;
  } else if (!nxc_script_read(f->to.arena, source, f->to.sink, &script)) {
    f->unreadable = true;
  } else {
    launch = choose_launch(f, &script);
    const program *found = find_program(launch->program);
    bool judged = check_launch(f, source, &script, launch) && (found == NULL || found->judged);
    if (judged) nxc_arguments_read(&f->to, &launch->arguments);
    read_launcher(f, &launch->launcher);
  }
  read_environment(f, &script, launch ? launch : nxc_script_collect(&script));
  take_variables(f, &script);
}

/* --set KEY=VALUE is --KEY=VALUE over the rest; of a switch VALUE is true, or false to take it out. */
static void read_set(front *f, const char *assignment) {
  nxc_arena *arena = f->to.arena;
  const char *key = strncmp(assignment, "--", 2) == 0 ? assignment + 2 : assignment,
             *equals = strchr(key, '=');
  const char *name = nxc_arena_strndup(arena, key, equals ? (size_t)(equals - key) : strlen(key));
  const nxc_option_row *row = nxc_option_find(f->to.dialect, name);
  const nxc_source *source = nxc_source_new(arena, "--set", key, strlen(key));
  f->to.over = source;
  nxc_span at = {.source = source, .line = 1, .column = 1, .length = (uint32_t)strlen(name)};
  if (equals == NULL) {
    nxc_report(f->to.sink, "NX1020", NXC_SEVERITY_ERROR, at, NULL, "an assignment is written KEY=VALUE");
    return;
  }
  bool is_switch = row != NULL && row->domain.type == NXC_TYPE_BOOL;
  nxc_node *before = nxc_node_child(f->to.map, name);
  if (is_switch && strcmp(equals + 1, "false") == 0) {
    if (before == NULL) return;
    before->value = (nxc_value){.kind = NXC_BOOL, .boolean = false};
    before->raw = "false";
    before->raw_bytes = 5;
    before->at = before->key_at = at;
    return;
  }
  nxc_launch_words words = {0};
  if (!nxc_script_split(arena, nxc_source_new(arena, "--set", equals + 1, strlen(equals + 1)), f->to.sink,
                        &words)) {
    f->unreadable = true;
    return;
  }
  for (size_t i = 0; i < words.n_items; i++) {
    words.items[i].at.source = source;
    words.items[i].at.column += at.length + 1;
  }
  if (words.n_items == 0) {
    nxc_launch_word *empty = nxc_arena_alloc(arena, sizeof *empty);
    *empty = (nxc_launch_word){.text = "", .at = at};
    words = (nxc_launch_words){empty, 1};
  }
  nxc_arguments_put(&f->to, row, name, at, &words);
}

/* --yaml-cfg replaces every argument beside it. */
static void check_yaml_cfg(front *f) {
  const nxc_node *file = nxc_node_child(f->to.map, "yaml-cfg"), *other = NULL;
  size_t n_others = 0;
  for (size_t i = 0; i < f->to.map->n_children; i++) {
    const nxc_node *node = f->to.map->children[i];
    if (node == file || node->kind == NXC_NODE_MAP) continue;
    if (n_others++ == 0) other = node;
  }
  if (file == NULL || other == NULL) return;
  const nxc_remark remark = {nxc_node_place(file), "the file that counts"};
  const char *more = n_others > 1 ? nxc_arena_printf(f->to.arena, " and %zu more are", n_others - 1) : " is";
  nxc_sink_report(f->to.sink,
                  &(nxc_finding){.id = "NX5908",
                                 .severity = NXC_SEVERITY_ERROR,
                                 .at = nxc_node_place(other),
                                 .fix = "put it into the file, or leave --yaml-cfg out",
                                 .remarks = &remark,
                                 .n_remarks = 1,
                                 .message = nxc_arena_printf(
                                     f->to.arena,
                                     "--%s%s dropped without a word: --yaml-cfg replaces every other "
                                     "argument",
                                     other->key, more)});
}

nxc_document *nxc_megatron_read(const nxc_front_texts *texts) {
  nxc_arena *arena = texts->arena;
  const nxc_source *first = texts->first ? texts->first : texts->arguments;
  nxc_node *root =
      nxc_node_new(arena, NXC_NODE_MAP, (nxc_span){.source = first, .line = 1, .column = 1, .length = 1});
  front f = {.texts = texts, .names = nxc_names_new(arena)};
  f.to = (nxc_arguments){
      .arena = arena, .sink = texts->sink, .dialect = nxc_dialect_find("megatron"), .map = root};
  assert(f.to.dialect != NULL);
  if (texts->first != NULL) read_source(&f, texts->first);
  for (size_t i = 0; i < texts->n_layers; i++) {
    f.to.over = texts->layers[i];
    read_source(&f, texts->layers[i]);
  }
  if (texts->arguments != NULL) {
    f.to.over = texts->arguments;
    read_source(&f, texts->arguments);
  }
  for (size_t i = 0; i < texts->n_sets; i++) read_set(&f, texts->sets[i]);
  check_yaml_cfg(&f);
  f.document = nxc_arena_alloc(arena, sizeof *f.document);
  *f.document = (nxc_document){.arena = arena,
                               .root = root,
                               .complete = !f.unreadable,
                               .open = f.to.open,
                               .program = f.program,
                               .program_model = f.program_model,
                               .launches = f.launches,
                               .n_launches = f.n_launches,
                               .variables = f.variables,
                               .n_variables = f.n_variables};
  return f.document;
}

nxc_resolution nxc_megatron_resolve(nxc_document *document, const nxc_resolving *resolving, nxc_sink *sink) {
  nxc_resolution resolution = nxc_front_resolve_angles(document, resolving, sink);
  resolution.variables = document->variables;
  resolution.n_variables = document->n_variables;
  return resolution;
}
