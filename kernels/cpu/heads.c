/* SPDX-License-Identifier: Apache-2.0 */
/* Between token-major rows [B,S,C] and heads [B,n,S,d], rotated by position on the way: split_qkv,
 * split_heads and their gradients, which rotate back.
 *
 * Frequencies are computed in fp64, their cosines and sines rounded to fp32 once: at bind for the positions
 * below the sequence's length, when running for any other. */
#include "kernels/cpu/family.h"
#include "kernels/cpu/vec.h"
#include "kernels/rope.h"

enum { MAX_HALF = 512 };

typedef struct cpu_rope cpu_rope;

struct cpu_rope {
  cpu_rope *next;
  nxk_rope form;
  int64_t half; /* pairs that are rotated */
  int64_t n_positions;
  double *frequency;
  float *cosine, *sine; /* [n_positions, half] */
};

static bool rope_forms_equal(const nxk_rope *x, const nxk_rope *y) {
  return x->rotary_dims == y->rotary_dims && x->theta == y->theta && x->scaling == y->scaling &&
         x->factor == y->factor && x->low_freq_factor == y->low_freq_factor &&
         x->high_freq_factor == y->high_freq_factor && x->original_positions == y->original_positions &&
         x->amplitude == y->amplitude && x->interleaved == y->interleaved;
}

static void rope_row(const cpu_rope *r, int64_t position, float *cosine, float *sine) {
  for (int64_t pair = 0; pair < r->half; pair++) {
    cosine[pair] = (float)(r->form.amplitude * cos((double)position * r->frequency[pair]));
    sine[pair] = (float)(r->form.amplitude * sin((double)position * r->frequency[pair]));
  }
}

static cpu_rope *rope_make(nxk_device *device, const nxk_rope *form, int64_t n_positions, nxk_fault *fault) {
  uint64_t half = (uint64_t)form->rotary_dims / 2, n = (uint64_t)n_positions * half;
  char *memory = cpu_keep(device, sizeof(cpu_rope) + half * 8 + 2 * n * 4, "rotary table", fault);
  if (!memory) return NULL;
  cpu_rope *r = (cpu_rope *)memory;
  *r = (cpu_rope){.next = device->ropes, .form = *form, .half = (int64_t)half, .n_positions = n_positions};
  r->frequency = (double *)(memory + sizeof(cpu_rope));
  r->cosine = (float *)(r->frequency + half);
  r->sine = r->cosine + n;
  for (int64_t pair = 0; pair < r->half; pair++) r->frequency[pair] = nxk_rope_frequency(form, pair);
  for (int64_t p = 0; p < n_positions; p++) rope_row(r, p, r->cosine + p * r->half, r->sine + p * r->half);
  device->ropes = r;
  return r;
}

static bool rope_bind(nxk_kernel *kernel, uint32_t first_attr, int64_t n_positions, nxk_fault *fault) {
  nxk_rope form = nxk_rope_of(&kernel->operator.attrs[first_attr]);
  if (form.rotary_dims > 2 * MAX_HALF) return false;
  cpu_rope *found = kernel->device->ropes;
  while (found && !(rope_forms_equal(&found->form, &form) && found->n_positions == n_positions))
    found = found->next;
  kernel->state = found ? found : rope_make(kernel->device, &form, n_positions, fault);
  return kernel->state != NULL;
}

/* Heads that lie one after another in the token-major row, from `column` on. */
typedef struct head_part {
  void *heads;
  nx_dtype type;
  int64_t n_heads, column;
  bool rotated;
} head_part;

typedef struct head_move {
  const cpu_rope *rope;
  void *rows;
  nx_dtype type;
  int64_t n_batch, n_tokens, n_columns, d;
  const int32_t *positions;
  head_part parts[3];
  uint32_t n_parts;
  bool merge;
} head_move;

typedef struct rope_angles {
  const float *cosine, *sine;
  float cosine_buffer[MAX_HALF], sine_buffer[MAX_HALF];
} rope_angles;

static void rope_angles_of(const cpu_rope *r, int64_t position, rope_angles *angles) {
  bool known = position >= 0 && position < r->n_positions;
  angles->cosine = known ? r->cosine + position * r->half : angles->cosine_buffer;
  angles->sine = known ? r->sine + position * r->half : angles->sine_buffer;
  if (!known) rope_row(r, position, angles->cosine_buffer, angles->sine_buffer);
}

