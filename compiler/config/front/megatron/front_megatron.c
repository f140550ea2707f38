/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/front/megatron/front_megatron.h"

#include "compiler/config/front/megatron/launch_differences.h"
#include "compiler/config/front/megatron/launched.h"
#include "compiler/document/names.h"
#include "compiler/document/nodes.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

const char *const nxc_megatron_versions[] = {"later", "dev",  "0.16", "0.15", "0.14", "0.13",
                                              "0.12",  "0.11", "0.10", "0.9",  NULL};

/* -- whose text ------------------------------------------------------------------------------------------ */

/* Not in a comment. */
static bool names_option(const char *line, size_t n_bytes) {
  for (size_t i = 1; i < n_bytes; i++)
    if (line[i] == '#' && isspace((unsigned char)line[i - 1])) n_bytes = i;
  return nxc_names_training_option(line, n_bytes);
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
  static const char *const sections[] = {"distributed_strategy", "exp_manager", "model_source", "mesh", NULL};
  for (uint32_t line = 1; line <= source->n_lines; line++)
    if (nxc_source_line_has_key(source, line, sections)) return true;
  return false;
}

bool nxc_megatron_claims(const nxc_source *source) {
  static const char *const keys[] = {"MODEL_ARGS", "ARGS", "tensor_model_parallel_size", NULL};
  static const char *const sections[] = {"language_model", "model_parallel", NULL};
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
    if (nxc_source_line_has_key(source, line, keys)) return true;
    n_sections += nxc_source_line_has_key(source, line, sections);
    if (n_sections == 2 || names_option(text, n_bytes)) return true;
  }
  return is_shell_script(source);
}

/* -- what was read ---------------------------------------------------------------------------------- */

typedef struct front {
  const nxc_front_texts *texts;
  nxc_arguments to;
  nxc_document *document;
  nxc_variable *variables; /* each once */
  size_t n_variables;
  nxc_names *names; /* of the variables */
  bool unreadable;
  nxc_launched launched;
  bool script;    /* the first text is one */
  size_t n_asked; /* of its arguments, that nobody told */
  bool idle, part;
  nxc_span *launches;
  size_t n_launches;
  const char *const *launches_differ;
} front;

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

static nxc_launched choose_launch(front *f, nxc_script *script) {
  nxc_launched found = nxc_launched_choose(script, f->texts->launch);
  f->launches = nxc_arena_array(f->to.arena, script->n_launches, sizeof *f->launches);
  f->n_launches = script->n_launches;
  for (size_t i = 0; i < script->n_launches; i++) f->launches[i] = script->launches[i].at;
  bool asked = f->texts->launch == 0; /* which of them is meant */
  if (asked && script->n_launches > 1) f->launches_differ = nxc_launch_differences(f->to.arena, script);
  f->launched = found;
  f->to.program = found.program;
  f->to.own = found.own;
  return found;
}

/* Of a program that has no option of a training: what is wrong with its own. */
static void read_own(front *f, const nxc_launched *found) {
  nxc_arguments own = f->to;
  own.map = nxc_node_new(f->to.arena, NXC_NODE_MAP, found->launch->at);
  nxc_arguments_read(&own, &found->launch->arguments);
  nxc_arguments_report_unknown(&own, found->name);
}

/* -- texts ----------------------------------------------------------------------------------------------- */

/* Whether there are options of a training to judge. A script that starts no program may be read by one that
 * does: what it does not give is unknown. */
