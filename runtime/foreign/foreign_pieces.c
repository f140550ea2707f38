/* SPDX-License-Identifier: Apache-2.0 */
/* torch.distributed.checkpoint, which Megatron calls torch_dist: .metadata says which piece of which tensor
 * stands where in which file. Each piece is a file of torch.save in itself. */
#include "runtime/foreign/foreign_shards.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char LAYERS[] = ".layers.";

typedef struct pieces {
  nxr_foreign *foreign;
  const char *folder;
  nxr_fault *fault;
} pieces;

/* A file once, however many pieces are in it. */
static const nxr_foreign_file *open_file(pieces *p, const char *name) {
  size_t n_folder = strlen(p->folder);
  if (name[0] == '\0' || strchr(name, '/') || strcmp(name, "..") == 0)
    return nxr_fault_set(p->fault, "%s/.metadata names a file outside of its folder", p->folder), NULL;
  for (size_t i = p->foreign->n_files; i > 0; i--) {
    const nxr_foreign_file *file = p->foreign->files[i - 1];
    if (strlen(file->path) > n_folder && strcmp(file->path + n_folder + 1, name) == 0) return file;
  }
  return nxr_foreign_map(p->foreign, p->folder, name, p->fault);
}

/* Where a piece begins in the tensor. */
static bool read_offsets(const nx_object *offsets, uint32_t n, uint64_t at[NXR_TENSOR_DIMS]) {
  if (nx_object_names(offsets, "torch Size")) offsets = nx_object_at(offsets->arguments, 0);
  if (offsets == NULL || offsets->kind != NX_OBJECT_LIST || offsets->n_items != n) return false;
  for (uint32_t i = 0; i < n; i++)
    if (!nx_object_size(offsets->items[i], &at[i]) || at[i] > UINT32_MAX) return false;
  return true;
}

static bool add_piece(pieces *p, const char *name, const nxr_torch_tensor *tensor, const uint64_t *at) {
  size_t n = p->foreign->n_shards;
  if (!nxr_foreign_add(p->foreign, name, n, tensor, p->fault)) return false;
  if (p->foreign->n_shards == n) return true;
  nxr_chunk *chunk = &p->foreign->shards[n].chunk;
  chunk->row = at[0];
  chunk->column = tensor->n_dims == 2 ? at[1] : 0;
  return true;
}

/* All layers of a decoder may stand in one tensor, one behind the other: "decoder.layers.mlp…". */
static bool add_layers(pieces *p, const char *name, const char *rest, const nxr_torch_tensor *all,
                       const uint64_t *at) {
  nxr_torch_tensor one = *all;
  one.n_dims--;
  memmove(one.dims, all->dims + 1, sizeof one.dims - sizeof one.dims[0]);
  memmove(one.strides, all->strides + 1, sizeof one.strides - sizeof one.strides[0]);
  for (uint64_t i = 0; i < all->dims[0] && i < UINT16_MAX; i++) {
    char numbered[512];
    int n = snprintf(numbered, sizeof numbered, "%.*s%llu.%s", (int)(rest - name), name,
                     (unsigned long long)(at[0] + i), rest);
    one.bytes = all->bytes + i * all->strides[0] * (nx_dtype_bits(all->dtype) / 8);
    if (n >= (int)sizeof numbered) return nxr_fault_set(p->fault, "the name %.100s is too long", name);
    if (!add_piece(p, numbered, &one, at + 1)) return false;
  }
  return true;
}

