/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that ask something of a run while it trains.
 *
 * SIGTERM, SIGINT and SIGHUP ask it to end: between the two calls the step under way is finished first, and
 * nxr_signals_stop says that it should be the last. A second one, a second later, ends the process at once.
 * SIGUSR1 asks for a checkpoint now. */
#ifndef NXR_SIGNALS_H
#define NXR_SIGNALS_H

#include <stdbool.h>

void nxr_signals_catch(void);
void nxr_signals_release(void);
bool nxr_signals_stop(void);
/* Whether a checkpoint was asked for since the last call. */
bool nxr_signals_save(void);

#endif
