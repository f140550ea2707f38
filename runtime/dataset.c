/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dataset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEADER_BYTES = 9 + 8 + 1 + 8 + 8 };

/* Megatron's type codes; floating-point types hold no tokens. */
static const nxr_token_type token_types[] = {[1] = {"uint8", 1},  [2] = {"int8", 1},  [3] = {"int16", 2},
                                             [4] = {"int32", 4},  [5] = {"int64", 8}, [8] = {"uint16", 2}};

const nxr_token_type *nxr_token_type_of(uint32_t code) {
  bool known = code < sizeof token_types / sizeof *token_types && token_types[code].bytes > 0;
  return known ? &token_types[code] : NULL;
}

static uint64_t load_u64(const uint8_t *at) {
  uint64_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

static uint64_t load_size(const nxr_dataset *dataset, uint64_t sequence) {
  uint32_t value;
  memcpy(&value, dataset->sizes + 4 * sequence, sizeof value);
  return value;
}

static uint64_t load_pointer(const nxr_dataset *dataset, uint64_t sequence) {
  return load_u64(dataset->pointers + 8 * sequence);
}

uint64_t nxr_dataset_border(const nxr_dataset *dataset, uint64_t document) {
  return load_u64(dataset->borders + 8 * document);
}

static bool check_header(nxr_dataset *dataset, const char *path, nxr_fault *fault) {
  const uint8_t *index = dataset->index;
  if (dataset->n_index_bytes < HEADER_BYTES || memcmp(index, "MMIDIDX\0\0", 9) != 0)
    return nxr_fault_set(fault, "%s is not the index of a dataset", path);
  if (load_u64(index + 9) != 1)
    return nxr_fault_set(fault, "%s has version %llu of the index format, not 1", path,
                         (unsigned long long)load_u64(index + 9));
  dataset->type_code = index[17];
  const nxr_token_type *type = nxr_token_type_of(dataset->type_code);
  if (type == NULL)
    return nxr_fault_set(fault, "%s has type code %u, which is no type of tokens", path, dataset->type_code);
  dataset->token_bytes = type->bytes;
  uint64_t n_sequences = load_u64(index + 18), n_borders = load_u64(index + 26);
  uint64_t room = dataset->n_index_bytes - HEADER_BYTES;
  if (n_sequences > room / 12 || n_borders > room / 8 || n_borders < 1 ||
      12 * n_sequences + 8 * n_borders != room)
    return nxr_fault_set(fault,
                         "%s is cut short or damaged: %llu sequences and %llu borders do not make its %llu "
                         "bytes",
                         path, (unsigned long long)n_sequences, (unsigned long long)n_borders,
                         (unsigned long long)dataset->n_index_bytes);
  dataset->n_sequences = n_sequences;
  dataset->n_documents = n_borders - 1;
  dataset->sizes = index + HEADER_BYTES;
  dataset->pointers = dataset->sizes + 4 * n_sequences;
  dataset->borders = dataset->pointers + 8 * n_sequences;
  return true;
}

/* Every sequence lies within the data, every document is a run of sequences. */
static bool check_contents(nxr_dataset *dataset, const char *path, nxr_fault *fault) {
  for (uint64_t sequence = 0; sequence < dataset->n_sequences; sequence++) {
    uint64_t n_bytes = load_size(dataset, sequence) * dataset->token_bytes,
             at = load_pointer(dataset, sequence);
    if (load_size(dataset, sequence) > INT32_MAX || at > dataset->data.n_bytes ||
        n_bytes > dataset->data.n_bytes - at)
      return nxr_fault_set(fault,
                           "%s is damaged, or its .bin file is cut short: sequence %llu ends at byte %llu of "
                           "%llu",
                           path, (unsigned long long)sequence, (unsigned long long)(at + n_bytes),
                           (unsigned long long)dataset->data.n_bytes);
    dataset->n_tokens += load_size(dataset, sequence);
  }
  for (uint64_t document = 0; document <= dataset->n_documents; document++) {
    uint64_t border = nxr_dataset_border(dataset, document),
             before = document ? nxr_dataset_border(dataset, document - 1) : 0;
    bool last = document == dataset->n_documents;
    if (border < before || border > dataset->n_sequences || (document == 0 && border != 0) ||
        (last && border != dataset->n_sequences))
      return nxr_fault_set(fault, "%s is damaged: document %llu begins at sequence %llu of %llu", path,
                           (unsigned long long)document, (unsigned long long)border,
                           (unsigned long long)dataset->n_sequences);
  }
  return true;
}

/* A copy: its numbers say where to read, and what was checked must not change any more. */
static bool read_index(nxr_dataset *dataset, const char *path, nxr_fault *fault) {
  nxr_mapping file;
  if (!nxr_mapping_open(path, &file, fault)) return false;
  dataset->index = malloc(file.n_bytes + 1);
  if (dataset->index && file.n_bytes > 0) memcpy(dataset->index, file.bytes, file.n_bytes);
  dataset->n_index_bytes = file.n_bytes;
  nxr_mapping_close(&file);
  return dataset->index != NULL || nxr_fault_set(fault, "out of memory for %s", path);
}

/* Weights are there or not; half of them is damage. */
static bool open_weights(nxr_dataset *dataset, nxr_fault *fault) {
  char path[4096];
  if (snprintf(path, sizeof path, "%s.weights", dataset->prefix) >= (int)sizeof path)
    return nxr_fault_set(fault, "the name of the dataset is too long");
  if (access(path, F_OK) != 0) return true;
  if (!nxr_mapping_open(path, &dataset->weights, fault)) return false;
  uint64_t n_bytes = dataset->data.n_bytes / dataset->token_bytes * sizeof(float);
  return dataset->weights.n_bytes == n_bytes ||
         nxr_fault_set(fault, "%s has %llu bytes, and the tokens of its dataset need %llu: it is another's",
                       path, (unsigned long long)dataset->weights.n_bytes, (unsigned long long)n_bytes);
}

bool nxr_dataset_open(const char *prefix, nxr_dataset *dataset, nxr_fault *fault) {
  char index_path[4096], data_path[4096];
  *dataset = (nxr_dataset){.prefix = prefix};
  if (snprintf(index_path, sizeof index_path, "%s.idx", prefix) >= (int)sizeof index_path ||
      snprintf(data_path, sizeof data_path, "%s.bin", prefix) >= (int)sizeof data_path)
    return nxr_fault_set(fault, "the name of the dataset is too long");
  if (access(index_path, F_OK) != 0)
    return nxr_fault_set(fault, "cannot open %s: %s (nxdata build makes a dataset)", index_path,
                         strerror(errno));
  bool good = read_index(dataset, index_path, fault) &&
              nxr_mapping_open(data_path, &dataset->data, fault) &&
              check_header(dataset, index_path, fault) && check_contents(dataset, index_path, fault) &&
              open_weights(dataset, fault);
  if (!good) nxr_dataset_close(dataset);
  return good;
}

void nxr_dataset_close(nxr_dataset *dataset) {
  free(dataset->index);
  dataset->index = NULL;
  nxr_mapping_close(&dataset->data);
  nxr_mapping_close(&dataset->weights);
}

const uint8_t *nxr_dataset_sequence(const nxr_dataset *dataset, uint64_t sequence, uint64_t *n_tokens) {
  *n_tokens = load_size(dataset, sequence);
  return dataset->data.bytes + load_pointer(dataset, sequence);
}

uint64_t nxr_dataset_document_tokens(const nxr_dataset *dataset, uint64_t document) {
  uint64_t n_tokens = 0;
  for (uint64_t sequence = nxr_dataset_border(dataset, document);
       sequence < nxr_dataset_border(dataset, document + 1); sequence++)
    n_tokens += load_size(dataset, sequence);
  return n_tokens;
}

static int32_t load_token(const nxr_dataset *dataset, const uint8_t *at) {
  switch (dataset->type_code) {
    case 1: return *at;
    case 2: return (int8_t)*at;
    case 3: return (int16_t)(at[0] | at[1] << 8);
    case 8: return at[0] | at[1] << 8;
    case 4: {
      int32_t token;
      memcpy(&token, at, sizeof token);
      return token;
    }
    default: {
      int64_t token;
      memcpy(&token, at, sizeof token);
      return token < 0 || token > INT32_MAX ? -1 : (int32_t)token;
    }
  }
}

/* A run of tokens within one sequence. */
typedef struct stretch {
  uint64_t sequence, first, n;
} stretch;

/* The first of the stretches that tokens [*first, *first + *n) of a document make, from a sequence on; they
 * become what is left of them. */
static stretch next_stretch(const nxr_dataset *dataset, uint64_t *sequence, uint64_t *first, uint64_t *n) {
  uint64_t size;
  while (*first >= (size = load_size(dataset, *sequence))) *first -= size, ++*sequence;
  stretch is = {.sequence = (*sequence)++, .first = *first, .n = *n < size - *first ? *n : size - *first};
  *first = 0, *n -= is.n;
  return is;
}

void nxr_dataset_read(const nxr_dataset *dataset, uint64_t document, uint64_t first, uint64_t n,
                      int32_t *tokens) {
  for (uint64_t sequence = nxr_dataset_border(dataset, document); n > 0;) {
    stretch is = next_stretch(dataset, &sequence, &first, &n);
    const uint8_t *at =
        dataset->data.bytes + load_pointer(dataset, is.sequence) + is.first * dataset->token_bytes;
    for (uint64_t i = 0; i < is.n; i++) tokens[i] = load_token(dataset, at + i * dataset->token_bytes);
    tokens += is.n;
  }
}

void nxr_dataset_weights(const nxr_dataset *dataset, uint64_t document, uint64_t first, uint64_t n,
                         float *weights) {
  for (uint64_t i = 0; i < n && dataset->weights.n_bytes == 0; i++) weights[i] = 1;
  if (dataset->weights.n_bytes == 0) return;
  for (uint64_t sequence = nxr_dataset_border(dataset, document); n > 0;) {
    stretch is = next_stretch(dataset, &sequence, &first, &n);
    uint64_t at = load_pointer(dataset, is.sequence) / dataset->token_bytes + is.first;
    memcpy(weights, dataset->weights.bytes + at * sizeof *weights, is.n * sizeof *weights);
    weights += is.n;
  }
}
