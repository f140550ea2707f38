/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/data/sampler.h"

#include <stdlib.h>

static const nxr_sampler_kind *const kinds[] = {[NX_SAMPLER_STREAM] = &nxr_sampler_stream,
                                               [NX_SAMPLER_DOCUMENT] = &nxr_sampler_document,
                                               [NX_SAMPLER_PACKED] = &nxr_sampler_packed,
                                               [NX_SAMPLER_PAIRS] = &nxr_sampler_pairs};

bool nxr_sampler_open(nxr_sampler *sampler, nx_sampler kind, nxr_fault *fault) {
  sampler->kind = (size_t)kind < sizeof kinds / sizeof *kinds ? kinds[kind] : NULL;
  if (sampler->kind == NULL) return nxr_fault_set(fault, "this version has no sampler %d", (int)kind);
  if (sampler->kind->open(sampler, fault)) return true;
  nxr_sampler_close(sampler);
  return false;
}

void nxr_sampler_close(nxr_sampler *sampler) {
  nxr_orders_close(&sampler->orders);
  nx_rows_free(&sampler->rows);
  free(sampler->kept);
  sampler->kept = NULL;
  sampler->kind = NULL;
}
