/* SPDX-License-Identifier: Apache-2.0 */
/* Products whose operands are rounded to fp8.
 *
 * What a product reads is rounded right before it, to numbers of fp8 times a scale, which stand there in a
 * type that holds them exactly; so the product is the one that an accelerator makes, summed in fp32. The
 * gradient is that of the product without rounding, of operands that are rounded for it: where blocks share
 * scales they lie along what is summed over, so each product rounds anew.
 *
 * With delayed scales each operand has a piece of memory beside the model's weights: the greatest magnitudes
 * of the last passes, the newest first, which a pass notes and at its end gathers from the ranks of the
 * stage, so that all of them have the same scales. What is read is remembered by forward passes, its gradient
 * by backward passes; a weight, which is the same in all passes of a step, by the step. A pass notes what
 * scale it read by, since others may come before its gradients (Transformer Engine does all of it so). */
#ifndef NXC_FP8_H
#define NXC_FP8_H

#include "compiler/program/graph/graph.h"

/* What stands in an operand's place. `product` is filled as far as the product is built. */
nxc_id nxc_fp8_round(nxc_graph *graph, const nxc_fp8_product *product, nxc_fp8_operand operand, nxc_id value);
/* Notes the greatest magnitude of an operand, where it is remembered. */
void nxc_fp8_note(nxc_graph *graph, nxc_fp8_product *product, nxc_fp8_operand operand, nxc_id value);
/* Notes what the scale of what is read follows in this pass. */
void nxc_fp8_follow(nxc_graph *graph, nxc_fp8_product *product);
/* The product that made this value; NULL: none in fp8. Not kept over new products. */
nxc_fp8_product *nxc_fp8_product_of(const nxc_graph *graph, nxc_id y);
void nxc_fp8_product_add(nxc_graph *graph, const nxc_fp8_product *product);
/* What the products of the gradient of y = x W^T read; x and W stand there rounded where they are. */
typedef struct nxc_fp8_factors {
  nxc_id x, weight; /* whose gradients they are */
  nxc_id dy_of_x, weight_of_x, dy_of_weight, x_of_weight;
} nxc_fp8_factors;
nxc_fp8_factors nxc_fp8_factors_of(nxc_graph *graph, nxc_id y, nxc_id x, nxc_id weight, nxc_id dy);

/* How many maxima are remembered of an operand; 0: none are. */
int64_t nxc_fp8_history(const nxc_graph *graph);
/* Joins the maxima of an operand of all products into one vector, and moves each to its history, at the end
 * of the program that is built. */
void nxc_fp8_remember(nxc_graph *graph, nxc_fp8_operand operand);

#endif
