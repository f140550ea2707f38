/* SPDX-License-Identifier: Apache-2.0 */
/* One step of training, before the update: gradient clipping, the learning rate. */
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

