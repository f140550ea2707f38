/* SPDX-License-Identifier: Apache-2.0 */
/* libyaml's events into the tree. One explicit stack of open lists and maps; no recursion on the way in. */
#include "compiler/document/document_read.h"
#include "compiler/document/document_merge.h"
#include "compiler/document/names.h"
#include "compiler/document/nodes.h"
#include "compiler/document/reader.h"
#include "compiler/document/repair.h"
#include "compiler/diagnostics/secret.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum { DOCUMENT_NODES_MAX = 262144, SLIPS_MAX = 8 };

/* An open list or map. In a map `key` waits for its value; a key that cannot be used has `skip` set. */
typedef struct frame {
  nxc_node *node;
  nxc_node *key;
  bool skip;
  nxc_node *earlier; /* of the key, where the same one has a value */
  bool key_anchored;
  bool pairs, flow;
  nxc_node **merges; /* values of << */
  size_t n_merges;
  bool merging;
} frame;

typedef struct builder {
  nxc_reader reader;
  yaml_parser_t parser;
  frame frames[NXC_DOCUMENT_DEPTH_MAX + 1];
  size_t depth;
  nxc_names *anchors;
  size_t n_alias_left, n_nodes;
  nxc_node *root;
  nxc_node *spare; /* a key's node, whose pair has taken what it held */
  size_t *texts; /* byte ranges of quoted and block scalars */
  size_t n_texts;
  bool stopped;
} builder;

static nxc_span event_span(const builder *b, const yaml_event_t *event) {
  const yaml_mark_t *start = &event->start_mark, *end = &event->end_mark;
  size_t length = end->line == start->line && end->column > start->column ? end->column - start->column : 0;
  if (end->line == start->line && end->column == start->column) length = 1;
  return nxc_reader_span(&b->reader, start->line, start->column, length);
}

static frame *top(builder *b) {
  return b->depth ? &b->frames[b->depth - 1] : NULL;
}

/* A key that is there already often belongs to the empty section just above it, not indented as it should. */
static const nxc_node *empty_section(const nxc_node *map) {
  const nxc_node *last = map->n_children > 0 ? map->children[map->n_children - 1] : NULL;
  bool empty = last && last->key && last->kind == NXC_NODE_SCALAR && last->raw_bytes == 0 &&
               last->style == NXC_STYLE_PLAIN;
  return empty ? last : NULL;
}

static const char *repeated_key_fix(nxc_arena *arena, const nxc_node *map) {
  const nxc_node *empty = empty_section(map);
  if (empty == NULL) return "remove one of them";
  return nxc_arena_printf(arena, "remove one of them, or indent it below %s:, which is empty", empty->key);
}

static void report_repeated(nxc_reader *reader, const frame *in, nxc_severity severity, nxc_repair repair) {
  const nxc_remark first = {in->earlier->key_at, "first given here"};
  const char *same = severity == NXC_SEVERITY_ERROR ? "" : ", with the same value";
  nxc_sink_report(reader->sink,
                  &(nxc_finding){.id = "NX1005",
                                 .severity = severity,
                                 .message = nxc_arena_printf(reader->arena, "the key %s is given twice%s",
                                                             in->key->raw, same),
                                 .at = in->key->at,
                                 .fix = repeated_key_fix(reader->arena, in->node),
                                 .repair = repair,
                                 .remarks = &first,
                                 .n_remarks = 1});
}

/* Where a text is read for a command line, the same value twice does no harm. */
static bool is_repeated(nxc_reader *reader, const frame *in, nxc_node *value) {
  if (in->earlier == NULL || in->earlier == value) return false;
  bool same = in->earlier->raw != NULL && value->raw != NULL && strcmp(in->earlier->raw, value->raw) == 0;
  if (same && reader->reading->text) {
    report_repeated(reader, in, NXC_SEVERITY_NOTE, (nxc_repair){0});
    return true;
  }
  nxc_node_set_key(value, &in->key->value, in->key->raw, in->key->at);
  value->parent = in->node;
  nxc_repair repair = {0};
  if (empty_section(in->node) == NULL) repair = nxc_repair_remove(nxc_sink_arena(reader->sink), value, same);
  report_repeated(reader, in, NXC_SEVERITY_ERROR, repair);
  return true;
}

