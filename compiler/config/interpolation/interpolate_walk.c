/* SPDX-License-Identifier: Apache-2.0 */
/* Following a key through the document: OmegaConf's way of splitting it, and one step at a time so that a
 * reference met on the way can be resolved first. */
#include "compiler/config/interpolation/interpolate_machine.h"

#include "compiler/diagnostics/nearest.h"

#include <ctype.h>
#include <string.h>

typedef struct token {
  const char *text;
  size_t n_bytes;
} token;

/* The token at `*offset`: `name` at the start, `.name`, or `[anything]`; what fits neither is passed over, as
 * the original's pattern does. */
static bool next_token(const char *key, size_t n_bytes, bool first, size_t *offset, token *next) {
  size_t i = *offset;
  if (first && i < n_bytes && key[i] != '[' && key[i] != '.') {
    size_t start = i;
    while (i < n_bytes && key[i] != '.' && key[i] != '[') i++;
    *next = (token){key + start, i - start};
    *offset = i;
    return true;
  }
  for (; i < n_bytes; i++) {
    if (key[i] == '.') {
      size_t start = ++i;
      while (i < n_bytes && key[i] != '.' && key[i] != '[') i++;
      *next = (token){key + start, i - start};
      *offset = i;
      return true;
    }
    const char *close = key[i] == '[' ? memchr(key + i, ']', n_bytes - i) : NULL;
    if (close == NULL) continue;
    *next = (token){key + i + 1, (size_t)(close - key) - i - 1};
    *offset = (size_t)(close - key) + 1;
    return true;
  }
  *offset = n_bytes;
  return false;
}

/* Python's int(): blanks around, a sign, digits with single underscores between. */
static bool read_index(token at, int64_t *index) {
  const char *c = at.text, *end = at.text + at.n_bytes;
  while (c < end && isspace((unsigned char)*c)) c++;
  while (end > c && isspace((unsigned char)end[-1])) end--;
  bool negative = c < end && *c == '-', digit_before = false;
  if (c < end && (*c == '-' || *c == '+')) c++;
  if (c == end || end[-1] == '_') return false;
  for (*index = 0; c < end; c++) {
    if (*c == '_' && digit_before) {
      digit_before = false;
      continue;
    }
    if (!isdigit((unsigned char)*c)) return false;
    digit_before = true;
    if (*index < INT64_MAX / 16) *index = 10 * *index + (*c - '0');
  }
  if (negative) *index = -*index;
  return digit_before;
}

static const char *place_name(nxc_evaluator *m, const nxc_node *node) {
  const char *path = nxc_node_path(m->arena, node);
  return *path ? path : "the document";
}

/* Suggestions look at maps of a usual size only, so that many errors in a large one stay cheap. */
enum { SUGGEST_KEYS_MAX = 1000, SUGGEST_BYTES_MAX = 100 };

static nxc_step report_absent(nxc_evaluator *m, const nxc_node *in, token at) {
  const char *word = nxc_arena_strndup(m->arena, at.text, at.n_bytes);
  bool suggests = at.n_bytes < SUGGEST_BYTES_MAX && in->n_children < SUGGEST_KEYS_MAX;
  const char *names[SUGGEST_KEYS_MAX];
  size_t n = 0;
  for (size_t i = 0; suggests && i < in->n_children; i++) {
    const nxc_node *child = in->children[i];
    if (child->key_value.kind == NXC_STRING) names[n++] = child->key;
    else if (strcmp(child->key, word) == 0)
      return nxc_machine_fail(m, "NX1202", "quote the key where it is written",
                              "references cannot reach the key %s of %s: it is no text, but of type %s", word,
                              place_name(m, in), nxc_kind_name(child->key_value.kind));
  }
  nxc_near near = suggests ? nxc_near_find(word, names, n) : (nxc_near){0};
  const char *fix = nxc_did_you_mean(m->arena, "", near.name);
  const char *section = nxc_node_path(m->arena, in);
  const char *path = *section ? nxc_arena_printf(m->arena, "%s.%s", section, word) : word;
  const char *message = nxc_arena_printf(m->arena, "%s has no key %s", place_name(m, in), word);
  nxc_repair repair = {0};
  if (m->n_frames > 0) repair = nxc_repair_misspelt(m->arena, nxc_machine_place(m), word, near);
  return nxc_machine_miss(m, path, fix ? fix : "give that key, or write the value itself", repair, message);
}

/* One token down from `in`, a list or a map. *child is NULL where a lenient walk finds nothing. */
static nxc_step step_down(nxc_evaluator *m, nxc_node *in, token at, bool lenient, nxc_node **child) {
  *child = NULL;
  if (in->kind == NXC_NODE_MAP) {
    *child = nxc_node_child_n(in, at.text, at.n_bytes);
    return *child || lenient ? NXC_STEP_DONE : report_absent(m, in, at);
  }
  int64_t index;
  if (!read_index(at, &index))
    return nxc_machine_fail(m, lenient ? "NX1226" : "NX1205", NULL, "%s is a list: %.*s is no index",
                            place_name(m, in), (int)at.n_bytes, at.text);
  if (index >= 0 && index < (int64_t)in->n_children) *child = in->children[index];
  if (*child || lenient) return NXC_STEP_DONE;
  return nxc_machine_fail(m, "NX1202", NULL, "%s has %zu items, the first is 0: there is no item %.*s",
                          place_name(m, in), in->n_children, (int)at.n_bytes, at.text);
}

