/* SPDX-License-Identifier: Apache-2.0 */
/* The reverse pass: gradients as ordinary operators.
 *
 * The forward program is walked backwards; each operator's rule reads the gradients of its outputs
 * (nxc_grad_of), appends operators, and gives gradients to its inputs. An activation's gradient is the sum of
 * what was given; where it is partial on an atom on which the activation is not, it is summed over the ranks
 * of exactly those atoms, as late as the operator that reads it allows. A parameter's gradient is written in
 * place, over all micro-batches, and stays partial until the step. */
#ifndef NXC_GRAD_H
#define NXC_GRAD_H

#include "compiler/program/graph/rules.h"

/* Fills the backward program. loss_scale is the gradient of the loss: 1 / tokens of the step. */
void nxc_grad_build(nxc_graph *graph, double loss_scale);

nxc_graph *nxc_grad_graph(nxc_grad *grad);
double nxc_grad_loss_scale(const nxc_grad *grad);
/* The complete gradient of an output of a forward operator; 0: nothing depends on it. */
nxc_id nxc_grad_of(nxc_grad *grad, nxc_id value);
/* A later operator made another value of this one, whose gradient is that of the other: operators of the
 * gradient read the other in its place. What stands in a value's place: itself, where nothing does. */
void nxc_grad_replace(nxc_grad *grad, nxc_id value, nxc_id by);
nxc_id nxc_grad_value(const nxc_grad *grad, nxc_id value);
/* Adds one summand to the gradient of an activation. */
void nxc_grad_give(nxc_grad *grad, nxc_id value, nxc_id gradient);
/* Appends an operator whose outputs hold gradients of parameters, and whose attribute `accumulate` says
 * whether to add. `request->out` has the gradients (nxc_grad_parameter) in place. Where the first output is
 * the gradient of a frozen parameter nothing is appended: the operator would make nothing else. */
void nxc_grad_accumulate(nxc_grad *grad, nxc_op_request *request);
/* The same for operators that always add: the gradient is filled with 0 first where they are the first
 * writer. */
void nxc_grad_scatter(nxc_grad *grad, const nxc_op_request *request);
/* Adds a summand of a parameter's gradient that an operator made on its own. */
void nxc_grad_add(nxc_grad *grad, nxc_id parameter, nxc_id summand);
/* Gives the logits their gradient of the cross-entropy whose statistics (of all columns) these are;
 * weights[T], 0: 1. */
void nxc_grad_cross_entropy(nxc_grad *grad, nxc_id all_stats, nxc_id lse, nxc_id weights, nx_attribute z);
/* Where the gradient of a parameter is summed; 0: it is frozen. */
nxc_id nxc_grad_parameter(nxc_grad *grad, nxc_id parameter);

#endif
