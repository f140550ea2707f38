/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/adapter.h"

#include "runtime/files/safetensors.h"
#include "schema/bf16.h"
#include "schema/f16.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, NAME_BYTES = 512 };

static const char PREFIX[] = "base_model.model.", SECOND[] = ".lora_B.weight";

typedef struct adapter {
  nxr_safetensors file;
  bool *used; /* per tensor */
  int64_t rank;
  double scale;
  bool transposed; /* the base has inputs in rows */
} adapter;

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

static bool read_config(adapter *a, const char *folder, nxr_fault *fault) {
  char path[PATH_BYTES];
  json_error_t error;
  snprintf(path, sizeof path, "%s/adapter_config.json", folder);
  json_t *config = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
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

static bool adapter_open(adapter *a, const char *folder, nxr_fault *fault) {
  char path[PATH_BYTES];
  *a = (adapter){0};
  snprintf(path, sizeof path, "%s/adapter_model.safetensors", folder);
  if (!read_config(a, folder, fault) || !nxr_safetensors_open(path, &a->file, fault)) return false;
  a->used = calloc(a->file.n_tensors + 1, sizeof *a->used);
  if (a->used != NULL) return true;
  nxr_safetensors_close(&a->file);
  return nxr_fault_set(fault, "out of memory");
}

static void adapter_close(adapter *a) {
  nxr_safetensors_close(&a->file);
  free(a->used);
}

static const nxr_safetensor *find_named(const adapter *a, const char *base, size_t n_own,
                                        const char *ending) {
  size_t n = strlen(base);
  for (uint64_t i = 0; i < a->file.n_tensors; i++) {
    const nxr_safetensor *tensor = &a->file.tensors[i];
    if (strncmp(tensor->name, PREFIX, sizeof PREFIX - 1) != 0) continue;
    const char *names[] = {tensor->name + sizeof PREFIX - 1,
                           nx_tensor_base_name(tensor->name + sizeof PREFIX - 1)};
    for (int k = 0; k < 2; k++)
      if (strncmp(names[k], base, n - n_own) == 0 && strcmp(names[k] + n - n_own, ending) == 0) {
        a->used[i] = true;
        return tensor;
      }
  }
  return NULL;
}

/* The adapter's tensor of this base tensor: its module's name, or that of all experts, and an ending. NULL:
 * there is none. */
static const nxr_safetensor *find(const adapter *a, const char *base, const char *own, const char *ending) {
  char shared[NAME_BYTES];
  size_t n = strlen(base), n_own = strlen(own);
  if (n <= n_own || strcmp(base + n - n_own, own) != 0) return NULL;
  const nxr_safetensor *found = find_named(a, base, n_own, ending);
  if (found == NULL && nx_tensor_shared_name(base, shared, sizeof shared))
    found = find_named(a, shared, n_own, ending);
  return found;
}

/* ---- one tensor ---- */

static void put(const nxr_safetensor *like, const float *values, int64_t n, void *out) {
  for (int64_t i = 0; i < n; i++) {
    if (like->dtype == NX_f32) ((float *)out)[i] = values[i];
    else if (like->dtype == NX_f64) ((double *)out)[i] = values[i];
    else
      ((uint16_t *)out)[i] =
          like->dtype == NX_bf16 ? nx_bf16_from_float(values[i]) : nx_f16_from_float(values[i]);
  }
}

/* row += scale sum over r of left[row, r] right[r, .], in fp32; `left` has rows of the stored matrix. */
static void add_product(const adapter *a, const float *first, const float *second, int64_t rows,
                        int64_t columns, int64_t row, float *values) {
  for (int64_t j = 0; j < columns; j++) {
    double sum = 0;
    for (int64_t r = 0; r < a->rank; r++) {
      int64_t in = a->transposed ? row : j, out = a->transposed ? j : row;
      int64_t n_in = a->transposed ? rows : columns;
      sum += (double)second[out * a->rank + r] * first[r * n_in + in];
    }
    values[j] = (float)(values[j] + a->scale * sum);
  }
}

static float *floats_of(const nxr_safetensor *tensor, uint64_t n) {
  float *values = malloc((n + 1) * sizeof *values);
  if (values) nxr_safetensor_floats(tensor, 0, n, values);
  return values;
}

static bool write_merged(const adapter *a, const nxr_safetensor *base, const nxr_safetensor *first,
                         const nxr_safetensor *second, FILE *out, nxr_fault *fault) {
  int64_t rows = base->dims[0], columns = base->dims[1];
  int64_t n_in = a->transposed ? rows : columns, n_out = a->transposed ? columns : rows;
  bool fits = base->n_dims == 2 && first != NULL && first->n_dims == 2 && second->n_dims == 2 &&
              first->dims[0] == a->rank && first->dims[1] == n_in && second->dims[0] == n_out &&
              second->dims[1] == a->rank && nx_safetensor_is_real(base) && nx_safetensor_is_real(first) &&
              nx_safetensor_is_real(second);
  if (!fits)
    return nxr_fault_set(fault, "the adapter of %s has not its shape, or not the rank of its config",
                         base->name);
  float *one = floats_of(first, (uint64_t)(a->rank * n_in)),
        *two = floats_of(second, (uint64_t)(a->rank * n_out));
  float *row = malloc((size_t)columns * sizeof *row);
  double *stored = malloc((size_t)columns * sizeof *stored);
  bool good = one && two && row && stored;
  if (!good) nxr_fault_set(fault, "out of memory");
  size_t size = nx_dtype_bits(base->dtype) / 8;
  for (int64_t i = 0; good && i < rows; i++) {
    nxr_safetensor_floats(base, (uint64_t)(i * columns), (uint64_t)columns, row);
    add_product(a, one, two, rows, columns, i, row);
    put(base, row, columns, stored);
    good = fwrite(stored, size, (size_t)columns, out) == (size_t)columns;
    if (!good) nxr_fault_set(fault, "cannot write: %s", strerror(errno));
  }
  free(one), free(two), free(row), free(stored);
  return good;
}

/* A bias that was trained stands in the place of the base's. */
static bool write_bias(const nxr_safetensor *base, const nxr_safetensor *bias, FILE *out, nxr_fault *fault) {
  uint64_t n = (uint64_t)base->dims[0];
  if (base->n_dims != 1 || bias->n_dims != 1 || bias->dims[0] != base->dims[0] ||
      !nx_safetensor_is_real(base) || !nx_safetensor_is_real(bias))
    return nxr_fault_set(fault, "the adapter's %s has another shape than the model's", bias->name);
  float *values = floats_of(bias, n);
  double *stored = malloc((n + 1) * sizeof *stored);
  bool good = values && stored;
  if (good) put(base, values, (int64_t)n, stored);
  good = good && fwrite(stored, nx_dtype_bits(base->dtype) / 8, n, out) == n;
  free(values), free(stored);
  return good || nxr_fault_set(fault, "cannot write: %s", strerror(errno));
}

static bool write_tensor(const adapter *a, const nxr_safetensor *base, FILE *out, nxr_fault *fault) {
  const nxr_safetensor *second = find(a, base->name, ".weight", SECOND);
  if (second != NULL)
    return write_merged(a, base, find(a, base->name, ".weight", ".lora_A.weight"), second, out, fault);
  const nxr_safetensor *bias = find(a, base->name, ".bias", ".base_layer.bias");
  if (bias == NULL) bias = find(a, base->name, ".bias", ".bias");
  if (bias != NULL) return write_bias(base, bias, out, fault);
  return fwrite(base->bytes, 1, base->n_bytes, out) == base->n_bytes ||
         nxr_fault_set(fault, "cannot write: %s", strerror(errno));
}

/* ---- files ---- */

/* Types, shapes and so the header stay as they are. */
static bool write_file(const adapter *a, const char *from, const char *to, nxr_fault *fault) {
  nxr_safetensors file;
  if (!nxr_safetensors_open(from, &file, fault)) return false;
  FILE *out = fopen(to, "wbx");
  bool good = out != NULL || nxr_fault_set(fault, "cannot create %s: %s", to, strerror(errno));
  uint64_t n_header = file.n_tensors ? file.tensors[0].offset : file.mapping.n_bytes;
  for (uint64_t i = 0; i < file.n_tensors; i++)
    if (file.tensors[i].offset < n_header) n_header = file.tensors[i].offset;
  good = good && (fwrite(file.mapping.bytes, 1, n_header, out) == n_header ||
                  nxr_fault_set(fault, "cannot write %s: %s", to, strerror(errno)));
  for (uint64_t i = 0; good && i < file.n_tensors; i++)
    good = fseeko(out, (off_t)file.tensors[i].offset, SEEK_SET) == 0 &&
           write_tensor(a, &file.tensors[i], out, fault);
  if (out != NULL && fclose(out) != 0 && good)
    good = nxr_fault_set(fault, "cannot write %s: %s", to, strerror(errno));
  nxr_safetensors_close(&file);
  return good;
}

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

static bool ends_with(const char *text, const char *end) {
  size_t n = strlen(text), n_end = strlen(end);
  return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

/* Weights are changed; what stands beside them (config.json, the index, the tokenizer) is copied. Folders are
 * not. */
static bool write_folder(const adapter *a, const char *base, const char *out, nxr_fault *fault) {
  DIR *folder = opendir(base);
  bool good = folder != NULL || nxr_fault_set(fault, "cannot read %s: %s", base, strerror(errno));
  for (struct dirent *entry; good && (entry = readdir(folder)) != NULL;) {
    char from[PATH_BYTES], to[PATH_BYTES];
    struct stat status;
    int n = snprintf(from, sizeof from, "%s/%s", base, entry->d_name);
    int m = snprintf(to, sizeof to, "%s/%s", out, entry->d_name);
    if (n >= PATH_BYTES || m >= PATH_BYTES || stat(from, &status) != 0 || !S_ISREG(status.st_mode)) continue;
    good = ends_with(entry->d_name, ".safetensors") ? write_file(a, from, to, fault)
                                                    : copy_file(from, to, fault);
  }
  if (folder) closedir(folder);
  return good;
}

/* Nothing of an adapter is left out in silence. */
static bool all_used(const adapter *a, nxr_fault *fault) {
  for (uint64_t i = 0; i < a->file.n_tensors; i++)
    if (!a->used[i])
      return nxr_fault_set(fault, "the adapter's tensor %s belongs to nothing in the model",
                           a->file.tensors[i].name);
  return true;
}

bool nxd_merge_adapter(const char *base, const char *adapter_folder, const char *out, nxr_fault *fault) {
  adapter a;
  struct stat status;
  char to[PATH_BYTES];
  if (stat(base, &status) != 0) return nxr_fault_set(fault, "cannot read %s: %s", base, strerror(errno));
  if (!adapter_open(&a, adapter_folder, fault)) return false;
  bool good = mkdir(out, 0777) == 0 || nxr_fault_set(fault, "cannot make %s: %s", out, strerror(errno));
  if (good && S_ISDIR(status.st_mode)) good = write_folder(&a, base, out, fault);
  else if (good) {
    snprintf(to, sizeof to, "%s/model.safetensors", out);
    good = write_file(&a, base, to, fault);
  }
  good = good && all_used(&a, fault);
  adapter_close(&a);
  return good;
}
