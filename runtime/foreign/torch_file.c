/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/foreign/torch_file.h"

#include "runtime/files/reading.h"

#include <string.h>

/* How torch calls the storages of each type. */
static const struct {
  const char *global;
  nx_dtype dtype;
} storages[] = {{"torch FloatStorage", NX_f32},
                {"torch BFloat16Storage", NX_bf16},
                {"torch HalfStorage", NX_f16},
                {"torch DoubleStorage", NX_f64}};
enum { N_STORAGES = sizeof storages / sizeof *storages };

static const char TENSOR[] = "torch._utils _rebuild_tensor_v2",
                  PARAMETER[] = "torch._utils _rebuild_parameter";

bool nxr_pickle_read(const char *path, const uint8_t *bytes, uint64_t n_bytes, nx_pickle *pickle,
                     nxr_fault *fault) {
  nx_fault found = {""};
  return nx_pickle_read(path, bytes, n_bytes, pickle, &found) || nxr_fault_set(fault, "%s", found.text);
}

bool nxr_torch_open(const char *path, const uint8_t *bytes, uint64_t n_bytes, nx_torch_file *file,
                    nxr_fault *fault) {
  nx_fault found = {""};
  nxr_reading_begin(path, NULL);
  bool good = nx_torch_open(path, bytes, n_bytes, file, &found);
  nxr_reading_end();
  return good || nxr_fault_set(fault, "%s", found.text);
}

static const nx_object *without_parameter(const nx_object *object) {
  const nx_object *data = nx_object_names(object, PARAMETER) ? nx_object_at(object->arguments, 0) : NULL;
  return data ? data : object;
}

bool nxr_torch_is_tensor(const nx_object *object) {
  static const char begin[] = "torch._utils _rebuild_";
  object = without_parameter(object);
  const nx_object *made = object && object->kind == NX_OBJECT_CALL ? object->callee : NULL;
  return made && made->kind == NX_OBJECT_GLOBAL && strncmp(made->text, begin, sizeof begin - 1) == 0;
}

static bool list_sizes(const nx_object *list, uint32_t *n, uint64_t sizes[NXR_TENSOR_DIMS]) {
  if (nx_object_names(list, "torch Size")) list = nx_object_at(list->arguments, 0);
  if (list == NULL || list->kind != NX_OBJECT_LIST || list->n_items > NXR_TENSOR_DIMS) return false;
  *n = (uint32_t)list->n_items;
  for (uint32_t i = 0; i < *n; i++)
    if (!nx_object_size(list->items[i], &sizes[i])) return false;
  return true;
}

/* Of ('storage', its class, key, device, elements) the member, and its type; 0: one that weights do not have.
 */
static const nx_zip_member *find_storage(const nx_torch_file *file, const nx_object *stored,
                                          nx_dtype *dtype) {
  const nx_object *what = stored && stored->kind == NX_OBJECT_STORED ? stored->arguments : NULL;
  const nx_object *class = nx_object_at(what, 1), *key = nx_object_at(what, 2);
  *dtype = 0;
  for (int i = 0; i < N_STORAGES; i++)
    if (nx_object_names(class, storages[i].global)) *dtype = storages[i].dtype;
  return key && key->kind == NX_OBJECT_TEXT ? nx_torch_find(file, "data/", key->text) : NULL;
}

/* Whether the last element, too, is one of so many. */
static bool is_within(const nxr_torch_tensor *tensor, uint64_t first, uint64_t n) {
  uint64_t last = first, more;
  for (uint32_t i = 0; i < tensor->n_dims; i++) {
    if (tensor->dims[i] == 0) return first <= n;
    if (__builtin_mul_overflow(tensor->dims[i] - 1, tensor->strides[i], &more) ||
        __builtin_add_overflow(last, more, &last))
      return false;
  }
  return last < n;
}

bool nxr_torch_tensor_of(const nx_torch_file *file, const nx_object *object, const char *name,
                         nxr_torch_tensor *tensor, nxr_fault *fault) {
  object = without_parameter(object);
  if (!nx_object_names(object, TENSOR) || object->kind != NX_OBJECT_CALL)
    return nxr_fault_set(fault, "%s: nxrun does not know how %s is made: by %.100s", file->path, name,
                         object && object->callee && object->callee->text ? object->callee->text : "nothing");
  const nx_object *arguments = object->arguments;
  uint32_t n_strides;
  uint64_t first;
  *tensor = (nxr_torch_tensor){0};
  const nx_zip_member *storage = find_storage(file, nx_object_at(arguments, 0), &tensor->dtype);
  if (tensor->dtype == 0) return nxr_fault_set(fault, "%s: %s has no type of weights", file->path, name);
  bool good = storage && nx_object_size(nx_object_at(arguments, 1), &first) &&
              list_sizes(nx_object_at(arguments, 2), &tensor->n_dims, tensor->dims) &&
              list_sizes(nx_object_at(arguments, 3), &n_strides, tensor->strides) &&
              n_strides == tensor->n_dims;
  uint64_t n_element = nx_dtype_bits(tensor->dtype) / 8;
  if (!good || !is_within(tensor, first, storage->n_bytes / n_element))
    return nxr_fault_set(fault, "%s is damaged: not all of %s is in it", file->path, name);
  tensor->bytes = storage->bytes + first * n_element;
  return true;
}
