/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
  record_list *list;
  test_record *at; /* the record that lines belong to */
  const char *problem;
} reader;

static bool fail(reader *r, const char *problem) {
  r->problem = problem;
  return false;
}

static const nx_dtype variant_types[] = {NX_f64, NX_f32, NX_bf16, NX_f16};

const char *variant_name(test_variant variant) {
  return nx_dtype_name(variant_types[variant]);
}

nx_dtype record_dtype(const record_value *value, test_variant variant) {
  if (value->type == 'a') return variant_types[variant];
  if (value->type == 's') return variant == VARIANT_F64 ? NX_f64 : NX_f32;
  return value->dtype;
}

static uint32_t value_find(const test_record *at, const char *name, size_t n_chars) {
  for (uint32_t index = 0; index < at->n_values; index++)
    if (strlen(at->values[index].name) == n_chars && memcmp(at->values[index].name, name, n_chars) == 0)
      return index;
  return UINT32_MAX;
}

/* TYPE[DIMS] */
static bool shape_read(reader *r, const char *text, record_value *value) {
  char type[8];
  int n_read = 0;
  if (sscanf(text, "%7[a-z0-9][%n", type, &n_read) != 1 || n_read == 0) return fail(r, "TYPE[DIMS] expected");
  if (strcmp(type, "a") == 0 || strcmp(type, "s") == 0) value->type = type[0];
  for (uint32_t dtype = 1; value->type == 0 && dtype < NX_DTYPE_END; dtype++)
    if (strcmp(type, nx_dtype_name(dtype)) == 0) value->dtype = (nx_dtype)dtype;
  if (!value->type && !value->dtype) return fail(r, "unknown type");
  for (uint32_t dim = 0; dim < NX_MAX_DIMS; dim++) value->dims[dim] = 1;
  char *text_at = (char *)(uintptr_t)text + n_read;
  do {
    if (value->n_dims == NX_MAX_DIMS) return fail(r, "too many dimensions");
    value->dims[value->n_dims++] = strtoll(text_at, &text_at, 10);
  } while (*text_at++ == ',');
  return text_at[-1] == ']' || fail(r, "] expected");
}

static record_value *value_new(reader *r, const char *name, size_t n_chars) {
  if (r->at->n_values == RECORD_MAX_VALUES || n_chars >= sizeof r->at->values[0].name || n_chars == 0) {
    fail(r, "too many values, or a name that is too long");
    return NULL;
  }
  if (value_find(r->at, name, n_chars) != UINT32_MAX) {
    fail(r, "a value of that name exists");
    return NULL;
  }
  record_value *value = &r->at->values[r->at->n_values++];
  memcpy(value->name, name, n_chars);
  return value;
}

/* One number for each element of the value. */
static bool numbers_read(reader *r, char *text, const record_value *value, double *numbers,
                         uint32_t *n_numbers) {
  int64_t n_elements = 1;
  for (uint32_t dim = 0; dim < NX_MAX_DIMS; dim++) n_elements *= value->dims[dim];
  for (char *end; *n_numbers < RECORD_MAX_LIST; text = end, ++*n_numbers) {
    double number = strtod(text, &end);
    if (end == text) break;
    numbers[*n_numbers] = number;
  }
  return *n_numbers == n_elements || fail(r, "one number for each element expected");
}

static bool in_read(reader *r, char *rest) {
  static const char *const kinds[] = {"", "normal", "uniform", "int", "count", "value", "values",
                                      "places", "starts"};
  char name[16], shape[64], kind[16];
  double low = 0, high = 0, length = 1;
  int n_read = 0;
  if (sscanf(rest, "%15s %63s %15s%n %lf %lf %lf", name, shape, kind, &n_read, &low, &high, &length) < 3)
    return fail(r, "in NAME TYPE[DIMS] KIND expected");
  record_value *value = value_new(r, name, strlen(name));
  if (!value || !shape_read(r, shape, value)) return false;
  value->low = low, value->high = high, value->length = length;
  for (uint32_t index = 1; index < sizeof kinds / sizeof *kinds; index++)
    if (strcmp(kind, kinds[index]) == 0) value->fill = (fill_kind)index;
  if (value->fill == FILL_LIST && !numbers_read(r, rest + n_read, value, value->listed, &value->n_listed))
    return false;
  return value->fill != FILL_OUTPUT || fail(r, "unknown kind of input");
}