/* A key has arrived: remember it until its value comes. */
static void take_key(builder *b, frame *in, nxc_node *key) {
  nxc_reader *reader = &b->reader;
  in->key = key;
  in->skip = true;
  in->merging = false;
  if (key->kind != NXC_NODE_SCALAR) {
    nxc_reader_error(reader, "NX1016", key->at, NULL, "a key must be one word, not a %s",
                     key->kind == NXC_NODE_MAP ? "map" : "list");
    return;
  }
  if (key->value.kind == NXC_NULL) {
    nxc_reader_error(reader, "NX1017", key->at, "write a key, or quote it", "a key cannot be empty or null");
    return;
  }
  nxc_node *earlier = nxc_node_find_key(reader->arena, in->node, &key->value);
  /* OmegaConf finds only equal texts; 16 and 0x10 silently become one key there. */
  bool same_text = earlier && key->value.kind == NXC_STRING;
  in->earlier = earlier && (same_text || !reader->reading->omegaconf) ? earlier : NULL;
  if (key->style == NXC_STYLE_PLAIN && !reader->reading->omegaconf && strstr(key->raw, "${"))
    nxc_reader_warn(reader, "NX1024", key->at, NULL,
                    "references are not resolved in keys: this key is %s itself", key->raw);
  in->skip = false;
}

/* `{x:1}` and `a:1` name a key `x:1` with nothing after it. */
static void check_lost_colon(builder *b, const nxc_node *key, const nxc_node *value) {
  if (b->reader.reading->omegaconf || key->style != NXC_STYLE_PLAIN || value->raw == NULL) return;
  if (value->raw_bytes || value->style != NXC_STYLE_PLAIN || strchr(key->raw, ':') == NULL) return;
  const char *colon = strchr(key->raw, ':');
  bool alone = strchr(colon + 1, ':') == NULL && nxc_span_reads(key->at, key->raw);
  size_t behind = nxc_span_offset(key->at, false) + (size_t)(colon + 1 - key->raw);
  const nxc_edit blank = {key->at.source, behind, behind, " "};
  nxc_repair repair =
      alone ? nxc_repair_copy(b->reader.arena, &(nxc_repair){&blank, 1, true}) : (nxc_repair){0};
  nxc_report_repair(b->reader.sink, "NX1023", NXC_SEVERITY_WARNING, key->at, "put a blank after the colon",
                    repair, "the whole text %s is the key, and it has no value", key->raw);
}

static void put_pair(builder *b, frame *in, nxc_node *value) {
  nxc_node *key = in->key;
  if (is_repeated(&b->reader, in, value)) return;
  check_lost_colon(b, key, value);
  nxc_node_set_key(value, &key->value, key->raw, key->at);
  nxc_node *earlier = nxc_node_find_key(b->reader.arena, in->node, &key->value);
  if (earlier) nxc_node_replace(b->reader.arena, earlier, value);
  else nxc_node_append(b->reader.arena, in->node, value);
  if (!in->key_anchored) b->spare = key;
}

static nxc_node *new_scalar(builder *b, nxc_span at) {
  nxc_node *node = b->spare;
  b->spare = NULL;
  if (node == NULL) return nxc_node_new(b->reader.arena, NXC_NODE_SCALAR, at);
  *node = (nxc_node){.kind = NXC_NODE_SCALAR, .at = at, .value = {.kind = NXC_NULL}};
  return node;
}

/* A finished node goes where it belongs: root, list item, key or value. */
static void attach(builder *b, nxc_node *node) {
  frame *in = top(b);
  if (in == NULL) {
    b->root = node;
    return;
  }
  if (in->node->kind == NXC_NODE_LIST) {
    nxc_node_append(b->reader.arena, in->node, node);
    return;
  }
  if (in->key == NULL) {
    take_key(b, in, node);
    return;
  }
  if (in->merging) {
    in->merges = nxc_arena_grow(b->reader.arena, in->merges, in->n_merges, sizeof(nxc_node *));
    in->merges[in->n_merges++] = node;
  } else if (!in->skip) {
    put_pair(b, in, node);
  }
  in->key = NULL;
}

static void remember_anchor(builder *b, const yaml_char_t *anchor, nxc_node *node) {
  if (anchor == NULL) return;
  const char *name = nxc_arena_strdup(b->reader.arena, (const char *)anchor);
  void **slot = nxc_names_slot(b->anchors, name, strlen(name));
  if (*slot)
    nxc_reader_error(&b->reader, "NX1012", node->at, "rename one of them", "the anchor &%s is given twice",
                     name);
  *slot = node;
}

