/* SPDX-License-Identifier: Apache-2.0 */
/* The update rules, in double. Where p is stored in another type than it is trained in, the copy is of what
 * is kept, as after a resume. */
#include "kernels/ref/ref_update.h"
#include "schema/stochastic.h"

typedef void element_rule(const rule_step *step, real *restrict p, real *const *states,
                          const real *restrict g, int64_t n);

enum { CHUNK = 256 };

/* Of p (`what` is 0), of a state, or of the copy of p, which has no gradients. */
static void store_row(const rule_step *step, const ref_operand *to, uint32_t what, int64_t start, int64_t n,
                      const double *row, const double *gradients) {
  if (!step->stochastic || to->dtype != NX_bf16) {
    ref_store_row(to, start, n, row);
    return;
  }
  for (int64_t i = 0; i < n; i++)
    ((uint16_t *)to->data)[start + i] =
        nx_bf16_from_drawn((float)row[i], step->seed, (uint64_t)step->count, what,
                           gradients ? (float)gradients[i] : 0);
}

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
    for (uint32_t k = 0; k < n_kept; k++) store_row(&step, &kept[k], k, start, n, rows[k], gradients);
    ref_load_row(&kept[0], start, 1, n, rows[0]);
    if (copy.data) store_row(&step, &copy, 0, start, n, rows[0], NULL);
  }
}

#define ELEMENT(number, name, n_states, meaning) \
  void ref_##name(const ref_call *call) { \
    run_element(call, rule_##name); \
  }
#include "schema/optimizers.def"
