/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/front/defaults_list.h"

#include "compiler/document/nodes.h"

#include <string.h>

enum { MOST_FILES = 64, MOST_BELOW = 8 };

typedef struct composition {
  const nxc_front_texts *texts;
  const nxc_reading *reading;
  const char *folder; /* of the first file, with its / */
  nxc_document *laid; /* NULL: nothing yet */
  bool complete, open;
  size_t n_files;
} composition;

/* A configuration: where its file lies below the folder, and below which key its own keys stand. */
typedef struct place {
  const char *group, *package; /* "a/b", "a.b"; "" is the top */
  unsigned depth;
} place;

static void compose(composition *c, const nxc_source *source, place at);

static const char *joined(nxc_arena *arena, const char *a, char sign, const char *b) {
  return *a == '\0' ? b : *b == '\0' ? a : nxc_arena_printf(arena, "%s%c%s", a, sign, b);
}

/* -- where keys stand ------------------------------------------------------------------------------------ */

/* What `# @package` says among the comments at the head; NULL: nothing. */
static const char *package_of(nxc_arena *arena, const nxc_source *source) {
  static const char mark[] = "@package ";
  for (uint32_t line = 1; line <= source->n_lines; line++) {
    size_t n_bytes;
    const char *text = nxc_source_line(source, line, &n_bytes);
    if (n_bytes == 0) continue;
    if (*text != '#') return NULL;
    const char *copy = nxc_arena_strndup(arena, text, n_bytes), *found = strstr(copy, mark);
    if (found == NULL) continue;
    const char *name = found + strlen(mark);
    name = nxc_arena_strndup(arena, name, strcspn(name, " \t\r\n"));
    return strcmp(name, "_global_") == 0 ? "" : strcmp(name, "_group_") == 0 ? NULL : name;
  }
  return NULL;
}

static nxc_node *below(nxc_arena *arena, nxc_node *node, const char *package) {
  const char *dot = strrchr(package, '.'), *last = dot ? dot + 1 : package;
  if (*package == '\0') return node;
  nxc_node *map = nxc_node_new(arena, NXC_NODE_MAP, node->at);
  const nxc_value key = {.kind = NXC_STRING, .text = last, .n_bytes = strlen(last)};
  nxc_node_set_key(node, &key, last, node->at);
  nxc_node_append(arena, map, node);
  return below(arena, map, dot ? nxc_arena_strndup(arena, package, (size_t)(dot - package)) : "");
}

static void lay(composition *c, nxc_document *document, const char *package) {
  document->root = below(c->texts->arena, document->root, package);
  if (c->laid == NULL) c->laid = document;
  else c->complete = nxc_document_layer(c->laid, document, c->texts->sink) && c->complete;
}

/* -- entries --------------------------------------------------------------------------------------------- */

static void report_lost(composition *c, const nxc_node *entry, const char *what) {
  c->open = true;
  nxc_sink_report(c->texts->sink,
                  &(nxc_finding){.id = "NX1408",
                                 .severity = NXC_SEVERITY_ERROR,
                                 .message = what,
                                 .at = entry->at,
                                 .fix = "put it there, or lay the file over this one with -l FILE",
                                 .about = "defaults"});
}

static const char *dotted(nxc_arena *arena, const char *path) {
  char *copy = nxc_arena_strdup(arena, path);
  for (char *sign = copy; *sign != '\0'; sign++)
    if (*sign == '/') *sign = '.';
  return copy;
}

/* `key`: what stands behind @; NULL: nothing, and the folders of the file are its keys. */
static const char *package_at(nxc_arena *arena, place at, const char *key, const char *folders) {
  if (key == NULL) return joined(arena, at.package, '.', dotted(arena, folders));
  if (strcmp(key, "_global_") == 0) return "";
  return strcmp(key, "_here_") == 0 ? at.package : joined(arena, at.package, '.', key);
}

/* `name`: "small", "a/small", "/a/small", "small@key". */
static void include(composition *c, const nxc_node *entry, const char *name, place at, bool optional) {
  nxc_arena *arena = c->texts->arena;
  if (*name == '/') at.group = at.package = "", name++;
  const char *sign = strchr(name, '@'), *path = nxc_arena_strndup(arena, name, strcspn(name, "@"));
  const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
  const char *inside = slash ? nxc_arena_strndup(arena, path, (size_t)(slash - path)) : "";
  const place to = {.group = joined(arena, at.group, '/', inside),
                    .package = package_at(arena, at, sign ? sign + 1 : NULL, inside),
                    .depth = at.depth + 1};
  const char *file = nxc_arena_printf(arena, "%s%s%s", c->folder, joined(arena, at.group, '/', path),
                                      dot && strcmp(dot, ".yaml") == 0 ? "" : ".yaml");
  bool followed = strstr(name, "${") == NULL && to.depth <= MOST_BELOW && c->n_files < MOST_FILES;
  const nxc_source *source = followed ? nxc_source_read_file(arena, file, NXC_DOCUMENT_BYTES_MAX) : NULL;
  if (source != NULL) compose(c, source, to);
  else if (!optional)
    report_lost(c, entry,
                nxc_arena_printf(arena, "the defaults list names %s, which %s", file,
                                 followed ? "is not here" : "nxcfg does not follow"));
}

