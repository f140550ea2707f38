/* SPDX-License-Identifier: Apache-2.0 */
/* Between token-major rows [B,S,C] and heads [B,n,S,d], rotated by position on the way: split_qkv,
 * split_heads and their gradients, which rotate back.
 *
 * Frequencies are computed in fp64, their cosines and sines rounded to fp32 once: at bind, or of frequencies
 * that are given at the first run, for the positions below the sequence's length; when running for any
 * other. */
#include "kernels/cpu/family.h"
#include "kernels/cpu/vec.h"
#include "kernels/rope.h"

enum { MAX_HALF = 512, TOKENS = 8 /* that are moved together */ };

typedef struct cpu_rope cpu_rope;

struct cpu_rope {
  cpu_rope *next;
  nxk_rope form;
  int64_t half; /* pairs that are rotated */
  int64_t n_positions;
  nxk_tensor given; /* where the frequencies are given; no dimensions: nowhere */
  bool ready;
  double *frequency;
  float *cosine, *sine; /* [n_positions, half] */
};

static bool rope_forms_equal(const nxk_rope *x, const nxk_rope *y) {
  return x->rotary_dims == y->rotary_dims && x->theta == y->theta && x->scaling == y->scaling &&
         x->factor == y->factor && x->low_freq_factor == y->low_freq_factor &&
         x->high_freq_factor == y->high_freq_factor && x->original_positions == y->original_positions &&
         x->amplitude == y->amplitude && x->interleaved == y->interleaved &&
         x->rotary_start == y->rotary_start;
}

static void rope_row(const cpu_rope *r, int64_t position, float *cosine, float *sine) {
  for (int64_t pair = 0; pair < r->half; pair++) {
    cosine[pair] = (float)(r->form.amplitude * cos((double)position * r->frequency[pair]));
    sine[pair] = (float)(r->form.amplitude * sin((double)position * r->frequency[pair]));
  }
}

static void rope_fill(cpu_rope *r) {
  for (int64_t pair = 0; pair < r->half; pair++) r->frequency[pair] = nxk_rope_frequency(&r->form, pair);
  for (int64_t p = 0; p < r->n_positions; p++)
    rope_row(r, p, r->cosine + p * r->half, r->sine + p * r->half);
  r->ready = true;
}

static cpu_rope *rope_make(nxk_device *device, const nxk_rope *form, int64_t n_positions,
                           const nxk_tensor *given, nxk_fault *fault) {
  uint64_t half = (uint64_t)form->rotary_dims / 2, n = (uint64_t)n_positions * half;
  char *memory = cpu_keep(device, sizeof(cpu_rope) + half * 8 + 2 * n * 4, "rotary table", fault);
  if (!memory) return NULL;
  cpu_rope *r = (cpu_rope *)memory;
  *r = (cpu_rope){.next = device->ropes, .form = *form, .half = (int64_t)half, .n_positions = n_positions};
  r->frequency = (double *)(memory + sizeof(cpu_rope));
  r->cosine = (float *)(r->frequency + half);
  r->sine = r->cosine + n;
  if (given) r->given = *given;
  else rope_fill(r);
  device->ropes = r;
  return r;
}

static bool rope_is_given_at(const cpu_rope *r, const nxk_tensor *given) {
  if (!given) return r->given.n_dims == 0;
  return r->given.n_dims > 0 && r->given.arena == given->arena && r->given.offset == given->offset;
}

/* `input` is that of the frequencies, where they are given. */
static bool rope_bind(nxk_kernel *kernel, uint32_t first_attr, uint32_t input, int64_t n_positions,
                      nxk_fault *fault) {
  nxk_rope form = nxk_rope_of(&kernel->operator.attrs[first_attr]);
  const nxk_tensor *given = kernel->operator.n_in > input ? cpu_in(kernel, input) : NULL;
  if (form.rotary_dims > 2 * MAX_HALF) return false;
  cpu_rope *found = kernel->device->ropes;
  while (found && !(rope_forms_equal(&found->form, &form) && found->n_positions == n_positions &&
                    rope_is_given_at(found, given)))
    found = found->next;
  kernel->state = found ? found : rope_make(kernel->device, &form, n_positions, given, fault);
  return kernel->state != NULL;
}

