/* SPDX-License-Identifier: Apache-2.0 */
/* The update rules, in double. Where p is stored in another type than it is trained in, the copy is of what
 * is kept, as after a resume. */
#include "kernels/ref/ref_update.h"

typedef void element_rule(const rule_step *step, real *restrict p, real *const *states,
                          const real *restrict g, int64_t n);

enum { CHUNK = 256 };

static void run_element(const ref_call *call, element_rule *rule) {
  rule_step step = ref_step(call);
  if (isnan(step.scale)) return;
  uint32_t n_kept = 1 + step.n_states; /* p and states */
  ref_operand g = ref_in(call, rule_input(&step, NX_UPDATE_GRADIENT)), kept[1 + NX_MAX_STATES], copy = {0};
  double rows[1 + NX_MAX_STATES][CHUNK], gradients[CHUNK];
  real *states[NX_MAX_STATES];
  for (uint32_t k = 0; k < n_kept; k++) kept[k] = ref_out(call, k);
  for (uint32_t k = 0; k < step.n_states; k++) states[k] = rows[1 + k];
  if (call->operator->n_out > n_kept) copy = ref_out(call, n_kept);
  for (int64_t start = 0; start < g.n_elements; start += CHUNK) {
    int64_t n = g.n_elements - start < CHUNK ? g.n_elements - start : CHUNK;
    ref_load_row(&g, start, 1, n, gradients);
    for (uint32_t k = 0; k < n_kept; k++) ref_load_row(&kept[k], start, 1, n, rows[k]);
    rule(&step, rows[0], states, gradients, n);
    for (uint32_t k = 0; k < n_kept; k++) ref_store_row(&kept[k], start, n, rows[k]);
    for (int64_t i = start; copy.data && i < start + n; i++) ref_store(&copy, i, ref_load(&kept[0], i));
  }
}

#define ELEMENT(number, name, n_states, meaning) \
  void ref_##name(const ref_call *call) { \
    run_element(call, rule_##name); \
  }
#include "schema/optimizers.def"
