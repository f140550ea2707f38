/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int nxd_damaged(const nxr_fault *fault) {
  fprintf(stderr, "nxdata: %s\n", fault->text);
  return STATUS_DAMAGED;
}

bool nxd_read_prefix(const char *name, char prefix[NXD_MAX_PREFIX]) {
  size_t length = strlen(name);
  bool ending =
      length > 4 && (strcmp(name + length - 4, ".bin") == 0 || strcmp(name + length - 4, ".idx") == 0);
  if (ending) length -= 4;
  if (length == 0 || length >= NXD_MAX_PREFIX) return false;
  memcpy(prefix, name, length);
  prefix[length] = '\0';
  return true;
}

int nxd_open_dataset(const char *name, char prefix[NXD_MAX_PREFIX], nxr_dataset *dataset) {
  char path[NXD_MAX_PREFIX + 4];
  nxr_fault fault = {""};
  if (!nxd_read_prefix(name, prefix)) return nxd_usage("no name of a dataset: ", name);
  snprintf(path, sizeof path, "%s.idx", prefix);
  if (access(path, R_OK) != 0) {
    fprintf(stderr, "nxdata: cannot read %s: %s\n", path, strerror(errno));
    return STATUS_USAGE;
  }
  return nxr_dataset_open(prefix, dataset, &fault) ? STATUS_DONE : nxd_damaged(&fault);
}

int nxd_open_only(int n, char **arguments, char prefix[NXD_MAX_PREFIX], nxr_dataset *dataset) {
  if (!nxd_options_read(&n, arguments, NULL, 0)) return STATUS_USAGE;
  if (n == 0) return nxd_usage("which dataset? give its PREFIX", "");
  if (n > 1) return nxd_usage("one dataset at a time, not also ", arguments[1]);
  return nxd_open_dataset(arguments[0], prefix, dataset);
}

void nxd_print_info(const nxr_dataset *dataset) {
  const nxr_token_type *type = nxr_token_type_of(dataset->type_code);
  printf("dataset      %s\n", dataset->prefix);
  printf("type         %s, %" PRIu32 " byte%s a token\n", type->name, dataset->token_bytes,
         dataset->token_bytes == 1 ? "" : "s");
  printf("documents    %" PRIu64 "\n", dataset->n_documents);
  if (dataset->n_sequences != dataset->n_documents)
    printf("sequences    %" PRIu64 "\n", dataset->n_sequences);
  printf("tokens       %" PRIu64 "\n", dataset->n_tokens);
}

void nxd_print_written(const char *prefix, uint8_t type_code, const nxd_standing *standing) {
  const nxr_dataset is = {.prefix = prefix, .type_code = type_code,
                          .token_bytes = nxr_token_type_of(type_code)->bytes, .n_tokens = standing->n_tokens,
                          .n_sequences = standing->n_sequences, .n_documents = standing->n_documents};
  nxd_print_info(&is);
  if (standing->n_empty > 0)
    printf("empty        %" PRIu64 " records without a token were left out\n", standing->n_empty);
  if (standing->n_long > 0)
    printf("too long     %" PRIu64 " documents were left out\n", standing->n_long);
  if (standing->n_skipped > 0)
    printf("skipped      %" PRIu64 " malformed records, the first: %s\n", standing->n_skipped,
           standing->first_skipped);
}

bool nxd_check_pairs(const nxr_dataset *dataset, nxr_fault *fault) {
  return dataset->n_documents % 2 == 0 ||
         nxr_fault_set(fault, "%s has %" PRIu64 " documents, and pairs of answers are an even number",
                       dataset->prefix, dataset->n_documents);
}
