/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of whole tensors but Muon, in fp32: what ref does, in passes over rows that threads share. What
 * a rank has whole and in fp32 is worked on where it lies; all else is copied to scratch, and the box out of
 * it. Sums are made in fp64, row by row, so that they are the same for any number of threads. */
#include "kernels/cpu/dynamic8.h"
#include "kernels/cpu/update.h"
#include "kernels/cpu/vec.h"
#include "kernels/rules/tensor.h"

enum { TENSOR_STATES = 2 };

typedef struct whole {
  const nxk_device *device;
  rule_step step;
  int64_t rows, columns, n; /* of the tensor, without padding */
  float *p, *states[TENSOR_STATES];
  const float *g;
  double *of_rows, *of_columns;
  float *of_threads; /* columns of each */
} whole;

/* Of p, states and gradient the `index`-th, of the whole tensor. */
static uint32_t whole_input(const rule_step *step, uint32_t index) {
  return step->parted ? rule_input(step, NX_UPDATE_END) + index : index;
}

static bool lies_there(const nxk_kernel *kernel, const rule_step *step, uint32_t index) {
  return !step->parted && cpu_in(kernel, index)->dtype == NX_f32;
}

static uint64_t scratch_bytes(const nxk_kernel *kernel, const rule_step *step) {
  const nxk_tensor *all = cpu_in(kernel, whole_input(step, 0));
  uint64_t n = (uint64_t)nxk_n_elements(all), rows = (uint64_t)all->dims[0], columns = (uint64_t)all->dims[1];
  return (2 + step->n_states) * cpu_align(n * sizeof(float)) + cpu_align((rows + columns) * sizeof(double)) +
         kernel->device->n_threads * columns * sizeof(float);
}

bool CPU_NAME(cpu_tensor_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  rule_step step = rule_step_of(&kernel->operator);
  for (uint32_t i = 0; i <= rule_input(&step, NX_UPDATE_GRADIENT); i++)
    if (!cpu_is_real(cpu_in(kernel, i))) return false;
  for (uint32_t i = 0; i < kernel->operator.n_out; i++)
    if (!cpu_is_real(cpu_out(kernel, i))) return false;
  return cpu_reserve(kernel->device, scratch_bytes(kernel, &step), "update", fault);
}

static void *take(char **scratch, uint64_t n_bytes) {
  void *at = *scratch;
  *scratch += cpu_align(n_bytes);
  return at;
}

static float *load(const nxk_kernel *kernel, const nxk_frame *frame, const whole *w, uint32_t index,
                   char **scratch) {
  uint32_t input = whole_input(&w->step, index);
  const nxk_tensor *x = cpu_in(kernel, input);
  if (lies_there(kernel, &w->step, index)) return (float *)(void *)cpu_in_at(kernel, frame, input);
  float *to = take(scratch, (uint64_t)nxk_n_elements(x) * sizeof *to);
  CPU_NAME(cpu_convert_box)
  (w->device, to, NX_f32, x->dims[1], cpu_in_at(kernel, frame, input), x->dtype, x->dims[1], x->dims[0],
   x->dims[1]);
  return to;
}

static whole load_whole(const nxk_kernel *kernel, const nxk_frame *frame) {
  whole w = {.device = kernel->device, .step = cpu_update_step(kernel, frame)};
  const rule_step *step = &w.step;
  char *scratch = kernel->device->scratch;
  w.columns = cpu_in(kernel, whole_input(step, 0))->dims[1];
  w.rows = cpu_int(kernel, frame, RULE_TENSOR_ROWS);
  w.n = w.rows * w.columns;
  if (isnan(step->scale)) return w;
  w.p = load(kernel, frame, &w, 0, &scratch);
  for (uint32_t k = 0; k < step->n_states; k++) w.states[k] = load(kernel, frame, &w, 1 + k, &scratch);
  w.g = load(kernel, frame, &w, 1 + step->n_states, &scratch);
  w.of_rows = take(&scratch, (uint64_t)(w.rows + w.columns) * sizeof(double));
  w.of_columns = w.of_rows + w.rows;
  w.of_threads = (float *)(void *)scratch;
  return w;
}

static void store(const nxk_kernel *kernel, const nxk_frame *frame, const whole *w, uint32_t index,
                  const float *all) {
  const nxk_tensor *box = cpu_out(kernel, index);
  bool parted = w->step.parted;
  int64_t row = parted ? cpu_int(kernel, frame, RULE_ROW_START) : 0, n_rows = w->rows - row;
  int64_t column = parted ? cpu_int(kernel, frame, RULE_COLUMN_START) : 0;
  if (n_rows > box->dims[0]) n_rows = box->dims[0];
  if (n_rows > 0 && !lies_there(kernel, &w->step, index))
    CPU_NAME(cpu_convert_box)
    (w->device, cpu_out_at(kernel, frame, index), box->dtype, box->dims[1], all + row * w->columns + column,
     NX_f32, w->columns, n_rows, box->dims[1]);
}

