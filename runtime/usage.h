/* SPDX-License-Identifier: Apache-2.0 */
/* What nxrun --help prints; man/nxrun.1 says more. */
#ifndef NXR_USAGE_H
#define NXR_USAGE_H

extern const char nxr_usage[];

#endif
