/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/front/xorl/front_xorl.h"

#include "compiler/document/nodes.h"
#include "compiler/document/repair.h"
#include "compiler/document/scalar.h"
#include "compiler/config/front/arguments.h"

#include <string.h>

const char *const nxc_xorl_versions[] = {"later", "seed", NULL};

typedef struct front {
  const nxc_front_texts *texts;
  nxc_document *document;
  const nxc_dialect *dialect;
  bool ok;
} front;

static void complain(front *f, const char *id, nxc_span at, const char *fix, const char *message) {
  nxc_report(f->texts->sink, id, NXC_SEVERITY_ERROR, at, fix, "%s", message);
}

/* -- arguments ------------------------------------------------------------------------------------------- */

static nxc_node *text_node(front *f, const nxc_launch_word *word) {
  nxc_node *node = nxc_node_new(f->texts->arena, NXC_NODE_SCALAR, word->at);
  node->style = NXC_STYLE_DOUBLE;
  node->raw = word->text;
  node->raw_bytes = strlen(word->text);
  node->value = nxc_string_value(node->raw, node->raw_bytes);
  return node;
}

/* The map below `in` that a key names; made where it is missing. NULL: something else stands there. */
static nxc_node *section_of(front *f, nxc_node *in, const char *name, nxc_span at) {
  nxc_node *map = nxc_node_child(in, name);
  if (map != NULL) return map->kind == NXC_NODE_MAP ? map : NULL;
  nxc_value key = nxc_string_value(name, strlen(name));
  map = nxc_node_new(f->texts->arena, NXC_NODE_MAP, at);
  nxc_node_set_key(map, &key, name, at);
  nxc_node_append(f->texts->arena, in, map);
  return map;
}

static void put(front *f, const char *path, nxc_span at, nxc_node *node) {
  nxc_node *in = f->document->root;
  const char *dot;
  for (; in != NULL && (dot = strchr(path, '.')) != NULL; path = dot + 1)
    in = section_of(f, in, nxc_arena_strndup(f->texts->arena, path, (size_t)(dot - path)), at);
  if (in == NULL) return;
  nxc_value key = nxc_string_value(path, strlen(path));
  nxc_node_set_key(node, &key, path, at);
  nxc_node *earlier = nxc_node_find_key(f->texts->arena, in, &key);
  if (earlier != NULL) nxc_node_replace(f->texts->arena, earlier, node);
  else nxc_node_append(f->texts->arena, in, node);
}

static void report_lost(front *f, const char *name, const nxc_launch_word *word, const nxc_node *given) {
  const nxc_remark remark = {nxc_node_span(given), "what the file says"};
  nxc_finding finding = {.id = "NX7906", .severity = NXC_SEVERITY_ERROR, .at = word->at};
  finding.message =
      nxc_arena_printf(f->texts->arena, "--%s without a value at the end loses to the file", name);
  finding.fix = nxc_arena_printf(f->texts->arena, "write --%s true", name);
  finding.remarks = &remark;
  finding.n_remarks = 1;
  nxc_sink_report(f->texts->sink, &finding);
}

/* --train.save_async: true, unless it stands at the end and the file says something too. */
static nxc_node *bare_switch(front *f, const char *name, const nxc_launch_word *word, bool last) {
  const nxc_node *given = nxc_node_lookup(f->document->root, name);
  if (last && given != NULL) report_lost(f, name, word, given);
  nxc_node *node = text_node(f, word);
  node->value = (nxc_value){.kind = NXC_BOOL, .boolean = true};
  return node;
}

static nxc_node *list_of(front *f, const nxc_launch_word *words, size_t n_words, nxc_span at) {
  nxc_node *list = nxc_node_new(f->texts->arena, NXC_NODE_LIST, n_words ? words[0].at : at);
  for (size_t i = 0; i < n_words; i++) nxc_node_append(f->texts->arena, list, text_node(f, &words[i]));
  return list;
}

