/* SPDX-License-Identifier: Apache-2.0 */
/* Takes any bytes for an Arrow file: it is refused with a message, or every row of every column can be read.
 */
#include "datasets/arrow_row.h"
#include "tests/fuzz/replay.h"

#include <assert.h>
#include <sys/mman.h>
#include <unistd.h>

/* Some rows are enough of batches that say they have many. */
enum { MOST_ROWS = 64, MOST_BATCHES = 64 };

static void read_rows(const nxd_arrow *arrow, nxr_fault *fault) {
  nxd_batch batch = {0};
  for (uint32_t i = 0; i < arrow->rows.n_columns && fault->text[0] == '\0';
       i += 1 + arrow->rows.columns[i].n_below) {
    const nxd_arrow_path path = {{i}, 1};
    for (uint64_t row = 0; row < arrow->rows.n_rows && row < MOST_ROWS; row++) {
      nxd_batch_empty(&batch);
      nxd_record *record = nxd_batch_add(&batch);
      if (!nxd_arrow_row(arrow, &path, row, &batch, record, 0, fault)) break;
      assert(record->fields[0].form == NXD_IDS ||
             record->fields[0].at + record->fields[0].n <= batch.bytes.n);
    }
  }
  nxd_batch_free(&batch);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
  static int file = -1;
  char path[64], names[256];
  if (file < 0) file = memfd_create("input", 0);
  if (file < 0 || ftruncate(file, 0) != 0 || pwrite(file, bytes, n_bytes, 0) != (ssize_t)n_bytes) abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  nxd_arrow arrow;
  nxr_fault fault = {""};
  if (!nxd_arrow_open(&arrow, path, &fault)) {
    assert(fault.text[0] != '\0');
    return 0;
  }
  nxd_arrow_names(&arrow, names, sizeof names);
  for (int batch = 0; batch < MOST_BATCHES && nxd_arrow_next(&arrow, &fault) && arrow.rows.n_rows > 0;
       batch++)
    read_rows(&arrow, &fault);
  nxd_arrow_close(&arrow);
  return 0;
}
