/* SPDX-License-Identifier: Apache-2.0 */
/* The best layouts of a training on a machine.
 *
 *   space ─▶ values that the system knows ─▶ layouts that divide ─▶ fit ─▶ fastest ─▶ accepted as a text
 *
 * On accelerators every layout is estimated from its records alone, and only the fastest are written as texts
 * and judged by all rules; a lower bound of the time spares most estimates, and never one of the best. On a
 * host whose processors compute there is an exact forecast, which needs the plan, so every layout is judged
 * and compiled. More tokens a second come first, in classes of half a percent where they are estimated; of
 * equals what needs less memory, and then what comes first in the space. What a rule has refused twice for
 * the same values is not judged again, and where the fastest are refused those behind them are listed. */
#ifndef NXC_TUNE_SEARCH_H
#define NXC_TUNE_SEARCH_H

#include "compiler/estimate/time.h"
#include "compiler/tune/reasons.h"
#include "compiler/tune/values.h"

enum { NXC_MOST_PARTS = 16 };

typedef struct nxc_tune_request {
  const nxc_request *request; /* with what is assumed */
  const nxc_compiled *compiled;
  const nxc_sink *findings;     /* about it; NULL: none */
  const nxc_training *training; /* of it */
  const nxc_system *system;     /* whose memory and time, on accelerators */
  const nxc_machine *machine;
  double memory_bytes;           /* 0: any */
  double spare;                  /* share of it that stays free, where any layout fits so */
  const bool *varies;            /* of each knob */
  bool offloads;                 /* where nothing fits, to the memory of the host too */
  size_t top;                    /* how many are wanted */
  size_t kept;                   /* how many of the fastest may be judged; 0: 512 */
  double deadline_s;             /* 0: none */
  void (*progress)(double done); /* 0 to 1; NULL: nobody watches */
} nxc_tune_request;

typedef struct nxc_tuned {
  nxc_choice choice;
  double memory_bytes, step_s, tokens_per_s, utilisation;
  double class;                 /* of speed, which orders before memory does */
  double parts[NXC_MOST_PARTS]; /* seconds of a step, named by nxc_tune_parts */
  nxc_layout layout;
  nxc_batch batch;
  const nxc_option_change *edits; /* of the file's text */
  size_t n_edits;
  const char *text; /* with them */
  bool has_errors;  /* some of the file's */
  const bool *stays; /* which of its findings these are */
} nxc_tuned;

typedef struct nxc_tune_result {
  nxc_space space;
  nxc_tuned *best; /* the first is the best */
  size_t n_best;
  nxc_tuned own;           /* the file's own layout */
  const char *own_refused; /* why it has no numbers; NULL: it has */
  size_t n_divide, n_fit, n_estimated, n_judged;
  size_t n_refused; /* judged, or as others that were */
  const nxc_reason *reasons; /* why layouts were refused, the most frequent first */
  size_t n_reasons;
  nxc_left_outs left_out;    /* before layouts were gone over */
  double least_bytes;          /* that any layout needs */
  double room_bytes;           /* that layouts were to fit in; 0: any */
  bool cut_short;              /* by the deadline */
  bool elsewhere[NXC_N_KNOBS]; /* another text gives an option of it, which the file's own cannot change */
} nxc_tune_result;

/* What the parts of a step are called on this machine. */
const char *const *nxc_tune_parts(const nxc_machine *machine, size_t *n_parts);
void nxc_tune(nxc_arena *arena, const nxc_tune_request *request, nxc_tune_result *result);

#endif
