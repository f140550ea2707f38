/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/adapter.h"

#include "datasets/adapter_parts.h"
#include "schema/regular.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, NAME_BYTES = 512 };

/* ---- what the adapter is ---- */

/* What PEFT can make of an adapter, and this cannot. */
static bool is_plain(const json_t *config, const char *path, nxr_fault *fault) {
  static const char *const refused[] = {"use_dora",      "lora_bias",       "rank_pattern",
                                        "alpha_pattern", "modules_to_save", "target_parameters"};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    const json_t *value = json_object_get(config, refused[i]);
    bool empty = value == NULL || json_is_null(value) || json_is_false(value) ||
                 (json_is_object(value) && json_object_size(value) == 0) ||
                 (json_is_array(value) && json_array_size(value) == 0);
    if (!empty) return nxr_fault_set(fault, "%s: adapters with %s cannot be merged here", path, refused[i]);
  }
  const char *type = json_string_value(json_object_get(config, "peft_type"));
  return (type != NULL && strcmp(type, "LORA") == 0) ||
         nxr_fault_set(fault, "%s: peft_type is not LORA", path);
}

static bool read_config(nxd_adapter *a, const char *folder, nxr_fault *fault) {
  char path[PATH_BYTES];
  json_error_t error;
  snprintf(path, sizeof path, "%s/adapter_config.json", folder);
  json_t *config = nx_json_read(path, JSON_REJECT_DUPLICATES, &error);
  if (config == NULL) return nxr_fault_set(fault, "cannot read %s: %s", path, error.text);
  bool good = is_plain(config, path, fault);
  const json_t *rank = json_object_get(config, "r"), *alpha = json_object_get(config, "lora_alpha");
  if (good && (json_integer_value(rank) < 1 || !json_is_number(alpha)))
    good = nxr_fault_set(fault, "%s lacks r or lora_alpha", path);
  bool stabilized = json_is_true(json_object_get(config, "use_rslora"));
  a->rank = json_integer_value(rank);
  a->scale = json_number_value(alpha) / (stabilized ? sqrt((double)a->rank) : (double)a->rank);
  a->transposed = json_is_true(json_object_get(config, "fan_in_fan_out"));
  json_decref(config);
  return good;
}

static bool adapter_open(nxd_adapter *a, const char *folder, nxr_fault *fault) {
  char path[PATH_BYTES];
  *a = (nxd_adapter){0};
  snprintf(path, sizeof path, "%s/adapter_model.safetensors", folder);
  if (!read_config(a, folder, fault) || !nxr_safetensors_open(path, &a->file, fault)) return false;
  a->used = calloc(a->file.n_tensors + 1, sizeof *a->used);
  if (a->used != NULL) return true;
  nxr_safetensors_close(&a->file);
  return nxr_fault_set(fault, "out of memory");
}

static void adapter_close(nxd_adapter *a) {
  nxr_safetensors_close(&a->file);
  free(a->used);
}

/* ---- files ---- */

static bool copy_file(const char *from, const char *to, nxr_fault *fault) {
  char block[1 << 16];
  FILE *in = fopen(from, "rb"), *out = in ? fopen(to, "wbx") : NULL;
  bool good = in != NULL && out != NULL;
  for (size_t n; good && (n = fread(block, 1, sizeof block, in)) > 0;) good = fwrite(block, 1, n, out) == n;
  good = good && !ferror(in);
  if (in) fclose(in);
  if (out && fclose(out) != 0) good = false;
  return good || nxr_fault_set(fault, "cannot copy %s to %s: %s", from, to, strerror(errno));
}

/* ---- what stands beside quantized weights, and tells of them ---- */

static bool write_json(const json_t *root, const char *to, nxr_fault *fault) {
  bool good = json_dump_file(root, to, JSON_INDENT(2)) == 0;
  return good || nxr_fault_set(fault, "cannot write %s", to);
}

static bool write_config(const char *from, const char *to, nxr_fault *fault) {
  json_t *config = nx_json_read(from, 0, NULL);
  if (config == NULL) return copy_file(from, to, fault);
  json_object_del(config, "quantization_config");
  bool good = write_json(config, to, fault);
  json_decref(config);
  return good;
}

