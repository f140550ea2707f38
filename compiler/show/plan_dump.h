/* SPDX-License-Identifier: Apache-2.0 */
/* A verified plan as text for people; the same plan gives the same text. What `nxcfg show` prints.
 * Strings of the plan are printed as they may be shown (compiler/diagnostics/characters.h). */
#ifndef NXC_PLAN_DUMP_H
#define NXC_PLAN_DUMP_H

#include "compiler/arena.h"
#include "schema/plan.h"

#include <stdio.h>

typedef void nxc_plan_dump(const nx_plan *plan, FILE *out);

/* "validation: 100 batches every 1000 steps and at the end". */
void nxc_print_evaluation(const nx_plan *plan, const nx_evaluation *evaluation, FILE *out);

nxc_plan_dump nxc_dump_summary;  /* what it trains, on how many ranks, ids and sizes */
nxc_plan_dump nxc_dump_settings; /* every setting, its value and where that came from */
nxc_plan_dump nxc_dump_ops;      /* every operator of every program: operands, shapes, bytes, origin */
nxc_plan_dump nxc_dump_schedule; /* what each stage does in a step, as lines of text, and the bubble */
nxc_plan_dump nxc_dump_data;     /* the datasets, their sources, and which documents those give */
nxc_plan_dump nxc_dump_memory;   /* arenas, and the largest values of each */
nxc_plan_dump nxc_dump_tensors;  /* logical tensors and the parameters that hold them */

/* The schedule as a picture; false where it could not be written. */
bool nxc_draw_svg(const nx_plan *plan, FILE *out);

/* "12.3 MB" (powers of ten), "4.56 GFLOP": three significant digits and a unit. */
void nxc_print_quantity(FILE *out, double quantity, const char *unit);
/* "10.5 billion", "2520", "0.975" */
const char *nxc_in_words(nxc_arena *arena, double number);

/* Between ticks of an axis: 1, 2 or 5 of a power of ten, so that there are at most ten. */
double nxc_tick(double length);

#endif
