/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/data/blend.h"

#include "schema/pairwise_sum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RUN = 4096, N_KEPT = 2 * RUN };

static void normalize(double *weights, uint32_t n) {
  double sum = 0;
  for (uint32_t i = 0; i < n; i++) sum += weights[i];
  for (uint32_t i = 0; i < n; i++) weights[i] /= sum;
}

void nxr_weigh_by_size(const uint64_t *sizes, uint32_t n, double *weights) {
  for (uint32_t i = 0; i < n; i++) weights[i] = (double)sizes[i];
  normalize(weights, n);
}

void nxr_weigh_by_documents(const uint64_t *n_documents, uint32_t n, double alpha, double *weights) {
  double all = 0;
  for (uint32_t i = 0; i < n; i++) all += (double)n_documents[i];
  for (uint32_t i = 0; i < n; i++) weights[i] = pow((double)n_documents[i] / all, alpha);
  normalize(weights, n);
  for (uint32_t i = 0; n > 1 && i < n; i++) weights[i] *= 1 - (double)n_documents[i] / all;
  normalize(weights, n);
  normalize(weights, n); /* as it does with all weights */
}

void nxr_weigh_again(double *weights, uint32_t n) {
  double sum = nx_pairwise_sum(weights, n);
  for (uint32_t i = 0; i < n; i++) weights[i] /= sum;
}

bool nxr_blend_open(const double *weights, uint32_t n, nxr_blend *blend, nxr_fault *fault) {
  *blend = (nxr_blend){.n = n,
                       .weights = calloc(n, sizeof *blend->weights),
                       .given = calloc(n, sizeof *blend->given),
                       .picks = n > 1 ? calloc(N_KEPT, sizeof *blend->picks) : NULL};
  if (blend->weights && blend->given && (n == 1 || blend->picks)) {
    memcpy(blend->weights, weights, n * sizeof *weights);
    return true;
  }
  nxr_blend_close(blend);
  return nxr_fault_set(fault, "out of memory for a blend of %u sources", n);
}

void nxr_blend_close(nxr_blend *blend) {
  free(blend->weights);
  free(blend->given);
  free(blend->picks);
  *blend = (nxr_blend){0};
}

static nxr_pick choose(nxr_blend *blend, uint64_t sample) {
  double k = sample > 1 ? (double)sample : 1, most = 0;
  uint32_t source = 0;
  for (uint32_t i = 0; i < blend->n; i++) {
    double behind = blend->weights[i] * k - (double)blend->given[i];
    if (i == 0 || behind > most) most = behind, source = i;
  }
  return (nxr_pick){source, blend->given[source]++};
}

nxr_pick nxr_blend_pick(nxr_blend *blend, uint64_t sample) {
  if (blend->n == 1) return (nxr_pick){0, sample};
  uint64_t end = (sample / RUN + 1) * RUN;
  if (end + RUN < blend->n_given) {
    memset(blend->given, 0, blend->n * sizeof *blend->given);
    blend->n_given = 0;
  }
  for (; blend->n_given < end; blend->n_given++)
    blend->picks[blend->n_given % N_KEPT] = choose(blend, blend->n_given);
  return blend->picks[sample % N_KEPT];
}
