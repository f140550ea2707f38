/* SPDX-License-Identifier: Apache-2.0 */
/* torch.distributed.checkpoint, which Megatron calls torch_dist: .metadata says which piece of which tensor
 * stands where in which file. Each piece is a file of torch.save in itself. */
#include "runtime/foreign/foreign_shards.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What stands in a name where all layers of a decoder, or all experts of a layer, are one tensor, one behind
 * the other; and the name of one of them. */
static const struct {
  const char *all, *each;
} stacks[] = {{".layers.", ".layers."}, {".experts.experts.", ".experts.local_experts."}};
enum { N_STACKS = sizeof stacks / sizeof *stacks };

static const char STATES[] = "optimizer.state.", MASTERS[] = "fp32_param";

typedef struct pieces {
  nxr_foreign *foreign;
  const char *folder;
  const char *state; /* see nxr_foreign_open; NULL: the weights as the model computes with them */
  const nx_object *tensors; /* of .metadata, by name */
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

/* The stack that a name has, and what is behind it; N_STACKS: none. */
static int find_stack(const char *name, const char **rest) {
  for (int i = 0; i < N_STACKS; i++) {
    const char *found = strstr(name, stacks[i].all);
    *rest = found ? found + strlen(stacks[i].all) : NULL;
    if (found && !isdigit((unsigned char)**rest)) return i;
  }
  return N_STACKS;
}

/* Takes what is stacked apart. */
static bool add_each(pieces *p, const char *name, const nxr_torch_tensor *all, const uint64_t *at) {
  const char *rest;
  int stack = all->n_dims >= 2 ? find_stack(name, &rest) : N_STACKS;
  if (stack == N_STACKS) return add_piece(p, name, all, at);
  nxr_torch_tensor one = *all;
  one.n_dims--;
  memmove(one.dims, all->dims + 1, sizeof one.dims - sizeof one.dims[0]);
  memmove(one.strides, all->strides + 1, sizeof one.strides - sizeof one.strides[0]);
  int n_before = (int)(rest - name) - (int)strlen(stacks[stack].all);
  for (uint64_t i = 0; i < all->dims[0] && i < UINT16_MAX; i++) {
    char numbered[512];
    int n = snprintf(numbered, sizeof numbered, "%.*s%s%llu.%s", n_before, name, stacks[stack].each,
                     (unsigned long long)(at[0] + i), rest);
    one.bytes = all->bytes + i * all->strides[0] * (nx_dtype_bits(all->dtype) / 8);
    if (n >= (int)sizeof numbered) return nxr_fault_set(p->fault, "the name %.100s is too long", name);
    if (!add_each(p, numbered, &one, at + 1)) return false;
  }
  return true;
}

/* How large .metadata says that a tensor is; 0 dimensions: it does not. */
static uint32_t find_dims(const pieces *p, const char *name, uint64_t dims[NXR_TENSOR_DIMS]) {
  const nx_object *size = nx_object_get(nx_object_get(p->tensors, name), "size");
  if (size && nx_object_names(size, "torch Size")) size = nx_object_at(size->arguments, 0);
  if (size == NULL || size->kind != NX_OBJECT_LIST || size->n_items > NXR_TENSOR_DIMS) return 0;
  for (uint32_t i = 0; i < size->n_items; i++)
    if (!nx_object_size(size->items[i], &dims[i])) return 0;
  return (uint32_t)size->n_items;
}

typedef struct named {
  pieces *p;
  const char *name;
} named;

static bool add_box(void *of, const nxr_torch_tensor *box, const uint64_t at[NXR_TENSOR_DIMS]) {
  named *to = of;
  return add_each(to->p, to->name, box, at);
}

/* What a state has of a weight: a tensor like it, or runs of its elements. `all` is the name of the state. */
static bool add_state(pieces *p, const char *all, const char *name, const nxr_torch_tensor *tensor,
                      const uint64_t *at) {
  uint64_t dims[NXR_TENSOR_DIMS], parts[NXR_TENSOR_DIMS];
  uint32_t n_dims = find_dims(p, name, dims);
  named to = {p, name};
  bool runs = n_dims > 1 && n_dims < NXR_TENSOR_DIMS && tensor->n_dims == n_dims + 1 &&
              find_dims(p, all, parts) == n_dims + 1;
  if (!runs) return add_each(p, name, tensor, at);
  if (nxr_foreign_boxes(tensor, at, dims, parts, n_dims, add_box, &to)) return true;
  if (p->fault->text[0] != '\0') return false;
  return nxr_fault_set(p->fault, "%s/.metadata is damaged: at %.200s", p->folder, all);
}

static bool read_piece(pieces *p, const char *all, const char *name, const nx_object *offsets,
                       const nx_torch_file *file) {
  nxr_torch_tensor tensor;
  uint64_t at[NXR_TENSOR_DIMS + 1] = {0};
  static const char *const prefixes[] = {"module.", "model."};
  if (!nxr_torch_tensor_of(file, file->pickle.root, name, &tensor, p->fault)) return false;
  if (offsets->kind != NX_OBJECT_NONE && !read_offsets(offsets, tensor.n_dims, at))
    return nxr_fault_set(p->fault, "%s/.metadata is damaged: at %.200s", p->folder, name);
  if (name != all) return add_state(p, all, name, &tensor, at);
  for (int i = 0; i < 2; i++) /* of what holds the model */
    if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0 &&
        strstr(name, "decoder.") == name + strlen(prefixes[i]))
      name += strlen(prefixes[i]);
  return add_each(p, name, &tensor, at);
}