static const nxc_node *climb(const nxc_node *node, size_t n_levels) {
  while (node && n_levels-- > 0) node = node->parent;
  return node;
}

/* Dots that lead out of a copy made for an alias lead somewhere else than in the original. One dot from a
 * merged pair stays in the map it was merged into, which is what merging is for. */
static void check_copies(nxc_evaluator *m, size_t n_dots) {
  const nxc_node *at = nxc_machine_top(m)->node;
  for (size_t n_left = n_dots; at && n_left > 0; n_left--, at = at->parent) {
    if (at->copy_of == NULL || (at->merged && n_left == 1)) continue;
    if (climb(at, n_left) == climb(at->copy_of, n_left)) continue;
    nxc_machine_warn(
        m, "NX1221", "write the reference from the top of the document",
        "this text is repeated by an alias or merge key, and its dots lead to another place in each copy");
    return;
  }
}

/* Where a key begins: the root, or for leading dots that many containers up from the scalar. */
static nxc_step begin(nxc_evaluator *m, const char *key, size_t n_bytes, nxc_node **start, size_t *offset) {
  size_t n_dots = 0;
  while (n_dots < n_bytes && key[n_dots] == '.') n_dots++;
  *offset = n_dots;
  *start = m->document->root;
  if (n_dots == 0 || m->n_frames == 0) return NXC_STEP_DONE;
  *start = (nxc_node *)climb(nxc_machine_top(m)->node, n_dots);
  if (*start == NULL)
    return nxc_machine_fail(m, "NX1203", "remove a dot: one dot is the map or list around this value",
                            "%zu dots lead above the top of the document", n_dots);
  if (!m->options->omegaconf) check_copies(m, n_dots);
  return NXC_STEP_DONE;
}

static nxc_step report_scalar(nxc_evaluator *m, const nxc_node *at, token next) {
  if (at->value.kind == NXC_MISSING)
    return nxc_machine_fail(m, "NX1208", "give it a value in the file, or with --set",
                            "%s is ???, which must be given a value", place_name(m, at));
  return nxc_machine_fail(
      m, "NX1204", "end the reference there, or name a map", "%s is %s and holds no %.*s", place_name(m, at),
      at->sealed ? "a resolver's result" : nxc_machine_show(m, at, &at->value), (int)next.n_bytes, next.text);
}

static nxc_step finish(nxc_evaluator *m, nxc_node *at, bool lenient, nxc_item *item, bool *absent) {
  nxc_node *final = nxc_node_final(at);
  if (final->kind == NXC_NODE_SCALAR && final->value.kind == NXC_MISSING) {
    *absent = true;
    if (lenient) return NXC_STEP_DONE;
    return nxc_machine_fail(m, "NX1208", "give it a value in the file, or with --set",
                            "%s is ???, which must be given a value", place_name(m, at));
  }
  nxc_machine_note(m, at, NULL);
  *item = final->kind == NXC_NODE_SCALAR ? (nxc_item){.value = final->value} : (nxc_item){.node = final};
  return NXC_STEP_DONE;
}

typedef struct progress {
  nxc_node *at;
  size_t offset;
  bool started;
} progress;

static nxc_step walk_on(nxc_evaluator *m, const char *key, size_t n_bytes, bool lenient, progress *so_far,
                        nxc_item *item, bool *absent) {
  *absent = false;
  if (so_far->at == NULL) {
    nxc_step step = begin(m, key, n_bytes, &so_far->at, &so_far->offset);
    if (step != NXC_STEP_DONE) return step;
    so_far->started = false;
  }
  for (;;) {
    nxc_step step = nxc_machine_need(m, so_far->at);
    if (step != NXC_STEP_DONE) return step;
    nxc_node *in = nxc_node_final(so_far->at), *child;
    token next;
    bool first = !so_far->started && (so_far->offset == 0 || key[so_far->offset - 1] == '.');
    if (!next_token(key, n_bytes, first, &so_far->offset, &next))
      return finish(m, so_far->at, lenient, item, absent);
    so_far->started = true;
    if (in->kind == NXC_NODE_SCALAR || in->sealed) {
      *absent = true;
      return lenient ? NXC_STEP_DONE : report_scalar(m, in, next);
    }
    step = step_down(m, in, next, lenient, &child);
    if (step != NXC_STEP_DONE) return step;
    if (child == NULL) {
      *absent = true;
      return NXC_STEP_DONE;
    }
    so_far->at = child;
  }
}

nxc_step nxc_machine_walk(nxc_evaluator *m, const char *key, size_t n_bytes, bool lenient, nxc_item *item,
                          bool *absent) {
  size_t own = m->n_frames - 1;
  nxc_frame *frame = &m->frames[own];
  progress so_far = {.at = frame->walk, .offset = frame->walk_offset, .started = frame->walk_started};
  nxc_step step = walk_on(m, key, n_bytes, lenient, &so_far, item, absent);
  frame = &m->frames[own]; /* a pushed frame may have moved the stack */
  frame->walk = step == NXC_STEP_AGAIN ? so_far.at : NULL;
  frame->walk_offset = so_far.offset;
  frame->walk_started = so_far.started;
  return step;
}

bool nxc_machine_select(nxc_evaluator *m, const char *key, nxc_item *item, bool *absent) {
  progress so_far = {0};
  nxc_step step;
  *item = (nxc_item){0};
  while ((step = walk_on(m, key, strlen(key), true, &so_far, item, absent)) == NXC_STEP_AGAIN)
    nxc_machine_run(m);
  return step == NXC_STEP_DONE;
}