/* The table that an operator reads; given frequencies never change. */
static const cpu_rope *rope_of(const nxk_kernel *kernel, const nxk_frame *frame) {
  cpu_rope *r = kernel->state;
  if (r->ready) return r;
  r->form.frequencies = nxk_address(&r->given, frame);
  rope_fill(r);
  r->form.frequencies = NULL;
  return r;
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

/* 2 half features by the angles (back where sign is -1). */
static void turn(const cpu_rope *rope, const rope_angles *angles, float sign, const float *p, float *r) {
  const float *cosine = angles->cosine, *sine = angles->sine;
  int64_t half = rope->half, step = rope->form.interleaved ? 2 : 1, other = step == 2 ? 1 : half;
#pragma omp simd
  for (int64_t i = 0; i < half; i++) {
    float c = cosine[i], s = sign * sine[i], a = p[step * i], b = p[step * i + other];
    r[step * i] = a * c - b * s;
    r[step * i + other] = b * c + a * s;
  }
}

/* One head of one token: d elements, of which 2 half from the rotary start on are rotated. */
static void rotate(const head_move *move, void *y, nx_dtype y_type, int64_t y_start, const void *x,
                   nx_dtype x_type, int64_t x_start, const rope_angles *angles) {
  float from[2 * MAX_HALF] __attribute__((aligned(64))), to[2 * MAX_HALF] __attribute__((aligned(64)));
  int64_t start = move->rope->form.rotary_start, n = 2 * move->rope->half, end = start + n;
  float *r = vec_target(y, y_type, y_start + start, to);
  turn(move->rope, angles, move->merge ? -1.0F : 1.0F, vec_read(x, x_type, x_start + start, n, from), r);
  vec_commit(y, y_type, y_start + start, n, r);
  vec_copy(y, y_type, y_start, x, x_type, x_start, start);
  vec_copy(y, y_type, y_start + end, x, x_type, x_start + end, move->d - end);
}

static void move_head(const head_move *move, const head_part *part, int64_t head, int64_t token,
                      const rope_angles *angles) {
  int64_t b = token / move->n_tokens, s = token % move->n_tokens;
  int64_t in_row = token * move->n_columns + part->column + head * move->d;
  int64_t in_heads = ((b * part->n_heads + head) * move->n_tokens + s) * move->d;
  void *y = move->merge ? move->rows : part->heads;
  const void *x = move->merge ? part->heads : move->rows;
  nx_dtype y_type = move->merge ? move->type : part->type, x_type = move->merge ? part->type : move->type;
  int64_t y_start = move->merge ? in_row : in_heads, x_start = move->merge ? in_heads : in_row;
  if (part->rotated && move->rope->half) rotate(move, y, y_type, y_start, x, x_type, x_start, angles);
  else vec_copy(y, y_type, y_start, x, x_type, x_start, move->d);
}

/* Head by head, since the heads of a token lie so far apart that they share few lines of a cache. */
static void move_tokens(const head_move *move, int64_t first, int64_t n) {
  rope_angles angles[TOKENS];
  for (int64_t i = 0; i < n; i++) rope_angles_of(move->rope, move->positions[first + i], &angles[i]);
  for (uint32_t i = 0; i < move->n_parts; i++)
    for (int64_t head = 0; head < move->parts[i].n_heads; head++)
      for (int64_t token = 0; token < n; token++)
        move_head(move, &move->parts[i], head, first + token, &angles[token]);
}

static void move_run(const nxk_kernel *kernel, const head_move *move) {
  int64_t n = move->n_batch * move->n_tokens, n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    cpu_span span = cpu_share(n, 1, omp_get_thread_num(), n_threads);
    for (int64_t token = span.begin; token < span.end; token += TOKENS)
      move_tokens(move, token, span.end - token < TOKENS ? span.end - token : TOKENS);
  }
}

/* The rows, and as many parts as there are operands of heads; the first two are rotated. */
static void move_all(const nxk_kernel *kernel, const nxk_frame *frame, uint32_t n_parts, bool merge) {
  const nxk_tensor *rows = merge ? cpu_out(kernel, 0) : cpu_in(kernel, 0);
  head_move move = {.rope = rope_of(kernel, frame),
                    .rows = merge ? cpu_out_at(kernel, frame, 0) : cpu_in_at(kernel, frame, 0),
                    .type = rows->dtype,
                    .n_batch = rows->dims[0],
                    .n_tokens = rows->dims[1],
                    .n_columns = rows->dims[2],
                    .positions = cpu_in_at(kernel, frame, merge ? n_parts : 1),
                    .merge = merge,
                    .n_parts = n_parts};
  int64_t column = 0;
  for (uint32_t i = 0; i < n_parts; i++) {
    const nxk_tensor *heads = merge ? cpu_in(kernel, i) : cpu_out(kernel, i);
    void *data = merge ? cpu_in_at(kernel, frame, i) : cpu_out_at(kernel, frame, i);
    move.d = heads->dims[3];
    move.parts[i] = (head_part){data, heads->dtype, heads->dims[1], column, i < 2};
    column += heads->dims[1] * move.d;
  }
  move_run(kernel, &move);
}

