/* SPDX-License-Identifier: Apache-2.0 */
/* Megatron's YAML forms: MODEL_ARGS of functional tests, ARGS of recipes, files of --yaml-cfg with their two
 * sections, and flat files of arguments. The first two are texts for a command line; the others are typed by
 * PyYAML, and their keys are names of argparse's namespace, where a switch that turns something off has its
 * name without the "no". */
#include "compiler/document/nodes.h"
#include "compiler/document/scalar.h"
#include "compiler/config/front/megatron/front_megatron.h"
#include "compiler/document/repair.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* -- which form ------------------------------------------------------------------------------------------ */

/* A line that begins, in its first column, with this key. */
static bool has_key(const nxc_source *source, const char *key) {
  size_t n_bytes = strlen(key);
  for (uint32_t line = 1; line <= source->n_lines; line++) {
    size_t n_line;
    const char *text = nxc_source_line(source, line, &n_line);
    if (n_line > n_bytes && strncmp(text, key, n_bytes) == 0 && text[n_bytes] == ':') return true;
  }
  return false;
}

static const char *const forms[] = {"MODEL_ARGS", "ARGS", "language_model", "model_parallel"};

/* `key: value` on the first line that is no comment. */
static bool begins_with_key(const nxc_source *source) {
  for (uint32_t line = 1; line <= source->n_lines; line++) {
    size_t n_line, n_name = 0;
    const char *text = nxc_source_line(source, line, &n_line);
    if (n_line == 0 || *text == '#' || strncmp(text, "---", 3) == 0 || *text == ' ' || *text == '\r')
      continue;
    while (n_name < n_line && (isalnum((unsigned char)text[n_name]) || strchr("_-", text[n_name]))) n_name++;
    return n_name > 0 && *text != '-' && n_name < n_line && text[n_name] == ':' &&
           (n_name + 1 == n_line || isspace((unsigned char)text[n_name + 1]));
  }
  return false;
}

bool nxc_megatron_is_yaml(const nxc_source *source) {
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    if (has_key(source, forms[i])) return true;
  return begins_with_key(source);
}

/* -- one option ------------------------------------------------------------------------------------------ */

typedef struct form {
  nxc_arguments *to;
  nxc_script *script;
  bool typed; /* by PyYAML, not text for a command line */
  bool exact; /* only true makes a switch, and only false leaves it out */
} form;

static bool is_truth(const nxc_node *node, bool truth) {
  static const char *const words[2][4] = {{"false", "no", "off", NULL}, {"true", "yes", "on", NULL}};
  for (const char *const *word = words[truth]; node->kind == NXC_NODE_SCALAR && *word != NULL; word++)
    if (strcasecmp(node->raw, *word) == 0) return true;
  return false;
}

static bool is_nothing(const nxc_node *node) {
  if (node->kind != NXC_NODE_SCALAR || node->style != NXC_STYLE_PLAIN) return false;
  return node->raw_bytes == 0 || strcmp(node->raw, "~") == 0 || strcasecmp(node->raw, "null") == 0;
}

static void add_word(form *f, nxc_launch_words *words, const nxc_node *node) {
  if (node->kind != NXC_NODE_SCALAR) return;
  words->items = nxc_arena_grow(f->to->arena, words->items, words->n_items, sizeof *words->items);
  words->items[words->n_items++] = nxc_script_expand(f->script, node->raw, node->at);
}

/* A list's items; of a text for a command line the words that blanks divide. */
static nxc_launch_words words_of(form *f, const nxc_node *node, bool divide) {
  nxc_launch_words words = {0};
  for (size_t i = 0; i < node->n_children; i++) add_word(f, &words, node->children[i]);
  if (node->kind == NXC_NODE_LIST) return words;
  add_word(f, &words, node);
  if (!divide || words.n_items == 0) return words;
  nxc_launch_word whole = words.items[0];
  words = (nxc_launch_words){0};
  size_t n_whole = strlen(whole.text);
  bool bracketed = n_whole > 2 && whole.text[0] == '[' && whole.text[n_whole - 1] == ']';
  if (bracketed) whole.text = nxc_arena_strndup(f->to->arena, whole.text + 1, n_whole - 2); /* [1 2] */
  for (const char *at = whole.text; *at != '\0';) {
    size_t n_blank = strspn(at, " \t\n"), n_bytes = strcspn(at + n_blank, " \t\n");
    if (n_bytes > 0) {
      nxc_launch_word part = whole;
      part.text = nxc_arena_strndup(f->to->arena, at + n_blank, n_bytes);
      words.items = nxc_arena_grow(f->to->arena, words.items, words.n_items, sizeof part);
      words.items[words.n_items++] = part;
    }
    at += n_blank + n_bytes;
  }
  return words;
}

