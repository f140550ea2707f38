/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/options.h"
#include "compiler/config/fronts.h"

#include "compiler/config/front/override.h"
#include "compiler/config/write/write.h"
#include "compiler/diagnostics/allow.h"
#include "compiler/diagnostics/nearest.h"
#include "compiler/render/screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char common_usage[] =
    "  -l FILE              lay this file over the configuration (repeatable)\n"
    "  --set KEY=VALUE      set an option of the dialect, or with nx:PATH=VALUE a setting\n"
    "                       (repeatable)\n"
    "  KEY=VALUE            nx and nxdt: override as Hydra does; +KEY=VALUE adds, ++ does\n"
    "                       either, ~KEY deletes\n"
    "  --dialect D[@V]      read the file as this dialect (of this version) instead of\n"
    "                       detecting it\n"
    "  -- ARGUMENT...       with --dialect megatron or xorl: the training's arguments,\n"
    "                       over FILE if there is one\n"
    "  --args 'WORD...'     the arguments of a script itself, $1 and on, as a shell reads\n"
    "                       them; behind scripts (x.sh) also: -- WORD...\n"
    "  --launch N           of a script that starts several programs, the one meant\n"
    "  --world-size N       number of ranks, whatever the file says (also --devices)\n"
    "  --model-config FILE  Hugging Face config.json of the model\n"
    "  --rules FILE         further rules, a site's own policy (repeatable)\n"
    "  --allow ID           do not tell findings of this kind (repeatable)\n"
    "  --hermetic           environment variables must be declared in .nxcfg.yaml\n"
    "  --compat omegaconf   read surprising scalars as OmegaConf does, without a finding;\n"
    "                       $< stays text\n"
    "  -W error             warnings are errors\n"
    "  --notes              show notes too\n"
    "  --color WHEN         auto (a terminal, without NO_COLOR), always or never\n"
    "  -h                   print this\n";

void nxc_options_print_usage(const char *usage, FILE *out) {
  nxc_print_usage(out, usage);
  nxc_print_usage(out, common_usage);
}

typedef struct parsing {
  nxc_arena *arena;
  nxc_options *options;
  const char *command;
  bool own_formats;
} parsing;

static void append(nxc_arena *arena, nxc_texts *list, const char *text) {
  list->items = nxc_arena_grow(arena, list->items, list->n_items, sizeof *list->items);
  list->items[list->n_items++] = text;
}

static bool complain(const parsing *p, const char *what, const char *about) {
  fprintf(stderr, "nxcfg %s: %s %s (nxcfg %s --help)\n", p->command, what, about, p->command);
  return false;
}

static bool check_format(parsing *p) {
  static const char *const names[] = {
      [NXC_FORMAT_TEXT] = "text",     [NXC_FORMAT_SHORT] = "short", [NXC_FORMAT_JSON] = "json",
      [NXC_FORMAT_GITHUB] = "github", [NXC_FORMAT_SARIF] = "sarif", [NXC_FORMAT_GITLAB] = "gitlab",
      [NXC_FORMAT_JUNIT] = "junit",
  };
  const char *name = p->options->format_name;
  for (size_t i = 0; name != NULL && i < sizeof names / sizeof *names; i++) {
    if (strcmp(names[i], name) != 0) continue;
    p->options->format = (nxc_format)i;
    return true;
  }
  return name == NULL || p->own_formats ||
         complain(p, "--format takes text, short, json, sarif, github, gitlab or junit, not", name);
}

/* -W and --compat know one word each, --dialect a few. */
static bool check_words(parsing *p, const char *warnings, const char *compat) {
  if (warnings != NULL && strcmp(warnings, "error") != 0) return complain(p, "-W takes error, not", warnings);
  if (compat != NULL && strcmp(compat, "omegaconf") != 0)
    return complain(p, "--compat takes omegaconf, not", compat);
  const char *colour = p->options->colour;
  if (colour != NULL && strcmp(colour, "auto") != 0 && strcmp(colour, "always") != 0 &&
      strcmp(colour, "never") != 0)
    return complain(p, "--color takes auto, always or never, not", colour);
  const char *dialect = p->options->dialect, *version;
  if (dialect != NULL && nxc_dialect_find(dialect) == NULL && !nxc_front_find(p->arena, dialect, &version))
    return complain(p, "there is no dialect",
                    nxc_arena_printf(p->arena, "%s; there are %s", dialect, nxc_front_names(p->arena)));
  const nxc_texts *allow = &p->options->allow;
  for (size_t i = 0; i < allow->n_items; i++)
    if (!nxc_allow_is_id(allow->items[i], strlen(allow->items[i])))
      return complain(p, "--allow takes ids, such as NX1302, not", allow->items[i]);
  p->options->warnings_are_errors = warnings != NULL;
  p->options->omegaconf = compat != NULL;
  return check_format(p);
}