static bool attribute_read(reader *r, record_operator *op, const nx_op_row *row, const char *text) {
  const char *equals = strchr(text, '=');
  size_t n_chars = equals ? (size_t)(equals - text) : 0;
  for (uint32_t index = 0; equals && index < nx_op_n_attrs(row); index++) {
    const nx_attr_row *attr = &row->attrs[index];
    if (strlen(attr->name) != n_chars || memcmp(attr->name, text, n_chars) != 0) continue;
    op->n_attrs++;
    if (attr->type == NX_REAL)
      op->attrs[index] = (nxk_attr){.kind = NXK_REAL, .real = strtod(equals + 1, NULL)};
    else
      op->attrs[index] = (nxk_attr){.kind = NXK_INT, .integer = strtoll(equals + 1, NULL, 10)};
    return true;
  }
  return fail(r, "the operator has no such attribute");
}

static bool output_read(reader *r, record_operator *op, const char *text) {
  const char *colon = strchr(text, ':');
  size_t n_chars = colon ? (size_t)(colon - text) : strlen(text);
  uint32_t index = value_find(r->at, text, n_chars);
  if (colon) {
    index = r->at->n_values;
    record_value *value = value_new(r, text, n_chars);
    if (!value || !shape_read(r, colon + 1, value)) return false;
  }
  if (index == UINT32_MAX) return fail(r, "unknown value");
  op->args[op->n_in + op->n_out++] = index;
  return true;
}

static void mark_added(test_record *at, const record_operator *op, const nx_op_row *row) {
  nx_signature signature = nx_op_signature(row);
  uint32_t accumulate = nx_op_accumulate(row);
  bool asked = accumulate < NX_MAX_ATTRS && op->attrs[accumulate].integer == 1;
  for (uint32_t out = 0; out < op->n_out; out++) {
    nx_added added = nx_signature_output(&signature, out)->added;
    at->values[op->args[op->n_in + out]].added_to =
        added == NX_ADDED_ALWAYS || (added != NX_ADDED_NEVER && asked);
  }
}

static bool op_read(reader *r, char *rest) {
  if (r->at->n_operators == RECORD_MAX_OPERATORS) return fail(r, "too many operators");
  record_operator *op = &r->at->operators[r->at->n_operators++];
  char *save, *word = strtok_r(rest, " ", &save);
  const nx_op_row *row = word ? nx_op_find_name(word) : NULL;
  if (!row || nx_op_is_collective(row)) return fail(r, "unknown operator");
  op->op = row->op;
  while ((word = strtok_r(NULL, " ", &save)) && strcmp(word, "->") != 0) {
    uint32_t index = value_find(r->at, word, strlen(word));
    if (index == UINT32_MAX) return fail(r, "unknown value");
    if (op->n_in == NX_MAX_ARGS) return fail(r, "wrong number of inputs");
    op->args[op->n_in++] = index;
  }
  while ((word = strtok_r(NULL, " ", &save)) && strcmp(word, ";") != 0)
    if (op->n_in + op->n_out == NX_MAX_ARGS || !output_read(r, op, word))
      return r->problem ? false : fail(r, "too many operands");
  while ((word = strtok_r(NULL, " ", &save)))
    if (!attribute_read(r, op, row, word)) return false;
  if (op->n_attrs != nx_op_n_attrs(row)) return fail(r, "attributes are missing");
  nx_signature signature = nx_op_signature(row);
  if (!nx_signature_admits(&signature, op->n_in, op->n_out)) return fail(r, "wrong number of operands");
  mark_added(r->at, op, row);
  return true;
}

