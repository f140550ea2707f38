/* SPDX-License-Identifier: Apache-2.0 */
/* Takes any bytes for a safetensors file: it is refused, or every element of it can be read. */
#include "runtime/files/safetensors.h"
#include "tests/fuzz/replay.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile float seen;

static void read_tensor(const nxr_safetensors *file, const nxr_safetensor *tensor) {
  float values[256];
  char shape[160];
  nx_safetensor_shape(tensor, shape);
  assert(nxr_safetensors_find(file, tensor->name) == tensor);
  assert(tensor->bytes >= file->mapping.bytes + 8 && tensor->n_bytes <= file->mapping.n_bytes);
  if (!nx_safetensor_is_real(tensor)) return;
  uint64_t n = tensor->n_bytes / (nx_dtype_bits(tensor->dtype) / 8);
  for (uint64_t first = 0; first < n; first += 256) {
    nxr_safetensor_floats(tensor, first, n - first < 256 ? n - first : 256, values);
    seen = values[0];
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
  static int memory = -1;
  char path[64];
  if (memory < 0) memory = memfd_create("input", 0);
  assert(memory >= 0);
  if (ftruncate(memory, 0) != 0 || pwrite(memory, bytes, n_bytes, 0) != (ssize_t)n_bytes) abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", memory);
  nxr_safetensors file;
  nxr_fault fault = {""};
  if (nxr_safetensors_open(path, &file, &fault)) {
    for (uint64_t i = 0; i < file.n_tensors; i++) read_tensor(&file, &file.tensors[i]);
    nxr_safetensors_close(&file);
  } else {
    assert(fault.text[0] != '\0');
  }
  return 0;
}