static void store_whole(const nxk_kernel *kernel, const nxk_frame *frame, const whole *w) {
  uint32_t copy = 1 + w->step.n_states;
  const nxk_tensor *box = cpu_out(kernel, 0);
  store(kernel, frame, w, 0, w->p);
  for (uint32_t k = 0; k < w->step.n_states; k++) store(kernel, frame, w, 1 + k, w->states[k]);
  if (kernel->operator.n_out > copy)
    CPU_NAME(cpu_convert_box)
    (w->device, cpu_out_at(kernel, frame, copy), cpu_out(kernel, copy)->dtype, box->dims[1],
     cpu_out_at(kernel, frame, 0), box->dtype, box->dims[1], box->dims[0], box->dims[1]);
}

static double total(const double *x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += x[i];
  return sum;
}

static double sum_of_squares(const whole *w, const float *x) {
#pragma omp parallel for num_threads(w->device->n_threads) schedule(static)
  for (int64_t row = 0; row < w->rows; row++) {
    const float *at = x + row * w->columns;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < w->columns; j++) sum += (double)at[j] * (double)at[j];
    w->of_rows[row] = sum;
  }
  return total(w->of_rows, w->rows);
}

/* p goes `rate` against m. */
static void descend(const whole *w, double rate, const float *m) {
  const float lr = (float)rate;
#pragma omp parallel for simd num_threads(w->device->n_threads) schedule(static)
  for (int64_t i = 0; i < w->n; i++) w->p[i] -= lr * m[i];
}

/* ---- NovoGrad ---- */

static void novograd_moment(const whole *w, double second) {
  const double *number = w->step.number;
  const float beta1 = (float)number[NX_novograd_beta1], kept = (float)second, decay = (float)w->step.decay;
  const float share =
      (float)(number[NX_novograd_grad_averaging] != 0 ? 1 - number[NX_novograd_beta1] : 1);
  const float scale = (float)(w->step.scale / (sqrt(second) + number[NX_novograd_epsilon]));
  float *restrict m = w->states[0], *restrict v = w->states[1];
  const float *restrict p = w->p, *restrict g = w->g;
#pragma omp parallel for simd num_threads(w->device->n_threads) schedule(static)
  for (int64_t i = 0; i < w->n; i++) {
    v[i] = kept;
    m[i] = beta1 * m[i] + share * (g[i] * scale + decay * p[i]);
  }
}

void CPU_NAME(cpu_novograd)(const nxk_kernel *kernel, const nxk_frame *frame) {
  whole w = load_whole(kernel, frame);
  if (isnan(w.step.scale)) return;
  double scale = w.step.scale, norm = sum_of_squares(&w, w.g) * scale * scale;
  novograd_moment(&w, rule_novograd_second(&w.step, (double)w.states[1][0], norm));
  double rate = w.step.lr;
  if (w.step.number[NX_novograd_luc] != 0) {
    double m_norm = sqrt(sum_of_squares(&w, w.states[0]));
    rate = rule_novograd_bound(&w.step, sqrt(sum_of_squares(&w, w.p)), m_norm);
  }
  descend(&w, rate, w.states[0]);
  store_whole(kernel, frame, &w);
}

/* ---- SM3 ---- */

/* The greatest sums of rows, and of columns by the rows that a thread has. */
static void greatest_sums(const whole *w) {
  const float *sums = w->states[0];
  int64_t n_threads = w->device->n_threads, n = w->columns;
#pragma omp parallel num_threads(n_threads)
  {
    cpu_span span = cpu_share(w->rows, 1, omp_get_thread_num(), n_threads);
    float *restrict most = w->of_threads + omp_get_thread_num() * n;
    for (int64_t j = 0; j < n; j++) most[j] = 0;
    for (int64_t row = span.begin; row < span.end; row++) {
      const float *restrict at = sums + row * n;
      float greatest = 0;
#pragma omp simd reduction(max : greatest)
      for (int64_t j = 0; j < n; j++) {
        greatest = at[j] > greatest ? at[j] : greatest;
        most[j] = at[j] > most[j] ? at[j] : most[j];
      }
      w->of_rows[row] = (double)greatest;
    }
  }
  for (int64_t thread = 1; thread < n_threads; thread++)
    for (int64_t j = 0; j < n; j++)
      if (w->of_threads[thread * n + j] > w->of_threads[j]) w->of_threads[j] = w->of_threads[thread * n + j];
}

