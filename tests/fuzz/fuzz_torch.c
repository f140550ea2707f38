/* SPDX-License-Identifier: Apache-2.0 */
/* Takes any bytes for what torch.save wrote, or for a pickle: they are refused, or every object can be
 * followed and every element of every tensor be read. */
#include "runtime/files/safetensors.h"
#include "runtime/foreign/torch_file.h"
#include "tests/fuzz/replay.h"

#include <assert.h>
#include <string.h>

enum { MOST_DEEP = 8, MOST_READ = 4096 };

static volatile float seen;
static size_t n_followed; /* objects may be shared many times over */

static void read_tensor(const nxr_torch_tensor *tensor) {
  uint64_t n = 1, at[NXR_TENSOR_DIMS] = {0};
  for (uint32_t i = 0; i < tensor->n_dims; i++) n = tensor->dims[i] > MOST_READ / n ? 0 : n * tensor->dims[i];
  for (uint64_t element = 0; element < n; element++) {
    uint64_t place = 0;
    float value;
    for (uint32_t i = 0; i < tensor->n_dims; i++) place += at[i] * tensor->strides[i];
    nxr_floats(tensor->dtype, tensor->bytes + place * (nx_dtype_bits(tensor->dtype) / 8), 1, &value);
    seen = value;
    for (uint32_t i = tensor->n_dims; i-- > 0 && ++at[i] == tensor->dims[i];) at[i] = 0;
  }
}

static void follow(const nx_torch_file *file, const nx_object *object, int depth) {
  nxr_torch_tensor tensor;
  nxr_fault fault = {""};
  if (object == NULL || depth == MOST_DEEP || n_followed++ > MOST_READ) return;
  if (object->kind == NX_OBJECT_TEXT || object->kind == NX_OBJECT_GLOBAL)
    assert(strlen(object->text) < SIZE_MAX);
  (void)nx_object_get(object, "model");
  if (file && nxr_torch_is_tensor(object)) {
    if (nxr_torch_tensor_of(file, object, "it", &tensor, &fault)) read_tensor(&tensor);
    else assert(fault.text[0] != '\0');
  }
  for (size_t i = 0; i < object->n_items; i++) follow(file, object->items[i], depth + 1);
  follow(file, object->callee, depth + 1);
  follow(file, object->arguments, depth + 1);
  follow(file, object->state, depth + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
  nx_torch_file file;
  nx_pickle pickle;
  nxr_fault fault = {""};
  n_followed = 0;
  if (nx_is_zip(bytes, n_bytes)) {
    if (nxr_torch_open("input", bytes, n_bytes, &file, &fault)) {
      follow(&file, file.pickle.root, 0);
      nx_torch_close(&file);
      return 0;
    }
  } else if (nxr_pickle_read("input", bytes, n_bytes, &pickle, &fault)) {
    follow(NULL, pickle.root, 0);
    nx_pickle_close(&pickle);
    return 0;
  }
  assert(fault.text[0] != '\0');
  return 0;
}