static bool read_piece(pieces *p, const char *name, const nx_object *offsets, const nx_torch_file *file) {
  nxr_torch_tensor tensor;
  uint64_t at[NXR_TENSOR_DIMS] = {0};
  static const char *const prefixes[] = {"module.", "model."};
  if (!nxr_torch_tensor_of(file, file->pickle.root, name, &tensor, p->fault)) return false;
  if (offsets->kind != NX_OBJECT_NONE && !read_offsets(offsets, tensor.n_dims, at))
    return nxr_fault_set(p->fault, "%s/.metadata is damaged: at %.200s", p->folder, name);
  const char *found = strstr(name, LAYERS), *rest = found ? found + sizeof LAYERS - 1 : NULL;
  bool stacked = rest && !isdigit((unsigned char)*rest) && tensor.n_dims >= 2;
  for (int i = 0; i < 2; i++) /* of what holds the model */
    if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0 &&
        strstr(name, "decoder.") == name + strlen(prefixes[i]))
      name += strlen(prefixes[i]);
  return stacked ? add_layers(p, name, rest, &tensor, at) : add_piece(p, name, &tensor, at);
}

/* What is no weight has a name that says so. */
static bool is_passed_over(const char *name) {
  return strncmp(name, "optim", 5) == 0 || strncmp(name, "chained", 7) == 0 || strstr(name, "_extra_state") ||
         strncmp(name, "rng", 3) == 0 || strstr(name, "rerun_state");
}

/* An entry of storage_data: which piece of which tensor; and where it stands. */
static bool read_entry(pieces *p, const nx_object *tensors, const nx_object *index,
                       const nx_object *place) {
  const nx_object *fqn = nx_object_get(index, "fqn"), *offsets = nx_object_get(index, "offset");
  const nx_object *name = nx_object_get(place, "relative_path");
  uint64_t at, n;
  nx_torch_file file;
  if (fqn == NULL || fqn->kind != NX_OBJECT_TEXT || offsets == NULL || name == NULL ||
      name->kind != NX_OBJECT_TEXT || !nx_object_size(nx_object_get(place, "offset"), &at) ||
      !nx_object_size(nx_object_get(place, "length"), &n))
    return nxr_fault_set(p->fault, "%s/.metadata is damaged: it does not say where a piece stands",
                         p->folder);
  if (is_passed_over(fqn->text) || nx_object_get(nx_object_get(tensors, fqn->text), "size") == NULL)
    return true;
  const nx_object *packing = nx_object_get(place, "transform_descriptors");
  if (packing && packing->kind != NX_OBJECT_NONE && packing->n_items > 0)
    return nxr_fault_set(p->fault,
                         "%s: its files are packed: dcp_to_torch of "
                         "torch.distributed.checkpoint.format_utils unpacks them",
                         p->folder);
  const nxr_foreign_file *mapped = open_file(p, name->text);
  if (mapped == NULL) return false;
  if (at > mapped->mapping.n_bytes || n > mapped->mapping.n_bytes - at)
    return nxr_fault_set(p->fault, "%s is damaged: it is shorter than .metadata says", mapped->path);
  if (!nxr_torch_open(mapped->path, mapped->mapping.bytes + at, n, &file, p->fault)) return false;
  bool good = read_piece(p, fqn->text, offsets, &file);
  nx_torch_close(&file);
  return good;
}

bool nxr_gather_pieces(nxr_foreign *foreign, const char *folder, nxr_fault *fault) {
  pieces p = {foreign, folder, fault};
  const nxr_foreign_file *mapped = nxr_foreign_map(foreign, folder, ".metadata", fault);
  nx_pickle pickle;
  foreign->placed = true;
  if (mapped == NULL ||
      !nxr_pickle_read(mapped->path, mapped->mapping.bytes, mapped->mapping.n_bytes, &pickle, fault))
    return false;
  const nx_object *tensors = nx_object_get(pickle.root, "state_dict_metadata"),
                   *places = nx_object_get(pickle.root, "storage_data");
  bool good = tensors && places && places->kind == NX_OBJECT_DICT;
  if (!good) nxr_fault_set(fault, "%s is no list of pieces that nxrun knows", mapped->path);
  for (size_t i = 0; good && i + 1 < places->n_items; i += 2)
    good = read_entry(&p, tensors, places->items[i], places->items[i + 1]);
  nx_pickle_close(&pickle);
  return good;
}