/* Scales are gone, and packed codes are weights. */
static bool write_index(const char *from, const char *to, nxr_fault *fault) {
  json_t *index = nx_json_read(from, 0, NULL), *map = json_object(), *file;
  const char *name;
  if (index == NULL) return json_decref(map), copy_file(from, to, fault);
  json_object_foreach(json_object_get(index, "weight_map"), name, file) {
    char plain[NAME_BYTES];
    if (nx_tensor_is_scale(name)) continue;
    nxd_adapter_plain_name(name, plain, sizeof plain);
    json_object_set(map, plain, file);
  }
  json_object_set_new(index, "weight_map", map);
  json_object_del(index, "metadata");
  bool good = write_json(index, to, fault);
  json_decref(index);
  return good;
}

static bool write_beside(const char *name, const char *from, const char *to, bool quantized,
                         nxr_fault *fault) {
  if (quantized && strcmp(name, "config.json") == 0) return write_config(from, to, fault);
  if (quantized && strcmp(name, "model.safetensors.index.json") == 0) return write_index(from, to, fault);
  if (quantized && strcmp(name, "hf_quant_config.json") == 0) return true;
  return copy_file(from, to, fault);
}

static bool ends_with(const char *text, const char *end) {
  size_t n = strlen(text), n_end = strlen(end);
  return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

/* Weights are changed first; what stands beside them (config.json, the index, the tokenizer) is copied then.
 * Folders are not. */
static bool write_folder(const nxd_adapter *a, const char *base, const char *out, bool weights,
                         bool *quantized, nxr_fault *fault) {
  DIR *folder = opendir(base);
  bool good = folder != NULL || nxr_fault_set(fault, "cannot read %s: %s", base, strerror(errno));
  for (struct dirent *entry; good && (entry = readdir(folder)) != NULL;) {
    char from[PATH_BYTES], to[PATH_BYTES];
    struct stat status;
    int n = snprintf(from, sizeof from, "%s/%s", base, entry->d_name);
    int m = snprintf(to, sizeof to, "%s/%s", out, entry->d_name);
    if (n >= PATH_BYTES || m >= PATH_BYTES || stat(from, &status) != 0 || !S_ISREG(status.st_mode)) continue;
    if (ends_with(entry->d_name, ".safetensors") != weights) continue;
    good = weights ? nxd_adapter_write_file(a, from, to, quantized, fault)
                   : write_beside(entry->d_name, from, to, *quantized, fault);
  }
  if (folder) closedir(folder);
  return good;
}

/* Nothing of an adapter is left out in silence. */
static bool all_used(const nxd_adapter *a, nxr_fault *fault) {
  for (uint64_t i = 0; i < a->file.n_tensors; i++)
    if (!a->used[i])
      return nxr_fault_set(fault, "the adapter's tensor %s belongs to nothing in the model",
                           a->file.tensors[i].name);
  return true;
}

bool nxd_merge_adapter(const char *base, const char *adapter_folder, const char *out, nxr_fault *fault) {
  nxd_adapter a;
  struct stat status;
  char to[PATH_BYTES];
  if (stat(base, &status) != 0) return nxr_fault_set(fault, "cannot read %s: %s", base, strerror(errno));
  if (!adapter_open(&a, adapter_folder, fault)) return false;
  bool good = mkdir(out, 0777) == 0 || nxr_fault_set(fault, "cannot make %s: %s", out, strerror(errno));
  bool quantized = false;
  if (good && S_ISDIR(status.st_mode))
    good = write_folder(&a, base, out, true, &quantized, fault) &&
           write_folder(&a, base, out, false, &quantized, fault);
  else if (good) {
    snprintf(to, sizeof to, "%s/model.safetensors", out);
    good = nxd_adapter_write_file(&a, base, to, &quantized, fault);
  }
  good = good && all_used(&a, fault);
  adapter_close(&a);
  return good;
}
