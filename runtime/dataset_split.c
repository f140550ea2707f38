/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dataset_split.h"

#include "runtime/dataset_pair.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

uint64_t nxr_split_end(double share, uint64_t n_documents) {
  double end = rint(share * (double)n_documents);
  return end < (double)n_documents ? (uint64_t)end : n_documents;
}

bool nxr_split_parse(const char *text, double shares[NXR_PARTS]) {
  double sum = 0;
  memset(shares, 0, NXR_PARTS * sizeof *shares);
  for (int i = 0; i < NXR_PARTS; i++) {
    char *end;
    if (strspn(text, "0123456789.") == 0) return false;
    shares[i] = strtod(text, &end);
    sum += shares[i];
    end += strspn(end, " ");
    if (*end == '\0') return isfinite(sum) && sum > 0;
    if (*end != ',' && *end != '/') return false;
    text = end + 1 + strspn(end + 1, " ");
  }
  return false;
}

void nxr_split_borders(const double shares[NXR_PARTS], uint64_t n_documents,
                       uint64_t borders[NXR_PARTS + 1]) {
  double sum = 0, share = 0;
  for (int i = 0; i < NXR_PARTS; i++) sum += shares[i];
  borders[0] = 0;
  for (int i = 0; i < NXR_PARTS; i++) {
    share += shares[i] / sum;
    borders[i + 1] = nxr_split_end(share, n_documents);
  }
}

static bool write_parts(const nxr_dataset *from, uint64_t first, nxr_dataset_contents *contents,
                        int32_t *sizes, uint64_t *borders, nxr_dataset_pair *pair, nxr_fault *fault) {
  uint64_t start = nxr_dataset_border(from, first);
  for (uint64_t i = 0; i <= contents->n_documents; i++)
    borders[i] = nxr_dataset_border(from, first + i) - start;
  for (uint64_t i = 0; i < contents->n_sequences; i++) {
    uint64_t n_tokens;
    const uint8_t *bytes = nxr_dataset_sequence(from, start + i, &n_tokens);
    sizes[i] = (int32_t)n_tokens;
    if (!nxr_dataset_pair_write(pair, bytes, n_tokens * from->token_bytes, fault)) return false;
  }
  contents->sizes = sizes, contents->borders = borders;
  return true;
}

bool nxr_dataset_copy(const nxr_dataset *from, uint64_t first, uint64_t end, const char *prefix, bool force,
                      nxr_dataset *written, nxr_fault *fault) {
  nxr_dataset_pair pair;
  nxr_dataset_contents contents = {
      .type_code = (uint8_t)from->type_code, .token_bytes = from->token_bytes, .n_documents = end - first,
      .n_sequences = nxr_dataset_border(from, end) - nxr_dataset_border(from, first)};
  int32_t *sizes = calloc(contents.n_sequences + 1, sizeof *sizes);
  uint64_t *borders = calloc(contents.n_documents + 1, sizeof *borders);
  bool good = sizes && borders;
  if (!good) nxr_fault_set(fault, "out of memory");
  bool opened = good;
  good = good && nxr_dataset_pair_open(&pair, prefix, force, fault) &&
         write_parts(from, first, &contents, sizes, borders, &pair, fault) &&
         nxr_dataset_pair_finish(&pair, &contents, written, fault);
  if (opened) nxr_dataset_pair_close(&pair);
  free(sizes);
  free(borders);
  return good;
}
