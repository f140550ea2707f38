/* SPDX-License-Identifier: Apache-2.0 */
/* NormalFloat of 4 bits against bitsandbytes (tests/parity/record_lora.py): codes and scales bit by bit. */
#include "schema/nf4.h"
#include "schema/nf4_nested.h"
#include "tests/unit/cmocka_all.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static json_t *read_record(const char *name) {
  char path[512];
  snprintf(path, sizeof path, "%s/tests/parity/recorded/lora/nf4/%s", getenv("NX_SOURCE_ROOT"), name);
  json_t *record = json_load_file(path, 0, NULL);
  assert_non_null(record);
  return record;
}

static double at(const json_t *record, const char *key, size_t index) {
  const json_t *list = json_object_get(record, key);
  assert_true(index < json_array_size(list));
  return json_number_value(json_array_get(list, index));
}

static void blocks_are_those_of_bitsandbytes(void **state) {
  (void)state;
  json_t *record = read_record("blocks.json");
  size_t n = json_array_size(json_object_get(record, "x"));
  assert_true(n >= 512 && n % NX_NF4_BLOCK == 0);
  float *x = calloc(n, sizeof *x);
  uint8_t *codes = calloc(n / 2, 1);
  for (size_t i = 0; i < n; i++) x[i] = (float)at(record, "x", i);
  nx_nf4_encode(x, (int64_t)n, codes);
  for (size_t i = 0; i < n / 2; i++) assert_int_equal(codes[i], (int)at(record, "codes", i));
  for (size_t block = 0; block < n / NX_NF4_BLOCK; block++) {
    float absmax = nx_nf4_absmax(x + block * NX_NF4_BLOCK, NX_NF4_BLOCK);
    assert_true(absmax == (float)at(record, "absmax", block));
    for (size_t i = block * NX_NF4_BLOCK; i < (block + 1) * NX_NF4_BLOCK; i++) {
      uint8_t code = i % 2 ? codes[i / 2] & 15 : codes[i / 2] >> 4;
      assert_true(nx_nf4_values[code] * absmax == (float)at(record, "y", i));
    }
  }
  free(x);
  free(codes);
  json_decref(record);
}

static void nested_scales_are_those_of_bitsandbytes(void **state) {
  (void)state;
  json_t *record = read_record("nested.json");
  size_t n = json_array_size(json_object_get(record, "x"));
  float values[NX_NESTED_CODES], *scales = calloc(n, sizeof *scales);
  nx_nested_values(values);
  for (size_t i = 0; i < NX_NESTED_CODES; i++) assert_true(values[i] == (float)at(record, "map", i));
  for (size_t i = 0; i < n; i++) scales[i] = (float)at(record, "x", i);
  nx_nf4_nest(scales, n);
  for (size_t i = 0; i < n; i++) assert_true(scales[i] == (float)at(record, "y", i));
  free(scales);
  json_decref(record);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(blocks_are_those_of_bitsandbytes),
                                     cmocka_unit_test(nested_scales_are_those_of_bitsandbytes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