static void read_scalar(builder *b, const yaml_event_t *event) {
  static const nxc_style styles[] = {
      [YAML_PLAIN_SCALAR_STYLE] = NXC_STYLE_PLAIN,
      [YAML_SINGLE_QUOTED_SCALAR_STYLE] = NXC_STYLE_SINGLE,
      [YAML_DOUBLE_QUOTED_SCALAR_STYLE] = NXC_STYLE_DOUBLE,
      [YAML_LITERAL_SCALAR_STYLE] = NXC_STYLE_BLOCK,
      [YAML_FOLDED_SCALAR_STYLE] = NXC_STYLE_BLOCK,
  };
  nxc_arena *arena = b->reader.arena;
  nxc_node *node = new_scalar(b, event_span(b, event));
  node->style = styles[event->data.scalar.style];
  node->raw_bytes = event->data.scalar.length;
  node->raw = nxc_arena_strndup(arena, (const char *)event->data.scalar.value, node->raw_bytes);
  if (node->style != NXC_STYLE_PLAIN) {
    b->texts = nxc_arena_grow(arena, b->texts, b->n_texts, 2 * sizeof *b->texts);
    b->texts[2 * b->n_texts] =
        nxc_reader_offset(&b->reader, event->start_mark.line, event->start_mark.column);
    b->texts[2 * b->n_texts++ + 1] =
        nxc_reader_offset(&b->reader, event->end_mark.line, event->end_mark.column);
  }
  frame *in = top(b);
  const char *tag = (const char *)event->data.scalar.tag;
  bool is_key = in && in->node->kind == NXC_NODE_MAP && in->key == NULL;
  remember_anchor(b, event->data.scalar.anchor, node);
  if (is_key) in->key_anchored = event->data.scalar.anchor != NULL;
  if (is_key && node->style == NXC_STYLE_PLAIN && tag == NULL && strcmp(node->raw, "<<") == 0) {
    in->key = node;
    in->merging = true;
    return;
  }
  b->reader.in_flow = in && in->flow;
  b->reader.secret = in && in->key && in->key->raw && nxc_key_is_secret(in->key->raw);
  nxc_reader_type(&b->reader, node, tag, is_key);
  attach(b, node);
}

static void open_collection(builder *b, const yaml_event_t *event) {
  bool is_map = event->type == YAML_MAPPING_START_EVENT;
  const yaml_char_t *tag = is_map ? event->data.mapping_start.tag : event->data.sequence_start.tag;
  yaml_mark_t at = event->start_mark;
  nxc_node *node = nxc_node_new(b->reader.arena, is_map ? NXC_NODE_MAP : NXC_NODE_LIST,
                                nxc_reader_span(&b->reader, at.line, at.column, 0));
  if (b->depth == NXC_DOCUMENT_DEPTH_MAX) {
    nxc_reader_error(&b->reader, "NX1004", node->at, NULL, "lists and maps are nested more than %d deep",
                     NXC_DOCUMENT_DEPTH_MAX);
    b->stopped = true;
    return;
  }
  bool pairs;
  nxc_reader_collection_tag(&b->reader, (const char *)tag, node->kind, node->at, &pairs);
  bool flow = is_map ? event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE
                     : event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
  b->frames[b->depth++] = (frame){.node = node, .pairs = pairs, .flow = flow};
  remember_anchor(b, is_map ? event->data.mapping_start.anchor : event->data.sequence_start.anchor, node);
}

static void close_collection(builder *b) {
  frame done = b->frames[--b->depth];
  const nxc_merges merges = {done.merges, done.n_merges, b->depth + 1, &b->n_alias_left};
  if (done.n_merges && !nxc_merges_apply(&b->reader, done.node, &merges)) b->stopped = true;
  if (done.pairs) nxc_ordered_pairs(&b->reader, done.node);
  attach(b, done.node);
}

static void read_alias(builder *b, const yaml_event_t *event) {
  nxc_reader *reader = &b->reader;
  const char *name = (const char *)event->data.alias.anchor;
  nxc_span at = event_span(b, event);
  nxc_node *node = nxc_names_find(b->anchors, name, strlen(name)), *copy = NULL;
  if (node == NULL) {
    nxc_report(reader->sink, "NX1010", NXC_SEVERITY_ERROR, at, "give it above, or put the text in quotes",
               "no anchor &%s stands before this", name);
    if (top(b) != NULL && top(b)->key != NULL) { /* as if the key were not there */
      top(b)->key = NULL;
      return;
    }
  } else {
    for (size_t i = 0; i < b->depth; i++) {
      if (b->frames[i].node != node) continue;
      nxc_reader_error(reader, "NX1011", at, NULL, "*%s stands inside what it repeats", name);
      node = NULL;
      break;
    }
  }
  if (node && (copy = nxc_node_copy(reader->arena, node, b->depth, &b->n_alias_left)) == NULL) {
    nxc_reader_error(reader, "NX1007", at, NULL,
                     "aliases in this file make more than %d values, or nest too deep", NXC_ALIAS_NODES_MAX);
    b->stopped = true;
  }
  if (copy == NULL) copy = nxc_node_new(reader->arena, NXC_NODE_SCALAR, at);
  if (copy->kind == NXC_NODE_SCALAR && copy->raw == NULL) copy->raw = "";
  copy->copy_of = node;
  attach(b, copy);
}

