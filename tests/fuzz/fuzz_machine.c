/* SPDX-License-Identifier: Apache-2.0 */
/* Takes any bytes for a machine's description: it is refused with a finding, or its rates are numbers above 0
 * whatever is asked of them. */
#include "compiler/machine/machine.h"
#include "tests/fuzz/replay.h"

#include <assert.h>
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

static void ask(const nxc_rate *rate) {
  if (rate->n_points == 0) return;
  static const double sizes[] = {0, 1, 1e3, 1e9, 1e18, 1e300};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    double told = nxc_rate_at(rate, sizes[i]);
    assert(isfinite(told) && told >= 0 && told <= nxc_rate_peak(rate));
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
  static int file = -1;
  char path[64];
  if (file < 0) file = memfd_create("machine", 0);
  if (file < 0 || ftruncate(file, 0) != 0 || pwrite(file, bytes, n_bytes, 0) != (ssize_t)n_bytes) abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  nxc_arena *arena = nxc_arena_new();
  nxc_sink *sink = nxc_sink_new(arena);
  const nxc_machine *machine = nxc_machine_read(arena, path, sink);
  assert((machine == NULL) == (nxc_sink_count(sink, NXC_SEVERITY_ERROR) > 0));
  for (int dtype = 0; machine != NULL && dtype < NX_DTYPE_END; dtype++) ask(&machine->products[dtype]);
  if (machine != NULL) ask(&machine->bandwidth);
  nxc_arena_free(arena);
  return 0;
}