static const char *behind(const char *text, const char *word, bool *found) {
  size_t n_bytes = strlen(word);
  *found = strncmp(text, word, n_bytes) == 0;
  return *found ? text + n_bytes : text;
}

/* GROUP: NAME, GROUP: [NAME, ...], GROUP: null. Another choice for a file below, and what Hydra itself is
 * told, are left alone. */
static void include_group(composition *c, const nxc_node *entry, place at) {
  nxc_arena *arena = c->texts->arena;
  bool overrides, optional, of_hydra;
  const char *group = behind(entry->key ? entry->key : "", "override ", &overrides);
  group = behind(group, "optional ", &optional);
  behind(group, "hydra/", &of_hydra);
  if (of_hydra) return;
  if (overrides) report_lost(c, entry, "nxcfg does not follow another choice for a file below");
  size_t n_group = strcspn(group, "@"), n_names = entry->kind == NXC_NODE_LIST ? entry->n_children : 1;
  for (size_t i = 0; i < n_names && !overrides; i++) {
    const nxc_node *name = entry->kind == NXC_NODE_LIST ? entry->children[i] : entry;
    if (name->kind != NXC_NODE_SCALAR || name->value.kind != NXC_STRING) continue;
    const char *path =
        nxc_arena_printf(arena, "%.*s/%s%s", (int)n_group, group, name->value.text, group + n_group);
    include(c, name, path, at, optional);
  }
}

static bool is_self(const nxc_node *entry) {
  return entry->kind == NXC_NODE_SCALAR && entry->value.kind == NXC_STRING &&
         strcmp(entry->value.text, "_self_") == 0;
}

static void compose(composition *c, const nxc_source *source, place at) {
  nxc_document *document = nxc_document_read(c->texts->arena, source, c->reading, c->texts->sink);
  const char *package = package_of(c->texts->arena, source);
  if (package != NULL) at.package = package;
  c->complete = c->complete && document->complete;
  nxc_front_parts *parts = c->texts->parts;
  if (parts != NULL && c->n_files > 0) {
    parts->items = nxc_arena_grow(c->texts->arena, parts->items, parts->n_items, sizeof *parts->items);
    parts->items[parts->n_items++] = source;
  }
  c->n_files++;
  bool map = document->root->kind == NXC_NODE_MAP, self = false, others = false;
  nxc_node *list = map ? nxc_node_child(document->root, "defaults") : NULL;
  if (list != NULL && list->kind != NXC_NODE_LIST) list = NULL;
  for (size_t i = 0; list != NULL && i < list->n_children; i++)
    others = others || !is_self(list->children[i]);
  if (others) nxc_node_remove(c->texts->arena, list);
  for (size_t i = 0; others && i < list->n_children; i++) {
    const nxc_node *entry = list->children[i];
    if (is_self(entry) && !self) self = true, lay(c, document, at.package);
    else if (entry->kind == NXC_NODE_SCALAR && entry->value.kind == NXC_STRING && !is_self(entry))
      include(c, entry, entry->value.text, at, false);
    else if (entry->kind == NXC_NODE_MAP && entry->n_children == 1) include_group(c, entry->children[0], at);
  }
  if (!self) lay(c, document, at.package);
}

nxc_document *nxc_defaults_compose(const nxc_front_texts *texts, const nxc_reading *reading) {
  const char *name = texts->first->name, *slash = strrchr(name, '/');
  composition c = {.texts = texts, .reading = reading, .complete = true};
  c.folder = slash ? nxc_arena_strndup(texts->arena, name, (size_t)(slash - name) + 1) : "";
  if (texts->parts != NULL) *texts->parts = (nxc_front_parts){0};
  compose(&c, texts->first, (place){.group = "", .package = ""});
  c.laid->complete = c.complete;
  c.laid->open = c.laid->open || c.open;
  if (c.n_files > 1)
    c.laid->root->at = (nxc_span){.source = texts->first, .line = 1, .column = 1, .length = 1};
  return c.laid;
}
