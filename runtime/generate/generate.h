/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that the model continues, with the plan's evaluation program.
 *
 * For each token the program runs over the whole sequence that the plan is made for: what stands behind the
 * text is never read by a token before it. All ranks take part, each adds the logits that it has, and each
 * draws the same token. Where the text is longer than the sequence, its last tokens are read. */
#ifndef NXR_GENERATE_H
#define NXR_GENERATE_H

#include "runtime/generate/draw.h"
#include "runtime/step/exec.h"

typedef struct nxr_generation {
  const char *prompt; /* NULL: no text is asked for */
  uint64_t n_tokens;  /* at most, behind the prompt */
  nxr_drawing drawing;
} nxr_generation;

/* Whether the plan can: one stage has the whole model. */
bool nxr_can_generate(const nx_plan *plan, nxr_fault *fault);
/* Rank 0 prints prompt and continuation, with the tokenizer in `path`, which it alone reads. Meets all ranks;
 * the fault is of the rank that found it. */
bool nxr_generate(nxr_exec *exec, const nxr_generation *asked, const char *path, nxr_fault *fault);

#endif
