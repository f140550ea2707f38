/* SPDX-License-Identifier: Apache-2.0 */
/* nxdata info and nxdata check. */
#include "datasets/command.h"

#include <inttypes.h>
#include <stdio.h>

int nxd_command_info(int n, char **arguments) {
  char prefix[NXD_MAX_PREFIX];
  nxr_dataset dataset;
  int status = nxd_open_only(n, arguments, prefix, &dataset);
  if (status != STATUS_DONE) return status;
  nxd_print_info(&dataset);
  nxr_dataset_close(&dataset);
  return STATUS_DONE;
}

/* Tokens whose loss counts. */
static uint64_t count_weighed(const nxr_dataset *dataset) {
  enum { RUN = 1 << 12 };
  float weights[RUN];
  uint64_t n_weighed = 0;
  for (uint64_t document = 0; document < dataset->n_documents; document++) {
    uint64_t n = nxr_dataset_document_tokens(dataset, document);
    for (uint64_t first = 0; first < n; first += RUN) {
      uint64_t count = n - first < RUN ? n - first : RUN;
      nxr_dataset_weights(dataset, document, first, count, weights);
      for (uint64_t i = 0; i < count; i++) n_weighed += weights[i] != 0;
    }
  }
  return n_weighed;
}

static uint64_t count_wanted(const nxr_dataset *dataset) {
  uint64_t n = 0;
  for (uint64_t i = 0; i < dataset->n_documents; i++) n += nxr_dataset_reward(dataset, i) > 0;
  return n;
}

static void print_summary(const nxr_dataset *dataset, const nxr_dataset_summary *summary) {
  nxd_print_info(dataset);
  if (dataset->n_tokens > 0)
    printf("token ids    %" PRId64 " … %" PRId64 " (model.vocab must be above %" PRId64 ")\n",
           summary->least_token, summary->greatest_token, summary->greatest_token);
  if (dataset->n_documents > 0)
    printf("lengths      %" PRIu64 " … %" PRIu64 " tokens, %.1f on average\n", summary->shortest,
           summary->longest, (double)dataset->n_tokens / (double)dataset->n_documents);
  if (dataset->weights.n_bytes > 0)
    printf("weights      %" PRIu64 " of %" PRIu64 " tokens count\n", count_weighed(dataset),
           dataset->n_tokens);
  if (dataset->rewards.n_bytes > 0)
    printf("rewards      %" PRIu64 " of %" PRIu64 " documents are wanted answers\n", count_wanted(dataset),
           dataset->n_documents);
  if (summary->n_empty > 0) printf("empty        %" PRIu64 " documents have no token\n", summary->n_empty);
  if (summary->unused_bytes > 0)
    printf("unused       %" PRIu64 " bytes of %s.bin belong to no sequence\n", summary->unused_bytes,
           dataset->prefix);
  printf("no damage found\n");
}

int nxd_command_check(int n, char **arguments) {
  char prefix[NXD_MAX_PREFIX];
  bool pairs = false;
  const nxd_option options[] = {{"--pairs", NXD_FLAG, &pairs}};
  nxr_dataset dataset;
  if (!nxd_options_read(&n, arguments, options, 1)) return STATUS_USAGE;
  int status = nxd_open_only(n, arguments, prefix, &dataset);
  if (status != STATUS_DONE) return status;
  nxr_dataset_summary summary;
  nxr_fault fault = {""};
  if ((!pairs || nxd_check_pairs(&dataset, &fault)) && nxr_dataset_summarize(&dataset, &summary, &fault))
    print_summary(&dataset, &summary);
  else status = nxd_damaged(&fault);
  nxr_dataset_close(&dataset);
  return status;
}
