/* SPDX-License-Identifier: Apache-2.0 */
/* Scalars and tags while reading: what a text means, and which readings deserve a word. */
#include "compiler/document/reader.h"
#include "compiler/document/repair.h"
#include "compiler/document/scalar.h"

#include <string.h>
#include <strings.h>

static const char yaml_tag[] = "tag:yaml.org,2002:";

/* What may be written in place of an odd scalar: its reading, which is the same value to every reader; or
 * what was meant, which is another value and somebody's to decide. */
typedef enum otherwise {
  OTHERWISE_NO,
  OTHERWISE_READING,
  OTHERWISE_BOOLEAN,
  OTHERWISE_NULL,
  OTHERWISE_QUOTED
} otherwise;

/* One row per oddity: how to say it. The message's %s are the text and its reading. */
typedef struct oddity_text {
  const char *id;
  const char *message;
  const char *fix;
  otherwise otherwise;
} oddity_text;

static const oddity_text oddity_texts[] = {
    [NXC_ODD_BOOLEAN_WORD] = {"NX1101", "%s is read as the boolean %s", "write true or false, or quote it",
                              OTHERWISE_READING},
    [NXC_ODD_BOOLEAN_TEXT] = {"NX1112", "%s is text here, not a boolean", "write true or false, or quote it",
                              OTHERWISE_BOOLEAN},
    [NXC_ODD_NULL_TEXT] = {"NX1102", "%s is the text \"%s\" here, not an empty value",
                           "write null, or quote it", OTHERWISE_NULL},
    [NXC_ODD_OCTAL] = {"NX1103", "%s is read as an octal number: %s", "drop the leading zero, or quote it",
                       OTHERWISE_READING},
    [NXC_ODD_SEXAGESIMAL] = {"NX1104", "%s is read as a base-60 number: %s", "quote it",
                             OTHERWISE_QUOTED},
    [NXC_ODD_NUMBER_TEXT] = {"NX1105", "%s looks like a number but is read as text",
                             "write it in another way", OTHERWISE_NO},
    [NXC_ODD_UNDERSCORES] = {"NX1106", "%s has underscores where none belong; it is read as %s",
                             "remove them", OTHERWISE_READING},
    [NXC_ODD_RANGE] = {"NX1107", "%s is beyond what a float holds; it is read as %s", NULL, OTHERWISE_NO},
    [NXC_ODD_MINUS_ZERO] = {"NX1113", "%s is the integer %s: the sign is lost", "write 0, or -0.0",
                            OTHERWISE_READING},
    [NXC_ODD_MISSING_QUOTED] = {"NX1110", "%s means \"must be given\" even when quoted",
                                "write another text", OTHERWISE_NO},
};

static const char *number_fix(const char *text) {
  const char *p = text + (*text == '+' || *text == '-');
  if (*p == '.' && p[1] >= '0' && p[1] <= '9') return "put a 0 before the point";
  if (p[0] == '0' && (p[1] | 0x20) == 'o') return "write the number in decimal";
  if (strpbrk(p, "iI")) return "write .inf, or -.inf";
  return strpbrk(p, "nN") ? "write .nan" : "write it as a plain decimal number, or quote it";
}

static nxc_repair repair_oddity(nxc_reader *reader, const nxc_node *node, const oddity_text *row) {
  nxc_arena *arena = reader->arena;
  const char *yes = strchr("yYtT", *node->raw) || strcasecmp(node->raw, "on") == 0 ? "true" : "false";
  switch (row->otherwise) {
  case OTHERWISE_READING: return nxc_repair_value(arena, node, nxc_value_show(arena, &node->value), true);
  case OTHERWISE_BOOLEAN: return nxc_repair_value(arena, node, yes, false);
  case OTHERWISE_NULL: return nxc_repair_value(arena, node, "null", false);
  case OTHERWISE_QUOTED:
    return nxc_repair_value(arena, node, nxc_arena_printf(arena, "'%s'", node->raw), false);
  case OTHERWISE_NO: break;
  }
  return (nxc_repair){0};
}

static void report_oddity(nxc_reader *reader, const nxc_node *node, nxc_span at) {
  if (reader->reading->omegaconf) return;
  nxc_oddity oddity = NXC_ODD_NONE;
  if (node->style == NXC_STYLE_PLAIN) oddity = nxc_scalar_oddity(node->raw, node->raw_bytes, &node->value);
  else if (node->value.kind == NXC_MISSING && !reader->in_flow) /* there it cannot stand without quotes */
    oddity = NXC_ODD_MISSING_QUOTED;
  if (node->style != NXC_STYLE_PLAIN && node->style != NXC_STYLE_BLOCK && node->value.kind == NXC_STRING &&
      nxc_scalar_oddity(node->raw, node->raw_bytes, &node->value) == NXC_ODD_HOME)
    oddity = NXC_ODD_HOME;
  bool told_later = reader->reading->pyyaml && oddity == NXC_ODD_NUMBER_TEXT &&
                    nxc_scalar_pyyaml_float(reader->arena, node->raw) != NULL; /* nxc_neox_prepare */
  bool patched = reader->stand_ins && oddity == NXC_ODD_UNDERSCORES;
  if (oddity == NXC_ODD_NONE || told_later || patched) return;
  if (oddity == NXC_ODD_HOME) {
    reader->homes = nxc_arena_grow(reader->arena, reader->homes, reader->n_homes, sizeof *reader->homes);
    reader->homes[reader->n_homes++] = (nxc_remark){at, "and here"};
    return;
  }
  const oddity_text *row = &oddity_texts[oddity];
  if (reader->secret) {
    nxc_reader_warn(reader, row->id, at, "quote it", "this value is not read as it is written");
    return;
  }
  const char *fix = oddity == NXC_ODD_NUMBER_TEXT ? number_fix(node->raw) : row->fix;
  const char *reading = nxc_value_show(reader->arena, &node->value);
  const char *first = strstr(row->message, "%s"), *second = strstr(first + 2, "%s");
  size_t n_middle = second ? (size_t)(second - first - 2) : strlen(first + 2);
  nxc_report_repair(reader->sink, row->id, NXC_SEVERITY_WARNING, at, fix, repair_oddity(reader, node, row),
                    "%s%.*s%s%s", node->raw, (int)n_middle, first + 2, second ? reading : "",
                    second ? second + 2 : "");
}

