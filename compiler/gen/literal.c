/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/gen/literal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name;
  nxc_type type;
} types[] = {
    {"int", NXC_TYPE_INT},
    {"float", NXC_TYPE_FLOAT},
    {"bool", NXC_TYPE_BOOL},
    {"bit", NXC_TYPE_BIT},
    {"str", NXC_TYPE_STR},
    {"path", NXC_TYPE_PATH},
    {"enum", NXC_TYPE_ENUM},
    {"list", NXC_TYPE_LIST},
    {"map", NXC_TYPE_MAP},
    {"any", NXC_TYPE_ANY},
    {"list[int]", NXC_TYPE_LIST_INT},
    {"list[float]", NXC_TYPE_LIST_FLOAT},
    {"list[str]", NXC_TYPE_LIST_STR},
    {"int|float", NXC_TYPE_INT_OR_FLOAT},
};

bool gen_type_find(const char *name, nxc_type *type) {
  for (size_t i = 0; name != NULL && i < sizeof types / sizeof *types; i++) {
    if (strcmp(types[i].name, name) != 0) continue;
    *type = types[i].type;
    return true;
  }
  return false;
}

static bool read_int(const char *text, nxc_value *value) {
  char *end;
  errno = 0;
  long long integer = strtoll(text, &end, 10);
  *value = (nxc_value){.kind = NXC_INT, .integer = integer};
  return errno == 0 && end != text && *end == '\0';
}

static bool read_float(const char *text, nxc_value *value) {
  char *end;
  double number = strtod(text, &end);
  *value = (nxc_value){.kind = NXC_FLOAT, .number = number};
  return end != text && *end == '\0';
}

static bool read_bool(const char *text, nxc_value *value) {
  *value = (nxc_value){.kind = NXC_BOOL, .boolean = strcmp(text, "true") == 0};
  return value->boolean || strcmp(text, "false") == 0;
}

static bool read_text(const char *text, nxc_value *value) {
  *value = (nxc_value){.kind = NXC_STRING, .text = text, .n_bytes = strlen(text)};
  return true;
}

static bool read_list(nxc_arena *arena, nxc_type item_type, const char *text, nxc_value *value) {
  size_t n_bytes = strlen(text);
  if (n_bytes < 2 || text[0] != '[' || text[n_bytes - 1] != ']') return false;
  char *inside = nxc_arena_strndup(arena, text + 1, n_bytes - 2);
  nxc_value *items = NULL;
  size_t n_items = 0;
  for (char *item = strtok(inside, ", "); item != NULL; item = strtok(NULL, ", ")) {
    const nxc_value *read = gen_literal(arena, item_type, item);
    if (read == NULL) return false;
    items = nxc_arena_grow(arena, items, n_items, sizeof *items);
    items[n_items++] = *read;
  }
  *value = (nxc_value){.kind = NXC_LIST, .items = items, .n_items = n_items};
  return true;
}

static bool read_any(nxc_arena *arena, const char *text, nxc_value *value) {
  return read_int(text, value) || read_float(text, value) || read_bool(text, value) ||
         read_list(arena, NXC_TYPE_ANY, text, value) || read_text(text, value);
}

static bool read_typed(nxc_arena *arena, nxc_type type, const char *text, nxc_value *value) {
  switch (type) {
  case NXC_TYPE_INT: return read_int(text, value);
  case NXC_TYPE_FLOAT: return read_float(text, value);
  case NXC_TYPE_INT_OR_FLOAT: return read_int(text, value) || read_float(text, value);
  case NXC_TYPE_BOOL: return read_bool(text, value);
  case NXC_TYPE_BIT: return read_text(text, value) && (strcmp(text, "0") == 0 || strcmp(text, "1") == 0);
  case NXC_TYPE_STR:
  case NXC_TYPE_PATH:
  case NXC_TYPE_ENUM: return read_text(text, value);
  case NXC_TYPE_LIST: return read_list(arena, NXC_TYPE_ANY, text, value);
  case NXC_TYPE_LIST_INT: return read_list(arena, NXC_TYPE_INT, text, value);
  case NXC_TYPE_LIST_FLOAT: return read_list(arena, NXC_TYPE_FLOAT, text, value);
  case NXC_TYPE_LIST_STR: return read_list(arena, NXC_TYPE_STR, text, value);
  case NXC_TYPE_MAP:
  case NXC_TYPE_ANY: return read_any(arena, text, value);
  }
  return false;
}