/* One head of one token: d elements, of which the first 2 half are rotated by the angle (back where sign is
 * -1). */
static void rotate(const head_move *move, void *y, nx_dtype y_type, int64_t y_start, const void *x,
                   nx_dtype x_type, int64_t x_start, const rope_angles *angles) {
  const float *cosine = angles->cosine, *sine = angles->sine;
  float from[2 * MAX_HALF] __attribute__((aligned(64))), to[2 * MAX_HALF] __attribute__((aligned(64)));
  int64_t half = move->rope->half;
  float sign = move->merge ? -1.0F : 1.0F;
  const float *p = vec_read(x, x_type, x_start, 2 * half, from);
  float *r = vec_target(y, y_type, y_start, to);
  int64_t step = move->rope->form.interleaved ? 2 : 1, other = step == 2 ? 1 : half;
#pragma omp simd
  for (int64_t i = 0; i < half; i++) {
    float c = cosine[i], s = sign * sine[i], a = p[step * i], b = p[step * i + other];
    r[step * i] = a * c - b * s;
    r[step * i + other] = b * c + a * s;
  }
  vec_commit(y, y_type, y_start, 2 * half, r);
  vec_copy(y, y_type, y_start + 2 * half, x, x_type, x_start + 2 * half, move->d - 2 * half);
}

static void move_token(const head_move *move, int64_t token) {
  const cpu_rope *r = move->rope;
  rope_angles angles;
  int64_t b = token / move->n_tokens, s = token % move->n_tokens;
  rope_angles_of(r, move->positions[token], &angles);
  for (uint32_t i = 0; i < move->n_parts; i++) {
    const head_part *part = &move->parts[i];
    for (int64_t head = 0; head < part->n_heads; head++) {
      int64_t in_row = token * move->n_columns + part->column + head * move->d;
      int64_t in_heads = ((b * part->n_heads + head) * move->n_tokens + s) * move->d;
      void *y = move->merge ? move->rows : part->heads;
      const void *x = move->merge ? part->heads : move->rows;
      nx_dtype y_type = move->merge ? move->type : part->type, x_type = move->merge ? part->type : move->type;
      int64_t y_start = move->merge ? in_row : in_heads, x_start = move->merge ? in_heads : in_row;
      if (part->rotated && r->half) rotate(move, y, y_type, y_start, x, x_type, x_start, &angles);
      else vec_copy(y, y_type, y_start, x, x_type, x_start, move->d);
    }
  }
}

static void move_run(const nxk_kernel *kernel, const head_move *move) {
  int64_t n = move->n_batch * move->n_tokens, n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    cpu_span span = cpu_share(n, 1, omp_get_thread_num(), n_threads);
    for (int64_t token = span.begin; token < span.end; token++) move_token(move, token);
  }
}

static head_move move_of(const nxk_kernel *kernel, const nxk_tensor *rows, void *data,
                         const nxk_tensor *heads, const int32_t *positions, bool merge) {
  return (head_move){.rope = kernel->state,
                     .rows = data,
                     .type = rows->dtype,
                     .n_batch = rows->dims[0],
                     .n_tokens = rows->dims[1],
                     .n_columns = rows->dims[2],
                     .d = heads->dims[3],
                     .positions = positions,
                     .merge = merge};
}

static void move_add(head_move *move, const nxk_tensor *heads, void *data, bool rotated) {
  int64_t column = 0;
  for (uint32_t i = 0; i < move->n_parts; i++) column += move->parts[i].n_heads * move->d;
  move->parts[move->n_parts++] = (head_part){data, heads->dtype, heads->dims[1], column, rotated};
}

static bool types_fit(const nxk_kernel *kernel, uint32_t positions) {
  for (uint32_t i = 0; i < kernel->operator.n_in + kernel->operator.n_out; i++)
    if (i != positions && !cpu_is_real(&kernel->operator.args[i])) return false;
  return kernel->operator.args[positions].dtype == NX_i32;
}

