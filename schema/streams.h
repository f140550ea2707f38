/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NX_STREAMS_H
#define NX_STREAMS_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

/* Standard streams that were closed are opened the wrong way round: to use one fails as before, and no file
 * that is opened later takes its place, into which what is printed would then go. */
static inline void nx_streams_hold(void) {
  for (int stream = 0; stream <= 2; stream++)
    if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY) < 0) return;
}

/* Whether all that was printed has arrived; else errno says why not. Of what was lost before, that is asked
 * anew. */
static inline bool nx_streams_arrived(void) {
  errno = 0;
  if (fflush(stdout) == 0 && !ferror(stdout)) return true;
  if (errno == 0 && write(STDOUT_FILENO, "\n", 1) == 1) errno = EIO;
  return false;
}

#endif