static bool check_launch(front *f, const nxc_source *source, const nxc_script *script,
                         const nxc_launched *found) {
  const nxc_launch_words *words = &found->launch->arguments;
  bool options = words->n_items > 0 && strncmp(words->items[0].text, "--", 2) == 0;
  bool alone = !script->is_script && (options || !is_shell_script(source));
  const nxc_relative *relative = nxc_arguments_relative(&f->to, words);
  bool fills = found->name != NULL && relative != NULL && nxc_relative_runs(relative, found->name);
  if (alone || (found->name != NULL && found->trains && !fills)) return true;
  bool helps = found->name == NULL && script->is_script &&
               (nxc_launched_has_option(found) || (script->reads_script && words->n_items > 0));
  helps = helps || fills;
  f->idle = !helps;
  f->part = helps;
  f->to.open = true;
  const char *what = "this script starts no training, and holds no options of one";
  if (fills) what = nxc_arena_printf(f->to.arena, "%s sets itself what is not given here", found->name);
  else if (helps)
    what = "this script starts no program that is known here: its options are a part of a training";
  else if (found->program != NULL)
    what = nxc_arena_printf(f->to.arena, "this script runs %s (%s): %s", found->program->what, found->name,
                            found->program->model);
  else if (found->name != NULL)
    what = nxc_arena_printf(f->to.arena, "this script runs %s, which is no training that is known here",
                            found->name);
  nxc_report(f->to.sink, "NX5922", NXC_SEVERITY_NOTE, found->launch->at, NULL, "%s", what);
  return helps;
}

/* Those of the command line belong to the first text alone. */
static const nxc_source *own_arguments(const front *f, const nxc_source *source) {
  return source == f->texts->first ? f->texts->script_arguments : NULL;
}

static void read_source(front *f, const nxc_source *source) {
  const nxc_launch *launch = NULL;
  nxc_script script = {.arena = f->to.arena};
  f->to.script = false;
  if (nxc_megatron_is_yaml(source)) {
    f->unreadable = !nxc_megatron_read_yaml(&f->to, source, &script) || f->unreadable;
    f->launched = (nxc_launched){.program = f->to.program, .name = "told by its options"};
  } else if (!nxc_script_read_kept(f->texts->followed, f->to.arena, source, own_arguments(f, source),
                                   f->to.sink, &script)) {
    f->unreadable = true;
  } else {
    nxc_launched found = choose_launch(f, &script);
    launch = found.launch;
    f->to.script = script.is_script;
    if (check_launch(f, source, &script, &found)) nxc_arguments_read(&f->to, &launch->arguments);
    else if (found.program != NULL && found.program->use == NXC_PROGRAM_OWN) read_own(f, &found);
    nxc_megatron_read_deepspeed(&f->to, &script);
    nxc_megatron_read_launcher(&f->to, launch);
    const nxc_relative *relative = f->to.relative;
    if (found.name != NULL && relative != NULL && nxc_relative_runs(relative, found.name))
      nxc_megatron_put_program(&f->to, launch, found.name);
    f->to.open = f->to.open || script.misspelt;
    if (source == f->texts->first) f->script = script.is_script, f->n_asked = script.n_asked;
  }
  bool whole = script.is_script && !f->part && !f->idle; /* else whatever reads it may have more */
  nxc_megatron_read_environment(&f->to, launch ? launch : nxc_script_collect(&script), f->texts->first,
                                whole);
  take_variables(f, &script);
}

/* The option as though it were not given: false of a switch, null of what has no default. */
static bool take_out(front *f, const nxc_option_row *row, const char *name, const char *value, nxc_span at) {
  bool is_switch = row != NULL && row->domain.type == NXC_TYPE_BOOL;
  bool out = is_switch ? strcmp(value, "false") == 0
                       : row != NULL && row->domain.nullable && strcmp(value, "null") == 0;
  nxc_node *before = out ? nxc_node_child(f->to.map, name) : NULL;
  if (before == NULL) return out;
  if (!is_switch) {
    nxc_node_remove(f->to.arena, before);
    return true;
  }
  before->kind = NXC_NODE_SCALAR;
  before->n_children = 0;
  before->value = (nxc_value){.kind = NXC_BOOL};
  before->raw = value;
  before->raw_bytes = (uint32_t)strlen(value);
  before->at = before->key_at = at;
  return true;
}

/* [a, "b"] as words of a command. */
static const char *words_of_list(nxc_arena *arena, const char *value) {
  size_t n = strlen(value);
  if (n < 2 || value[0] != '[' || value[n - 1] != ']') return value;
  char *words = nxc_arena_strndup(arena, value + 1, n - 2);
  for (char *c = words; *c != '\0'; c++)
    if (*c == ',') *c = ' ';
  return words;
}

static const char variables[] = "environment.";

