/* SPDX-License-Identifier: Apache-2.0 */
/* Takes any bytes for a dataset: it is refused with a message, or every token of it can be read.
 *
 * The first two bytes of an input say how many of the others are the index; the rest is the data. */
#include "runtime/data/dataset.h"
#include "tests/fuzz/replay.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char folder[] = "/tmp/nx-fuzz-XXXXXX";
static const char *const endings[2] = {".idx", ".bin"};

static void link_path(int which, char path[64]) {
  snprintf(path, 64, "%s/set%s", folder, endings[which]);
}

static void remove_links(void) {
  char path[64];
  for (int i = 0; i < 2; i++) {
    link_path(i, path);
    unlink(path);
  }
  rmdir(folder);
}

/* Two files in memory, by names that a dataset has. */
static void make_files(int files[2]) {
  char path[64], target[64];
  if (mkdtemp(folder) == NULL) abort();
  atexit(remove_links);
  for (int i = 0; i < 2; i++) {
    files[i] = memfd_create("input", 0);
    link_path(i, path);
    snprintf(target, sizeof target, "/proc/self/fd/%d", files[i]);
    if (files[i] < 0 || symlink(target, path) != 0) abort();
  }
}

static void write_file(int file, const uint8_t *bytes, size_t n_bytes) {
  if (ftruncate(file, 0) != 0 || pwrite(file, bytes, n_bytes, 0) != (ssize_t)n_bytes) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
  static int files[2] = {-1, -1};
  char prefix[64];
  if (n_bytes < 2) return 0;
  if (files[0] < 0) make_files(files);
  size_t n_index = (size_t)bytes[0] | (size_t)bytes[1] << 8;
  if (n_index > n_bytes - 2) n_index = n_bytes - 2;
  write_file(files[0], bytes + 2, n_index);
  write_file(files[1], bytes + 2 + n_index, n_bytes - 2 - n_index);
  snprintf(prefix, sizeof prefix, "%s/set", folder);
  nxr_dataset dataset;
  nxr_dataset_summary summary;
  nxr_fault fault = {""};
  if (nxr_dataset_open(prefix, &dataset, &fault)) {
    if (nxr_dataset_summarize(&dataset, &summary, &fault)) {
      assert(summary.least_token >= 0 && summary.least_token <= summary.greatest_token);
      assert(summary.shortest <= summary.longest && summary.longest <= dataset.n_tokens);
    } else {
      assert(fault.text[0] != '\0');
    }
    nxr_dataset_close(&dataset);
  } else {
    assert(fault.text[0] != '\0');
  }
  return 0;
}
