/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/arrow.h"
#include "datasets/arrow_flat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_HEADER = 2, SCHEMA_ENDIANNESS = 0, SCHEMA_FIELDS = 1 };
enum { FIELD_NAME = 0, FIELD_TYPE = 2, FIELD_TYPE_TABLE = 3, FIELD_DICTIONARY = 4, FIELD_CHILDREN = 5 };

static const char *const type_names[NXD_ARROW_N_TYPES] = {
    "none",      "null",     "integer",   "float",      "binary",          "text",       "bool",
    "decimal",   "date",     "time",      "timestamp",  "interval",        "list",       "struct",
    "union",     "fixed binary", "fixed list", "map",   "duration",        "large binary", "large text",
    "large list", "run end encoded", "binary view", "text view", "list view", "large list view"};

const char *nxd_arrow_type_name(nxd_arrow_type type) {
  return (unsigned)type < NXD_ARROW_N_TYPES ? type_names[type] : "unknown";
}

/* Those whose buffers in a batch are known here. */
static bool is_laid_out(nxd_arrow_type type) {
  return type >= NXD_ARROW_NULL && type <= NXD_ARROW_LARGE_LIST && type != 14 /* unions */;
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

static void read_type(const nxd_flat_table *field, nxd_arrow_column *column) {
  nxd_flat_table type = nxd_flat_member(field, FIELD_TYPE_TABLE);
  column->type = (nxd_arrow_type)(uint8_t)nxd_flat_integer(field, FIELD_TYPE, 1, 0);
  column->has_dictionary = nxd_flat_has(field, FIELD_DICTIONARY);
  if (column->type == NXD_ARROW_INT) {
    column->bits = (uint32_t)nxd_flat_integer(&type, 0, 4, 0);
    column->is_signed = nxd_flat_integer(&type, 1, 1, 0) != 0;
  }
  if (column->type == NXD_ARROW_FLOAT) column->bits = 16u << (nxd_flat_integer(&type, 0, 2, 0) & 3);
  if (column->type == NXD_ARROW_FIXED_LIST)
    column->list_size = (uint32_t)nxd_flat_integer(&type, 0, 4, 0) & INT32_MAX;
}

static size_t count_children(const nxd_arrow_column *column) {
  switch (column->type) {
    case NXD_ARROW_LIST:
    case NXD_ARROW_LARGE_LIST:
    case NXD_ARROW_FIXED_LIST:
    case NXD_ARROW_MAP: return 1;
    default: return 0;
  }
}

static bool check_column(const nxd_arrow *arrow, const nxd_arrow_column *column, size_t n_children,
                         nxr_fault *fault) {
  bool number = column->type == NXD_ARROW_INT || column->type == NXD_ARROW_FLOAT;
  bool width_good = column->bits == 8 || column->bits == 16 || column->bits == 32 || column->bits == 64;
  if (!is_laid_out(column->type) || (number && !width_good))
    return nxr_fault_set(fault, "%s: column %.*s is of the type %s, which is not read", arrow->path,
                         (int)(column->n_name & 0xff), column->name, nxd_arrow_type_name(column->type));
  size_t wanted = count_children(column);
  return (wanted > 0 ? n_children == wanted : column->type == NXD_ARROW_STRUCT || n_children == 0) ||
         nxr_fault_set(fault, "%s is damaged: column %.*s has %zu columns below it", arrow->path,
                       (int)(column->n_name & 0xff), column->name, n_children);
}

/* A field and, behind it, those below it. */
static bool add_field(nxd_arrow *arrow, const nxd_flat_table *field, int depth, nxr_fault *fault) {
  if (arrow->n_columns == NXD_ARROW_MAX_COLUMNS || depth == NXD_ARROW_MAX_DEPTH)
    return too_much(arrow, fault);
  uint32_t index = arrow->n_columns++;
  nxd_arrow_column *column = &arrow->columns[index];
  read_name(field, column);
  read_type(field, column);
  if (column->has_dictionary) return true; /* what is below its values is not in the batches */
  nxd_flat_vector children = nxd_flat_list(field, FIELD_CHILDREN, 4);
  if (!check_column(arrow, column, children.n, fault)) return false;
  for (size_t i = 0; i < children.n; i++) {
    nxd_flat_table child = nxd_flat_entry(&children, i);
    if (!add_field(arrow, &child, depth + 1, fault)) return false;
  }
  column->n_below = arrow->n_columns - index - 1;
  return true;
}

bool nxd_arrow_read_schema(nxd_arrow *arrow, const uint8_t *bytes, size_t n_bytes, nxr_fault *fault) {
  nxd_flat flat = {.bytes = bytes, .n = n_bytes};
  nxd_flat_table message = nxd_flat_root(&flat), schema = nxd_flat_member(&message, MESSAGE_HEADER);
  nxd_flat_vector fields = nxd_flat_list(&schema, SCHEMA_FIELDS, 4);
  arrow->columns = calloc(NXD_ARROW_MAX_COLUMNS, sizeof *arrow->columns);
  if (arrow->columns == NULL) return nxr_fault_set(fault, "out of memory for %s", arrow->path);
  if (nxd_flat_integer(&schema, SCHEMA_ENDIANNESS, 2, 0) != 0)
    return nxr_fault_set(fault, "%s has its numbers' greatest bytes first, which is not read", arrow->path);
  for (size_t i = 0; i < fields.n && !flat.damaged; i++) {
    nxd_flat_table field = nxd_flat_entry(&fields, i);
    if (!add_field(arrow, &field, 0, fault)) return false;
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
  for (uint32_t i = first; i < end; i += 1 + arrow->columns[i].n_below) {
    const nxd_arrow_column *column = &arrow->columns[i];
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
  return find_among(arrow, 0, arrow->n_columns, name, path);
}

void nxd_arrow_names(const nxd_arrow *arrow, char *text, size_t room) {
  size_t n = 0;
  text[0] = '\0';
  for (uint32_t i = 0; i < arrow->n_columns && n + 80 < room; i += 1 + arrow->columns[i].n_below)
    n += (size_t)snprintf(text + n, room - n, "%s%.*s", n > 0 ? ", " : "",
                          arrow->columns[i].n_name < 60 ? (int)arrow->columns[i].n_name : 60,
                          arrow->columns[i].name);
}