/* The row of an argument that is an option; *value receives what follows `=`, or NULL. */
static const nxc_extra_option *find_row(const nxc_extra_option *rows, const char *argument,
                                        const char **value) {
  for (; rows->name != NULL; rows++) {
    size_t n_bytes = strlen(rows->name);
    if (strncmp(rows->name, argument, n_bytes) != 0) continue;
    *value = argument[n_bytes] == '=' && n_bytes > 2 ? argument + n_bytes + 1 : NULL;
    if (argument[n_bytes] == '\0' || *value != NULL) return rows;
  }
  return NULL;
}

static bool take(parsing *p, const nxc_extra_option *row, const char *argument, const char *value) {
  if (row->flag != NULL && value != NULL) return complain(p, "no value belongs to", row->name);
  if (row->flag != NULL) return *row->flag = true;
  if (value == NULL) return complain(p, "a value is missing after", argument);
  if (row->text != NULL) *row->text = value;
  else append(p->arena, row->list, value);
  return true;
}

/* Words behind scripts and `--` are their own arguments. */
static bool follow_scripts(const parsing *p) {
  const nxc_texts *files = &p->options->files;
  for (size_t i = 0; i < files->n_items; i++) {
    size_t n_bytes = strlen(files->items[i]);
    if (n_bytes < 3 || strcmp(files->items[i] + n_bytes - 3, ".sh") != 0) return false;
  }
  return files->n_items > 0;
}

static const char *join_words(nxc_arena *arena, const nxc_texts *words) {
  nxc_buffer text = {.arena = arena};
  for (size_t i = 0; i < words->n_items; i++) {
    if (i > 0) nxc_buffer_puts(&text, " ");
    nxc_write_shell_word(&text, words->items[i], false);
  }
  return text.bytes;
}

static bool takes_arguments(const parsing *p) {
  const char *version;
  const nxc_front *front =
      p->options->dialect ? nxc_front_find(p->arena, p->options->dialect, &version) : NULL;
  return front != NULL && front->takes_arguments;
}

/* Commands that read no configuration as a dialect know a few of the common options only. */
static bool means_something(const parsing *p, const char *option) {
  static const struct {
    const char *command, *options;
  } few[] = {{"explain", " --dialect --rules --help -h "},
             {"schema", " --help -h "},
             {"show", " --help -h "},
             {"resolve", " -l --set --compat --format -W --notes --color --help -h "}};
  for (size_t i = 0; i < sizeof few / sizeof *few; i++) {
    if (strcmp(few[i].command, p->command) != 0) continue;
    return strstr(few[i].options, nxc_arena_printf(p->arena, " %s ", option)) != NULL;
  }
  return true;
}

/* The option of the command that is meant; NULL: none is near. */
static const char *nearest_option(const parsing *p, const nxc_extra_option *extras,
                                  const nxc_extra_option *common, const char *argument) {
  const char **names = NULL;
  size_t n_names = 0;
  const nxc_extra_option *const tables[] = {extras, common};
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
    for (const nxc_extra_option *row = tables[i]; row->name != NULL; row++) {
      if (tables[i] == common && !means_something(p, row->name)) continue;
      names = nxc_arena_grow(p->arena, names, n_names, sizeof *names);
      names[n_names++] = row->name;
    }
  }
  return nxc_nearest(nxc_arena_strndup(p->arena, argument, strcspn(argument, "=")), names, n_names);
}

static bool complain_unknown(parsing *p, const nxc_extra_option *extras, const nxc_extra_option *common,
                             const char *argument) {
  const char *nearest = nearest_option(p, extras, common, argument);
  bool word = strncmp(argument, "--", 2) == 0; /* a letter is near to any other */
  if (word && nearest != NULL && strcmp(nearest, argument) != 0)
    argument = nxc_arena_printf(p->arena, "%s; did you mean %s?", argument, nearest);
  return complain(p, "unknown option", argument);
}

/* KEY=VALUE, +KEY=VALUE, ~KEY, unless a file has that name. */
static bool is_override(const parsing *p, const char *argument) {
  return nxc_override_is(argument) && means_something(p, "KEY=VALUE") && access(argument, F_OK) != 0;
}