/* Frequencies stand behind the positions. */
static bool is_given(const nxk_kernel *kernel, uint32_t positions, uint32_t index) {
  return index == positions + 1 && index < kernel->operator.n_in;
}

static bool types_fit(const nxk_kernel *kernel, uint32_t positions) {
  for (uint32_t i = 0; i < kernel->operator.n_in + kernel->operator.n_out; i++)
    if (i != positions && !is_given(kernel, positions, i) && !cpu_is_real(&kernel->operator.args[i]))
      return false;
  return kernel->operator.args[positions].dtype == NX_i32;
}

bool CPU_NAME(cpu_split_qkv_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  return types_fit(kernel, 1) &&
         rope_bind(kernel, NX_split_qkv_rotary_dims, 2, cpu_in(kernel, 0)->dims[1], fault);
}

void CPU_NAME(cpu_split_qkv)(const nxk_kernel *kernel, const nxk_frame *frame) {
  move_all(kernel, frame, 3, false);
}

bool CPU_NAME(cpu_merge_qkv_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  return types_fit(kernel, 3) &&
         rope_bind(kernel, NX_merge_qkv_rotary_dims, 4, cpu_out(kernel, 0)->dims[1], fault);
}

void CPU_NAME(cpu_merge_qkv)(const nxk_kernel *kernel, const nxk_frame *frame) {
  move_all(kernel, frame, 3, true);
}

bool CPU_NAME(cpu_split_heads_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  return types_fit(kernel, 1) &&
         rope_bind(kernel, NX_split_heads_rotary_dims, 2, cpu_in(kernel, 0)->dims[1], fault);
}

void CPU_NAME(cpu_split_heads)(const nxk_kernel *kernel, const nxk_frame *frame) {
  move_all(kernel, frame, 1, false);
}

bool CPU_NAME(cpu_merge_heads_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  return types_fit(kernel, 1) &&
         rope_bind(kernel, NX_merge_heads_rotary_dims, 2, cpu_out(kernel, 0)->dims[1], fault);
}

void CPU_NAME(cpu_merge_heads)(const nxk_kernel *kernel, const nxk_frame *frame) {
  move_all(kernel, frame, 1, true);
}

bool CPU_NAME(cpu_rotate_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  return types_fit(kernel, 1) &&
         rope_bind(kernel, NX_rotate_rotary_dims, 2, cpu_in(kernel, 0)->dims[2], fault);
}

