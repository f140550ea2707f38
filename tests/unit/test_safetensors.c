/* SPDX-License-Identifier: Apache-2.0 */
/* Safetensors: what is written is read back, every type converts, and nothing damaged is believed. */
#include "runtime/files/safetensors.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/temporary.h"

#include <math.h>

/* A file with a header of that text, and n_bytes of 0, 1, 2, … behind it. */
static size_t compose(uint8_t bytes[1024], const char *header, size_t n_bytes) {
  uint64_t n_header = strlen(header);
  memcpy(bytes, &n_header, 8);
  memcpy(bytes + 8, header, n_header);
  for (size_t i = 0; i < n_bytes; i++) bytes[8 + n_header + i] = (uint8_t)i;
  return 8 + n_header + n_bytes;
}

static bool open_file(nxr_safetensors *file, nxr_fault *fault) {
  *fault = (nxr_fault){""};
  return nxr_safetensors_open(temporary_path(0, "file"), file, fault);
}

static void refuses(const char *because) {
  nxr_safetensors file;
  nxr_fault fault;
  if (open_file(&file, &fault)) fail_msg("was opened, expected: %s", because);
  if (strstr(fault.text, because) == NULL) fail_msg("expected \"%s\" in: %s", because, fault.text);
}

static void writes_what_it_reads(void **state) {
  (void)state;
  nxr_safetensor tensors[] = {{.name = "z", .dtype = NX_f64, .n_dims = 0},
                              {.name = "a", .dtype = NX_f32, .n_dims = 2, .dims = {2, 3}},
                              {.name = "empty", .dtype = NX_f32, .n_dims = 2, .dims = {0, 3}},
                              {.name = "b", .dtype = NX_bf16, .n_dims = 1, .dims = {3}}};
  uint64_t n_header, n_file;
  char *header = nxr_safetensors_layout(tensors, 4, &n_header, &n_file);
  assert_non_null(header);
  assert_int_equal(n_header % 8, 0);
  assert_int_equal(n_file, n_header + 8 + 24 + 0 + 6);
  uint8_t bytes[1024] = {0};
  const float values[] = {1, 2, 3, 4, 5, -6};
  const uint16_t halves[] = {0x3F80, 0xC000, 0x7F80};
  memcpy(bytes, header, n_header);
  memcpy(bytes + tensors[1].offset, values, sizeof values);
  memcpy(bytes + tensors[3].offset, halves, sizeof halves);
  free(header);
  temporary_write("file", bytes, n_file);

  nxr_safetensors file;
  nxr_fault fault;
  assert_true(open_file(&file, &fault));
  assert_int_equal(file.n_tensors, 4);
  assert_string_equal(file.tensors[0].name, "a");
  assert_null(nxr_safetensors_find(&file, "c"));
  const nxr_safetensor *a = nxr_safetensors_find(&file, "a"), *b = nxr_safetensors_find(&file, "b");
  assert_int_equal(a->dtype, NX_f32);
  assert_int_equal(a->n_dims, 2);
  assert_int_equal(a->dims[1], 3);
  float read[6];
  nxr_safetensor_floats(a, 2, 4, read);
  assert_memory_equal(read, values + 2, 4 * sizeof *read);
  nxr_safetensor_floats(b, 0, 3, read);
  assert_true(read[0] == 1.0f && read[1] == -2.0f && isinf(read[2]));
  assert_int_equal(nxr_safetensors_find(&file, "empty")->n_bytes, 0);
  char shape[160];
  nx_safetensor_shape(a, shape);
  assert_string_equal(shape, "[2, 3]");
  nxr_safetensors_close(&file);
}

static void reads_the_file_of_another_program(void **state) {
  (void)state;
  const char *root = getenv("NX_SOURCE_ROOT");
  assert_non_null(root);
  char path[512];
  snprintf(path, sizeof path, "%s/tests/parity/recorded/gpt2/model.safetensors", root);
  nxr_safetensors file;
  nxr_fault fault = {""};
  assert_true(nxr_safetensors_open(path, &file, &fault));
  const nxr_safetensor *tensor = nxr_safetensors_find(&file, "transformer.h.0.attn.c_attn.weight");
  assert_non_null(tensor);
  assert_int_equal(tensor->dims[0], 64);
  assert_int_equal(tensor->dims[1], 192);
  static float values[64 * 192];
  nxr_safetensor_floats(tensor, 0, 64 * 192, values);
  double squares = 0;
  for (size_t i = 0; i < 64 * 192; i++) squares += values[i] * values[i];
  double std = sqrt(squares / (64 * 192));
  assert_true(std > 0.001 && std < 1);
  nxr_safetensors_close(&file);
}

static void converts_every_half(void **state) {
  (void)state;
  static uint16_t halves[1 << 16];
  static float values[1 << 16];
  for (uint32_t i = 0; i < 1 << 16; i++) halves[i] = (uint16_t)i;
  const nxr_safetensor tensor = {.dtype = NX_f16, .bytes = (const uint8_t *)halves};
  nxr_safetensor_floats(&tensor, 0, 1 << 16, values);
  for (uint32_t i = 0; i < 1 << 16; i++) {
    int exponent = i >> 10 & 31, fraction = i & 1023;
    double size = exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
    if (exponent == 31) {
      assert_true(fraction ? isnan(values[i]) : isinf(values[i]));
    } else {
      assert_true(values[i] == (i >> 15 ? -size : size));
    }
    assert_int_equal(signbit(values[i]) != 0, i >> 15);
  }
  const double wide[] = {0.1, -1e300};
  nxr_safetensor_floats(&(nxr_safetensor){.dtype = NX_f64, .bytes = (const uint8_t *)wide}, 0, 2, values);
  assert_true(values[0] == 0.1f && isinf(values[1]));
}