static bool parse_all(parsing *p, int argc, char **argv, const nxc_extra_option *common,
                      const nxc_extra_option *extras) {
  bool only_files = false;
  nxc_texts *rest = &p->options->files, words = {0};
  for (int i = 0; i < argc; i++) {
    const char *argument = argv[i], *value = NULL;
    if (argument[0] == '\0' && rest == &p->options->files)
      return complain(p, "the name of a file is empty", "(is a variable of the shell not set?)");
    if (only_files || argument[0] != '-' || argument[1] == '\0') {
      append(p->arena, !only_files && is_override(p, argument) ? &p->options->overrides : rest, argument);
      continue;
    }
    if (strcmp(argument, "--") == 0) {
      only_files = true;
      if (takes_arguments(p)) rest = &p->options->arguments;
      else if (follow_scripts(p)) rest = &words;
      continue;
    }
    const nxc_extra_option *row = find_row(extras, argument, &value);
    if (row == NULL) {
      row = find_row(common, argument, &value);
      if (row == NULL || !means_something(p, row->name))
        return complain_unknown(p, extras, common, argument);
    }
    if (row->flag == NULL && value == NULL && i + 1 < argc) value = argv[++i];
    if (!take(p, row, argument, value)) return false;
  }
  if (words.n_items > 0) p->options->script_arguments = join_words(p->arena, &words);
  return true;
}

/* Counted from 1. */
static bool check_launch(parsing *p, const char *text) {
  if (text == NULL) return true;
  size_t n_digits = strspn(text, "0123456789");
  p->options->launch = n_digits > 0 && n_digits < 6 ? strtoul(text, NULL, 10) : 0;
  return (text[n_digits] == '\0' && p->options->launch > 0) ||
         complain(p, "--launch takes a number from 1, not", text);
}

bool nxc_options_parse(nxc_arena *arena, nxc_options *options, const char *command, int argc, char **argv,
                       const nxc_extra_option *extras, bool own_formats) {
  static const nxc_extra_option none[] = {{.name = NULL}};
  const char *warnings = NULL, *compat = NULL, *launch = NULL;
  *options = (nxc_options){.format = NXC_FORMAT_TEXT};
  const nxc_extra_option common[] = {
      {.name = "-l", .list = &options->layers},
      {.name = "--set", .list = &options->sets},
      {.name = "--dialect", .text = &options->dialect},
      {.name = "--launch", .text = &launch},
      {.name = "--args", .text = &options->script_arguments},
      {.name = "--world-size", .text = &options->world_size},
      {.name = "--devices", .text = &options->world_size},
      {.name = "--model-config", .text = &options->model_config},
      {.name = "--rules", .list = &options->rules},
      {.name = "--allow", .list = &options->allow},
      {.name = "--compat", .text = &compat},
      {.name = "--format", .text = &options->format_name},
      {.name = "-W", .text = &warnings},
      {.name = "--hermetic", .flag = &options->hermetic},
      {.name = "--notes", .flag = &options->notes},
      {.name = "--help", .flag = &options->help},
      {.name = "-h", .flag = &options->help},
      {.name = "--color", .text = &options->colour},
      {.name = NULL},
  };
  parsing p = {arena, options, command, own_formats};
  return parse_all(&p, argc, argv, common, extras ? extras : none) && check_words(&p, warnings, compat) &&
         check_launch(&p, launch);
}

nxc_texts nxc_options_inputs(nxc_arena *arena, const nxc_options *options) {
  const char *config = options->model_config;
  const nxc_texts model = {&config, config != NULL};
  const nxc_texts lists[] = {options->files, options->layers, options->rules, model};
  nxc_texts all = {0};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    for (size_t k = 0; k < lists[i].n_items; k++) {
      all.items = nxc_arena_grow(arena, all.items, all.n_items, sizeof *all.items);
      all.items[all.n_items++] = lists[i].items[k];
    }
  }
  return all;
}

nxc_request nxc_options_request(const nxc_options *options, const char *file) {
  return (nxc_request){
      .file = file,
      .layers = options->layers.items,
      .n_layers = options->layers.n_items,
      .sets = options->sets.items,
      .n_sets = options->sets.n_items,
      .overrides = options->overrides.items,
      .n_overrides = options->overrides.n_items,
      .arguments = options->arguments.items,
      .n_arguments = options->arguments.n_items,
      .dialect = options->dialect,
      .script_arguments = options->script_arguments,
      .world_size = options->world_size,
      .launch = options->launch,
      .model_config = options->model_config,
      .rules = options->rules.items,
      .n_rules = options->rules.n_items,
      .allow = options->allow.items,
      .n_allow = options->allow.n_items,
      .omegaconf = options->omegaconf,
      .hermetic = options->hermetic,
  };
}

/* https://no-color.org: any text but an empty one. */
static bool wants_colour(const char *when) {
  if (when != NULL && strcmp(when, "auto") != 0) return strcmp(when, "always") == 0;
  const char *none = getenv("NO_COLOR"), *terminal = getenv("TERM");
  if ((none != NULL && *none != '\0') || (terminal != NULL && strcmp(terminal, "dumb") == 0)) return false;
  return isatty(STDERR_FILENO) && isatty(STDOUT_FILENO);
}

nxc_render nxc_options_render(const nxc_options *options) {
  return (nxc_render){
      .format = options->format, .colour = wants_colour(options->colour), .notes = options->notes};
}
