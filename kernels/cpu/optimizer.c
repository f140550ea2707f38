/* SPDX-License-Identifier: Apache-2.0 */
/* The update rules, in fp32: one pass over memory. */
#include "kernels/cpu/update.h"
#include "kernels/cpu/vec.h"
#include "schema/stochastic.h"

typedef float real;

static inline real rule_sqrt(real x) {
  return __builtin_sqrtf(x);
}

static inline real rule_cbrt(real x) {
  return vec_cbrt(x);
}

static inline real rule_stored(real x, nx_dtype type) {
  float half = type == NX_f16 ? vec_round_f16(x) : x;
  return type == NX_bf16 ? vec_float((uint32_t)vec_to_bf16(x) << 16) : half;
}

#include "kernels/rules/element.h"

typedef void element_rule(const rule_step *step, real *restrict p, real *const *states,
                          const real *restrict g, int64_t n);

/* An array of the update, and how it is stored. */
typedef struct array {
  void *at; /* NULL: there is none */
  nx_dtype type;
} array;

typedef struct update {
  element_rule *rule;
  rule_step step;
  array kept[1 + NX_MAX_STATES], copy; /* p and states, and p as the products read it */
  const void *g;
  nx_dtype g_type;
} update;

/* A chunk as it is stored: of p (`what` is 0), of a state, or of the copy of p, to which gradients are 0. */
static void store_chunk(const update *u, const array *to, uint32_t what, int64_t start, int64_t count,
                        const float *row, const float *gradients) {
  if (!u->step.stochastic || to->type != NX_bf16) {
    vec_copy(to->at, to->type, start, row, NX_f32, 0, count);
    return;
  }
  uint16_t *y = (uint16_t *)to->at + start;
  uint64_t seed = u->step.seed, step = (uint64_t)u->step.count;
#pragma omp simd
  for (int64_t i = 0; i < count; i++)
    y[i] = nx_bf16_stochastic(
        vec_bits(row[i]), nx_stochastic_word(seed, step, what, vec_bits(row[i]), vec_bits(gradients[i])));
}

static void update_chunk(const update *u, int64_t start, int64_t count) {
  vec_buffer buffers[1 + NX_MAX_STATES], g_buffer;
  float *rows[1 + NX_MAX_STATES];
  uint32_t n_kept = 1 + u->step.n_states;
  for (uint32_t k = 0; k < n_kept; k++)
    rows[k] = (float *)vec_read(u->kept[k].at, u->kept[k].type, start, count, buffers[k]);
  static const vec_buffer none;
  const float *gradients = vec_read(u->g, u->g_type, start, count, g_buffer);
  u->rule(&u->step, rows[0], rows + 1, gradients, count);
  for (uint32_t k = 0; k < n_kept; k++)
    if (u->kept[k].type != NX_f32) store_chunk(u, &u->kept[k], k, start, count, rows[k], gradients);
  if (u->copy.at) store_chunk(u, &u->copy, 0, start, count, rows[0], none);
}

static void run_element(const nxk_kernel *kernel, const nxk_frame *frame, element_rule *rule) {
  update u = {.rule = rule, .step = cpu_update_step(kernel, frame)};
  if (isnan(u.step.scale)) return;
  uint32_t n_kept = 1 + u.step.n_states, g = rule_input(&u.step, NX_UPDATE_GRADIENT);
  for (uint32_t k = 0; k < n_kept; k++)
    u.kept[k] = (array){cpu_out_at(kernel, frame, k), cpu_out(kernel, k)->dtype};
  if (kernel->operator.n_out > n_kept)
    u.copy = (array){cpu_out_at(kernel, frame, n_kept), cpu_out(kernel, n_kept)->dtype};
  u.g = cpu_in_at(kernel, frame, g);
  u.g_type = cpu_in(kernel, g)->dtype;
  int64_t n = nxk_n_elements(cpu_in(kernel, 0)), n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    cpu_span span = cpu_share(n, VEC_CHUNK, omp_get_thread_num(), n_threads);
    for (int64_t start = span.begin; start < span.end; start += VEC_CHUNK)
      update_chunk(&u, start, vec_chunk_of(start, span.end));
  }
}

bool CPU_NAME(cpu_element_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  rule_step step = rule_step_of(&kernel->operator);
  (void)fault;
  for (uint32_t i = 0; i <= rule_input(&step, NX_UPDATE_GRADIENT); i++)
    if (!cpu_is_real(cpu_in(kernel, i))) return false;
  for (uint32_t i = 0; i < kernel->operator.n_out; i++)
    if (!cpu_is_real(cpu_out(kernel, i))) return false;
  return true;
}

#define ELEMENT(number, name, n_states, meaning) \
  void CPU_NAME(cpu_##name)(const nxk_kernel *kernel, const nxk_frame *frame) { \
    run_element(kernel, frame, rule_##name); \
  }
#include "schema/optimizers.def"
