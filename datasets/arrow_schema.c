/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/arrow.h"
#include "datasets/arrow_flat.h"
#include "datasets/arrow_value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_HEADER = 2, SCHEMA_ENDIANNESS = 0, SCHEMA_FIELDS = 1 };
enum { FIELD_NAME, FIELD_TYPE = 2, FIELD_TYPE_TABLE, FIELD_DICTIONARY, FIELD_CHILDREN, FIELD_METADATA };
enum { DICTIONARY_ID, DICTIONARY_INDEX };

static const char *const type_names[NXD_ARROW_N_TYPES] = {
    "none",      "null",     "integer",   "float",      "binary",          "text",       "bool",
    "decimal",   "date",     "time",      "timestamp",  "interval",        "list",       "struct",
    "union",     "fixed binary", "fixed list", "map",   "duration",        "large binary", "large text",
    "large list", "run end encoded", "binary view", "text view", "list view", "large list view"};

static const char *type_name(nxd_arrow_type type) {
  return (unsigned)type < NXD_ARROW_N_TYPES ? type_names[type] : "unknown";
}

/* Those whose buffers in a batch are known here. */
static bool is_laid_out(nxd_arrow_type type) {
  return type >= NXD_ARROW_NULL && type < NXD_ARROW_N_TYPES && type != 14 /* unions */ &&
         type != 22 /* run end encoded */;
}

static bool too_much(const nxd_arrow *arrow, nxr_fault *fault) {
  return nxr_fault_set(fault, "%s has more than %d columns, or columns within columns without an end",
                       arrow->path, NXD_ARROW_MAX_COLUMNS);
}

static void read_name(const nxd_flat_table *field, nxd_arrow_column *column) {
  nxd_flat_vector name = nxd_flat_list(field, FIELD_NAME, 1);
  column->name = name.n > 0 ? (const char *)name.in->bytes + name.at : "";
  column->n_name = (uint32_t)name.n;
}

static bool says(const nxd_flat_table *pair, uint32_t field, const char *text) {
  nxd_flat_vector is = nxd_flat_list(pair, field, 1);
  return is.n == strlen(text) && memcmp(is.in->bytes + is.at, text, is.n) == 0;
}

static bool is_json(const nxd_flat_table *field) {
  nxd_flat_vector pairs = nxd_flat_list(field, FIELD_METADATA, 4);
  for (size_t i = 0; i < pairs.n; i++) {
    nxd_flat_table pair = nxd_flat_entry(&pairs, i);
    if (says(&pair, 0, "ARROW:extension:name") && says(&pair, 1, "arrow.json")) return true;
  }
  return false;
}

static void read_integer(const nxd_flat_table *type, nxd_arrow_column *column) {
  column->bits = (uint32_t)nxd_flat_integer(type, 0, 4, 0);
  column->is_signed = nxd_flat_integer(type, 1, 1, 0) != 0;
}

static void read_type(const nxd_flat_table *field, nxd_arrow_column *column) {
  nxd_flat_table type = nxd_flat_member(field, FIELD_TYPE_TABLE);
  column->type = (nxd_arrow_type)(uint8_t)nxd_flat_integer(field, FIELD_TYPE, 1, 0);
  column->is_json = is_json(field);
  if (column->type == NXD_ARROW_INT) read_integer(&type, column);
  if (column->type == NXD_ARROW_FLOAT) column->bits = 16u << (nxd_flat_integer(&type, 0, 2, 0) & 3);
  if (column->type == NXD_ARROW_FIXED_LIST)
    column->list_size = (uint32_t)nxd_flat_integer(&type, 0, 4, 0) & INT32_MAX;
}

/* The type of a dictionary's numbers: 32 bits with a sign, unless it is said. */
static void read_numbers(const nxd_flat_table *dictionary, nxd_arrow_column *column) {
  nxd_flat_table type = nxd_flat_member(dictionary, DICTIONARY_INDEX);
  column->type = NXD_ARROW_INT, column->bits = 32, column->is_signed = true;
  if (nxd_flat_has(dictionary, DICTIONARY_INDEX)) read_integer(&type, column);
}