static const char small[] =
    "{\"__metadata__\":{\"a\":\"b\"},\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
    "\"y\":{\"dtype\":\"BF16\",\"shape\":[2,1],\"data_offsets\":[8,12]}}";

static void refuses_every_truncation(void **state) {
  (void)state;
  uint8_t bytes[1024];
  size_t n = compose(bytes, small, 12);
  for (size_t i = 0; i < n; i++) {
    temporary_write("file", bytes, i);
    refuses("file is");
  }
  bytes[n] = 0;
  temporary_write("file", bytes, n + 1);
  refuses("belong to no tensor");
}

static void survives_every_changed_bit(void **state) {
  (void)state;
  uint8_t bytes[1024];
  size_t n = compose(bytes, small, 12);
  for (size_t bit = 0; bit < 8 * n; bit++) {
    bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    temporary_write("file", bytes, n);
    nxr_safetensors file;
    nxr_fault fault;
    if (open_file(&file, &fault)) {
      for (uint64_t i = 0; i < file.n_tensors; i++) {
        float values[8];
        const nxr_safetensor *tensor = &file.tensors[i];
        if (nx_safetensor_is_real(tensor))
          nxr_safetensor_floats(tensor, 0, tensor->n_bytes / (nx_dtype_bits(tensor->dtype) / 8), values);
      }
      nxr_safetensors_close(&file);
    } else {
      assert_true(fault.text[0] != '\0');
    }
    bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
  }
}

typedef struct damaged {
  const char *header;
  size_t n_bytes;
  const char *because;
} damaged;

#define X(dtype, shape, offsets)                                                                             \
  "{\"x\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
#define XY(x, y)                                                                    \
  "{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" x "},"                 \
  "\"y\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" y "}}"

static void refuses_damage(void **state) {
  (void)state;
  static const damaged files[] = {
      {"[]", 0, "not a safetensors file"},
      {"{\"x\"", 0, "not JSON"},
      {"{\"x\":1}", 0, "no dtype, shape"},
      {"{\"x\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "no dtype, shape"},
      {X("1", "[2]", "[0,8]"), 8, "no dtype, shape"},
      {X("\"F32\"", "2", "[0,8]"), 8, "no dtype, shape"},
      {X("\"F32\"", "[2]", "[0,8,9]"), 8, "no dtype, shape"},
      {X("\"F32\"", "[2]", "[0,8.0]"), 8, "no dtype, shape"},
      {X("\"F32\"", "[2]", "[0,12]"), 8, "lies outside the file"},
      {X("\"F32\"", "[2]", "[-8,0]"), 8, "lies outside the file"},
      {X("\"F32\"", "[2]", "[8,0]"), 8, "lies outside the file"},
      {X("\"F32\"", "[2]", "[9223372036854775807,9223372036854775807]"), 8, "lies outside the file"},
      {X("\"F32\"", "[2]", "[0,99999999999999999999]"), 8, "not JSON"},
      {X("\"F32\"", "[3]", "[0,8]"), 8, "as large as its shape"},
      {X("\"F32\"", "[-2]", "[0,8]"), 8, "impossible shape"},
      {X("\"F32\"", "[2.0]", "[0,8]"), 8, "impossible shape"},
      {X("\"F32\"", "[4611686018427387904,4]", "[0,8]"), 8, "impossible shape"},
      {X("\"F32\"", "[1,1,1,1,1,1,1,1,2]", "[0,8]"), 8, "too many dimensions"},
      {X("\"F32\"", "[2]", "[4,12]"), 12, "after bytes of no tensor"},
      {XY("[0,4]", "[2,6]"), 8, "shares bytes"},
      {XY("[0,4]", "[0,4]"), 8, "shares bytes"},
      {XY("[0,4]", "[5,9]"), 9, "after bytes of no tensor"},
      {XY("[0,4]", "[4,8]"), 9, "belong to no tensor"},
      {"{\"x\":{},\"x\":{}}", 0, "duplicate"},
      {"{\"\xff\":{}}", 0, "not JSON"},
  };
  uint8_t bytes[1024];
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    temporary_write("file", bytes, compose(bytes, files[i].header, files[i].n_bytes));
    refuses(files[i].because);
  }
  const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 7, UINT64_C(100000001), 1 << 20};
  for (size_t i = 0; i < 4; i++) {
    size_t n = compose(bytes, small, 12);
    memcpy(bytes, &sizes[i], 8);
    temporary_write("file", bytes, n);
    refuses(i < 3 ? "not a safetensors file" : "cut short");
  }
  remove(temporary_path(1, "file"));
  refuses("No such file");
}

static void passes_over_types_that_it_cannot_read(void **state) {
  (void)state;
  uint8_t bytes[1024];
  temporary_write("file", bytes, compose(bytes, X("\"F4_E2M1\"", "[16]", "[0,8]"), 8));
  nxr_safetensors file;
  nxr_fault fault;
  assert_true(open_file(&file, &fault));
  assert_false(nx_safetensor_is_real(&file.tensors[0]));
  nxr_safetensors_close(&file);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(writes_what_it_reads),
      cmocka_unit_test(reads_the_file_of_another_program),
      cmocka_unit_test(converts_every_half),
      cmocka_unit_test(refuses_every_truncation),
      cmocka_unit_test(survives_every_changed_bit),
      cmocka_unit_test(refuses_damage),
      cmocka_unit_test(passes_over_types_that_it_cannot_read),
  };
  return cmocka_run_group_tests_name("safetensors", tests, temporary_make, temporary_remove);
}
