/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NX_INLINED_H
#define NX_INLINED_H

/* For functions whose types, and what else a loop must not ask, are known where they are called. */
#define INLINED static inline __attribute__((always_inline))

#endif