/* PyYAML reads a number with an exponent as text unless it has a point, and a sign behind the e. False
 * (reported): this is such a one, and a number was meant. */
static bool check_exponent(form *f, const nxc_option_row *row, const nxc_node *node) {
  const char *e = row->domain.type == NXC_TYPE_FLOAT ? strpbrk(node->raw, "eE") : NULL;
  nxc_value number;
  if (e == NULL || node->style != NXC_STYLE_PLAIN) return true;
  const char *point = memchr(node->raw, '.', (size_t)(e - node->raw));
  if (point != NULL && strchr("+-", e[1])) return true;
  if (!nxc_text_to_float(f->to->arena, node->raw, &number)) return true;
  const char *exponent = e[1] == '+' || e[1] == '-' ? e + 1 : nxc_arena_printf(f->to->arena, "+%s", e + 1);
  const char *meant = nxc_arena_printf(f->to->arena, "%.*s%se%s", (int)(e - node->raw), node->raw,
                                       point ? "" : ".0", exponent);
  nxc_report_repair(f->to->sink, "NX5913", NXC_SEVERITY_ERROR, node->at,
                    nxc_arena_printf(f->to->arena, "write %s", meant),
                    nxc_repair_value(f->to->arena, node, meant, true),
                    "%s is text to PyYAML, which Megatron reads this file with, and no number", node->raw);
  return false;
}

/* A value as PyYAML types it; what reads the environment is text. */
static bool put_typed(form *f, const nxc_option_row *row, const nxc_node *node, const char *name) {
  bool reads = node->kind != NXC_NODE_SCALAR || strchr(node->raw, '$') != NULL;
  if (!f->typed || reads || row == NULL || nxc_arguments_is_list(row)) return false;
  if (!check_exponent(f, row, node)) return false;
  if (node->style == NXC_STYLE_PLAIN && nxc_scalar_is_date(node->raw))
    nxc_report(f->to->sink, "NX5916", NXC_SEVERITY_ERROR, node->at, "quote it",
               "%s is read as a date, which no option takes", node->raw);
  nxc_node *copy = nxc_node_new(f->to->arena, NXC_NODE_SCALAR, node->at);
  copy->style = node->style;
  copy->raw = node->raw;
  copy->raw_bytes = node->raw_bytes;
  copy->value = node->value;
  nxc_arguments_put_node(f->to, name, node->key_at, copy);
  return true;
}

/* A switch: whether it stands there. */
static bool is_set(form *f, const nxc_node *node, const char *name, bool opposite) {
  if (node->raw == NULL) {
    nxc_report(f->to->sink, "NX5903", NXC_SEVERITY_ERROR, node->at, "write true, or leave it out",
               "%s is a switch, not a list or a map", name);
    return false;
  }
  if (f->exact && strchr(node->raw, '$') != NULL) {
    nxc_report(f->to->sink, "NX5903", NXC_SEVERITY_NOTE, node->at, "give that variable a value",
               "%s is a switch, and what %s stands for is unknown here: it counts as left out", name,
               node->raw);
    return false;
  }
  bool text = f->typed && node->value.kind == NXC_STRING; /* any text but the empty one is true there */
  bool other = f->exact && strcmp(node->raw, "true") != 0 && strcmp(node->raw, "false") != 0;
  bool truth = !text && !other && is_truth(node, true);
  bool lie = !text && !other && (is_truth(node, false) || (f->typed && strcmp(node->raw, "0") == 0));
  if (!truth && !lie)
    nxc_report(f->to->sink, "NX5903", NXC_SEVERITY_ERROR, node->at, "write true, or leave it out",
               text    ? "%s is a switch, and text counts as true"
               : other ? "%s is a switch, and of its values only true and false are no further argument"
                       : "%s is a switch: it is true or not there",
               name);
  return truth != opposite && (truth || lie);
}

