/* SPDX-License-Identifier: Apache-2.0 */
/* Files that each rank of the tensors' and stages' groups wrote: dictionaries of tensors by name. */
#include "runtime/foreign/foreign_shards.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_DEEP = 6, NAME_BYTES = 256, MOST_RANKS = 1024 };

/* Where the tensors of a file go. */
typedef struct gatherer {
  nxr_foreign *foreign;
  const nx_torch_file *file;
  uint64_t shard;
  uint64_t first_layer; /* the file's layer 0 is this one */
  uint64_t n_layers;    /* of the file, as they are seen */
  uint64_t n_chunks;    /* of a stage, "model0", "model1" …; 0: "model" alone */
  bool (*rename)(struct gatherer *g, const char *name, char renamed[NAME_BYTES]);
  nxr_fault *fault;
} gatherer;

/* Dictionaries in dictionaries have their keys joined by dots; what is no tensor is passed over. */
static bool gather(gatherer *g, const nx_object *dictionary, const char *prefix, int depth) {
  for (size_t i = 0; i + 1 < dictionary->n_items; i += 2) {
    const nx_object *key = dictionary->items[i], *value = dictionary->items[i + 1];
    char name[NAME_BYTES], renamed[NAME_BYTES];
    nxr_torch_tensor tensor;
    if (key->kind != NX_OBJECT_TEXT || strstr(key->text, "_extra_state") != NULL) continue;
    if (snprintf(name, sizeof name, "%s%s%s", prefix, prefix[0] ? "." : "", key->text) >= NAME_BYTES)
      return nxr_fault_set(g->fault, "%s: a tensor's name is too long", g->file->path);
    if (value->kind == NX_OBJECT_DICT && depth < MOST_DEEP) {
      if (!gather(g, value, name, depth + 1)) return false;
    } else if (nxr_torch_is_tensor(value)) {
      if (!g->rename(g, name, renamed)) continue;
      if (!nxr_torch_tensor_of(g->file, value, name, &tensor, g->fault) ||
          !nxr_foreign_add(g->foreign, renamed, g->shard, &tensor, g->fault))
        return false;
    }
  }
  return true;
}

/* The tensors of the dictionary under `key`, or of the whole file. */
static bool gather_file(gatherer *g, const char *folder, const char *name, const char *key) {
  const nxr_foreign_file *mapped = nxr_foreign_map(g->foreign, folder, name, g->fault);
  nx_torch_file file;
  if (mapped == NULL ||
      !nxr_torch_open(mapped->path, mapped->mapping.bytes, mapped->mapping.n_bytes, &file, g->fault))
    return false;
  const nx_object *tensors = key ? nx_object_get(file.pickle.root, key) : file.pickle.root;
  g->file = &file;
  bool good = tensors && tensors->kind == NX_OBJECT_DICT
                  ? gather(g, tensors, "", 0)
                  : nxr_fault_set(g->fault, "%s has no dictionary \"%s\"", mapped->path, key ? key : "");
  nx_torch_close(&file);
  return good;
}

static bool is_there(const char *folder, const char *name) {
  char path[NXR_FOREIGN_PATH];
  return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path && access(path, F_OK) == 0;
}

/* ---- Megatron: layers are counted in each stage ---- */

static bool rename_megatron(gatherer *g, const char *name, char renamed[NAME_BYTES]) {
  static const char *const prefixes[] = {"module.", "language_model."};
  static const char layers[] = ".layers.";
  for (int i = 0; i < 2; i++)
    if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) name += strlen(prefixes[i]);
  const char *found = strstr(name, layers);
  const char *number = found ? found + sizeof layers - 1 : NULL;
  if (number == NULL || !isdigit((unsigned char)*number))
    return snprintf(renamed, NAME_BYTES, "%s", name) > 0;
  char *rest;
  uint64_t layer = strtoull(number, &rest, 10);
  if (layer >= g->n_layers) g->n_layers = layer + 1;
  return snprintf(renamed, NAME_BYTES, "%.*s%llu%s", (int)(number - name), name,
                  (unsigned long long)(layer + g->first_layer), rest) < NAME_BYTES;
}

static const char *name_chunk(char key[32], uint64_t chunk) {
  snprintf(key, 32, "model%llu", (unsigned long long)chunk);
  return key;
}

/* Counts the chunks, too. Before version 2 the rows of queries, keys and values stood in another order. */
static bool look_at_first(gatherer *g, const char *folder, const char *name) {
  const nxr_foreign_file *mapped = nxr_foreign_map(g->foreign, folder, name, g->fault);
  nx_torch_file file;
  if (mapped == NULL ||
      !nxr_torch_open(mapped->path, mapped->mapping.bytes, mapped->mapping.n_bytes, &file, g->fault))
    return false;
  const nx_object *version = nx_object_get(file.pickle.root, "checkpoint_version");
  bool old = version == NULL || version->number < 2;
  for (char key[32]; nx_object_get(file.pickle.root, name_chunk(key, g->n_chunks)); g->n_chunks++) continue;
  nx_torch_close(&file);
  if (old)
    return nxr_fault_set(g->fault,
                         "%s is of a checkpoint_version before 2, whose queries and keys stand in another "
                         "order: Megatron-LM's tools/checkpoint/convert.py writes it anew",
                         mapped->path);
  return true;
}

