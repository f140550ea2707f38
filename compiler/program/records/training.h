/* SPDX-License-Identifier: Apache-2.0 */
/* What a program is made from: a record for each subject, read once from the settings.
 *
 * Reading needs the sizes alone, and that they fit together; whether nxrun can execute what the records say
 * is another question (nxc_training_judge), so that a program may be estimated that nxrun refuses. The
 * records point into the settings and their arena. */
#ifndef NXC_TRAINING_H
#define NXC_TRAINING_H

#include "compiler/diagnostics/diagnostics.h"
#include "compiler/program/mesh/mesh.h"
#include "compiler/program/records/batch.h"
#include "compiler/program/records/data.h"
#include "compiler/program/records/evaluations.h"
#include "compiler/program/records/layout.h"
#include "compiler/program/records/lora.h"
#include "compiler/program/records/measures.h"
#include "compiler/program/records/model.h"
#include "compiler/program/records/objective.h"
#include "compiler/program/records/optimizer.h"
#include "compiler/program/records/precision.h"
#include "compiler/program/records/learning_rate.h"
#include "compiler/program/records/recomputation.h"

typedef struct nxc_training {
  nxc_layout layout;
  nxc_mesh mesh; /* the atoms of the layout */
  nxc_batch batch;
  nxc_model model;
  nxc_data data;
  nxc_datasets datasets;
  nxc_objective objective;
  nxc_evaluations evaluations;
  nxc_measures measures;
  bool evaluates; /* there is an evaluation program: for those, for a reference, or for texts that one stage
                     can continue */
  nxc_precision types;
  nxc_optimizer optimizer;
  nxc_sharding sharding;
  nxc_learning_rate rate;
  nx_plateau plateau;
  const uint64_t *skipped; /* steps that are left out, from 1, ascending */
  size_t n_skipped;
  nxc_recomputation recomputation;
  nxc_lora lora;
} nxc_training;

/* False, with findings, where sizes are unknown, too large, or do not fit together. */
bool nxc_training_read(const nxc_settings *settings, nxc_sink *sink, nxc_training *training);
/* Whether a plan can hold each whole number (reported), whatever an estimate makes of it. */
bool nxc_training_has_room(const nxc_settings *settings, nxc_sink *sink);
/* The same, whether sizes fit together or not: without a mesh. */
bool nxc_training_read_sizes(const nxc_settings *settings, nxc_sink *sink, nxc_training *training);
/* False, with findings, where nxrun cannot execute what has been read, or what it lacks is unknown. Where
 * nothing could be read (NULL) it judges the settings alone. */
bool nxc_training_judge(const nxc_settings *settings, nxc_sink *sink, const nxc_training *training);

/* Layers before a chunk, up to all of them before chunk n_chunks. */
int64_t nxc_training_layers_before(const nxc_training *training, uint32_t chunk);

/* Reads what nxc_training_rate_at needs, whatever else is unknown. The settings that are missing for it are
 * put into ids, and counted: 0 where the rate is known. */
size_t nxc_training_read_rate(const nxc_settings *settings, nxc_training *training,
                              nxc_setting_id ids[NX_N_SETTINGS]);
/* The learning rate of a step, from 0. */
double nxc_training_rate_at(const nxc_training *training, int64_t step);

/* Logical parameters, each once, and floating-point operations of a step over all ranks (matrix products and
 * whole, not only causal, attention; backward counts twice), as they are usually quoted. */
uint64_t nxc_training_parameters(const nxc_training *training);
double nxc_training_flops(const nxc_training *training);

#endif