bool CPU_NAME(cpu_split_qkv_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  return types_fit(kernel, 1) &&
         rope_bind(kernel, NX_split_qkv_rotary_dims, cpu_in(kernel, 0)->dims[1], fault);
}

void CPU_NAME(cpu_split_qkv)(const nxk_kernel *kernel, const nxk_frame *frame) {
  head_move move = move_of(kernel, cpu_in(kernel, 0), cpu_in_at(kernel, frame, 0), cpu_out(kernel, 0),
                           cpu_in_at(kernel, frame, 1), false);
  for (uint32_t i = 0; i < 3; i++) move_add(&move, cpu_out(kernel, i), cpu_out_at(kernel, frame, i), i < 2);
  move_run(kernel, &move);
}

bool CPU_NAME(cpu_merge_qkv_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  return types_fit(kernel, 3) &&
         rope_bind(kernel, NX_merge_qkv_rotary_dims, cpu_out(kernel, 0)->dims[1], fault);
}

void CPU_NAME(cpu_merge_qkv)(const nxk_kernel *kernel, const nxk_frame *frame) {
  head_move move = move_of(kernel, cpu_out(kernel, 0), cpu_out_at(kernel, frame, 0), cpu_in(kernel, 0),
                           cpu_in_at(kernel, frame, 3), true);
  for (uint32_t i = 0; i < 3; i++) move_add(&move, cpu_in(kernel, i), cpu_in_at(kernel, frame, i), i < 2);
  move_run(kernel, &move);
}

bool CPU_NAME(cpu_split_heads_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  return types_fit(kernel, 1) &&
         rope_bind(kernel, NX_split_heads_rotary_dims, cpu_in(kernel, 0)->dims[1], fault);
}

void CPU_NAME(cpu_split_heads)(const nxk_kernel *kernel, const nxk_frame *frame) {
  head_move move = move_of(kernel, cpu_in(kernel, 0), cpu_in_at(kernel, frame, 0), cpu_out(kernel, 0),
                           cpu_in_at(kernel, frame, 1), false);
  move_add(&move, cpu_out(kernel, 0), cpu_out_at(kernel, frame, 0), true);
  move_run(kernel, &move);
}

bool CPU_NAME(cpu_merge_heads_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  return types_fit(kernel, 1) &&
         rope_bind(kernel, NX_merge_heads_rotary_dims, cpu_out(kernel, 0)->dims[1], fault);
}

void CPU_NAME(cpu_merge_heads)(const nxk_kernel *kernel, const nxk_frame *frame) {
  head_move move = move_of(kernel, cpu_out(kernel, 0), cpu_out_at(kernel, frame, 0), cpu_in(kernel, 0),
                           cpu_in_at(kernel, frame, 1), true);
  move_add(&move, cpu_in(kernel, 0), cpu_in_at(kernel, frame, 0), true);
  move_run(kernel, &move);
}

bool CPU_NAME(cpu_rotate_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  return types_fit(kernel, 1) && rope_bind(kernel, NX_rotate_rotary_dims, cpu_in(kernel, 0)->dims[2], fault);
}

void CPU_NAME(cpu_rotate)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const nxk_tensor *x = cpu_in(kernel, 0), *y = cpu_out(kernel, 0);
  const void *source = cpu_in_at(kernel, frame, 0);
  void *target = cpu_out_at(kernel, frame, 0);
  const int32_t *positions = cpu_in_at(kernel, frame, 1);
  int64_t n_heads = x->dims[1], n_tokens = x->dims[2], d = x->dims[3], n_threads = kernel->device->n_threads;
  const head_move move = {.rope = kernel->state, .d = d, .merge = cpu_int(kernel, frame, NX_rotate_backward)};
#pragma omp parallel num_threads(n_threads)
  {
    rope_angles angles;
    cpu_span span = cpu_share(x->dims[0] * n_heads * n_tokens, 1, omp_get_thread_num(), n_threads);
    for (int64_t row = span.begin; row < span.end; row++) {
      int64_t token = row / (n_heads * n_tokens) * n_tokens + row % n_tokens;
      rope_angles_of(move.rope, positions[token], &angles);
      rotate(&move, target, y->dtype, row * d, source, x->dtype, row * d, &angles);
    }
  }
}