static void update_sm3(const nxk_kernel *kernel, const nxk_frame *frame, double momentum) {
  whole w = load_whole(kernel, frame);
  if (isnan(w.step.scale)) return;
  const bool vector = w.rows == 1, keeps = w.step.n_states > 1;
  const float scale = (float)w.step.scale, lr = (float)w.step.lr,
              added = (float)w.step.number[NX_sm3_epsilon];
  const bool decays = w.step.number[NX_sm3_sum_beta] > 0;
  const float beta = decays ? (float)w.step.number[NX_sm3_sum_beta] : 1;
  const float rest = (float)(1 - w.step.number[NX_sm3_sum_beta]);
  const float old = (float)momentum, new = (float)(1 - momentum);
  greatest_sums(&w);
#pragma omp parallel for num_threads(w.device->n_threads) schedule(static)
  for (int64_t row = 0; row < w.rows; row++) {
    const int64_t at = row * w.columns;
    float *restrict p = w.p + at, *restrict sums = w.states[0] + at;
    float *restrict m = keeps ? w.states[1] + at : NULL;
    const float *restrict g = w.g + at, *restrict of_columns = w.of_threads;
    const float of_row = vector ? INFINITY : (float)w.of_rows[row];
#pragma omp simd
    for (int64_t j = 0; j < w.columns; j++) {
      float gradient = g[j] * scale;
      float least = of_columns[j] < of_row ? of_columns[j] : of_row;
      float sum = beta * least + rest * (gradient * gradient);
      float update = gradient / __builtin_sqrtf(sum + added);
      sums[j] = decays && least > sum ? least : sum;
      if (keeps) update = m[j] = new * update + old * m[j];
      p[j] -= lr * update;
    }
  }
  store_whole(kernel, frame, &w);
}

void CPU_NAME(cpu_sm3)(const nxk_kernel *kernel, const nxk_frame *frame) {
  update_sm3(kernel, frame, 0);
}

void CPU_NAME(cpu_sm3_momentum)(const nxk_kernel *kernel, const nxk_frame *frame) {
  update_sm3(kernel, frame, cpu_real(kernel, NX_sm3_momentum_momentum));
}

/* ---- Adafactor ---- */

/* The second moment, and its sums by rows. */
static void adafactor_moment(const whole *w) {
  const double decay = rule_adafactor_decay(&w->step);
  const float kept = (float)decay, rest = (float)(1 - decay), square = (float)rule_adafactor_square;
  const float scale = (float)w->step.scale;
#pragma omp parallel for num_threads(w->device->n_threads) schedule(static)
  for (int64_t row = 0; row < w->rows; row++) {
    float *restrict v = w->states[0] + row * w->columns;
    const float *restrict g = w->g + row * w->columns;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < w->columns; j++) {
      float gradient = g[j] * scale;
      v[j] = kept * v[j] + rest * (gradient * gradient + square);
      sum += (double)v[j];
    }
    w->of_rows[row] = sum;
  }
}

static void sum_columns(const whole *w) {
  int64_t n_threads = w->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    cpu_span span = cpu_share(w->columns, 16, omp_get_thread_num(), n_threads);
    for (int64_t j = span.begin; j < span.end; j++) w->of_columns[j] = 0;
    for (int64_t row = 0; row < w->rows; row++)
#pragma omp simd
      for (int64_t j = span.begin; j < span.end; j++)
        w->of_columns[j] += (double)w->states[0][row * w->columns + j];
  }
}

/* Each element's moment is what its row and column have of it; returns the sum of squared updates. */
static double adafactor_updates(const whole *w) {
  const double all = total(w->of_rows, w->rows);
  const float scale = (float)w->step.scale;
  const bool factored = w->rows > 1;
#pragma omp parallel for num_threads(w->device->n_threads) schedule(static)
  for (int64_t row = 0; row < w->rows; row++) {
    float *restrict v = w->states[0] + row * w->columns;
    const float *restrict g = w->g + row * w->columns;
    const double share = w->of_rows[row] / all;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < w->columns; j++) {
      if (factored) v[j] = (float)(share * w->of_columns[j]);
      float gradient = g[j] * scale;
      sum += (double)(gradient * gradient / v[j]);
    }
    w->of_rows[row] = sum;
  }
  return total(w->of_rows, w->rows);
}

