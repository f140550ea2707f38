/* SPDX-License-Identifier: Apache-2.0 */
/* The layouts that a training may have: every combination of what may be varied, each once.
 *
 * A knob is what is changed together (tensor parallelism with sequence parallelism, stages with their
 * chunks). The first value of each knob is what the file has, so the choice of all zeros is the file itself.
 * Ranks, and what the training learns, stay: only the knob `global` changes the batch. Whether the real
 * system accepts a layout is asked elsewhere; here is arithmetic alone. */
#ifndef NXC_TUNE_SPACE_H
#define NXC_TUNE_SPACE_H

#include "compiler/program/records/training.h"

/* KNOB(id, name, group): `group` names several on the command line */
#define NXC_KNOBS(KNOB)                                                                                      \
  KNOB(TENSOR, "tensor", "mesh")                                                                             \
  KNOB(STAGES, "pipeline", "mesh")                                                                           \
  KNOB(CONTEXT, "context", "mesh")                                                                           \
  KNOB(EXPERT, "expert", "mesh")                                                                             \
  KNOB(EXPERT_TENSOR, "expert-tensor", "mesh")                                                               \
  KNOB(MICRO, "micro", "batch")                                                                              \
  KNOB(ZERO, "zero", "zero")                                                                                 \
  KNOB(RECOMPUTE, "recompute", "recompute")                                                                  \
  KNOB(GLOBAL, "global", "global")                                                                           \
  KNOB(OFFLOAD_OPTIMIZER, "optimizer", "offload")                                                            \
  KNOB(OFFLOAD_ACTIVATIONS, "activations", "offload")                                                        \
  KNOB(ORDER, "schedule", "schedule")                                                                        \
  KNOB(REPLICATE, "replicate", "replicate")

typedef enum nxc_knob {
#define KNOB(id, name, group) NXC_KNOB_##id,
  NXC_KNOBS(KNOB)
#undef KNOB
  NXC_N_KNOBS
} nxc_knob;

enum { NXC_RECOMPUTE_NONE, NXC_RECOMPUTE_SELECTIVE, NXC_RECOMPUTE_FULL };

/* tensor and whether sequences are divided too; stages and chunks of each, with `cuts` where the system is to
 * divide the layers so; of the others `first` alone: of experts' tensor 0 where it is that of the rest, of
 * what is in the host's memory thousandths, of the schedule an nxc_order_id. */
typedef struct nxc_knob_value {
  int64_t first, second;
  const nxc_value *cuts; /* a list (layout.h); NULL: however the system divides them */
} nxc_knob_value;

typedef struct nxc_space {
  const nxc_training *training; /* of the file, on as many ranks as there are */
  const nxc_settings *settings;
  nxc_knob_value *values[NXC_N_KNOBS];
  size_t n_values[NXC_N_KNOBS]; /* at least 1 */
} nxc_space;

typedef struct nxc_choice {
  uint16_t at[NXC_N_KNOBS]; /* places in `values` */
} nxc_choice;

const char *nxc_knob_name(nxc_knob knob);
/* "mesh,batch", each a knob or a group. False: *wrong is a word that names none. */
bool nxc_knobs_parse(nxc_arena *arena, const char *text, bool varies[NXC_N_KNOBS], const char **wrong);

nxc_space nxc_space_make(nxc_arena *arena, const nxc_training *training, const nxc_settings *settings,
                         const bool varies[NXC_N_KNOBS]);
/* All combinations, whether they divide or not. */
double nxc_space_size(const nxc_space *space);
/* The next of them; false behind the last. The first is all zeros. */
bool nxc_space_next(const nxc_space *space, nxc_choice *choice);
/* Takes a value out, but never the file's own. */
void nxc_space_drop(nxc_space *space, nxc_knob knob, size_t place);
nxc_knob_value nxc_choice_value(const nxc_space *space, const nxc_choice *choice, nxc_knob knob);

/* NXC_RECOMPUTE_*. */
int64_t nxc_recompute_kind(const nxc_recomputation *recomputation);
int64_t nxc_thousandths(const nxc_settings *settings, nxc_setting_id id);

/* Whether ranks, layers, heads, experts and batches can be divided so; and weights, if their stage of ZeRO is
 * not the file's: else it is the same training once more. */
bool nxc_choice_divides(const nxc_space *space, const nxc_choice *choice);
/* The records of this layout, as far as estimates read them. */
void nxc_choice_read(const nxc_space *space, const nxc_choice *choice, nxc_training *training);
/* Gives the settings their values; `changed` marks those that the file says otherwise. */
void nxc_choice_set(const nxc_space *space, const nxc_choice *choice, nxc_settings *settings,
                    bool changed[NX_N_SETTINGS]);
/* Whether settings that were read from a text, with their records, have what was chosen. */
bool nxc_choice_is(const nxc_space *space, const nxc_choice *choice, const nxc_training *training,
                   const nxc_settings *settings);

#endif
