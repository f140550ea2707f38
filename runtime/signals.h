/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that ask a run to end: between the two calls the step under way is finished first, and
 * nxr_signals_stop says that it should be the last. A second one, a second later, ends the process at once. */
#ifndef NXR_SIGNALS_H
#define NXR_SIGNALS_H

#include <stdbool.h>

void nxr_signals_catch(void);
void nxr_signals_release(void);
bool nxr_signals_stop(void);

#endif
