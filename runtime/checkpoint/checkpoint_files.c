/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/checkpoint_files.h"

#include "runtime/checkpoint/checkpoint_beside.h"
#include "runtime/checkpoint/checkpoint_write.h"

#include <stdio.h>
#include <stdlib.h>

static void name_shard(char name[NXR_FILE_NAME_BYTES], uint32_t shard, uint32_t n_shards) {
  if (n_shards == 1) snprintf(name, NXR_FILE_NAME_BYTES, NXR_MODEL_FILE);
  else snprintf(name, NXR_FILE_NAME_BYTES, "model-%05u-of-%05u.safetensors", shard, n_shards);
}

nxr_listing nxr_listing_of(const nxr_tensors *tensors) {
  bool states = tensors->pieces->plan->run_names->save_optimizer != 0;
  return (nxr_listing){states, states && nxr_tensors_saved(tensors) == NXR_MODEL, tensors->n_shards};
}

nxr_listing nxr_listing_read(const json_t *manifest, bool states) {
  const json_t *files = json_object_get(manifest, "files");
  nxr_listing listing = {states, json_object_get(files, NXR_MASTER_FILE) != NULL, 1};
  const char *name;
  json_t *file;
  json_object_foreach((json_t *)(uintptr_t)files, name, file) {
    uint32_t n_shards;
    if (sscanf(name, "model-00001-of-%5u.safetensors", &n_shards) == 1 && n_shards <= NXR_MAX_SHARDS)
      listing.n_shards = n_shards;
  }
  return listing;
}

static uint32_t list_model(const nxr_tensors *tensors, const nxr_listing *listing, nxr_content contents[],
                           nxr_checkpoint_file files[]) {
  bool written = tensors->shares != NULL; /* a folder that is there is read as it is */
  for (uint32_t i = 0; i < listing->n_shards; i++) {
    contents[i] = listing->apart ? NXR_MODEL : written ? nxr_tensors_saved(tensors) : NXR_WEIGHTS;
    files[i] = (nxr_checkpoint_file){.shard = listing->n_shards > 1 ? i + 1 : 0};
    name_shard(files[i].name, i + 1, listing->n_shards);
  }
  return listing->n_shards;
}

static void list_file(const char *name, nxr_content content, nxr_content *contents,
                      nxr_checkpoint_file *file) {
  *contents = content;
  *file = (nxr_checkpoint_file){.shard = 0};
  snprintf(file->name, sizeof file->name, "%s", name);
}

uint32_t nxr_checkpoint_list(const nxr_tensors *tensors, const nxr_listing *listing, nxr_content contents[],
                             nxr_checkpoint_file files[]) {
  bool has_base = nxr_manifest_has_base(tensors->pieces->plan);
  uint32_t n = has_base ? list_model(tensors, listing, contents, files) : 0;
  if (has_base && listing->apart) list_file(NXR_MASTER_FILE, NXR_WEIGHTS, &contents[n], &files[n]), n++;
  if (tensors->adapted) list_file(NXR_ADAPTER_FILE, NXR_ADAPTERS, &contents[n], &files[n]), n++;
  for (uint32_t i = 0; listing->states && i < tensors->n_states; i++, n++)
    list_file(tensors->states[i]->file, (nxr_content)(NXR_STATES + i), &contents[n], &files[n]);
  return n;
}

bool nxr_checkpoint_write_index(const nxr_tensors *tensors, const char *folder, nxr_fault *fault) {
  nxr_content content = nxr_tensors_saved(tensors);
  json_t *map = json_object();
  uint64_t n_bytes = 0;
  if (tensors->n_shards == 1 || !nxr_manifest_has_base(tensors->pieces->plan)) return json_decref(map), true;
  for (uint32_t i = 0; i < tensors->n; i++) {
    char name[NXR_FILE_NAME_BYTES];
    uint64_t one = nxr_tensors_bytes(tensors, content, i);
    name_shard(name, tensors->shard_of[i], tensors->n_shards);
    if (one > 0) json_object_set_new(map, tensors->items[i].name, json_string(name));
    n_bytes += one;
  }
  json_t *index =
      json_pack("{s:{s:I}, s:o}", "metadata", "total_size", (json_int_t)n_bytes, "weight_map", map);
  char *text = index ? json_dumps(index, JSON_INDENT(1)) : NULL;
  bool good =
      text ? nxr_write_text(folder, NXR_MODEL_INDEX, text, fault) : nxr_fault_set(fault, "out of memory");
  free(text);
  json_decref(index);
  return good;
}

bool nxr_checkpoint_verify(nxr_world *world, const char *folder, const nxr_checkpoint_file *files,
                           uint32_t n_files, nxr_fault *why) {
  nxr_sum sums[NXR_CHECKPOINT_FILES] = {0};
  bool good = true;
  for (uint32_t i = 0; i < n_files; i++) {
    char path[NXR_PATH_BYTES + 32];
    uint64_t n_bytes;
    snprintf(path, sizeof path, "%s/%s", folder, files[i].name);
    good = nxr_sum_file(path, world->rank, world->size, &sums[i], &n_bytes, why) && good;
  }
  if (!nxr_world_all(world, good)) return false;
  nxr_sum_combine(world, sums, n_files);
  for (uint32_t i = 0; world->rank == 0 && i < n_files; i++)
    if (!nxr_sum_equal(&sums[i], &files[i].sum))
      good = nxr_fault_set(why, "the checksum of %s is wrong", files[i].name);
  return nxr_world_all(world, good);
}
