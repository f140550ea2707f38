/* SPDX-License-Identifier: Apache-2.0 */
/* One step of training, before the update: gradient clipping, the learning rate. */
#include "kernels/ref/ref.h"
#include "schema/segment.h"

#include <float.h>
#include <math.h>

/* torch.nn.utils.clip_grad_norm_ of gradients that carry a factor. */
void ref_clip_scale(const ref_call *call) {
  ref_operand s = ref_in(call, 0), norm = ref_out(call, 0), scale = ref_out(call, 1);
  double clip = ref_real(call, NX_clip_scale_clip), sum = ref_load(&s, 0), factor = 1;
  if (call->operator->n_in > 1) {
    ref_operand given = ref_in(call, 1);
    factor = ref_load(&given, 0);
  }
  for (int64_t i = 1; i < s.n_elements; i++) sum += ref_load(&s, i);
  double root = sqrt(sum) / factor;
  if (ref_int(call, NX_clip_scale_maximize)) factor = -factor;
  double ratio = clip < DBL_MAX ? clip / (root + 1e-6) : 1;
  bool updates = isfinite(root) || ref_int(call, NX_clip_scale_goes_on);
  ref_store(&norm, 0, root);
  ref_store(&scale, 0, updates ? (ratio < 1 ? ratio : 1) / factor : NAN);
}

void ref_segment(const ref_call *call) {
  ref_operand step = ref_in(call, 0), y = ref_out(call, 0);
  int64_t now = ref_index(&step, 0);
  const nx_segment segment = {.kind = ref_int(call, NX_segment_kind),
                              .first = ref_int(call, NX_segment_first),
                              .every = ref_int(call, NX_segment_every),
                              .origin = ref_real(call, NX_segment_origin),
                              .span = ref_real(call, NX_segment_span),
                              .from = ref_real(call, NX_segment_from),
                              .to = ref_real(call, NX_segment_to),
                              .exponent = ref_real(call, NX_segment_exponent),
                              .towards = ref_real(call, NX_segment_towards),
                              .least = ref_real(call, NX_segment_least)};
  double before = 0;
  if (call->operator->n_in > 1) {
    ref_operand last = ref_in(call, 1);
    before = ref_load(&last, 0);
  }
  ref_store(&y, 0, now < segment.first ? before : nx_segment_at(&segment, now));
}

