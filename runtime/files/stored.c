/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/files/stored.h"

#include "schema/fp8.h"
#include "schema/quantized.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* Endings of the tensors' names; whole_ending: NULL, there is no scale of all. */
typedef struct format {
  nx_form codes, scales;
  const char *code_ending, *scale_ending, *whole_ending;
  nx_dtype code_type, scale_type; /* scale_type 0: any real one */
} format;

static const format formats[] = {
    {NX_FORM_NVFP4, NX_FORM_NVFP4_SCALE, ".weight", ".weight_scale", ".weight_scale_2", NX_u8, NX_f8e4m3},
    {NX_FORM_FP8, NX_FORM_FP8_SCALE, ".weight", ".weight_scale_inv", NULL, NX_f8e4m3, 0},
    {NX_FORM_MXFP4, NX_FORM_MXFP4_SCALE, ".weight_packed", ".weight_scale", NULL, NX_u8, NX_u8},
    {NX_FORM_NF4, NX_FORM_NF4_ABSMAX, ".weight", ".weight.absmax", NULL, NX_u8, 0},
    /* As nxrun's own checkpoints have them: matrices of the entries that a plan keeps. */
    {NX_FORM_NVFP4, NX_FORM_NVFP4_SCALE, ".weight", ".weight_scale", NULL, NX_u8, NX_f32},
    {NX_FORM_FP8, NX_FORM_FP8_SCALE, ".weight", ".weight_scale_inv", NULL, NX_u8, NX_f32},
    {NX_FORM_MXFP4, NX_FORM_MXFP4_SCALE, ".weight", ".weight_scale", NULL, NX_u8, NX_u8},
    {NX_FORM_NF4, NX_FORM_NF4_ABSMAX, ".weight", ".weight.absmax", NULL, NX_u8, NX_f32}};
enum { N_FORMATS = sizeof formats / sizeof *formats };

static const nxr_safetensor *find_beside(nxr_stored_lookup *lookup, const void *from, const char *name,
                                         const char *ending) {
  char beside[512];
  const char *stem = strstr(name, ".weight");
  if (stem == NULL || snprintf(beside, sizeof beside, "%.*s%s", (int)(stem - name), name, ending) >= 512)
    return NULL;
  return lookup(from, beside);
}

static uint64_t count(const nxr_safetensor *tensor) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < tensor->n_dims; i++) n *= (uint64_t)tensor->dims[i];
  return n;
}

static bool is_matrix(const nxr_safetensor *tensor, int64_t rows, int64_t columns) {
  return tensor->n_dims == 2 && tensor->dims[0] == rows && tensor->dims[1] == columns;
}

/* ---- NF4 as bitsandbytes has it: one row of codes, and a description as JSON ---- */

static bool read_nested(nxr_stored *s, const json_t *state, nxr_stored_lookup *lookup, const void *from,
                        const char *name) {
  s->nested = find_beside(lookup, from, name, ".weight.nested_absmax");
  s->map = find_beside(lookup, from, name, ".weight.nested_quant_map");
  json_int_t block = json_integer_value(json_object_get(state, "nested_blocksize"));
  const json_t *offset = json_object_get(state, "nested_offset");
  if (!s->nested || !s->map || block < 1 || !json_is_number(offset)) return false;
  s->n_nested = (uint64_t)block;
  s->offset = (float)json_number_value(offset);
  return s->map->dtype == NX_f32 && count(s->map) == 256 && nx_safetensor_is_real(s->nested) &&
         count(s->nested) == (count(s->scales) + s->n_nested - 1) / s->n_nested;
}

static bool read_nf4(nxr_stored *s, nxr_stored_lookup *lookup, const void *from, const char *name,
                     int64_t n_elements) {
  const nxr_safetensor *text =
      find_beside(lookup, from, name, ".weight.quant_state.bitsandbytes__nf4");
  if (text == NULL || n_elements % NX_NF4_BLOCK != 0 || count(s->codes) != (uint64_t)n_elements / 2 ||
      count(s->scales) != (uint64_t)n_elements / NX_NF4_BLOCK)
    return false;
  json_t *state = json_loadb((const char *)text->bytes, text->n_bytes, JSON_REJECT_DUPLICATES, NULL);
  bool good = json_integer_value(json_object_get(state, "blocksize")) == NX_NF4_BLOCK;
  if (s->scales->dtype == NX_u8) good = good && read_nested(s, state, lookup, from, name);
  else good = good && nx_safetensor_is_real(s->scales);
  json_decref(state);
  return good;
}

/* The sizes that the description says; false where there is none. */
static bool read_nf4_shape(nxr_stored_lookup *lookup, const void *from, const char *name, int64_t *rows,
                           int64_t *columns) {
  const nxr_safetensor *text =
      find_beside(lookup, from, name, ".weight.quant_state.bitsandbytes__nf4");
  if (text == NULL) return false;
  json_t *state = json_loadb((const char *)text->bytes, text->n_bytes, JSON_REJECT_DUPLICATES, NULL);
  const json_t *shape = json_object_get(state, "shape");
  *rows = json_integer_value(json_array_get(shape, 0));
  *columns = json_integer_value(json_array_get(shape, 1));
  bool good = json_array_size(shape) == 2 && *rows > 0 && *columns > 0 && *columns % NX_NF4_BLOCK == 0 &&
              *rows < INT32_MAX && *columns < INT32_MAX;
  json_decref(state);
  return good;
}

/* ---- all of them ---- */