/* What is no weight has a name that says so. */
static bool is_other(const char *name) {
  return strncmp(name, "optim", 5) == 0 || strncmp(name, "chained", 7) == 0 || strstr(name, "_extra_state") ||
         strncmp(name, "rng", 3) == 0 || strstr(name, "rerun_state");
}

/* "optimizer.state.exp_avg.NAME", or behind the number of one of several optimizers: NAME; NULL: it is not of
 * this state. */
static const char *name_of_state(const char *name, const char *state) {
  const char *found = strstr(name, STATES);
  if (found == NULL || strncmp(found += sizeof STATES - 1, state, strlen(state)) != 0) return NULL;
  return found[strlen(state)] == '.' ? found + strlen(state) + 1 : NULL;
}

static bool has_master(const nx_object *tensors, const char *name) {
  for (size_t i = 0; i + 1 < tensors->n_items; i += 2) {
    const nx_object *key = tensors->items[i];
    const char *of = key->kind == NX_OBJECT_TEXT ? name_of_state(key->text, MASTERS) : NULL;
    if (of && strcmp(of, name) == 0) return true;
  }
  return false;
}

/* The model's name for a tensor that is wanted; NULL: it is not. What the optimizer has no master copy of is
 * its own. */
static const char *name_wanted(const pieces *p, const nx_object *tensors, const char *name) {
  const char *of = p->state ? name_of_state(name, p->state) : NULL;
  bool weights = p->state == NULL || strcmp(p->state, MASTERS) == 0;
  if (of || !weights || is_other(name)) return of;
  return p->state && has_master(tensors, name) ? NULL : name;
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
  if (nx_object_get(nx_object_get(tensors, fqn->text), "size") == NULL) return true;
  const char *wanted = name_wanted(p, tensors, fqn->text);
  if (wanted == NULL) return true;
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
  bool good = read_piece(p, fqn->text, wanted, offsets, &file);
  nx_torch_close(&file);
  return good;
}

bool nxr_gather_pieces(nxr_foreign *foreign, const char *folder, const char *state, nxr_fault *fault) {
  pieces p = {.foreign = foreign, .folder = folder, .state = state, .fault = fault};
  const nxr_foreign_file *mapped = nxr_foreign_map(foreign, folder, ".metadata", fault);
  nx_pickle pickle;
  foreign->placed = true;
  if (mapped == NULL ||
      !nxr_pickle_read(mapped->path, mapped->mapping.bytes, mapped->mapping.n_bytes, &pickle, fault))
    return false;
  const nx_object *tensors = nx_object_get(pickle.root, "state_dict_metadata"),
                   *places = nx_object_get(pickle.root, "storage_data");
  p.tensors = tensors;
  bool good = tensors && places && places->kind == NX_OBJECT_DICT;
  if (!good) nxr_fault_set(fault, "%s is no list of pieces that nxrun knows", mapped->path);
  for (size_t i = 0; good && i + 1 < places->n_items; i += 2)
    good = read_entry(&p, tensors, places->items[i], places->items[i + 1]);
  nx_pickle_close(&pickle);
  return good;
}