static bool check_column(const nxd_arrow *arrow, const nxd_arrow_column *column, size_t n_children,
                         nxr_fault *fault) {
  bool number = column->type == NXD_ARROW_INT || column->type == NXD_ARROW_FLOAT;
  bool width_good = column->bits == 8 || column->bits == 16 || column->bits == 32 || column->bits == 64;
  if (!is_laid_out(column->type) || (number && !width_good))
    return nxr_fault_set(fault, "%s: column %.*s is of the type %s, which is not read", arrow->path,
                         (int)(column->n_name & 0xff), column->name, type_name(column->type));
  bool list = nxd_arrow_is_list(column->type);
  return (list ? n_children == 1 : column->type == NXD_ARROW_STRUCT || n_children == 0) ||
         nxr_fault_set(fault, "%s is damaged: column %.*s has %zu columns below it", arrow->path,
                       (int)(column->n_name & 0xff), column->name, n_children);
}

/* One more column; NULL after a message. Earlier ones may have moved. */
static nxd_arrow_column *add_column(const nxd_arrow *arrow, nxd_arrow_rows *rows, nxr_fault *fault) {
  uint32_t n = rows->n_columns;
  if (n == NXD_ARROW_MAX_COLUMNS) {
    too_much(arrow, fault);
    return NULL;
  }
  if ((n & (n - 1)) == 0) { /* there is room for a power of two */
    nxd_arrow_column *columns = realloc(rows->columns, (n == 0 ? 1 : 2 * (size_t)n) * sizeof *columns);
    if (columns == NULL) {
      nxr_fault_set(fault, "out of memory for %s", arrow->path);
      return NULL;
    }
    rows->columns = columns;
  }
  rows->columns[n] = (nxd_arrow_column){0};
  rows->n_columns++;
  return &rows->columns[n];
}

static bool add_field(nxd_arrow *arrow, nxd_arrow_rows *rows, const nxd_flat_table *field, int depth,
                      nxr_fault *fault);

/* The field as it is without its dictionary, and those below it. */
static bool add_values(nxd_arrow *arrow, nxd_arrow_rows *rows, const nxd_flat_table *field, int depth,
                       nxr_fault *fault) {
  uint32_t index = rows->n_columns;
  nxd_arrow_column *column = add_column(arrow, rows, fault);
  if (column == NULL) return false;
  read_name(field, column);
  read_type(field, column);
  nxd_flat_vector children = nxd_flat_list(field, FIELD_CHILDREN, 4);
  if (!check_column(arrow, column, children.n, fault)) return false;
  for (size_t i = 0; i < children.n; i++) {
    nxd_flat_table child = nxd_flat_entry(&children, i);
    if (!add_field(arrow, rows, &child, depth + 1, fault)) return false;
  }
  rows->columns[index].n_below = rows->n_columns - index - 1;
  return true;
}

/* Which of the file's dictionaries has this id. */
static bool find_dictionary(nxd_arrow *arrow, const nxd_flat_table *field, int64_t id, int depth,
                            uint32_t *which, nxr_fault *fault) {
  for (*which = 0; *which < arrow->n_dictionaries; ++*which)
    if (arrow->dictionaries[*which].id == id) return true;
  if (arrow->n_dictionaries == NXD_ARROW_MAX_COLUMNS) return too_much(arrow, fault);
  nxd_arrow_dictionary *all =
      realloc(arrow->dictionaries, (arrow->n_dictionaries + 1) * sizeof *arrow->dictionaries);
  if (all == NULL) return nxr_fault_set(fault, "out of memory for %s", arrow->path);
  arrow->dictionaries = all;
  all[arrow->n_dictionaries++] = (nxd_arrow_dictionary){.id = id};
  nxd_arrow_rows form = {0};
  bool good = add_values(arrow, &form, field, depth, fault);
  arrow->dictionaries[*which].form = form; /* more may stand behind it by now */
  return good;
}

