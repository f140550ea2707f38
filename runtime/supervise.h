/* SPDX-License-Identifier: Apache-2.0 */
/* nxrun --restarts N: starts a run, and starts it again where it fails.
 *
 * A program beside the run, without MPI: it starts the launcher (mpiexec) with nxrun and the plan, waits for
 * its end, and after a failure waits a while and starts it with --resume: a second at first, twice as long
 * each time that no new checkpoint came, a minute at most. What ends well, was told to stop or is called
 * wrongly is not started again. Where two starts in a row bring no new checkpoint, a plan for other ranks may
 * take the place of the first: a host is missing, say. SIGTERM, SIGINT, SIGHUP and SIGUSR1 are handed on; a
 * run that dies of one, since it had not begun, has stopped like one that was saved (status 3). */
#ifndef NXR_SUPERVISE_H
#define NXR_SUPERVISE_H

/* Arguments from --restarts on; the exit status. */
int nxr_supervise(int argc, char **argv);

#endif