/* --set KEY=VALUE is --KEY=VALUE over the rest; of a switch VALUE is true, or false to take it out. A
 * variable of the environment is set as if the script did. */
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
    nxc_report(f->to.sink, "NX1020", NXC_SEVERITY_ERROR, at, "write KEY=VALUE",
               "an assignment is written KEY=VALUE");
    return;
  }
  if (nxc_megatron_set_deepspeed(&f->to, key) || take_out(f, row, name, equals + 1, at)) return;
  if (strncmp(name, variables, strlen(variables)) == 0) {
    nxc_megatron_set_variable(&f->to, name + strlen(variables), equals + 1, at);
    return;
  }
  bool lists = row != NULL && nxc_arguments_is_list(row);
  const char *text = lists ? words_of_list(arena, equals + 1) : equals + 1;
  nxc_launch_words words = {0};
  if (!nxc_script_split(arena, nxc_source_new(arena, "--set", text, strlen(text)), f->to.sink, &words)) {
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
  const nxc_remark remark = {nxc_node_span(file), "the file that counts"};
  const char *more = n_others > 1 ? nxc_arena_printf(f->to.arena, " and %zu more are", n_others - 1) : " is";
  nxc_sink_report(f->to.sink,
                  &(nxc_finding){.id = "NX5908",
                                 .severity = NXC_SEVERITY_ERROR,
                                 .at = nxc_node_span(other),
                                 .fix = "put it into the file, or leave --yaml-cfg out",
                                 .remarks = &remark,
                                 .n_remarks = 1,
                                 .message = nxc_arena_printf(
                                     f->to.arena,
                                     "--%s%s dropped without a word: --yaml-cfg replaces every other "
                                     "argument",
                                     other->key, more)});
}

/* What nothing here tells is left out. */
static void keep_words(front *f) {
  const nxc_launch *launch = f->launched.launch;
  if (launch == NULL || f->launched.program == NULL) return;
  const char **words = nxc_arena_array(f->to.arena, launch->arguments.n_items + 1, sizeof *words);
  for (size_t i = 0; i < launch->arguments.n_items; i++) {
    const nxc_launch_word *word = &launch->arguments.items[i];
    if (word->unset == NULL) words[f->document->n_words++] = word->text;
    else if (f->launched.program->use == NXC_PROGRAM_READS)
      nxc_report(f->to.sink, "NX5911", word->expected ? NXC_SEVERITY_NOTE : NXC_SEVERITY_WARNING, word->at,
                 NULL, "%s is left out: nothing here tells %s", word->text, word->unset);
  }
  f->document->words = words;
}

nxc_document *nxc_megatron_read(const nxc_front_texts *texts) {
  nxc_arena *arena = texts->arena;
  const nxc_source *first = texts->first ? texts->first : texts->arguments;
  nxc_node *root =
      nxc_node_new(arena, NXC_NODE_MAP, (nxc_span){.source = first, .line = 1, .column = 1, .length = 1});
  front f = {.texts = texts, .names = nxc_names_new(arena)};
  f.to = (nxc_arguments){.arena = arena,
                         .sink = texts->sink,
                         .dialect = nxc_dialect_find("megatron"),
                         .map = root};
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
                               .program = f.launched.program,
                               .program_name = f.launched.name,
                               .own_program = f.launched.own,
                               .program_at = f.launched.launch ? f.launched.launch->at : root->at,
                               .idle = f.idle,
                               .script = f.script,
                               .n_asked = f.n_asked,
                               .example = f.n_asked ? nxc_script_example(arena, first, f.n_asked) : NULL,
                               .part = f.part,
                               .launches = f.launches,
                               .n_launches = f.n_launches,
                               .launches_differ = f.launches_differ,
                               .variables = f.variables,
                               .n_variables = f.n_variables};
  keep_words(&f);
  return f.document;
}

nxc_resolution nxc_megatron_resolve(nxc_document *document, const nxc_resolving *resolving, nxc_sink *sink) {
  nxc_resolution resolution = nxc_front_resolve_angles(document, resolving, sink);
  resolution.variables = document->variables;
  resolution.n_variables = document->n_variables;
  return resolution;
}