/* A field and, behind it, those below it. What is below a dictionary's values is in no batch of rows. */
static bool add_field(nxd_arrow *arrow, nxd_arrow_rows *rows, const nxd_flat_table *field, int depth,
                      nxr_fault *fault) {
  if (depth == NXD_ARROW_MAX_DEPTH) return too_much(arrow, fault);
  if (!nxd_flat_has(field, FIELD_DICTIONARY)) return add_values(arrow, rows, field, depth, fault);
  nxd_flat_table dictionary = nxd_flat_member(field, FIELD_DICTIONARY);
  int64_t id = nxd_flat_integer(&dictionary, DICTIONARY_ID, 8, 0);
  uint32_t which;
  if (!find_dictionary(arrow, field, id, depth, &which, fault)) return false;
  nxd_arrow_column *column = add_column(arrow, rows, fault);
  if (column == NULL) return false;
  read_name(field, column);
  read_numbers(&dictionary, column);
  column->has_dictionary = true, column->dictionary = which;
  return check_column(arrow, column, 0, fault);
}

bool nxd_arrow_read_schema(nxd_arrow *arrow, const uint8_t *bytes, size_t n_bytes, nxr_fault *fault) {
  nxd_flat flat = {.bytes = bytes, .n = n_bytes};
  nxd_flat_table message = nxd_flat_root(&flat), schema = nxd_flat_member(&message, MESSAGE_HEADER);
  nxd_flat_vector fields = nxd_flat_list(&schema, SCHEMA_FIELDS, 4);
  if (nxd_flat_integer(&schema, SCHEMA_ENDIANNESS, 2, 0) != 0)
    return nxr_fault_set(fault, "%s has its numbers' greatest bytes first, which is not read", arrow->path);
  for (size_t i = 0; i < fields.n && !flat.damaged; i++) {
    nxd_flat_table field = nxd_flat_entry(&fields, i);
    if (!add_field(arrow, &arrow->rows, &field, 0, fault)) return false;
  }
  return !flat.damaged || nxr_fault_set(fault, "%s is damaged: its schema leads out of itself", arrow->path);
}

/* -- names
 * ------------------------------------------------------------------------------------------------------- */

static bool is_named(const nxd_arrow_column *column, const char *name, size_t n) {
  return column->n_name == n && memcmp(column->name, name, n) == 0;
}

/* Among the columns [first, end) that stand beside one another. */
static bool find_among(const nxd_arrow *arrow, uint32_t first, uint32_t end, const char *name,
                       nxd_arrow_path *path) {
  if (path->n == NXD_ARROW_MAX_DEPTH) return false;
  for (uint32_t i = first; i < end; i += 1 + arrow->rows.columns[i].n_below) {
    const nxd_arrow_column *column = &arrow->rows.columns[i];
    bool whole = is_named(column, name, strlen(name));
    bool outer = column->type == NXD_ARROW_STRUCT && !column->has_dictionary &&
                 strlen(name) > column->n_name + 1 && name[column->n_name] == '.' &&
                 is_named(column, name, column->n_name);
    if (!whole && !outer) continue;
    path->columns[path->n++] = i;
    if (whole || find_among(arrow, i + 1, i + 1 + column->n_below, name + column->n_name + 1, path))
      return true;
    path->n--;
  }
  return false;
}

bool nxd_arrow_find(const nxd_arrow *arrow, const char *name, nxd_arrow_path *path) {
  path->n = 0;
  return find_among(arrow, 0, arrow->rows.n_columns, name, path);
}

void nxd_arrow_names(const nxd_arrow *arrow, char *text, size_t room) {
  size_t n = 0;
  text[0] = '\0';
  for (uint32_t i = 0; i < arrow->rows.n_columns && n + 80 < room; i += 1 + arrow->rows.columns[i].n_below)
    n += (size_t)snprintf(text + n, room - n, "%s%.*s", n > 0 ? ", " : "",
                          arrow->rows.columns[i].n_name < 60 ? (int)arrow->rows.columns[i].n_name : 60,
                          arrow->rows.columns[i].name);
}
