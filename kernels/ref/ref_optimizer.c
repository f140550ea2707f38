/* SPDX-License-Identifier: Apache-2.0 */
/* One step of training: gradient clipping, the learning rate, AdamW and SGD. */
#include "kernels/ref/ref.h"

#include <math.h>

/* torch.nn.utils.clip_grad_norm_. A norm that is not a number makes the scale so. */
void ref_clip_scale(const ref_call *call) {
  ref_operand s = ref_in(call, 0), norm = ref_out(call, 0), scale = ref_out(call, 1);
  double clip = ref_real(call, NX_clip_scale_clip), sum = ref_load(&s, 0);
  for (int64_t i = 1; i < s.n_elements; i++) sum += ref_load(&s, i);
  double root = sqrt(sum);
  double ratio = clip / (root + 1e-6);
  ref_store(&norm, 0, root);
  ref_store(&scale, 0, ratio > 1 ? 1 : ratio);
}

/* Between from and to, `k` of `n` steps behind its origin: both ends are met exactly. */
static double linear(double from, double to, double k, double n) {
  return from < to ? from + (to - from) * k / n : to + (from - to) * ((n - k) / n);
}

static double cosine(double from, double to, double k, double n) {
  return to + (from - to) * 0.5 * (1 + cos(3.14159265358979323846 * k / n));
}

/* The polynomial decay, or a power of the time so far as the inverse square root is. */
static double power(double from, double to, double k, double n, double exponent) {
  return exponent < 0 ? fmax(to, from * pow(k / n, exponent)) : to + (from - to) * pow((n - k) / n, exponent);
}

void ref_segment(const ref_call *call) {
  ref_operand step = ref_in(call, 0), y = ref_out(call, 0), before = {0};
  int64_t now = ref_index(&step, 0), origin = ref_int(call, NX_segment_origin);
  double from = ref_real(call, NX_segment_from), to = ref_real(call, NX_segment_to);
  double exponent = ref_real(call, NX_segment_exponent), n = (double)ref_int(call, NX_segment_span);
  double k = (double)(now - origin);
  int64_t kind = ref_int(call, NX_segment_kind);
  if (call->operator->n_in > 1) before = ref_in(call, 1);
  if (now < ref_int(call, NX_segment_first)) {
    ref_store(&y, 0, call->operator->n_in > 1 ? ref_load(&before, 0) : 0);
    return;
  }
  if (kind != 4 || exponent > 0) k = fmin(k, n);
  ref_store(&y, 0,
            kind == 0   ? from
            : kind == 1 ? linear(from, to, k, n)
            : kind == 2 ? cosine(from, to, k, n)
            : kind == 3 ? from * pow(to / from, k / n)
                        : power(from, to, k, n, exponent));
}

/* torch.optim.AdamW on scale x g. The update uses the moments before they are rounded to their types. */
void ref_adamw(const ref_call *call) {
  ref_operand g = ref_in(call, 3), lr = ref_in(call, 4), scale = ref_in(call, 5), step = ref_in(call, 6);
  ref_operand p = ref_out(call, 0), m = ref_out(call, 1), v = ref_out(call, 2), copy = {0};
  bool with_copy = call->operator->n_out == 4;
  if (with_copy) copy = ref_out(call, 3);
  double beta1 = ref_real(call, NX_adamw_beta1), beta2 = ref_real(call, NX_adamw_beta2);
  double epsilon = ref_real(call, NX_adamw_epsilon), rate = ref_load(&lr, 0), factor = ref_load(&scale, 0);
  double n_steps = (double)(ref_index(&step, 0) + 1);
  double correction1 = 1 - pow(beta1, n_steps), correction2 = 1 - pow(beta2, n_steps);
  double decay = 1 - rate * ref_real(call, NX_adamw_weight_decay);
  for (int64_t i = 0; i < p.n_elements; i++) {
    double gradient = factor * ref_load(&g, i);
    double first = beta1 * ref_load(&m, i) + (1 - beta1) * gradient;
    double second = beta2 * ref_load(&v, i) + (1 - beta2) * gradient * gradient;
    double update = first / correction1 / (sqrt(second / correction2) + epsilon);
    double value = ref_load(&p, i) * decay - rate * update;
    ref_store(&m, i, first);
    ref_store(&v, i, second);
    ref_store(&p, i, value);
    if (with_copy) ref_store(&copy, i, ref_load(&p, i)); /* of what is kept, as after a resume */
  }
}

/* torch.optim.SGD without momentum: weight decay is part of the gradient. */
void ref_sgd(const ref_call *call) {
  ref_operand g = ref_in(call, 1), lr = ref_in(call, 2), scale = ref_in(call, 3), p = ref_out(call, 0),
              copy = {0};
  bool with_copy = call->operator->n_out == 2;
  if (with_copy) copy = ref_out(call, 1);
  double rate = ref_load(&lr, 0), factor = ref_load(&scale, 0), decay = ref_real(call, NX_sgd_weight_decay);
  for (int64_t i = 0; i < p.n_elements; i++) {
    double old = ref_load(&p, i), value = old - rate * (factor * ref_load(&g, i) + decay * old);
    ref_store(&p, i, value);
    if (with_copy) ref_store(&copy, i, ref_load(&p, i)); /* of what is kept, as after a resume */
  }
}