/* Two values for one option: argparse keeps the last. */
static void check_twice(front *f, const char *name, const nxc_launch_word *word) {
  const nxc_node *earlier = nxc_node_lookup(f->document->root, name);
  if (earlier == NULL || earlier->key_at.source != word->at.source) return;
  const nxc_remark remark = {nxc_node_span(earlier), "the first one"};
  nxc_finding finding = {.id = "NX7908", .severity = NXC_SEVERITY_WARNING, .at = word->at};
  finding.message = nxc_arena_printf(f->texts->arena, "--%s is given twice, and the last one counts", name);
  finding.fix = "keep one of them";
  finding.remarks = &remark;
  finding.n_remarks = 1;
  nxc_sink_report(f->texts->sink, &finding);
}

static bool is_option(const nxc_launch_word *word) {
  return strncmp(word->text, "--", 2) == 0 && word->text[2] != '\0';
}

/* One option with the words that belong to it. Returns how many words were read. */
static size_t read_option(front *f, const nxc_launch_words *words, size_t first) {
  const nxc_launch_word *word = &words->items[first];
  const char *equals = strchr(word->text, '=');
  const char *name = nxc_arena_strndup(f->texts->arena, word->text + 2,
                                       equals ? (size_t)(equals - word->text) - 2 : strlen(word->text) - 2);
  const nxc_option_row *row = nxc_option_find(f->dialect, name);
  size_t n_values = 0;
  while (first + 1 + n_values < words->n_items && !is_option(&words->items[first + 1 + n_values])) n_values++;
  nxc_launch_word joined = *word;
  const nxc_launch_word *values = &words->items[first] + 1;
  if (equals != NULL) {
    joined.text = equals + 1;
    values = &joined;
  }
  size_t n_own = equals ? 1 : n_values;
  bool is_switch = row != NULL && row->domain.type == NXC_TYPE_BOOL && n_own == 0;
  check_twice(f, name, word);
  if (is_switch) {
    put(f, name, word->at, bare_switch(f, name, word, first + 1 == words->n_items));
  } else if (n_own == 0) {
    complain(f, "NX7907", word->at, NULL, nxc_arena_printf(f->texts->arena, "--%s needs a value", name));
  } else if (row != NULL && nxc_arguments_is_list(row) && row->domain.type != NXC_TYPE_LIST) {
    put(f, name, word->at, list_of(f, values, n_own, word->at));
  } else {
    put(f, name, word->at, text_node(f, values));
  }
  bool extra = n_own > 1 && !(row != NULL && nxc_arguments_is_list(row));
  size_t first_extra = equals != NULL ? first + 1 : first + 2;
  if (extra || (equals != NULL && n_values > 0))
    complain(f, "NX7907", words->items[first_extra].at, "quote texts with blanks",
             nxc_arena_printf(f->texts->arena, "%s belongs to no option", words->items[first_extra].text));
  return 1 + n_values;
}

static void read_arguments(front *f) {
  nxc_script script = {.arena = f->texts->arena};
  if (f->texts->arguments == NULL) return;
  if (!nxc_script_read(f->texts->arena, f->texts->arguments, NULL, f->texts->sink, &script)) {
    f->ok = false;
    return;
  }
  size_t i = 0;
  while (i < script.launches[0].arguments.n_items && !is_option(&script.launches[0].arguments.items[i])) {
    complain(f, "NX7907", script.launches[0].arguments.items[i].at, "write --section.key VALUE",
             nxc_arena_printf(f->texts->arena, "%s belongs to no option",
                              script.launches[0].arguments.items[i].text));
    i++;
  }
  while (i < script.launches[0].arguments.n_items) i += read_option(f, &script.launches[0].arguments, i);
}

/* -- keys ------------------------------------------------------------------------------------------------ */

