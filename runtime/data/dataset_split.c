/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/data/dataset_split.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The nearest number, of two the even one. */
static uint64_t round_share(double share, uint64_t n_documents) {
  double end = rint(share * (double)n_documents);
  return end < (double)n_documents ? (uint64_t)end : n_documents;
}

static void normalize(double shares[NX_PARTS], double sum) {
  for (int i = 0; i < NX_PARTS; i++) shares[i] /= sum;
}

bool nxr_split_parse(const char *text, double shares[NX_PARTS]) {
  double sum = 0;
  memset(shares, 0, NX_PARTS * sizeof *shares);
  for (int i = 0; i < NX_PARTS; i++) {
    char *end;
    if (strspn(text, "0123456789.") == 0) return false;
    shares[i] = strtod(text, &end);
    sum += shares[i];
    end += strspn(end, " ");
    if (*end == '\0') {
      normalize(shares, sum);
      return isfinite(sum) && sum > 0;
    }
    if (*end != ',' && *end != '/') return false;
    text = end + 1 + strspn(end + 1, " ");
  }
  return false;
}

void nxr_split_borders(const double shares[NX_PARTS], uint64_t n_documents,
                       uint64_t borders[NX_PARTS + 1]) {
  double share = 0;
  borders[0] = 0;
  for (int i = 0; i < NX_PARTS; i++) {
    share += shares[i];
    borders[i + 1] = round_share(share, n_documents);
  }
}

/* Each part is rounded; what they have too many together the first has less. */
static void split_each(const nx_source *source, uint64_t n_documents, uint64_t borders[NX_PARTS + 1]) {
  borders[0] = 0, borders[NX_PARTS] = n_documents;
  for (int i = NX_PARTS - 1; i > 0; i--) {
    uint64_t n = round_share(source->shares[i], n_documents);
    borders[i] = borders[i + 1] > n ? borders[i + 1] - n : 0;
  }
}

/* Validation is counted, or rounded up, and comes last. */
static void split_last(const nx_source *source, uint64_t n_documents, uint64_t borders[NX_PARTS + 1]) {
  double share = ceil(source->shares[1] * (double)n_documents);
  uint64_t n = source->n_last ? source->n_last : (uint64_t)share;
  borders[0] = 0, borders[2] = borders[3] = n_documents;
  borders[1] = n < n_documents ? n_documents - n : 0;
}

void nxr_split_part(const nx_source *source, uint64_t n_documents, uint64_t *first, uint64_t *end) {
  uint64_t borders[NX_PARTS + 1];
  if (source->split == NX_SPLIT_EACH) split_each(source, n_documents, borders);
  else if (source->split == NX_SPLIT_LAST) split_last(source, n_documents, borders);
  else nxr_split_borders(source->shares, n_documents, borders);
  *first = borders[source->part], *end = borders[source->part + 1];
}
