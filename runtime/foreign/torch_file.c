/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/foreign/torch_file.h"

#include <stdio.h>
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

static bool find_prefix(nxr_torch_file *file) {
  static const char pickle[] = "/data.pkl";
  const size_t n_pickle = sizeof pickle - 1;
  for (size_t i = 0; i < file->zip.n_members; i++) {
    const nxr_zip_member *member = &file->zip.members[i];
    size_t n_prefix = member->n_name < n_pickle ? 0 : member->n_name - n_pickle;
    if (n_prefix == 0 || n_prefix + 2 > sizeof file->prefix ||
        memcmp(member->name + n_prefix, pickle, n_pickle) != 0)
      continue;
    snprintf(file->prefix, sizeof file->prefix, "%.*s/", (int)n_prefix, member->name);
    return true;
  }
  return false;
}

static const nxr_zip_member *find(const nxr_torch_file *file, const char *folder, const char *key) {
  char name[512];
  int n = snprintf(name, sizeof name, "%s%s%s", file->prefix, folder, key);
  return n < (int)sizeof name ? nxr_zip_find(&file->zip, name) : NULL;
}

static bool open_pickle(nxr_torch_file *file, nxr_fault *fault) {
  const nxr_zip_member *pickle = find_prefix(file) ? find(file, "data.pkl", "") : NULL;
  const nxr_zip_member *order = pickle ? find(file, "byteorder", "") : NULL;
  if (pickle == NULL) return nxr_fault_set(fault, "%s: torch.save has not written it", file->path);
  if (order && (order->n_bytes != 6 || memcmp(order->bytes, "little", 6) != 0))
    return nxr_fault_set(fault, "%s: its numbers have their bytes in another order", file->path);
  return nxr_pickle_read(file->path, pickle->bytes, pickle->n_bytes, &file->pickle, fault);
}

bool nxr_torch_open(const char *path, const uint8_t *bytes, uint64_t n_bytes, nxr_torch_file *file,
                    nxr_fault *fault) {
  *file = (nxr_torch_file){.path = path};
  if (!nxr_is_zip(bytes, n_bytes))
    return nxr_fault_set(fault,
                         "%s is no zip file, as torch.save writes them since PyTorch 1.6: read it with "
                         "torch.load, and save it again",
                         path);
  if (!nxr_zip_open(path, bytes, n_bytes, &file->zip, fault)) return false;
  if (open_pickle(file, fault)) return true;
  nxr_torch_close(file);
  return false;
}

void nxr_torch_close(nxr_torch_file *file) {
  nxr_zip_close(&file->zip);
  nxr_pickle_close(&file->pickle);
  *file = (nxr_torch_file){0};
}

static const nxr_object *without_parameter(const nxr_object *object) {
  const nxr_object *data = nxr_object_names(object, PARAMETER) ? nxr_object_at(object->arguments, 0) : NULL;
  return data ? data : object;
}

bool nxr_torch_is_tensor(const nxr_object *object) {
  static const char begin[] = "torch._utils _rebuild_";
  object = without_parameter(object);
  const nxr_object *made = object && object->kind == NXR_OBJECT_CALL ? object->callee : NULL;
  return made && made->kind == NXR_OBJECT_GLOBAL && strncmp(made->text, begin, sizeof begin - 1) == 0;
}

static bool list_sizes(const nxr_object *list, uint32_t *n, uint64_t sizes[NXR_TENSOR_DIMS]) {
  if (nxr_object_names(list, "torch Size")) list = nxr_object_at(list->arguments, 0);
  if (list == NULL || list->kind != NXR_OBJECT_LIST || list->n_items > NXR_TENSOR_DIMS) return false;
  *n = (uint32_t)list->n_items;
  for (uint32_t i = 0; i < *n; i++)
    if (!nxr_object_size(list->items[i], &sizes[i])) return false;
  return true;
}

/* Of ('storage', its class, key, device, elements) the member, and its type; 0: one that weights do not have.
 */
static const nxr_zip_member *find_storage(const nxr_torch_file *file, const nxr_object *stored,
                                          nx_dtype *dtype) {
  const nxr_object *what = stored && stored->kind == NXR_OBJECT_STORED ? stored->arguments : NULL;
  const nxr_object *class = nxr_object_at(what, 1), *key = nxr_object_at(what, 2);
  *dtype = 0;
  for (int i = 0; i < N_STORAGES; i++)
    if (nxr_object_names(class, storages[i].global)) *dtype = storages[i].dtype;
  return key && key->kind == NXR_OBJECT_TEXT ? find(file, "data/", key->text) : NULL;
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

bool nxr_torch_tensor_of(const nxr_torch_file *file, const nxr_object *object, const char *name,
                         nxr_torch_tensor *tensor, nxr_fault *fault) {
  object = without_parameter(object);
  if (!nxr_object_names(object, TENSOR) || object->kind != NXR_OBJECT_CALL)
    return nxr_fault_set(fault, "%s: nxrun does not know how %s is made: by %.100s", file->path, name,
                         object && object->callee && object->callee->text ? object->callee->text : "nothing");
  const nxr_object *arguments = object->arguments;
  uint32_t n_strides;
  uint64_t first;
  *tensor = (nxr_torch_tensor){0};
  const nxr_zip_member *storage = find_storage(file, nxr_object_at(arguments, 0), &tensor->dtype);
  if (tensor->dtype == 0) return nxr_fault_set(fault, "%s: %s has no type of weights", file->path, name);
  bool good = storage && nxr_object_size(nxr_object_at(arguments, 1), &first) &&
              list_sizes(nxr_object_at(arguments, 2), &tensor->n_dims, tensor->dims) &&
              list_sizes(nxr_object_at(arguments, 3), &n_strides, tensor->strides) &&
              n_strides == tensor->n_dims;
  uint64_t n_element = nx_dtype_bits(tensor->dtype) / 8;
  if (!good || !is_within(tensor, first, storage->n_bytes / n_element))
    return nxr_fault_set(fault, "%s is damaged: not all of %s is in it", file->path, name);
  tensor->bytes = storage->bytes + first * n_element;
  return true;
}
