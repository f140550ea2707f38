/* SPDX-License-Identifier: Apache-2.0 */
/* What the passes over one layer, and over the output layer, take on a rank: products, attention, what memory
 * bounds, and what is exchanged within a layer. */
#ifndef NXC_LAYER_TIME_H
#define NXC_LAYER_TIME_H

#include "compiler/estimate/exchange.h"
#include "compiler/estimate/time.h"

/* What passes over one layer, or over the output layer, take. */
typedef struct nxc_pass {
  double parts[NXC_N_SPENT];
  double weights_s; /* of the products: those that give gradients of weights, which nothing waits for */
} nxc_pass;

typedef struct nxc_passes {
  nxc_pass forward, backward;
  nxc_pass again; /* what of the forward pass is computed again before the backward one */
} nxc_passes;

typedef struct nxc_clock {
  const nxc_sizes *z;
  const nxc_training *training;
  const nxc_machine *machine;
  const nxc_device *device;
  nxc_traits traits;
  double offloaded_bytes; /* activations of a micro-batch that go to the host's memory and come back */
  nxc_ranks tensor, ulysses, ring, data, shard, expert, expert_data, expert_shard, copies, stages;
} nxc_clock;

double nxc_pass_s(const nxc_pass *pass);
void nxc_pass_add(nxc_pass *to, const nxc_pass *what, double times);
/* What is left of an exchange beneath work: what does not fit, and what the work loses to it, since
 * collectives run on some of the units that compute. */
double nxc_exposed_s(const nxc_clock *clock, double exchange_s, double work_s);
/* Keys that a query meets on average: causal, and within the window in the layers that have one. */
double nxc_keys_met(const nxc_sizes *sizes);

nxc_passes nxc_dense_layer(const nxc_clock *clock);
nxc_passes nxc_mixture_layer(const nxc_clock *clock);
nxc_passes nxc_output_layer(const nxc_clock *clock);
/* Of a further token that is predicted, beside its layer: what joins stream and embedding, and the output. */
nxc_passes nxc_prediction(const nxc_clock *clock);

#endif