/* The one option of a section that a key is the beginning of; NULL: none, or several. */
static const char *only_completion(const nxc_dialect *dialect, const char *name) {
  const char *found = NULL;
  for (size_t i = 0; i < dialect->n_options; i++) {
    const char *option = dialect->options[i].name;
    if (strncmp(option, name, strlen(name)) != 0 || strchr(option, '[') != NULL) continue;
    if (found != NULL) return NULL;
    found = option;
  }
  return found;
}

static bool has_key(nxc_node *const *children, size_t n_children, const char *key) {
  for (size_t i = 0; i < n_children; i++)
    if (strcmp(children[i]->key, key) == 0) return true;
  return false;
}

/* Keys that argparse takes for longer ones are reported here, and are those from here on. */
static void check_keys(front *f, nxc_node *section) {
  nxc_arena *arena = f->texts->arena;
  nxc_node **children = section->children;
  size_t n_children = section->n_children;
  section->children = NULL;
  section->n_children = 0;
  section->names = NULL;
  for (size_t i = 0; i < n_children; i++) {
    nxc_node *child = children[i];
    const char *name = nxc_arena_printf(arena, "%s.%s", section->key, child->key);
    const char *meant =
        nxc_option_find(f->dialect, name) == NULL ? only_completion(f->dialect, name) : NULL;
    const char *longer = meant ? strrchr(meant, '.') + 1 : NULL;
    if (longer != NULL) {
      nxc_report_repair(f->texts->sink, "NX7904", NXC_SEVERITY_ERROR, nxc_node_span(child),
                        nxc_arena_printf(arena, "write %s", longer),
                        nxc_repair_key(arena, child, longer, true),
                        "%s is no option; xorl's parser silently takes it for %s", name, meant);
      if (has_key(children, n_children, longer)) continue;
      const nxc_value key = {.kind = NXC_STRING, .text = longer, .n_bytes = strlen(longer)};
      nxc_node_set_key(child, &key, longer, child->key_at);
    }
    nxc_node_append(arena, section, child);
  }
}

static void check_sections(front *f) {
  nxc_node *root = f->document->root;
  for (size_t i = 0; i < root->n_children; i++) {
    nxc_node *section = root->children[i];
    size_t first;
    bool known = section->key != NULL && nxc_dialect_section(f->dialect, section->key, &first) > first;
    if (section->kind == NXC_NODE_MAP && known) check_keys(f, section);
    bool empty = section->kind == NXC_NODE_SCALAR && section->value.kind == NXC_NULL;
    if (known && empty)
      complain(f, "NX7905", nxc_node_span(section), "leave the section out",
               nxc_arena_printf(f->texts->arena, "the section %s is empty, which xorl's parser cannot read",
                                section->key));
  }
}

/* -- all ------------------------------------------------------------------------------------------------- */

nxc_document *nxc_xorl_read(const nxc_front_texts *texts) {
  const nxc_reading reading = {.omegaconf = texts->omegaconf, .pyyaml = true};
  front f = {.texts = texts, .dialect = nxc_dialect_find("xorl"), .ok = true};
  const nxc_source *source = texts->first ? texts->first : nxc_source_new(texts->arena, "<arguments>", "", 0);
  f.document = nxc_document_read(texts->arena, source, &reading, texts->sink);
  for (size_t i = 0; i < texts->n_layers; i++) {
    nxc_document *layer = nxc_document_read(texts->arena, texts->layers[i], &reading, texts->sink);
    f.ok = nxc_document_layer(f.document, layer, texts->sink) && f.ok;
  }
  if (f.document->root->kind == NXC_NODE_MAP) {
    if (texts->first != NULL) nxc_xorl_take_server(f.document, texts->first, texts->sink);
    for (size_t i = 0; i < texts->n_sets; i++)
      f.ok = nxc_document_set(f.document, texts->sets[i], "--set", &reading, texts->sink) && f.ok;
    read_arguments(&f);
    check_sections(&f);
    nxc_xorl_type(f.document, texts->sink);
  }
  f.document->complete = f.document->complete && f.ok;
  return f.document;
}
