/* SPDX-License-Identifier: Apache-2.0 */
/* MPICH over UCX and TCP often hangs in MPI_Finalize between hosts (seen with 4.0.2; its pull request 6596):
 * a rank that has closed its connections waits in the launcher's barrier, and no longer answers one that
 * still closes its own. There the process leaves by the launcher's own messages, which is all that is left to
 * do: it waits for the others at the launcher's barrier and says that it is done. The system closes the
 * connections. */
#include "runtime/world/world_end.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The launcher's end of the process-management interface, version 1; -1 where there is none. */
static int launcher(void) {
  const char *descriptor = getenv("PMI_FD");
  return descriptor ? atoi(descriptor) : -1;
}

static bool finalize_may_hang(uint32_t n_hosts) {
  static char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Get_library_version(version, &length);
  return n_hosts > 1 && strstr(version, "ch4:ucx");
}

/* Sends a line and reads the answer's; false where the launcher speaks otherwise. */
static bool ask(int launcher, const char *line, const char *answer) {
  char text[256];
  size_t n = 0, length = strlen(line);
  if (write(launcher, line, length) != (ssize_t)length) return false;
  while (n + 1 < sizeof text && read(launcher, text + n, 1) == 1 && text[n] != '\n') n++;
  text[n] = '\0';
  return strncmp(text, answer, strlen(answer)) == 0;
}

void nxr_end_mpi(uint32_t n_hosts) {
  int to = launcher();
  if (to < 0 || !finalize_may_hang(n_hosts)) {
    MPI_Finalize();
    return;
  }
  if (ask(to, "cmd=barrier_in\n", "cmd=barrier_out")) ask(to, "cmd=finalize\n", "cmd=finalize_ack");
}