const nxc_value *gen_literal(nxc_arena *arena, nxc_type type, const char *text) {
  nxc_value *value = nxc_arena_alloc(arena, sizeof *value);
  if (strcmp(text, "null") == 0) return value->kind = NXC_NULL, value;
  return read_typed(arena, type, text, value) ? value : NULL;
}

static void write_bytes(const char *text) {
  for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
    if (*at == '"' || *at == '\\' || *at == '?') printf("\\%c", *at);
    else if (*at < ' ' || *at >= 127) printf("\\%03o", *at);
    else putchar(*at);
  }
}

void gen_write_text(const char *text) {
  if (text == NULL) {
    fputs("NULL", stdout);
    return;
  }
  putchar('"');
  write_bytes(text);
  putchar('"');
}

void gen_write_value(const nxc_value *value) {
  switch (value->kind) {
  case NXC_BOOL: printf("{.kind = NXC_BOOL, .boolean = %s}", value->boolean ? "true" : "false"); break;
  case NXC_INT: printf("{.kind = NXC_INT, .integer = INT64_C(%" PRId64 ")}", value->integer); break;
  case NXC_FLOAT: printf("{.kind = NXC_FLOAT, .number = %a}", value->number); break;
  case NXC_STRING:
    fputs("{.kind = NXC_STRING, .text = ", stdout);
    gen_write_text(value->text);
    printf(", .n_bytes = %zu}", value->n_bytes);
    break;
  case NXC_LIST:
    fputs("{.kind = NXC_LIST, .items = (const nxc_value[]){", stdout);
    for (size_t i = 0; i < value->n_items; i++) {
      gen_write_value(&value->items[i]);
      fputs(", ", stdout);
    }
    if (value->n_items == 0) fputs("{0}", stdout);
    printf("}, .n_items = %zu}", value->n_items);
    break;
  default: fputs("{.kind = NXC_NULL}", stdout); break;
  }
}

/* ---- prose ---- */

enum { BUCKETS = 4096 };

typedef struct prose {
  const char *bytes;
  size_t offset;
  struct prose *next, *before; /* in its bucket; written before it */
} prose;

static const char *prose_array; /* NULL: none was begun */
static prose *buckets[BUCKETS], *last;
static size_t prose_bytes;

void gen_prose_begin(const char *array) {
  prose_array = array;
  printf("extern const char %s[];\n\n", array);
}

static bool is_prose(const char *field) {
  static const char *const fields[] = {"doc",     "runs",   "why",     "instead",
                                       "explain", "source", "message", "fix"};
  bool found = false;
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) found |= strcmp(fields[i], field) == 0;
  return found && prose_array != NULL;
}

static size_t prose_offset(const char *bytes) {
  size_t hash = 5381;
  for (const char *at = bytes; *at != '\0'; at++) hash = hash * 33 + (unsigned char)*at;
  prose **bucket = &buckets[hash % BUCKETS];
  for (const prose *one = *bucket; one != NULL; one = one->next)
    if (strcmp(one->bytes, bytes) == 0) return one->offset;
  prose *new = malloc(sizeof *new);
  if (new == NULL) abort();
  *new = (prose){bytes, prose_bytes, *bucket, last};
  *bucket = last = new;
  prose_bytes += strlen(bytes) + 1;
  return new->offset;
}

static void write_prose(const prose *one) {
  fputs("  \"", stdout);
  write_bytes(one->bytes);
  puts("\\000\"");
}

void gen_prose_end(void) {
  prose *first = NULL;
  for (prose *one = last, *before; one != NULL; one = before) { /* the list turns round */
    before = one->before;
    one->before = first;
    first = one;
  }
  printf("const char %s[] =\n", prose_array);
  for (const prose *one = first; one != NULL; one = one->before) write_prose(one);
  puts("  \"\";");
}

void gen_write_field(const char *name, const char *text) {
  if (text == NULL) return;
  printf(", .%s = ", name);
  if (is_prose(name)) printf("%s + %zu", prose_array, prose_offset(text));
  else gen_write_text(text);
}
