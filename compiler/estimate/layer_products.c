/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/estimate/layer_products.h"

/* It is read and written where products sum micro-batches, and only written where it goes to the ranks that
 * own it, or an operator of its own sums. */
double nxc_gradient_bytes(const nxc_clock *c) {
  return c->z->zero >= 2 || c->traits.sum_bytes > 0 ? 2 : 2 * c->z->grad_bytes;
}

/* What an fp8 product reads is cast to it, by rows and by columns, with a scale: inputs and weights forward,
 * gradients of results and weights backward. */
static void add_casts(const nxc_clock *c, nxc_passes *p, double inputs, double results, double weights) {
  if (c->z->fp8 == 0) return;
  double passes_s = c->traits.cast_passes * nxc_moved_s(c->device, 2);
  weights *= c->traits.casts_weights;
  p->forward.parts[NXC_SPENT_POINTWISE] += passes_s * (inputs + weights);
  if (c->z->fp8_backward == 0) return;
  p->backward.parts[NXC_SPENT_POINTWISE] += passes_s * (results + weights);
}

void nxc_add_weights(const nxc_clock *c, nxc_passes *p, const nxc_product *weight) {
  double seconds = c->z->trained == 1 ? nxc_product_s(c->device, weight) : 0;
  double summed = c->z->trained * c->traits.sum_bytes * weight->m * weight->n * weight->count;
  p->backward.parts[NXC_SPENT_PRODUCTS] += seconds;
  p->backward.parts[NXC_SPENT_POINTWISE] += nxc_moved_s(c->device, summed);
  p->backward.weights_s += seconds;
}

static void add_uncast(const nxc_clock *c, nxc_passes *p, double m, double n, double k, double count) {
  const bool narrow = c->z->fp8 > 0;
  const nxc_product forward = {m, n, k, count, 2, narrow, false};
  const nxc_product input = {m, k, n, count, 2, narrow && c->z->fp8_backward >= 1, false};
  const nxc_product weight = {n, k, m, count, nxc_gradient_bytes(c), narrow && c->z->fp8_backward >= 2, true};
  p->forward.parts[NXC_SPENT_PRODUCTS] += nxc_product_s(c->device, &forward);
  p->backward.parts[NXC_SPENT_PRODUCTS] += nxc_product_s(c->device, &input);
  nxc_add_weights(c, p, &weight);
}

void nxc_add_product(const nxc_clock *c, nxc_passes *p, double m, double n, double k, double count) {
  add_uncast(c, p, m, n, k, count);
  add_casts(c, p, count * m * k, count * m * n, count * n * k);
}

void nxc_add_network(const nxc_clock *c, nxc_passes *p, double rows, double width, double count) {
  if (width <= 0 || count <= 0) return;
  nxc_add_product(c, p, rows, (1 + c->z->gates) * width, c->z->hidden, count);
  nxc_add_product(c, p, rows, c->z->hidden, width, count);
}

/* One kernel for both products casts what is between them, too. */
void nxc_add_experts(const nxc_clock *c, nxc_passes *p, double rows, double width, double count) {
  double first = (1 + c->z->gates) * width, hidden = c->z->hidden, stream = count * rows * hidden;
  if (c->z->joins_experts == 0) {
    nxc_add_network(c, p, rows, width, count);
    return;
  }
  add_uncast(c, p, rows, first, hidden, count);
  add_uncast(c, p, rows, hidden, width, count);
  add_casts(c, p, stream, stream, count * (first + width) * hidden);
}

/* Of the inputs and results of a layer's matrices, together, half are taken for inputs. Quantized weights are
 * written out for each pass. */
void nxc_add_adapters(const nxc_clock *c, nxc_passes *p, double rows, double weights, double adapted,
                      double count) {
  if (weights <= 0) return;
  double rank = c->z->adapter_rank, width = weights / rank / 2;
  const nxc_product down = {rows, rank, width, count, 2, false, false};
  const nxc_product up = {rows, width, rank, count, 2, false, false};
  double seconds = nxc_product_s(c->device, &down) + nxc_product_s(c->device, &up);
  p->forward.parts[NXC_SPENT_PRODUCTS] += seconds;
  p->backward.parts[NXC_SPENT_PRODUCTS] += 2 * seconds; /* gradients of inputs, and of weights */
  const nxc_adapters *a = &c->z->adapters;
  double bytes = 3 * c->z->compute_bytes * rows * width;
  if (a->quantized) bytes += (a->base_bytes + a->scale_bytes + c->z->compute_bytes) * adapted;
  double moved_s = nxc_moved_s(c->device, bytes * count);
  p->forward.parts[NXC_SPENT_POINTWISE] += moved_s;
  p->backward.parts[NXC_SPENT_POINTWISE] += moved_s;
}
