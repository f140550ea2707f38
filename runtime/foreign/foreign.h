/* SPDX-License-Identifier: Apache-2.0 */
/* The weights of a checkpoint that Megatron-LM, GPT-NeoX or PyTorch's distributed checkpoints wrote.
 *
 *   latest_checkpointed_iteration.txt   iter_0000100/mp_rank_00_000/model_optim_rng.pt     Megatron, torch
 *                                       iter_0000100/.metadata, *.distcp                   torch_dist
 *   latest                              global_step100/layer_00-model_00-model_states.pt   GPT-NeoX, stages
 *                                       global_step100/mp_rank_00_model_states.pt          GPT-NeoX, one
 * stage
 *
 * The files are mapped, and their pickles are read as data (pickle.h). A tensor of the plan is put together
 * of shards: names.def says which names mean which part of a model, and the plan says how its own tensors are
 * made of the same parts. Of optimizers' states those are read that torch_dist has by the names of weights.
 */
#ifndef NXR_FOREIGN_H
#define NXR_FOREIGN_H

#include "runtime/files/safetensors.h"

enum { NXR_FOREIGN_PATH = 4096 };

typedef struct nxr_foreign nxr_foreign;

/* The folder of such a checkpoint at, or in, `directory`: of this step, or where that is 0 the newest. False:
 * there is none. `found` is the step that its name says, or 0. */
bool nxr_foreign_find(const char *directory, uint64_t step, char path[NXR_FOREIGN_PATH], uint64_t *found);
/* Whether such a folder has what Adam keeps of each weight, and how many updates it has made (`updates`,
 * where the folder says it). The fault is filled where its files are damaged. */
bool nxr_foreign_has_states(const char *path, uint64_t *updates, nxr_fault *fault);
/* `path` is such a folder, and the caller's. `state` is NULL, for the weights; or what an optimizer keeps of
 * them as Megatron calls it: fp32_param (where it has none, the weight), exp_avg, exp_avg_sq. NULL: the fault
 * says why. */
nxr_foreign *nxr_foreign_open(const char *path, const char *state, nxr_fault *fault);
void nxr_foreign_close(nxr_foreign *foreign);
/* At most so many tensors. */
uint64_t nxr_foreign_size(const nxr_foreign *foreign);

/* Of `n` tensors with names and shapes those that the checkpoint has the parts of: `found` gets them, in this
 * order, and behind them what it has beyond, without shape; owned by `foreign`. It has room for n and
 * nxr_foreign_size. `parts` is the plan's text about them (nx_run.tensor_parts). */
bool nxr_foreign_join(nxr_foreign *foreign, const char *parts, const nxr_safetensor *wanted, uint64_t n,
                      const nxr_safetensor **found, uint64_t *n_found, nxr_fault *fault);

#endif