static void adafactor_apply(const whole *w, float share, float kept) {
  const bool keeps = w->step.n_states > 1;
  const double momentum = keeps ? w->step.number[NX_adafactor_momentum_momentum] : 0;
  const float old = (float)momentum, new = (float)(1 - momentum);
  float *restrict p = w->p, *restrict m = keeps ? w->states[1] : w->p;
  const float *restrict g = w->g, *restrict v = w->states[0];
  if (!keeps)
#pragma omp parallel for simd num_threads(w->device->n_threads) schedule(static)
    for (int64_t i = 0; i < w->n; i++) p[i] = p[i] * kept - share * (g[i] / __builtin_sqrtf(v[i]));
  else
#pragma omp parallel for simd num_threads(w->device->n_threads) schedule(static)
    for (int64_t i = 0; i < w->n; i++) {
      m[i] = old * m[i] + new * (share * (g[i] / __builtin_sqrtf(v[i])));
      p[i] = p[i] * kept - m[i];
    }
}

static void update_adafactor(const nxk_kernel *kernel, const nxk_frame *frame) {
  whole w = load_whole(kernel, frame);
  if (isnan(w.step.scale)) return;
  const bool sized = w.step.number[NX_adafactor_scale_parameter] != 0;
  double rate = rule_adafactor_rate(&w.step, sized ? sqrt(sum_of_squares(&w, w.p) / (double)w.n) : 0);
  adafactor_moment(&w);
  if (w.rows > 1) sum_columns(&w);
  double size = sqrt(adafactor_updates(&w) / (double)w.n);
  const double most = w.step.number[NX_adafactor_clip_threshold];
  const float share = (float)(rate * w.step.scale / fmax(1, size / most));
  adafactor_apply(&w, share, (float)(1 - rate * w.step.decay));
  store_whole(kernel, frame, &w);
}

void CPU_NAME(cpu_adafactor)(const nxk_kernel *kernel, const nxk_frame *frame) {
  update_adafactor(kernel, frame);
}

void CPU_NAME(cpu_adafactor_momentum)(const nxk_kernel *kernel, const nxk_frame *frame) {
  update_adafactor(kernel, frame);
}

/* ---- AdamW in 8 bits ---- */

typedef struct eight_bits {
  float beta1, rest1, beta2, rest2, rate, root, epsilon, kept, scale;
  bool rounded;
  dynamic8_map of_first, of_second;
} eight_bits;

static eight_bits eight_bits_of(const whole *w, int64_t least) {
  const double *number = w->step.number, *power = w->step.power;
  return (eight_bits){.beta1 = (float)number[NX_adamw_8bit_beta1],
                      .rest1 = (float)(1 - number[NX_adamw_8bit_beta1]),
                      .beta2 = (float)number[NX_adamw_8bit_beta2],
                      .rest2 = (float)(1 - number[NX_adamw_8bit_beta2]),
                      .rate = (float)(w->step.lr / (1 - power[NX_adamw_8bit_beta1])),
                      .root = (float)(1 / sqrt(1 - power[NX_adamw_8bit_beta2])),
                      .epsilon = (float)number[NX_adamw_8bit_epsilon],
                      .kept = (float)(1 - w->step.lr * w->step.decay),
                      .scale = (float)w->step.scale,
                      .rounded = w->n >= least};
}

/* The elements of a block: the parameters see the moments before they are rounded. */
static void update_block(const eight_bits *by, float *restrict p, float *restrict m, float *restrict v,
                         const float *restrict g, int64_t n) {
  float most1 = 0, most2 = 0;
#pragma omp simd reduction(max : most1, most2)
  for (int64_t i = 0; i < n; i++) {
    float gradient = g[i] * by->scale;
    float first = by->beta1 * m[i] + by->rest1 * gradient;
    float second = by->beta2 * v[i] + by->rest2 * (gradient * gradient), size = __builtin_fabsf(first);
    m[i] = first;
    v[i] = second;
    p[i] = (p[i] - by->rate * (first / (__builtin_sqrtf(second) * by->root + by->epsilon))) * by->kept;
    most1 = size > most1 ? size : most1;
    most2 = second > most2 ? second : most2;
  }
  if (!by->rounded) return;
  dynamic8_round(&by->of_first, m, n, most1);
  dynamic8_round(&by->of_second, v, n, most2);
}

void CPU_NAME(cpu_adamw_8bit)(const nxk_kernel *kernel, const nxk_frame *frame) {
  whole w = load_whole(kernel, frame);
  if (isnan(w.step.scale)) return;
  eight_bits by = eight_bits_of(&w, cpu_int(kernel, frame, NX_adamw_8bit_min_8bit_size));
  dynamic8_map_make(&by.of_first, true);
  dynamic8_map_make(&by.of_second, false);
#pragma omp parallel for num_threads(w.device->n_threads) schedule(static)
  for (int64_t at = 0; at < w.n; at += NX_DYNAMIC8_BLOCK)
    update_block(&by, w.p + at, w.states[0] + at, w.states[1] + at, w.g + at,
                 w.n - at < NX_DYNAMIC8_BLOCK ? w.n - at : NX_DYNAMIC8_BLOCK);
  store_whole(kernel, frame, &w);
}