static void take_event(builder *b, const yaml_event_t *event, size_t *n_documents) {
  switch (event->type) {
  case YAML_DOCUMENT_START_EVENT:
    if (++*n_documents < 2) break;
    nxc_reader_error(&b->reader, "NX1009",
                     nxc_reader_span(&b->reader, event->start_mark.line, event->start_mark.column, 0),
                     "keep one document per file", "a second document starts here");
    b->stopped = true;
    break;
  case YAML_SCALAR_EVENT: read_scalar(b, event); break;
  case YAML_SEQUENCE_START_EVENT:
  case YAML_MAPPING_START_EVENT: open_collection(b, event); break;
  case YAML_SEQUENCE_END_EVENT:
  case YAML_MAPPING_END_EVENT: close_collection(b); break;
  case YAML_ALIAS_EVENT: read_alias(b, event); break;
  default: break;
  }
  if (++b->n_nodes <= DOCUMENT_NODES_MAX || b->stopped) return;
  nxc_reader_error(&b->reader, "NX1006", event_span(b, event), NULL, "the file holds more than %d values",
                   DOCUMENT_NODES_MAX);
  b->stopped = true;
}

/* Closes what an error left open, so that the tree holds everything read so far. */
static void close_all(builder *b) {
  while (b->depth) {
    frame *in = top(b);
    if (in->key && !in->skip && !in->merging) {
      nxc_node *nothing = nxc_node_new(b->reader.arena, NXC_NODE_SCALAR, in->key->at);
      nothing->raw = "";
      attach(b, nothing);
    }
    in->pairs = false;
    in->n_merges = 0;
    in->key = NULL;
    close_collection(b);
  }
}

/* What is to be read instead, where it ends at a slip that is known how to mend; else NULL. */
static const char *run_events(builder *b, const char *text, size_t *n_bytes) {
  if (!yaml_parser_initialize(&b->parser)) {
    fputs("nxcfg: out of memory\n", stderr);
    exit(3);
  }
  yaml_parser_set_encoding(&b->parser, YAML_UTF8_ENCODING);
  yaml_parser_set_input_string(&b->parser, (const unsigned char *)text, *n_bytes);
  size_t n_documents = 0;
  const char *mended = NULL;
  for (bool more = true; more && !b->stopped;) {
    yaml_event_t event;
    if (!yaml_parser_parse(&b->parser, &event)) {
      const yaml_parser_t *p = &b->parser;
      bool elsewhere = p->context && p->context_mark.line != p->problem_mark.line;
      mended = nxc_reader_syntax(&b->reader, p->problem,
                                 nxc_reader_span(&b->reader, p->problem_mark.line, p->problem_mark.column, 1),
                                 elsewhere ? p->context : NULL,
                                 nxc_reader_span(&b->reader, p->context_mark.line, p->context_mark.column, 1),
                                 n_bytes);
      break;
    }
    more = event.type != YAML_STREAM_END_EVENT;
    take_event(b, &event, &n_documents);
    yaml_event_delete(&event);
  }
  close_all(b);
  yaml_parser_delete(&b->parser);
  return mended;
}

static void begin(builder *b, const nxc_reader *reader) {
  *b = (builder){
      .reader = *reader, .anchors = nxc_names_new(reader->arena), .n_alias_left = NXC_ALIAS_NODES_MAX};
}

nxc_node *nxc_document_read_tree(nxc_reader *reader, const char *text, size_t n_bytes) {
  builder *b = calloc(1, sizeof *b);
  if (b == NULL) {
    fputs("nxcfg: out of memory\n", stderr);
    exit(3);
  }
  begin(b, reader);
  const char *mended = run_events(b, text, &n_bytes);
  bool whole = mended == NULL;
  for (int n = 0; mended != NULL && n < SLIPS_MAX; n++) {
    /* a slip is mended, and everything else is found in one go; what was, is told once */
    reader->mended = nxc_source_new(reader->arena, reader->source->name, mended, n_bytes);
    begin(b, reader);
    mended = run_events(b, mended, &n_bytes);
  }
  if (b->reader.ok && whole) nxc_reader_check_tabs(&b->reader, b->texts, b->n_texts);
  nxc_reader_finish(&b->reader);
  nxc_node *root = b->root;
  *reader = b->reader;
  free(b);
  return root;
}
