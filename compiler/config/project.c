/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/project.h"

#include "compiler/config/fronts.h"
#include "compiler/config/path_pattern.h"
#include "compiler/config/write/write.h"
#include "compiler/diagnostics/allow.h"
#include "compiler/diagnostics/nearest.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROJECT_BYTES_MAX = 1024 * 1024 };

typedef struct reading {
  nxc_arena *arena;
  nxc_sink *sink;
  nxc_project *project;
  const char *file;   /* the configuration, relative to it; "" where it has no name */
  bool good;
} reading;

static void complain(reading *r, const nxc_node *node, const char *fix, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void complain(reading *r, const nxc_node *node, const char *fix, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *problem = nxc_arena_vprintf(r->arena, format, args);
  va_end(args);
  nxc_report(r->sink, "NX1530", NXC_SEVERITY_ERROR, nxc_node_span(node), fix, "%s", problem);
  r->good = false;
}

/* -- values ---------------------------------------------------------------------------------------------- */

static const char *read_text(reading *r, const nxc_node *node) {
  if (node->kind == NXC_NODE_SCALAR && node->value.kind == NXC_STRING && node->raw_bytes > 0)
    return node->raw;
  complain(r, node, NULL, "%s is a text", node->key ? node->key : "an item of this list");
  return NULL;
}

/* Adds a text, or each item of a list of texts. */
static void add_texts(reading *r, const nxc_node *node, nxc_texts *words) {
  size_t n_items = node->kind == NXC_NODE_LIST ? node->n_children : 1;
  for (size_t i = 0; i < n_items; i++) {
    const char *text = read_text(r, node->kind == NXC_NODE_LIST ? node->children[i] : node);
    if (text == NULL) continue;
    words->items = nxc_arena_grow(r->arena, words->items, words->n_items, sizeof *words->items);
    words->items[words->n_items++] = text;
  }
}

static const char *read_path(reading *r, const char *text) {
  if (text == NULL || *text == '/') return text;
  const char *shown = r->project->path, *slash = strrchr(shown, '/');
  return nxc_arena_printf(r->arena, "%.*s%s", slash ? (int)(slash + 1 - shown) : 0, shown, text);
}

static void take_dialect(reading *r, const nxc_node *node) {
  const char *name = read_text(r, node), *version;
  if (name == NULL) return;
  if (nxc_front_find(r->arena, name, &version) != NULL) r->project->dialect = name;
  else
    complain(r, node, nxc_arena_printf(r->arena, "there are %s", nxc_front_names(r->arena)),
             "there is no dialect %s", name);
}

static void take_world_size(reading *r, const nxc_node *node) {
  bool fits = node->kind == NXC_NODE_SCALAR && node->value.kind == NXC_INT && node->value.integer >= 1;
  if (fits) r->project->world_size = node;
  else complain(r, node, NULL, "world_size is an integer, at least 1");
}

static void take_model_config(reading *r, const nxc_node *node) {
  r->project->model_config = read_path(r, read_text(r, node));
}

/* One text of words, or a list in which each item is a word. */
static void take_args(reading *r, const nxc_node *node) {
  bool list = node->kind == NXC_NODE_LIST;
  nxc_buffer words = {.arena = r->arena};
  nxc_buffer_puts(&words, "");
  for (size_t i = 0; i < (list ? node->n_children : 1); i++) {
    const nxc_node *item = list ? node->children[i] : node;
    if (item->kind != NXC_NODE_SCALAR || item->value.kind == NXC_NULL) {
      complain(r, item, NULL, "args is a text, or a list of words");
      return;
    }
    if (i > 0) nxc_buffer_puts(&words, " ");
    if (list) nxc_write_shell_word(&words, item->raw, true);
    else nxc_buffer_puts(&words, item->raw);
  }
  r->project->script_arguments = words.bytes;
}

static void take_keys(reading *r, const nxc_node *node) {
  add_texts(r, node, &r->project->keys);
}

static void take_allow(reading *r, const nxc_node *node) {
  size_t n_before = r->project->allow.n_items;
  add_texts(r, node, &r->project->allow);
  for (size_t i = n_before; i < r->project->allow.n_items; i++) {
    const char *id = r->project->allow.items[i];
    if (!nxc_allow_is_id(id, strlen(id))) complain(r, node, "write ids, such as NX1302", "%s is no id", id);
  }
}

static void take_rules(reading *r, const nxc_node *node) {
  size_t n_before = r->project->rules.n_items;
  add_texts(r, node, &r->project->rules);
  for (size_t i = n_before; i < r->project->rules.n_items; i++)
    r->project->rules.items[i] = read_path(r, r->project->rules.items[i]);
}

static void take_env(reading *r, const nxc_node *node) {
  add_texts(r, node, &r->project->env);
}

static void take_exclude(reading *r, const nxc_node *node) {
  add_texts(r, node, &r->project->exclude);
}

/* What stays as it was where the text is no truth value. */
static bool read_bool(reading *r, const nxc_node *node, bool otherwise) {
  if (node->kind == NXC_NODE_SCALAR && node->value.kind == NXC_BOOL) return node->value.boolean;
  complain(r, node, NULL, "%s is true or false", node->key);
  return otherwise;
}

static void take_hermetic(reading *r, const nxc_node *node) {
  r->project->hermetic = read_bool(r, node, r->project->hermetic);
}

static void take_partial(reading *r, const nxc_node *node) {
  r->project->partial = read_bool(r, node, r->project->partial);
}

/* -- keys ------------------------------------------------------------------------------------------------ */

static void take_files(reading *r, const nxc_node *node);

static void take_match(reading *r, const nxc_node *node) {
  nxc_texts patterns = {0};
  add_texts(r, node, &patterns);
}

static const struct {
  const char *key;
  void (*take)(reading *r, const nxc_node *node);
  bool in_entry, on_top;
} keys[] = {
    {"dialect", take_dialect, true, true}, {"world_size", take_world_size, true, true},
    {"model_config", take_model_config, true, true}, {"keys", take_keys, true, true},
    {"allow", take_allow, true, true},     {"rules", take_rules, true, true},
    {"env", take_env, true, true},         {"hermetic", take_hermetic, true, true},
    {"exclude", take_exclude, false, true}, {"partial", take_partial, true, true},
    {"files", take_files, false, true},    {"match", take_match, true, false},
    {"args", take_args, true, true},
};
enum { N_KEYS = sizeof keys / sizeof *keys };

static void take_key(reading *r, const nxc_node *node, bool in_entry) {
  const char *names[N_KEYS], *key = node->key ? node->key : "";
  size_t n_names = 0;
  for (size_t i = 0; i < N_KEYS; i++) {
    if (in_entry ? !keys[i].in_entry : !keys[i].on_top) continue;
    names[n_names++] = keys[i].key;
    if (strcmp(keys[i].key, key) != 0) continue;
    keys[i].take(r, node);
    return;
  }
  complain(r, node, nxc_did_you_mean(r->arena, "", nxc_nearest(key, names, n_names)),
           "a project file has no key %s here", key);
}

/* -- files ----------------------------------------------------------------------------------------------- */

static void take_entry(reading *r, const nxc_node *entry) {
  const nxc_node *match = entry->kind == NXC_NODE_MAP ? nxc_node_child(entry, "match") : NULL;
  if (match == NULL) {
    complain(r, entry, "say with match which files are meant",
             "an entry of files is a map with the key match");
    return;
  }
  nxc_texts patterns = {0};
  add_texts(r, match, &patterns);
  bool meant = false;
  for (size_t i = 0; i < patterns.n_items; i++)
    meant = meant || nxc_path_matches(r->arena, patterns.items[i], r->file);
  /* an entry about other files is judged too, and then forgotten */
  nxc_project kept = *r->project;
  for (size_t i = 0; i < entry->n_children; i++) take_key(r, entry->children[i], true);
  if (!meant) *r->project = kept;
}

static void take_files(reading *r, const nxc_node *node) {
  if (node->kind != NXC_NODE_LIST) {
    complain(r, node, "begin each entry with `- match: PATTERN`", "files is a list of entries");
    return;
  }
  for (size_t i = 0; i < node->n_children; i++) take_entry(r, node->children[i]);
}

/* -- finding --------------------------------------------------------------------------------------------- */

/* The absolute folder of the configuration, ending in /; NULL where it is not there. */
static const char *folder_of(nxc_arena *arena, const char *file, const char **name) {
  bool named = file != NULL && strcmp(file, "-") != 0;
  const char *slash = named ? strrchr(file, '/') : NULL;
  const char *folder = slash == NULL ? "." : nxc_arena_strndup(arena, file, (size_t)(slash + 1 - file));
  char *absolute = realpath(folder, NULL);
  *name = !named ? "" : slash ? slash + 1 : file;
  const char *kept = absolute ? nxc_arena_printf(arena, "%s%s", absolute, absolute[1] ? "/" : "") : NULL;
  free(absolute);
  return kept;
}

/* The nearest folder at or above with a project file, as an absolute path ending in /; NULL: none has one. */
static const char *find_above(nxc_arena *arena, const char *folder) {
  char *at = nxc_arena_strdup(arena, folder);
  for (;;) {
    if (access(nxc_arena_printf(arena, "%s" NXC_PROJECT_FILE, at), F_OK) == 0) return at;
    size_t n_bytes = strlen(at);
    if (n_bytes <= 1) return NULL;
    for (n_bytes--; n_bytes > 0 && at[n_bytes - 1] != '/';) n_bytes--;
    at[n_bytes] = '\0';
  }
}

/* As users write names themselves: from the current folder, where it is above or below. */
static const char *shown_path(nxc_arena *arena, const char *folder) {
  char *absolute = getcwd(NULL, 0);
  const char *here = absolute ? nxc_arena_printf(arena, "%s%s", absolute, absolute[1] ? "/" : "") : "";
  free(absolute);
  size_t n_here = strlen(here), n_folder = strlen(folder);
  const char *shown = folder;
  if (n_here > 0 && strncmp(folder, here, n_here) == 0) {
    shown = folder + n_here;
  } else if (strncmp(here, folder, n_folder) == 0) {
    shown = "";
    for (const char *at = here + n_folder; *at != '\0'; at++)
      if (*at == '/') shown = nxc_arena_printf(arena, "../%s", shown);
  }
  return nxc_arena_printf(arena, "%s" NXC_PROJECT_FILE, shown);
}

bool nxc_project_excludes(nxc_arena *arena, const nxc_project *project, const char *path) {
  size_t n_folder = project->folder ? strlen(project->folder) : 0;
  if (n_folder == 0 || strncmp(path, project->folder, n_folder) != 0) return false;
  for (size_t i = 0; i < project->exclude.n_items; i++) {
    const char *pattern = project->exclude.items[i];
    size_t n = strlen(pattern);
    if (n > 1 && pattern[n - 1] == '/') pattern = nxc_arena_printf(arena, "%s**", pattern); /* all below it */
    if (nxc_path_matches(arena, pattern, path + n_folder)) return true;
  }
  return false;
}

bool nxc_project_read(nxc_arena *arena, const char *file, nxc_sink *sink, nxc_project *project) {
  *project = (nxc_project){0};
  const char *name, *folder = folder_of(arena, file, &name);
  const char *found = folder ? find_above(arena, folder) : NULL;
  if (found == NULL) return true;
  project->path = shown_path(arena, found);
  project->folder = found;
  const nxc_source *source = nxc_source_read_file(arena, project->path, PROJECT_BYTES_MAX);
  if (source == NULL) {
    nxc_report(sink, "NX1500", NXC_SEVERITY_ERROR, (nxc_span){0}, "let the file be read, or take it away",
               "cannot read %s: %s", project->path, strerror(errno));
    return false;
  }
  static const nxc_reading plainly = {.omegaconf = true};
  const nxc_document *document = nxc_document_read(arena, source, &plainly, sink);
  reading r = {.arena = arena,
               .sink = sink,
               .project = project,
               .file = *name ? nxc_arena_printf(arena, "%s%s", folder + strlen(found), name) : "",
               .good = document->complete};
  if (r.good && document->root->kind != NXC_NODE_MAP)
    complain(&r, document->root, NULL, "a project file is a map of keys");
  const nxc_node *root = r.good ? document->root : NULL, *files = root ? nxc_node_child(root, "files") : NULL;
  for (size_t i = 0; root != NULL && i < root->n_children; i++)
    if (root->children[i] != files) take_key(&r, root->children[i], false);
  if (files != NULL) take_key(&r, files, false); /* after what it refines */
  return r.good;
}