static bool pairs_read(reader *r, char **save, record_pair *pairs, uint32_t *n_pairs) {
  char *word;
  while ((word = strtok_r(NULL, " ", save)) && strcmp(word, "->") != 0) {
    char *colon = strchr(word, ':');
    if (!colon || *n_pairs == RECORD_MAX_PAIRS) return fail(r, "VALUE:GRADIENT expected");
    record_pair pair = {value_find(r->at, word, (size_t)(colon - word)),
                        value_find(r->at, colon + 1, strlen(colon + 1))};
    if (pair.value == UINT32_MAX || pair.gradient == UINT32_MAX) return fail(r, "unknown value");
    pairs[(*n_pairs)++] = pair;
  }
  return true;
}

static bool gradient_read(reader *r, char *rest) {
  char line[256], *save;
  snprintf(line, sizeof line, "gradient %s", rest);
  strtok_r(line, " ", &save);
  return pairs_read(r, &save, r->at->outputs, &r->at->n_outputs) &&
         pairs_read(r, &save, r->at->inputs, &r->at->n_inputs) &&
         ((r->at->n_outputs && r->at->n_inputs) || fail(r, "gradient OUT:COTANGENT -> IN:GRADIENT expected"));
}

static bool types_read(reader *r, char *rest) {
  for (uint32_t index = 0; index < N_VARIANTS; index++)
    r->at->variants[index] = strstr(rest, nx_dtype_name(variant_types[index])) != NULL;
  return true;
}

static bool tolerance_read(reader *r, char *rest) {
  char type[8];
  double norm, max;
  if (sscanf(rest, "%7s %lf %lf", type, &norm, &max) != 3) return fail(r, "tolerance TYPE NORM MAX expected");
  for (uint32_t dtype = 1; dtype < NX_DTYPE_END; dtype++)
    if (strcmp(type, nx_dtype_name(dtype)) == 0) r->at->bounds[dtype] = (record_bound){norm, max};
  return true;
}

static bool expect_read(reader *r, char *rest) {
  uint32_t index = value_find(r->at, rest, strcspn(rest, " "));
  if (index == UINT32_MAX) return fail(r, "unknown value");
  record_value *value = &r->at->values[index];
  return numbers_read(r, rest + strcspn(rest, " "), value, value->expected, &value->n_expected);
}

static bool record_new(reader *r, char *rest, bool bench) {
  record_list *list = r->list;
  test_record *grown = realloc(list->records, (list->n_records + 1) * sizeof *grown);
  if (!grown) return fail(r, "out of memory");
  list->records = grown;
  r->at = &list->records[list->n_records++];
  *r->at = (test_record){.bench = bench, .variants = {true, true, true, true}};
  snprintf(r->at->name, sizeof r->at->name, "%s", rest);
  return true;
}

static bool record_read(reader *r, char *rest) {
  return record_new(r, rest, false);
}

static bool bench_read(reader *r, char *rest) {
  return record_new(r, rest, true);
}

static const struct {
  const char *word;
  bool (*read)(reader *r, char *rest);
} lines[] = {{"record", record_read},
             {"bench", bench_read},
             {"in", in_read},
             {"op", op_read},
             {"types", types_read},
             {"gradient", gradient_read},
             {"tolerance", tolerance_read},
             {"expect", expect_read}};

static bool line_read(reader *r, char *line) {
  line[strcspn(line, "\r\n")] = '\0';
  if (line[0] == '\0' || line[0] == '#') return true;
  char *rest = line + strcspn(line, " ");
  if (*rest) *rest++ = '\0';
  for (size_t index = 0; index < sizeof lines / sizeof *lines; index++) {
    if (strcmp(line, lines[index].word) != 0) continue;
    if (!r->at && index > 1) return fail(r, "a record must come first");
    return lines[index].read(r, rest);
  }
  return fail(r, "unknown word");
}

bool records_read(const char *path, record_list *list) {
  FILE *file = fopen(path, "r");
  if (!file) {
    perror(path);
    return false;
  }
  char line[1024];
  reader r = {.list = list};
  uint32_t number = 0;
  bool good = true;
  while (good && fgets(line, sizeof line, file)) {
    number++;
    good = line_read(&r, line);
  }
  if (!good) fprintf(stderr, "%s:%u: %s\n", path, number, r.problem);
  fclose(file);
  return good;
}
