/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/data/dataset.h"

#include "runtime/files/reading.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEADER_BYTES = 9 + 8 + 1 + 8 + 8 };

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

/* Behind what is said of damage. */
#define REMEDY "; copy both of its files again, or make them anew (nxdata build)"

static bool check_header(nxr_dataset *dataset, const char *path, nxr_fault *fault) {
  const uint8_t *index = dataset->index;
  if (dataset->n_index_bytes < HEADER_BYTES || memcmp(index, "MMIDIDX\0\0", 9) != 0)
    return nxr_fault_set(fault, "%s is not the index of a dataset: nxdata build makes one", path);
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
                         "bytes" REMEDY,
                         path, (unsigned long long)n_sequences, (unsigned long long)n_borders,
                         (unsigned long long)dataset->n_index_bytes);
  dataset->n_sequences = n_sequences;
  dataset->n_documents = n_borders - 1;
  dataset->sizes = index + HEADER_BYTES;
  dataset->pointers = dataset->sizes + 4 * n_sequences;
  dataset->borders = dataset->pointers + 8 * n_sequences;
  return true;
}

/* As wide as the data is long for its tokens. */
static uint32_t measure_floats(const nxr_dataset *dataset) {
  uint64_t n_tokens = 0;
  for (uint64_t i = 0; i < dataset->n_sequences; i++) n_tokens += load_size(dataset, i);
  return dataset->data.n_bytes / sizeof(double) >= n_tokens ? sizeof(double) : sizeof(float);
}