static void put_option(form *f, const nxc_node *node, const char *name, bool opposite) {
  const nxc_option_row *row = nxc_arguments_option(f->to, name);
  nxc_launch_words none = {0};
  bool is_switch = row != NULL && row->alias_of == NULL && row->domain.type == NXC_TYPE_BOOL;
  if (is_nothing(node) && f->typed) return;
  if (is_switch || (row == NULL && (is_truth(node, true) || is_truth(node, false)))) {
    if (is_set(f, node, name, opposite)) nxc_arguments_put(f->to, row, name, node->key_at, &none);
    return;
  }
  if (put_typed(f, row, node, name)) return;
  bool list = row != NULL && nxc_arguments_is_list(row);
  nxc_launch_words words = words_of(f, node, list);
  if (words.n_items == 0 && !list) add_word(f, &words, &(nxc_node){.raw = "", .at = node->at});
  nxc_arguments_put(f->to, row, name, node->key_at, &words);
}

/* -- the forms ------------------------------------------------------------------------------------------- */

static bool is_nemo(const char *key) {
  return strncmp(key, "++", 2) == 0 || strchr(key, '.') != NULL;
}

/* A test case names no program: its mode tells, or the options that only some have. */
static void find_program(form *f, const nxc_node *root, const nxc_node *map) {
  const nxc_node *mode = nxc_node_child(root, "MODE");
  bool infers = mode != NULL && mode->raw != NULL && strcmp(mode->raw, "inference") == 0;
  const char **own = nxc_arena_array(f->to->arena, map->n_children + 1, sizeof *own);
  size_t n_own = 0;
  for (size_t i = 0; i < map->n_children; i++) {
    const char *name = map->children[i]->key;
    if (strncmp(name, "--", 2) == 0 && nxc_option_find(f->to->dialect, name + 2) == NULL)
      own[n_own++] = name + 2;
  }
  f->to->program = nxc_program_row_of(infers ? NXC_PROGRAM_SHARES : NXC_PROGRAM_TRAINS, own, n_own);
  if (infers && f->to->program == NULL) f->to->program = nxc_program_row_find("inference.py");
}

/* MODEL_ARGS: "--option": value, as on a command line. False (reported): it is one for another program. */
static bool read_command_line(form *f, const nxc_node *map) {
  const nxc_node *nemo = NULL;
  for (size_t i = 0; i < map->n_children; i++) {
    const nxc_node *node = map->children[i];
    if (strncmp(node->key, "--", 2) == 0) {
      put_option(f, node, node->key + 2, false);
    } else if (is_nemo(node->key)) {
      if (nemo == NULL) nemo = node;
    } else {
      bool opposite;
      const char *option = nxc_megatron_option_of(f->to->arena, node->key, &opposite);
      if (*option != '\0') put_option(f, node, option, opposite);
    }
  }
  if (nemo == NULL) return true;
  nxc_report(f->to->sink, "NX5910", NXC_SEVERITY_ERROR, nemo->key_at, "write the option of Megatron-LM",
             "%s is a key of NeMo, which Megatron-LM's own program does not read", nemo->key);
  return false;
}

static nxc_node *map_below(form *f, nxc_node *parent, const char *name, nxc_span at) {
  nxc_node *map = nxc_node_child(parent, name);
  if (map != NULL) return map;
  nxc_value key = nxc_string_value(name, strlen(name));
  map = nxc_node_new(f->to->arena, NXC_NODE_MAP, at);
  nxc_node_set_key(map, &key, name, at);
  nxc_node_append(f->to->arena, parent, map);
  return map;
}

/* launch.sections has the keys of both sections as they are written: what is false has no option of its
 * own. */
