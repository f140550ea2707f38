/* SPDX-License-Identifier: Apache-2.0 */
/* nxdata split. */
#include "datasets/beside.h"
#include "datasets/command.h"
#include "datasets/copy.h"
#include "runtime/data/dataset_split.h"

#include <stdio.h>

static bool write_part(const nxr_dataset *from, uint64_t first, uint64_t end, const char *prefix, bool force,
                       nxr_fault *fault) {
  nxd_writer writer;
  const nxd_writer_options options = {.prefix = prefix,
                                      .type_code = nxd_copy_type(from, 1),
                                      .weights = from->weights.n_bytes > 0,
                                      .rewards = from->rewards.n_bytes > 0,
                                      .force = force};
  bool good = nxd_writer_open(&writer, &options, fault) &&
              nxd_copy_documents(from, first, end, &writer, fault) && nxd_writer_finish(&writer, fault) &&
              nxd_copy_beside(from->prefix, prefix, fault);
  if (good) nxd_print_written(prefix, options.type_code, &writer.standing);
  nxd_writer_close(&writer);
  return good;
}

static int write_all_parts(const nxr_dataset *from, const double shares[NX_PARTS], const char *prefix,
                           bool force, bool pairs) {
  static const char *const names[NX_PARTS] = {"train", "valid", "test"};
  uint64_t borders[NX_PARTS + 1];
  nxr_fault fault = {""};
  char path[NXD_MAX_PREFIX + 8];
  if (pairs && !nxd_check_pairs(from, &fault)) return nxd_damaged(&fault);
  nxr_split_borders(shares, pairs ? from->n_documents / 2 : from->n_documents, borders);
  for (int i = 0; pairs && i <= NX_PARTS; i++) borders[i] *= 2;
  for (int i = 0; i < NX_PARTS; i++) {
    if (borders[i] == borders[i + 1]) continue;
    snprintf(path, sizeof path, "%s-%s", prefix, names[i]);
    if (!write_part(from, borders[i], borders[i + 1], path, force, &fault)) return nxd_damaged(&fault);
  }
  return STATUS_DONE;
}

int nxd_command_split(int n, char **arguments) {
  bool force = false, pairs = false;
  const char *out = NULL;
  double shares[NX_PARTS];
  char prefix[NXD_MAX_PREFIX], from[NXD_MAX_PREFIX];
  const nxd_option options[] = {
      {"-o", NXD_TEXT, &out, "a PREFIX"}, {"--force", NXD_FLAG, &force}, {"--pairs", NXD_FLAG, &pairs}};
  if (!nxd_options_read(&n, arguments, options, 3)) return STATUS_USAGE;
  if (n != 2) return nxd_usage("split takes a PREFIX and SHARES, as in 969,30,1", "");
  if (out == NULL) return nxd_usage("where to? give -o PREFIX", "");
  if (!nxr_split_parse(arguments[1], shares)) return nxd_usage("no shares as in 969,30,1: ", arguments[1]);
  if (!nxd_read_prefix(out, prefix)) return nxd_usage("no name for a dataset: ", out);
  nxr_dataset dataset;
  int status = nxd_open_dataset(arguments[0], from, &dataset);
  if (status != STATUS_DONE) return status;
  status = write_all_parts(&dataset, shares, prefix, force, pairs);
  nxr_dataset_close(&dataset);
  return status;
}
