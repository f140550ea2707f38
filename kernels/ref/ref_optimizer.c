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
  ref_store(&scale, 0, clip == 0 || ratio > 1 ? 1 : ratio);
}

typedef struct schedule {
  double lr, min_lr;
  int64_t warmup, constant, max;
} schedule;

/* (step + 1) / (warmup + 1): the first step already learns. */
static double rate_rising(const schedule *s, int64_t step) {
  return s->lr * (double)(step + 1) / (double)(s->warmup + 1);
}

/* NeMo's WarmupPolicy (nemo/core/optim/lr_scheduler.py). */
static double rate_constant(const schedule *s, int64_t step) {
  if (step <= s->warmup && s->warmup > 0) return rate_rising(s, step);
  return step > s->max ? s->min_lr : s->lr;
}

/* NxDT's LinearAnnealingWithWarmUp (optim/lr_schedulers.py), which is transformers' linear schedule: it rises
 * from 0 at step 0, and falls to min_lr (there: 0). */
static double rate_linear(const schedule *s, int64_t step) {
  if (step < s->warmup) return s->lr * (double)step / (double)s->warmup;
  int64_t end = s->max - s->constant, span = end - s->warmup;
  double left = (double)(end - step) / (double)(span > 1 ? span : 1);
  return s->min_lr + (s->lr - s->min_lr) * fmax(0, left);
}

static double cosine_fall(const schedule *s, int64_t step) {
  int64_t span = s->max - s->constant - s->warmup;
  if (step > s->warmup + span || span < 1) return s->min_lr;
  double turn = 3.14159265358979323846 * (double)(step - s->warmup) / (double)span;
  return s->min_lr + (s->lr - s->min_lr) * 0.5 * (1 + cos(turn));
}

/* NeMo's CosineAnnealing, whose rise starts from 0 where there are constant_steps. */
static double rate_cosine(const schedule *s, int64_t step) {
  if (step > s->warmup || s->warmup <= 0) return cosine_fall(s, step);
  return s->constant ? s->lr * (double)step / (double)s->warmup : rate_rising(s, step);
}

/* Megatron's cosine and constant (core/optimizer_param_scheduler.py): both rise from 0. */
static double rate_cosine_from_zero(const schedule *s, int64_t step) {
  return step < s->warmup ? s->lr * (double)step / (double)s->warmup : cosine_fall(s, step);
}

static double rate_constant_from_zero(const schedule *s, int64_t step) {
  return step < s->warmup ? s->lr * (double)step / (double)s->warmup : s->lr;
}

/* NeMo's WarmupAnnealing: it falls straight to min_lr at the end. */
static double rate_annealing(const schedule *s, int64_t step) {
  if (step <= s->warmup && s->warmup > 0) return rate_rising(s, step);
  int64_t span = s->max - s->constant - s->warmup;
  if (step > s->warmup + span || span < 1) return s->min_lr;
  return s->min_lr + (s->lr - s->min_lr) * (1 - (double)(step - s->warmup) / (double)span);
}

static double (*const shapes[])(const schedule *s, int64_t step) = {rate_constant, rate_linear, rate_cosine,
                                                                    rate_annealing, rate_cosine_from_zero,
                                                                    rate_constant_from_zero};

void ref_lr_schedule(const ref_call *call) {
  ref_operand step = ref_in(call, 0), lr = ref_out(call, 0);
  schedule s = {ref_real(call, NX_lr_schedule_lr), ref_real(call, NX_lr_schedule_min_lr),
                ref_int(call, NX_lr_schedule_warmup_steps), ref_int(call, NX_lr_schedule_constant_steps),
                ref_int(call, NX_lr_schedule_max_steps)};
  ref_store(&lr, 0, shapes[ref_int(call, NX_lr_schedule_shape)](&s, ref_index(&step, 0)));
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
    if (with_copy) ref_store(&copy, i, value);
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
    if (with_copy) ref_store(&copy, i, value);
  }
}