static void note_sections(form *f, const nxc_node *section) {
  nxc_span at = section->key_at;
  nxc_node *keys = map_below(f, map_below(f, f->to->map, "launch", at), "sections", at);
  for (size_t i = 0; i < section->n_children; i++) {
    const nxc_node *child = section->children[i];
    if (nxc_node_child(keys, child->key) != NULL) continue;
    nxc_node *key = nxc_node_new(f->to->arena, NXC_NODE_SCALAR, child->key_at);
    nxc_value name = nxc_string_value(child->key, strlen(child->key));
    key->raw = child->key;
    key->raw_bytes = strlen(child->key);
    key->value = name;
    nxc_node_set_key(key, &name, child->key, child->key_at);
    nxc_node_append(f->to->arena, keys, key);
  }
}

static void read_namespace(form *f, const nxc_node *map) {
  for (size_t i = 0; i < map->n_children; i++) {
    const nxc_node *node = map->children[i];
    bool opposite,
        section = strcmp(node->key, "language_model") == 0 || strcmp(node->key, "model_parallel") == 0;
    if (section && node->kind == NXC_NODE_MAP) {
      note_sections(f, node);
      read_namespace(f, node);
      continue;
    }
    const char *option = nxc_megatron_option_of(f->to->arena, node->key, &opposite);
    if (*option != '\0') put_option(f, node, option, opposite);
  }
}

static void read_variables(form *f, const nxc_node *map) {
  f->script->is_script = true;
  for (size_t i = 0; i < map->n_children; i++) {
    const nxc_node *node = map->children[i];
    if (node->kind != NXC_NODE_SCALAR) continue;
    nxc_script_assign(f->script, node->key, nxc_script_expand(f->script, node->raw, node->at));
  }
}

/* A section of a test case, or the one that is meant for it. */
static const nxc_node *section_of(nxc_arguments *to, const nxc_node *root, const char *name) {
  const nxc_node *found = nxc_node_child(root, name);
  for (size_t i = 0; found == NULL && i < root->n_children; i++) {
    const nxc_node *map = root->children[i];
    if (map->kind != NXC_NODE_MAP || map->key == NULL || nxc_nearest(map->key, &name, 1) == NULL) continue;
    nxc_report_repair(to->sink, "NX1301", NXC_SEVERITY_ERROR, map->key_at,
                      nxc_did_you_mean(to->arena, "", name), nxc_repair_key(to->arena, map, name, true),
                      "unknown key %s", map->key);
    found = map;
  }
  return found;
}

bool nxc_megatron_read_yaml(nxc_arguments *to, const nxc_source *source, nxc_script *script) {
  bool texts = has_key(source, forms[0]) || has_key(source, forms[1]);
  const nxc_reading reading = {.text = texts, .pyyaml = !texts};
  nxc_document *document = nxc_document_read(to->arena, source, &reading, to->sink);
  form f = {.to = to, .script = script, .exact = has_key(source, forms[0])};
  const nxc_node *root = document->root, *variables = NULL, *arguments = NULL;
  if (root->kind != NXC_NODE_MAP) {
    nxc_report(to->sink, "NX1314", NXC_SEVERITY_ERROR, root->at, "write KEY: VALUE, without a dash in front",
               "a configuration is a map of keys, not a list");
    return false;
  }
  for (size_t i = 0; i < 2 && arguments == NULL; i++) arguments = nxc_node_child(root, forms[i]);
  variables = nxc_node_child(root, "ENV_VARS");
  if (arguments == NULL && variables != NULL) arguments = section_of(to, root, forms[0]);
  if (arguments != NULL) variables = section_of(to, root, "ENV_VARS");
  if (variables != NULL && variables->kind == NXC_NODE_MAP) read_variables(&f, variables);
  if (arguments != NULL && arguments->kind == NXC_NODE_MAP) {
    find_program(&f, root, arguments);
    return read_command_line(&f, arguments) && document->complete;
  }
  if (arguments != NULL && arguments->kind == NXC_NODE_SCALAR && arguments->raw_bytes == 0) {
    nxc_report(to->sink, "NX5922", NXC_SEVERITY_NOTE, arguments->at, NULL,
               "%s is empty: nothing of a training is told", arguments->key);
    return to->open = document->complete;
  }
  f.typed = !texts;
  read_namespace(&f, root);
  return document->complete;
}
