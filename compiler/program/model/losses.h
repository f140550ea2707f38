/* SPDX-License-Identifier: Apache-2.0 */
/* What a decoder's logits are worth: the loss of its tokens, or of whole answers; and the values of a head in
 * place of logits. The loss of a step is a sum over its micro-batches; logits and statistics are divided over
 * tensor by columns. */
#ifndef NXC_MODEL_LOSSES_H
#define NXC_MODEL_LOSSES_H

#include "compiler/program/model/decoder.h"

nxc_id nxc_token_loss(const nxc_decoder *d, const char *name, nxc_id x, nxc_id labels, nxc_id weights);
nxc_id nxc_answer_loss(const nxc_decoder *d, nxc_id x);
/* [B,s,1], of tokens. */
nxc_id nxc_value_loss(const nxc_decoder *d, nxc_id values);

#endif
