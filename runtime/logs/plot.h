/* SPDX-License-Identifier: Apache-2.0 */
/* nxrun plot: curves of one or several runs, from their metrics.jsonl, as SVG. */
#ifndef NXR_PLOT_H
#define NXR_PLOT_H

/* Arguments from `plot` on; the exit status. */
int nxr_plot(int argc, char **argv);

#endif
