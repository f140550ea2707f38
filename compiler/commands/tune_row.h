/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of a layout that tune has found, in whatever form. */
#ifndef NXC_COMMANDS_TUNE_ROW_H
#define NXC_COMMANDS_TUNE_ROW_H

#include "compiler/commands/tune_report.h"

const char *nxc_tune_recompute(const nxc_tune_report *r, const nxc_tuned *tuned);
int64_t nxc_tune_zero(const nxc_tune_report *r, const nxc_tuned *tuned);
/* Of the tokens that the file's steps have; 0 where nobody says how many steps there are. */
double nxc_tune_device_hours(const nxc_tune_report *r, const nxc_tuned *tuned);
double nxc_tune_token_s(const nxc_tuned *tuned);
/* How much longer it takes for as many tokens, as a share of what the best takes. */
double nxc_tune_loss(const nxc_tuned *best, const nxc_tuned *tuned);
/* As the file counts them: pairs, where a sample has two sequences. */
int64_t nxc_tune_samples(const nxc_tune_report *r, int64_t sequences);
/* A degree, or what is computed again. */
const char *nxc_tune_value(const nxc_tune_report *r, const nxc_left_out *one);

#endif
