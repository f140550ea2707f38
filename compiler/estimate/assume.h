/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration compiled with what it leaves open filled in, for estimates.
 *
 * Only what nothing gives is assumed, and every assumption carries what it follows from (NXC_FROM_ASSUMED):
 * the shape of a model and the vocabulary of a tokenizer that the file names, then what is usual. The
 * smallest world is taken that the layout allows. Nothing that is assumed may reach a plan. */
#ifndef NXC_ASSUME_H
#define NXC_ASSUME_H

#include "compiler/config/compile_settings.h"

typedef struct nxc_assumed {
  nxc_assumption *items;
  size_t n_items;
  const char *model; /* whose shape was taken, or NULL */
  nxc_span model_at; /* the option that names it; nowhere: what the run or the file is called does */
  bool defaults;     /* what other texts may give has its default */
  const char *arguments; /* of the script, as a comment of it shows them, or NULL */
  nxc_request request; /* with all of it, to be compiled again */
} nxc_assumed;

/* In the place of a setting: the value names a well-known model, whose shape is taken. */
#define NXC_ASSUMES_MODEL NX_N_SETTINGS

/* As nxc_compile_settings; `given` are the user's own assumptions (--assume), which count before ours. */
bool nxc_assume_compile(nxc_arena *arena, const nxc_request *request, const nxc_assumption *given,
                        size_t n_given, nxc_sink *sink, nxc_compiled *compiled, nxc_assumed *assumed);
/* Whether it is told that the model is no decoder: what is assumed of one is wrong about it. */
bool nxc_is_other_kind(const nxc_settings *settings);

#endif
