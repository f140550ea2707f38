/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/foreign/foreign.h"

#include "runtime/foreign/foreign_shards.h"
#include "schema/regular.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Which files tell what a folder is, and who gathers its shards. */
static const struct {
  const char *file;
  nxr_foreign_system system;
  bool (*gather)(nxr_foreign *foreign, const char *folder, const char *state, nxr_fault *fault);
  const char *tool; /* what makes safetensors of it */
} kinds[] = {
    {".metadata", NXR_FOREIGN_MEGATRON, nxr_gather_pieces, "Megatron Bridge"},
    {"mp_rank_00/model_optim_rng.pt", NXR_FOREIGN_MEGATRON, nxr_gather_megatron,
     "Megatron-LM's tools/checkpoint/convert.py, or Megatron Bridge,"},
    {"mp_rank_00_000/model_optim_rng.pt", NXR_FOREIGN_MEGATRON, nxr_gather_megatron,
     "Megatron-LM's tools/checkpoint/convert.py, or Megatron Bridge,"},
    {"layer_00-model_00-model_states.pt", NXR_FOREIGN_NEOX, nxr_gather_neox,
     "GPT-NeoX's tools/ckpts/convert_neox_to_hf.py"},
    {"mp_rank_00_model_states.pt", NXR_FOREIGN_NEOX, nxr_gather_neox,
     "GPT-NeoX's tools/ckpts/convert_neox_to_hf.py"},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds, MOST_GROUPS_DEEP = 3 };

static bool has(const char *folder, const char *file) {
  char path[NXR_FOREIGN_PATH];
  return snprintf(path, sizeof path, "%s/%s", folder, file) < (int)sizeof path && access(path, F_OK) == 0;
}

static int kind_of(const char *folder) {
  for (int i = 0; i < N_KINDS; i++)
    if (has(folder, kinds[i].file)) return i;
  return N_KINDS;
}

/* The first word of a small file; "" where there is none. */
static void read_word(const char *folder, const char *name, char word[64]) {
  char path[NXR_FOREIGN_PATH];
  word[0] = '\0';
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return;
  FILE *file = nx_regular_open(path);
  if (file == NULL) return;
  if (fscanf(file, "%63[A-Za-z0-9_]", word) != 1) word[0] = '\0';
  fclose(file);
}

/* The name of the checkpoint's folder in the one that a run saves to: as the systems call it for a step, or
 * as the file beside it says. */
static bool name_folder(const char *directory, uint64_t step, char name[96]) {
  char word[64];
  unsigned long long number;
  int end = 0;
  read_word(directory, "latest_checkpointed_iteration.txt", word);
  bool megatron = word[0] != '\0';
  if (!megatron) read_word(directory, "latest", word);
  if (word[0] == '\0') return false;
  if (step > 0) snprintf(name, 96, megatron ? "iter_%07" PRIu64 : "global_step%" PRIu64, step);
  else if (megatron && sscanf(word, "%llu%n", &number, &end) == 1 && word[end] == '\0')
    snprintf(name, 96, "iter_%07llu", number);
  else snprintf(name, 96, "%s", word);
  return true;
}

static uint64_t step_of(const char *path) {
  const char *name = strrchr(path, '/');
  unsigned long long step;
  name = name ? name + 1 : path;
  if (sscanf(name, "iter_%llu", &step) == 1 || sscanf(name, "global_step%llu", &step) == 1) return step;
  return 0;
}

bool nxr_foreign_find(const char *directory, uint64_t step, char path[NXR_FOREIGN_PATH], uint64_t *found) {
  char name[96];
  if (strlen(directory) + sizeof name + 256 > NXR_FOREIGN_PATH) return false;
  snprintf(path, NXR_FOREIGN_PATH, "%s", directory);
  for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--) path[n - 1] = '\0';
  if (kind_of(path) == N_KINDS) {
    if (!name_folder(directory, step, name)) return false;
    snprintf(path + strlen(path), sizeof name + 1, "/%s", name);
  }
  *found = step_of(path);
  return kind_of(path) < N_KINDS;
}