/* The scale of the whole tensor, where the format has one. */
static bool read_whole(nxr_stored *s, const format *f, nxr_stored_lookup *lookup, const void *from,
                       const char *name) {
  s->factor = 1;
  if (f->whole_ending == NULL) return true;
  const nxr_safetensor *whole = find_beside(lookup, from, name, f->whole_ending);
  if (whole == NULL || whole->dtype != NX_f32 || whole->n_bytes != sizeof(float)) return false;
  nxr_safetensor_floats(whole, 0, 1, &s->factor);
  return true;
}

/* Codes and scales of a matrix of these sizes, as one of the formats has them. */
static bool find_as(const format *f, nxr_stored_lookup *lookup, const void *from, const char *name,
                    int64_t rows, int64_t columns, nxr_stored *s) {
  *s = (nxr_stored){.codes_form = f->codes, .scales_form = f->scales};
  s->codes = find_beside(lookup, from, name, f->code_ending);
  s->scales = find_beside(lookup, from, name, f->scale_ending);
  if (!s->codes || !s->scales || s->codes->dtype != f->code_type || !read_whole(s, f, lookup, from, name))
    return false;
  int64_t elements = nx_form_elements(f->scales), of_rows = nx_form_find(f->scales)->rows;
  bool typed = f->scale_type ? s->scales->dtype == f->scale_type : nx_safetensor_is_real(s->scales);
  if (typed && is_matrix(s->codes, rows, columns / nx_form_elements(f->codes)) &&
      is_matrix(s->scales, rows / of_rows, columns / elements))
    return true;
  return f->codes == NX_FORM_NF4 && read_nf4(s, lookup, from, name, rows * columns);
}

/* What is found first stays where nothing fits, so that it can be said. */
bool nxr_stored_find(nxr_stored_lookup *lookup, const void *from, const char *name, nx_form codes,
                     int64_t rows, int64_t columns, nxr_stored *s) {
  *s = (nxr_stored){0};
  for (size_t i = 0; i < N_FORMATS; i++) {
    nxr_stored found;
    if (formats[i].codes != codes) continue;
    bool good = find_as(&formats[i], lookup, from, name, rows, columns, &found);
    if (good || s->codes == NULL) *s = found;
    if (good) return true;
  }
  return false;
}

bool nxr_stored_open(nxr_stored_lookup *lookup, const void *from, const char *name, int64_t *rows,
                     int64_t *columns, nxr_stored *s) {
  const nxr_safetensor *codes = lookup(from, name);
  const char *ending = strstr(name, ".weight");
  for (size_t i = 0; codes && ending && i < N_FORMATS; i++) {
    nx_form form = formats[i].codes;
    if (strcmp(ending, formats[i].code_ending) != 0 || codes->n_dims != 2) continue;
    *rows = codes->dims[0], *columns = codes->dims[1] * nx_form_elements(form);
    if (form == NX_FORM_NF4) (void)read_nf4_shape(lookup, from, name, rows, columns);
    if (*columns % nx_form_elements(formats[i].scales) != 0 || *rows % nx_form_find(formats[i].scales)->rows)
      continue;
    if (find_as(&formats[i], lookup, from, name, *rows, *columns, s)) return true;
  }
  return false;
}

static void nested_scales(const nxr_stored *s, uint64_t first, uint64_t n, float *values) {
  for (uint64_t i = 0; i < n; i++) {
    float value, scale;
    nxr_safetensor_floats(s->map, s->scales->bytes[first + i], 1, &value);
    nxr_safetensor_floats(s->nested, (first + i) / s->n_nested, 1, &scale);
    values[i] = value * scale;
    values[i] += s->offset;
  }
}

void nxr_stored_scales(const nxr_stored *s, uint64_t first, uint64_t n, float *values) {
  const uint8_t *codes = s->scales->bytes + first;
  nx_form form = s->scales->dtype == NX_f32 ? NX_FORM_PLAIN : s->scales_form;
  switch (form) {
    case NX_FORM_NVFP4_SCALE:
      for (uint64_t i = 0; i < n; i++) values[i] = nx_e4m3_decode(codes[i]) * s->factor;
      return;
    case NX_FORM_MXFP4_SCALE:
      for (uint64_t i = 0; i < n; i++) values[i] = nx_e8m0_decode(codes[i]);
      return;
    default:
      if (s->map) nested_scales(s, first, n, values);
      else nxr_safetensor_floats(s->scales, first, n, values);
  }
}

float nxr_stored_value(nx_form form, const uint8_t *codes, uint64_t element) {
  uint8_t byte = codes[element / 2];
  if (form == NX_FORM_FP8) return nx_e4m3_decode(codes[element]);
  if (form == NX_FORM_NF4) return nx_nf4_values[element % 2 ? byte & 15 : byte >> 4];
  return nx_e2m1_values[element % 2 ? byte >> 4 : byte & 15];
}

void nxr_stored_row(const nxr_stored *s, int64_t row, int64_t columns, float *values) {
  int64_t block = nx_form_elements(s->scales_form), rows = nx_form_find(s->scales_form)->rows;
  uint64_t first = (uint64_t)(row / rows * (columns / block)), element = (uint64_t)(row * columns);
  for (int64_t at = 0; at < columns; at += block, first++) {
    float scale;
    nxr_stored_scales(s, first, 1, &scale);
    for (int64_t i = at; i < at + block; i++)
      values[i] = nxr_stored_value(s->codes_form, s->codes->bytes, element + (uint64_t)i) * scale;
  }
}