static void name_megatron(char name[NAME_BYTES], uint64_t shard, uint64_t stage, bool stages) {
  if (stages)
    snprintf(name, NAME_BYTES, "mp_rank_%02llu_%03llu/model_optim_rng.pt", (unsigned long long)shard,
             (unsigned long long)stage);
  else snprintf(name, NAME_BYTES, "mp_rank_%02llu/model_optim_rng.pt", (unsigned long long)shard);
}

/* Of a chunk of all stages. */
static bool gather_stages(gatherer *g, const char *folder, bool stages, const char *key) {
  char name[NAME_BYTES];
  for (uint64_t stage = 0; stage < (stages ? MOST_RANKS : 1); stage++) {
    name_megatron(name, 0, stage, stages);
    if (!is_there(folder, name)) break;
    g->n_layers = 0;
    for (g->shard = 0; g->shard < MOST_RANKS; g->shard++) {
      name_megatron(name, g->shard, stage, stages);
      if (!is_there(folder, name)) break;
      if (!gather_file(g, folder, name, key)) return false;
    }
    g->first_layer += g->n_layers;
  }
  return true;
}

/* Layers go through the first chunks of all stages, then through their second ones. */
bool nxr_gather_megatron(nxr_foreign *foreign, const char *folder, const char *state, nxr_fault *fault) {
  gatherer g = {.foreign = foreign, .rename = rename_megatron, .fault = fault};
  char name[NAME_BYTES], key[32];
  bool stages = is_there(folder, "mp_rank_00_000/model_optim_rng.pt");
  (void)state;
  name_megatron(name, 0, 0, stages);
  if (!look_at_first(&g, folder, name)) return false;
  if (g.n_chunks == 0) return gather_stages(&g, folder, stages, "model");
  for (uint64_t chunk = 0; chunk < g.n_chunks; chunk++)
    if (!gather_stages(&g, folder, stages, name_chunk(key, chunk))) return false;
  return true;
}

/* ---- GPT-NeoX: an entry of the model's list is a layer; embeddings and a reshaping stand before them ----
 */

enum { FIRST_LAYER = 2 };

static bool is_of_layer(const char *name) {
  static const char *const begin[] = {"input_layernorm.", "post_attention_layernorm.", "attention.", "mlp."};
  for (int i = 0; i < 4; i++)
    if (strncmp(name, begin[i], strlen(begin[i])) == 0) return true;
  return false;
}

/* g->first_layer is the entry. Positions that are computed are a buffer. */
static bool rename_neox(gatherer *g, const char *name, char renamed[NAME_BYTES]) {
  static const char list[] = "sequential.";
  uint64_t entry = g->first_layer;
  if (strncmp(name, list, sizeof list - 1) == 0) {
    char *rest;
    entry = strtoull(name + sizeof list - 1, &rest, 10);
    name = *rest == '.' ? rest + 1 : rest;
  }
  if (strstr(name, "rotary_emb.") || strstr(name, "inv_freq")) return false;
  if (!is_of_layer(name)) return snprintf(renamed, NAME_BYTES, "%s", name) < NAME_BYTES;
  if (entry < FIRST_LAYER) return false;
  return snprintf(renamed, NAME_BYTES, "layers.%llu.%s", (unsigned long long)(entry - FIRST_LAYER), name) <
         NAME_BYTES;
}

bool nxr_gather_neox(nxr_foreign *foreign, const char *folder, const char *state, nxr_fault *fault) {
  (void)state;
  gatherer g = {.foreign = foreign, .rename = rename_neox, .fault = fault};
  char name[NAME_BYTES];
  bool layers = is_there(folder, "layer_00-model_00-model_states.pt");
  for (g.first_layer = 0; g.first_layer < (layers ? MOST_RANKS : 1); g.first_layer++)
    for (g.shard = 0; g.shard < MOST_RANKS; g.shard++) {
      if (layers)
        snprintf(name, sizeof name, "layer_%02llu-model_%02llu-model_states.pt",
                 (unsigned long long)g.first_layer, (unsigned long long)g.shard);
      else snprintf(name, sizeof name, "mp_rank_%02llu_model_states.pt", (unsigned long long)g.shard);
      if (!is_there(folder, name)) break;
      if (!gather_file(&g, folder, name, layers ? NULL : "module")) return false;
    }
  return true;
}