void CPU_NAME(cpu_rotate)(const nxk_kernel *kernel, const nxk_frame *frame) {
  const nxk_tensor *x = cpu_in(kernel, 0), *y = cpu_out(kernel, 0);
  const void *source = cpu_in_at(kernel, frame, 0);
  void *target = cpu_out_at(kernel, frame, 0);
  const int32_t *positions = cpu_in_at(kernel, frame, 1);
  int64_t n_heads = x->dims[1], n_tokens = x->dims[2], d = x->dims[3], n_threads = kernel->device->n_threads;
  bool backward = cpu_int(kernel, frame, NX_rotate_backward);
  const head_move move = {.rope = rope_of(kernel, frame), .d = d, .merge = backward};
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

/* ---- latent attention ---- */

/* A run of features of one token in an operand. */
typedef struct features {
  void *data;
  nx_dtype type;
} features;

typedef struct latent_move {
  const cpu_rope *rope;
  features x, r, k, v; /* as in ops.def */
  const int32_t *positions;
  int64_t n_batch, n_heads, n_tokens, plain, rotated, values;
} latent_move;

static features features_of(const nxk_kernel *kernel, const nxk_frame *frame, bool out, uint32_t index) {
  const nxk_tensor *x = out ? cpu_out(kernel, index) : cpu_in(kernel, index);
  return (features){out ? cpu_out_at(kernel, frame, index) : cpu_in_at(kernel, frame, index), x->dtype};
}

static latent_move latent_move_of(const nxk_kernel *kernel, const nxk_frame *frame, bool merge) {
  const nxk_tensor *k = merge ? cpu_in(kernel, 0) : cpu_out(kernel, 0);
  const nxk_tensor *r = merge ? cpu_out(kernel, 1) : cpu_in(kernel, 1);
  return (latent_move){.rope = rope_of(kernel, frame),
                       .x = features_of(kernel, frame, merge, 0),
                       .r = features_of(kernel, frame, merge, 1),
                       .k = features_of(kernel, frame, !merge, 0),
                       .v = features_of(kernel, frame, !merge, 1),
                       .positions = cpu_in_at(kernel, frame, 2),
                       .n_batch = k->dims[0],
                       .n_heads = k->dims[1],
                       .n_tokens = k->dims[2],
                       .plain = k->dims[3] - r->dims[2],
                       .rotated = r->dims[2],
                       .values = kernel->operator.attrs[NX_split_latent_values].integer};
}

/* Where a head of a token begins in heads of d features. */
static int64_t in_heads(const latent_move *m, int64_t token, int64_t head, int64_t d) {
  return ((token / m->n_tokens * m->n_heads + head) * m->n_tokens + token % m->n_tokens) * d;
}

/* The rotated features of a token, in fp32: turned by the angle, and copied behind the last pair. */
static void turn_all(const latent_move *m, int64_t token, float sign, const float *from, float *to) {
  rope_angles angles;
  int64_t start = m->rope->form.rotary_start;
  rope_angles_of(m->rope, m->positions[token], &angles);
  memcpy(to, from, (size_t)m->rotated * sizeof *to);
  turn(m->rope, &angles, sign, from + start, to + start);
}

static void split_latent_token(const latent_move *m, int64_t token) {
  float from[2 * MAX_HALF] __attribute__((aligned(64))), turned[2 * MAX_HALF] __attribute__((aligned(64)));
  int64_t d = m->plain + m->rotated, width = m->plain + m->values;
  turn_all(m, token, 1, vec_read(m->r.data, m->r.type, token * m->rotated, m->rotated, from), turned);
  for (int64_t head = 0; head < m->n_heads; head++) {
    int64_t x = (token * m->n_heads + head) * width, k = in_heads(m, token, head, d);
    vec_copy(m->k.data, m->k.type, k, m->x.data, m->x.type, x, m->plain);
    vec_copy(m->k.data, m->k.type, k + m->plain, turned, NX_f32, 0, m->rotated);
    vec_copy(m->v.data, m->v.type, in_heads(m, token, head, m->values), m->x.data, m->x.type, x + m->plain,
             m->values);
  }
}

static void merge_latent_token(const latent_move *m, int64_t token) {
  float sum[2 * MAX_HALF] __attribute__((aligned(64))) = {0},
                          turned[2 * MAX_HALF] __attribute__((aligned(64)));
  float room[2 * MAX_HALF] __attribute__((aligned(64)));
  int64_t d = m->plain + m->rotated, width = m->plain + m->values;
  for (int64_t head = 0; head < m->n_heads; head++) {
    int64_t x = (token * m->n_heads + head) * width, k = in_heads(m, token, head, d);
    const float *more = vec_read(m->k.data, m->k.type, k + m->plain, m->rotated, room);
#pragma omp simd
    for (int64_t i = 0; i < m->rotated; i++) sum[i] += more[i];
    vec_copy(m->x.data, m->x.type, x, m->k.data, m->k.type, k, m->plain);
    vec_copy(m->x.data, m->x.type, x + m->plain, m->v.data, m->v.type, in_heads(m, token, head, m->values),
             m->values);
  }
  turn_all(m, token, -1, sum, turned);
  vec_copy(m->r.data, m->r.type, token * m->rotated, turned, NX_f32, 0, m->rotated);
}

static void latent_run(const nxk_kernel *kernel, const nxk_frame *frame, bool merge,
                       void (*of_token)(const latent_move *move, int64_t token)) {
  latent_move move = latent_move_of(kernel, frame, merge);
  int64_t n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    cpu_span span = cpu_share(move.n_batch * move.n_tokens, 1, omp_get_thread_num(), n_threads);
    for (int64_t token = span.begin; token < span.end; token++) of_token(&move, token);
  }
}

bool CPU_NAME(cpu_split_latent_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  return types_fit(kernel, 2) && cpu_in(kernel, 1)->dims[2] <= 2 * MAX_HALF &&
         rope_bind(kernel, NX_split_latent_rotary_dims, 3, cpu_in(kernel, 0)->dims[1], fault);
}

void CPU_NAME(cpu_split_latent)(const nxk_kernel *kernel, const nxk_frame *frame) {
  latent_run(kernel, frame, false, split_latent_token);
}

bool CPU_NAME(cpu_merge_latent_bind)(nxk_kernel *kernel, nxk_fault *fault) {
  return types_fit(kernel, 2) && cpu_out(kernel, 1)->dims[2] <= 2 * MAX_HALF &&
         rope_bind(kernel, NX_merge_latent_rotary_dims, 3, cpu_out(kernel, 0)->dims[1], fault);
}

void CPU_NAME(cpu_merge_latent)(const nxk_kernel *kernel, const nxk_frame *frame) {
  latent_run(kernel, frame, true, merge_latent_token);
}