/* Every sequence lies within the data, every document is a run of sequences. */
static bool check_contents(nxr_dataset *dataset, const char *path, nxr_fault *fault) {
  if (dataset->token_bytes == 0) dataset->token_bytes = measure_floats(dataset);
  for (uint64_t sequence = 0; sequence < dataset->n_sequences; sequence++) {
    uint64_t n_bytes = load_size(dataset, sequence) * dataset->token_bytes,
             at = load_pointer(dataset, sequence);
    if (load_size(dataset, sequence) > INT32_MAX || at > dataset->data.n_bytes ||
        n_bytes > dataset->data.n_bytes - at)
      return nxr_fault_set(fault,
                           "%s is damaged, or its .bin file is cut short: sequence %llu ends at byte %llu of "
                           "%llu" REMEDY,
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
      return nxr_fault_set(fault, "%s is damaged: document %llu begins at sequence %llu of %llu" REMEDY, path,
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
  nxr_reading_begin(path, NULL);
  if (dataset->index && file.n_bytes > 0) memcpy(dataset->index, file.bytes, file.n_bytes);
  nxr_reading_end();
  dataset->n_index_bytes = file.n_bytes;
  nxr_mapping_close(&file);
  if (dataset->index == NULL) return nxr_fault_set(fault, "out of memory for %s", path);
  return nxr_dataset_modernize(&dataset->index, &dataset->n_index_bytes, path, fault);
}

/* Floats are there or not; half of them is damage. */
static bool open_floats(const nxr_dataset *dataset, const char *ending, const char *what, uint64_t n,
                        nxr_mapping *file, nxr_fault *fault) {
  char path[4096];
  if (snprintf(path, sizeof path, "%s.%s", dataset->prefix, ending) >= (int)sizeof path)
    return nxr_fault_set(fault, "the name of the dataset is too long");
  if (access(path, F_OK) != 0) return true;
  if (!nxr_mapping_open(path, file, fault)) return false;
  uint64_t n_bytes = n * sizeof(float);
  return file->n_bytes == n_bytes ||
         nxr_fault_set(fault, "%s has %llu bytes, and the %s of its dataset need %llu: it is another's", path,
                       (unsigned long long)file->n_bytes, what, (unsigned long long)n_bytes);
}

static bool open_beside(nxr_dataset *dataset, nxr_fault *fault) {
  uint64_t n_tokens = dataset->data.n_bytes / dataset->token_bytes;
  return open_floats(dataset, "weights", "tokens", n_tokens, &dataset->weights, fault) &&
         open_floats(dataset, "rewards", "documents", dataset->n_documents, &dataset->rewards, fault);
}

bool nxr_dataset_open(const char *prefix, nxr_dataset *dataset, nxr_fault *fault) {
  char index_path[4096], data_path[4096];
  *dataset = (nxr_dataset){.prefix = prefix};
  if (snprintf(index_path, sizeof index_path, "%s.idx", prefix) >= (int)sizeof index_path ||
      snprintf(data_path, sizeof data_path, "%s.bin", prefix) >= (int)sizeof data_path)
    return nxr_fault_set(fault, "the name of the dataset is too long");
  const char *const paths[] = {index_path, data_path};
  for (int i = 0; i < 2; i++)
    if (access(paths[i], F_OK) != 0)
      return nxr_fault_set(fault,
                           "cannot open %s: %s (nxdata build makes a dataset of two files, .bin and .idx)",
                           paths[i], strerror(errno));
  bool good = read_index(dataset, index_path, fault) &&
              nxr_mapping_open(data_path, &dataset->data, fault) &&
              check_header(dataset, index_path, fault) && check_contents(dataset, index_path, fault) &&
              open_beside(dataset, fault);
  if (!good) nxr_dataset_close(dataset);
  return good;
}

void nxr_dataset_close(nxr_dataset *dataset) {
  free(dataset->index);
  dataset->index = NULL;
  nxr_mapping_close(&dataset->data);
  nxr_mapping_close(&dataset->weights);
  nxr_mapping_close(&dataset->rewards);
}

uint64_t nxr_dataset_sequence_tokens(const nxr_dataset *dataset, uint64_t sequence) {
  return load_size(dataset, sequence);
}

uint64_t nxr_dataset_document_tokens(const nxr_dataset *dataset, uint64_t document) {
  uint64_t n_tokens = 0;
  for (uint64_t sequence = nxr_dataset_border(dataset, document);
       sequence < nxr_dataset_border(dataset, document + 1); sequence++)
    n_tokens += load_size(dataset, sequence);
  return n_tokens;
}

/* The token that a float says; -1 where it says none. */
static int32_t whole(const uint8_t *at, uint32_t n_bytes) {
  float narrow;
  double wide;
  if (n_bytes == sizeof narrow) memcpy(&narrow, at, sizeof narrow), wide = narrow;
  else memcpy(&wide, at, sizeof wide);
  return wide >= 0 && wide <= INT32_MAX && wide == (int32_t)wide ? (int32_t)wide : -1;
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
    case 6:
    case 7: return whole(at, dataset->token_bytes);
    default: {
      int64_t token;
      memcpy(&token, at, sizeof token);
      return token < 0 || token > INT32_MAX ? -1 : (int32_t)token;
    }
  }
}

double nxr_dataset_number(const nxr_dataset *dataset, uint64_t document) {
  uint64_t sequence = nxr_dataset_border(dataset, document);
  while (load_size(dataset, sequence) == 0) sequence++;
  const uint8_t *at = dataset->data.bytes + load_pointer(dataset, sequence);
  uint32_t n_bytes = dataset->token_bytes;
  float narrow;
  double wide;
  int64_t whole_number;
  nxr_reading_begin(NULL, at);
  if (dataset->type_code == 5) memcpy(&whole_number, at, n_bytes), wide = (double)whole_number;
  else if (dataset->type_code != 6 && dataset->type_code != 7) wide = load_token(dataset, at);
  else if (n_bytes == sizeof narrow) memcpy(&narrow, at, n_bytes), wide = narrow;
  else memcpy(&wide, at, n_bytes);
  nxr_reading_end();
  return wide;
}

double nxr_dataset_reward(const nxr_dataset *dataset, uint64_t document) {
  float reward;
  nxr_reading_begin(NULL, dataset->rewards.bytes);
  memcpy(&reward, dataset->rewards.bytes + document * sizeof reward, sizeof reward);
  nxr_reading_end();
  return reward;
}

const uint8_t *nxr_dataset_run_bytes(const nxr_dataset *dataset, const nxr_dataset_run *run) {
  return dataset->data.bytes + load_pointer(dataset, run->sequence) + run->first * dataset->token_bytes;
}

void nxr_dataset_run_read(const nxr_dataset *dataset, const nxr_dataset_run *run, int32_t *tokens) {
  const uint8_t *at = nxr_dataset_run_bytes(dataset, run);
  nxr_reading_begin(NULL, at);
  for (uint64_t i = 0; i < run->n; i++) tokens[i] = load_token(dataset, at + i * dataset->token_bytes);
  nxr_reading_end();
}

void nxr_dataset_run_weights(const nxr_dataset *dataset, const nxr_dataset_run *run, float *weights) {
  uint64_t at = load_pointer(dataset, run->sequence) / dataset->token_bytes + run->first;
  for (uint64_t i = 0; i < run->n && dataset->weights.n_bytes == 0; i++) weights[i] = 1;
  if (dataset->weights.n_bytes == 0) return;
  nxr_reading_begin(NULL, dataset->weights.bytes);
  memcpy(weights, dataset->weights.bytes + at * sizeof *weights, run->n * sizeof *weights);
  nxr_reading_end();
}

/* The first of the runs that tokens [*first, *first + *n) of a document make, from a sequence on; they become
 * what is left of them. */
static nxr_dataset_run next_run(const nxr_dataset *dataset, uint64_t *sequence, uint64_t *first,
                                uint64_t *n) {
  uint64_t size;
  while (*first >= (size = load_size(dataset, *sequence))) *first -= size, ++*sequence;
  nxr_dataset_run run = {
      .sequence = (*sequence)++, .first = *first, .n = *n < size - *first ? *n : size - *first};
  *first = 0, *n -= run.n;
  return run;
}

void nxr_dataset_read(const nxr_dataset *dataset, uint64_t document, uint64_t first, uint64_t n,
                      int32_t *tokens) {
  for (uint64_t sequence = nxr_dataset_border(dataset, document); n > 0;) {
    nxr_dataset_run run = next_run(dataset, &sequence, &first, &n);
    nxr_dataset_run_read(dataset, &run, tokens);
    tokens += run.n;
  }
}

void nxr_dataset_weights(const nxr_dataset *dataset, uint64_t document, uint64_t first, uint64_t n,
                         float *weights) {
  for (uint64_t sequence = nxr_dataset_border(dataset, document); n > 0;) {
    nxr_dataset_run run = next_run(dataset, &sequence, &first, &n);
    nxr_dataset_run_weights(dataset, &run, weights);
    weights += run.n;
  }
}
