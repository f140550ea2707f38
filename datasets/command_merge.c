/* SPDX-License-Identifier: Apache-2.0 */
/* nxdata merge: the documents of several datasets, in order, as one; of one, in the format of today. */
#include "datasets/beside.h"
#include "datasets/command.h"
#include "datasets/copy.h"

#include <stdio.h>
#include <stdlib.h>

/* The tokenizer of all, if it is one. */
static bool copy_tokenizer(const nxr_dataset *datasets, int n, const char *prefix, nxr_fault *fault) {
  for (int i = 1; i < n; i++) {
    if (nxd_same_beside(datasets[0].prefix, datasets[i].prefix)) continue;
    fprintf(stderr, "nxdata: the tokenizers beside %s and %s are not the same, and none is copied\n",
            datasets[0].prefix, datasets[i].prefix);
    return true;
  }
  return nxd_copy_beside(datasets[0].prefix, prefix, fault);
}

/* Of tokens without weights each counts; no reward is none that could be made up. */
static bool find_beside(const nxr_dataset *datasets, int n, nxd_writer_options *options, nxr_fault *fault) {
  for (int i = 0; i < n; i++) {
    options->weights = options->weights || datasets[i].weights.n_bytes > 0;
    options->rewards = options->rewards || datasets[i].rewards.n_bytes > 0;
  }
  for (int i = 0; options->rewards && i < n; i++)
    if (datasets[i].rewards.n_bytes == 0 && datasets[i].n_documents > 0)
      return nxr_fault_set(fault, "%s has no rewards of its answers, and others have", datasets[i].prefix);
  return true;
}

static bool merge(const nxr_dataset *datasets, int n, nxd_writer_options *options, nxr_fault *fault) {
  nxd_writer writer;
  options->type_code = nxd_copy_type(datasets, n);
  if (!find_beside(datasets, n, options, fault)) return false;
  bool good = nxd_writer_open(&writer, options, fault);
  for (int i = 0; good && i < n; i++)
    good = nxd_copy_documents(&datasets[i], 0, datasets[i].n_documents, &writer, fault);
  good = good && nxd_writer_finish(&writer, fault) && copy_tokenizer(datasets, n, options->prefix, fault);
  if (good) nxd_print_written(options->prefix, options->type_code, &writer.standing);
  nxd_writer_close(&writer);
  return good;
}

static int open_and_merge(char **names, int n, nxd_writer_options *options) {
  nxr_fault fault = {""};
  nxr_dataset *datasets = calloc((size_t)n, sizeof *datasets);
  char(*prefixes)[NXD_MAX_PREFIX] = calloc((size_t)n, sizeof *prefixes);
  if (datasets == NULL || prefixes == NULL) {
    nxr_fault_set(&fault, "out of memory");
    free(datasets);
    free(prefixes);
    return nxd_damaged(&fault);
  }
  int status = STATUS_DONE, n_open = 0;
  while (status == STATUS_DONE && n_open < n) {
    status = nxd_open_dataset(names[n_open], prefixes[n_open], &datasets[n_open]);
    n_open += status == STATUS_DONE;
  }
  if (status == STATUS_DONE && !merge(datasets, n, options, &fault)) status = nxd_damaged(&fault);
  for (int i = 0; i < n_open; i++) nxr_dataset_close(&datasets[i]);
  free(datasets);
  free(prefixes);
  return status;
}

int nxd_command_merge(int n, char **arguments) {
  const char *out = NULL;
  char prefix[NXD_MAX_PREFIX];
  nxd_writer_options writer = {.prefix = prefix};
  const nxd_option options[] = {{"-o", NXD_TEXT, &out, "a PREFIX"}, {"--force", NXD_FLAG, &writer.force}};
  if (!nxd_options_read(&n, arguments, options, 2)) return STATUS_USAGE;
  if (n == 0) return nxd_usage("which datasets? give their PREFIXes", "");
  if (out == NULL) return nxd_usage("where to? give -o PREFIX", "");
  if (!nxd_read_prefix(out, prefix)) return nxd_usage("no name for a dataset: ", out);
  return open_and_merge(arguments, n, &writer);
}