void nxc_reader_finish(nxc_reader *reader) {
  if (reader->n_homes == 0) return;
  nxc_sink_report(reader->sink, &(nxc_finding){.id = "NX1108",
                                               .severity = NXC_SEVERITY_WARNING,
                                               .message = "$HOME stays as it is: it is not expanded here",
                                               .at = reader->homes[0].at,
                                               .fix = "write ${oc.env:HOME}",
                                               .remarks = reader->homes + 1,
                                               .n_remarks = reader->n_homes - 1});
}

static void report_unknown_tag(nxc_reader *reader, const char *tag, nxc_span at) {
  bool standard = strncmp(tag, yaml_tag, strlen(yaml_tag)) == 0;
  nxc_reader_error(reader, "NX1014", at, "remove the tag", "the tag %s%s is not known", standard ? "!!" : "",
                   standard ? tag + strlen(yaml_tag) : tag);
}

static bool is_one_of(const char *word, const char *const *words) {
  for (; *words; words++)
    if (strcmp(word, *words) == 0) return true;
  return false;
}

static void type_tagged(nxc_reader *reader, nxc_node *node, const char *tag) {
  static const char *const known[] = {"str", "null", "bool", "int", "float", "binary", NULL};
  bool standard = strncmp(tag, yaml_tag, strlen(yaml_tag)) == 0;
  const char *type = standard ? tag + strlen(yaml_tag) : tag, *problem = NULL;
  if (standard && strcmp(type, "timestamp") == 0)
    nxc_reader_error(reader, "NX1015", node->at, "write it as a quoted text",
                     "a timestamp is not a value here");
  else if (!standard || !is_one_of(type, known)) report_unknown_tag(reader, tag, node->at);
  else if (!nxc_scalar_read_as(reader->arena, type, node->raw, node->raw_bytes, &node->value, &problem))
    nxc_reader_error(reader, "NX1109", node->at, NULL, "%s", problem);
}

static void type_plain(nxc_reader *reader, nxc_node *node) {
  const char *problem = NULL;
  if (strcmp(node->raw, "<<") == 0 || strcmp(node->raw, "=") == 0) {
    nxc_reader_error(reader, "NX1014", node->at, "quote it", "%s is a YAML 1.1 mark and no value", node->raw);
    return;
  }
  bool good = (reader->reading->pyyaml ? nxc_scalar_read_pyyaml : nxc_scalar_read)(
      reader->arena, node->raw, node->raw_bytes, &node->value, &problem);
  if (!good)
    nxc_reader_error(reader, "NX1109", node->at, "quote it if it is text", "%s", problem);
}

void nxc_reader_type(nxc_reader *reader, nxc_node *node, const char *tag, bool is_key) {
  bool was_ok = reader->ok;
  node->value = nxc_string_value(node->raw, node->raw_bytes);
  if (reader->reading->text) return;
  reader->ok = true;
  if (tag && strcmp(tag, "!") != 0) type_tagged(reader, node, tag);
  else if (node->style == NXC_STYLE_PLAIN && tag == NULL) type_plain(reader, node);
  bool missing = node->raw_bytes == 3 && memcmp(node->raw, "???", 3) == 0 && node->value.kind == NXC_STRING;
  if (is_key && node->value.kind == NXC_MISSING) node->value = nxc_string_value(node->raw, node->raw_bytes);
  if (!is_key && missing && !reader->reading->pyyaml) node->value = (nxc_value){.kind = NXC_MISSING};
  /* As a key only a text that is read as something else surprises: `on:`, `010:`. */
  bool may_surprise = !is_key || (node->style == NXC_STYLE_PLAIN && node->value.kind != NXC_STRING);
  if (may_surprise && tag == NULL && reader->ok) report_oddity(reader, node, node->at);
  reader->ok = reader->ok && was_ok;
}

bool nxc_reader_collection_tag(nxc_reader *reader, const char *tag, nxc_node_kind kind, nxc_span at,
                               bool *pairs) {
  *pairs = false;
  if (tag == NULL || strcmp(tag, "!") == 0) return true;
  size_t n = strlen(yaml_tag);
  const char *type = strncmp(tag, yaml_tag, n) == 0 ? tag + n : "";
  if (strcmp(type, kind == NXC_NODE_MAP ? "map" : "seq") == 0) return true;
  if (kind == NXC_NODE_LIST && (strcmp(type, "omap") == 0 || strcmp(type, "pairs") == 0)) {
    *pairs = true;
    return true;
  }
  if (kind == NXC_NODE_MAP && strcmp(type, "set") == 0)
    nxc_reader_error(reader, "NX1015", at, "write a list", "a set is not a value here");
  else report_unknown_tag(reader, tag, at);
  return false;
}
