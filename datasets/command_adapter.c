/* SPDX-License-Identifier: Apache-2.0 */
/* nxdata merge-adapter. */
#include "datasets/command.h"
#include "datasets/adapter.h"

#include <stdio.h>

int nxd_command_adapter(int n, char **arguments) {
  const char *out = NULL;
  const nxd_option options[] = {{"-o", NXD_TEXT, &out, "a FOLDER"}};
  nxr_fault fault = {""};
  if (!nxd_options_read(&n, arguments, options, 1)) return STATUS_USAGE;
  if (n != 2) return nxd_usage("merge-adapter takes a MODEL and the folder of an ADAPTER", "");
  if (out == NULL) return nxd_usage("where to? give -o FOLDER", "");
  if (!nxd_merge_adapter(arguments[0], arguments[1], out, &fault)) return nxd_damaged(&fault);
  printf("wrote %s\n", out);
  return STATUS_DONE;
}