static int by_name(const void *a, const void *b) {
  const nxr_shard *x = a, *y = b;
  int order = strcmp(x->name, y->name);
  return order ? order : (x->order > y->order) - (x->order < y->order);
}

nxr_foreign *nxr_foreign_open(const char *path, const char *state, nxr_fault *fault) {
  int kind = kind_of(path);
  nxr_foreign *foreign = calloc(1, sizeof *foreign);
  if (foreign == NULL) return nxr_fault_set(fault, "out of memory"), NULL;
  nxr_fault why = {""};
  if (kind == N_KINDS) nxr_fault_set(fault, "%s is no checkpoint that nxrun knows", path);
  else foreign->system = kinds[kind].system;
  if (kind < N_KINDS && kinds[kind].gather(foreign, path, state, &why)) {
    if (foreign->n_shards > 0) qsort(foreign->shards, foreign->n_shards, sizeof *foreign->shards, by_name);
    return foreign;
  }
  if (kind < N_KINDS)
    nxr_fault_set(fault, "%.800s. %s makes safetensors of such a checkpoint", why.text, kinds[kind].tool);
  nxr_foreign_close(foreign);
  return NULL;
}

/* The first number of updates that a group of parameters has, in dictionaries in dictionaries. */
static bool find_updates(const nx_object *object, int depth, uint64_t *updates) {
  const nx_object *groups = nx_object_get(object, "param_groups");
  if (nx_object_size(nx_object_get(nx_object_at(groups, 0), "step"), updates)) return true;
  bool in_turn = object->kind == NX_OBJECT_DICT;
  if (depth == 0 || (!in_turn && object->kind != NX_OBJECT_LIST)) return false;
  for (size_t i = in_turn; i < object->n_items; i += in_turn ? 2 : 1)
    if (find_updates(object->items[i], depth - 1, updates)) return true;
  return false;
}

/* What Megatron writes of all ranks beside the pieces, where it is there. */
static bool read_updates(nxr_foreign *foreign, const char *path, uint64_t *updates, nxr_fault *fault) {
  nx_torch_file file;
  if (!has(path, "common.pt")) return true;
  const nxr_foreign_file *mapped = nxr_foreign_map(foreign, path, "common.pt", fault);
  if (mapped == NULL ||
      !nxr_torch_open(mapped->path, mapped->mapping.bytes, mapped->mapping.n_bytes, &file, fault))
    return false;
  const nx_object *optimizer = nx_object_get(file.pickle.root, "optimizer");
  if (optimizer) find_updates(optimizer, MOST_GROUPS_DEEP, updates);
  nx_torch_close(&file);
  return true;
}

bool nxr_foreign_has_states(const char *path, uint64_t *updates, nxr_fault *fault) {
  if (!has(path, ".metadata")) return false;
  nxr_foreign *foreign = nxr_foreign_open(path, "exp_avg", fault);
  bool good = foreign && foreign->n_shards > 0 && read_updates(foreign, path, updates, fault);
  nxr_foreign_close(foreign);
  return good;
}

uint64_t nxr_foreign_size(const nxr_foreign *foreign) {
  return foreign->n_shards;
}

void nxr_foreign_close(nxr_foreign *foreign) {
  if (foreign == NULL) return;
  for (size_t i = 0; i < foreign->n_shards; i++) free(foreign->shards[i].name);
  for (size_t i = 0; i < foreign->n_owned; i++) free(foreign->owned[i]);
  for (size_t i = 0; i < foreign->n_files; i++) {
    nxr_mapping_close(&foreign->files[i]->mapping);
    free(foreign->files[i]);
  }
  free(foreign->shards);
  free(foreign->owned);
  free(foreign->files);
  free(foreign);
}
