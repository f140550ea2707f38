/* SPDX-License-Identifier: Apache-2.0 */
/* Activations, gated or not, with their gradients. Elementwise, so any output may be the input that it
 * replaces. */
#include "kernels/cpu/family.h"
#include "kernels/cpu/functions.h"

/* Elements that are widened and narrowed at once: few enough that a core reads those of the next chunk while
 * it computes this one's. */
enum { SHORT_CHUNK = 256 };

/* One chunk, and what is made of it. */
typedef enum chunk_form { PLAIN, PLAIN_GRAD, GATED, GATED_GRAD } chunk_form;

typedef struct chunk {
  nx_dtype type;           /* of all that follows: bf16 or f32 */
  const void *dy, *x, *up; /* x: the gate, where there is one */
  void *y, *dup;           /* y: or dx */
  int64_t n;
} chunk;

/* Memory is asked ahead, in bytes, for what is read and written of each stream of fp32: of so many at once a
 * core alone follows too few. */
enum { READ_AHEAD = 2048, WRITE_AHEAD = 1024 };

INLINED void ask_ahead(chunk_form form, const chunk *c, int64_t i) {
  const uintptr_t read = (uintptr_t)i * sizeof(float) + READ_AHEAD,
                  write = (uintptr_t)i * sizeof(float) + WRITE_AHEAD;
  __builtin_prefetch((const void *)((uintptr_t)c->x + read));
  __builtin_prefetch((const void *)((uintptr_t)c->up + read));
  __builtin_prefetch((const void *)((uintptr_t)c->y + write), 1);
  if (form == GATED) return;
  __builtin_prefetch((const void *)((uintptr_t)c->dy + read));
  __builtin_prefetch((const void *)((uintptr_t)c->dup + write), 1);
}

INLINED void run_lanes(chunk_form form, nx_activation function, const chunk c, const nx_dtype type,
                       int64_t i) {
  if (type == NX_f32 && (form == GATED || form == GATED_GRAD)) ask_ahead(form, &c, i);
  lanes x = lanes_read(c.x, type, i), dy = x, up = x;
  if (form == PLAIN_GRAD || form == GATED_GRAD) dy = lanes_read(c.dy, type, i);
  if (form == GATED || form == GATED_GRAD) up = lanes_read(c.up, type, i);
  switch (form) {
  case PLAIN: lanes_write(c.y, type, i, value_of(function, x)); return;
  case PLAIN_GRAD: lanes_write(c.y, type, i, dy * slope_of(function, x)); return;
  case GATED: lanes_write(c.y, type, i, value_of(function, x) * up); return;
  case GATED_GRAD:
    lanes_write(c.dup, type, i, dy * value_of(function, x));
    lanes_write(c.y, type, i, dy * up * slope_of(function, x));
  }
}

INLINED void run_function(chunk_form form, nx_activation function, const chunk c) {
  if (c.type == NX_bf16)
    for (int64_t i = 0; i < c.n; i += LANES) run_lanes(form, function, c, NX_bf16, i);
  else
    for (int64_t i = 0; i < c.n; i += LANES) run_lanes(form, function, c, NX_f32, i);
}

INLINED void run_whole_form(chunk_form form, nx_activation function, const chunk *c) {
  switch (function) {
  case NX_ACTIVATION_GELU: run_function(form, NX_ACTIVATION_GELU, *c); return;
  case NX_ACTIVATION_GELU_TANH: run_function(form, NX_ACTIVATION_GELU_TANH, *c); return;
  case NX_ACTIVATION_RELU: run_function(form, NX_ACTIVATION_RELU, *c); return;
  case NX_ACTIVATION_SQUARED_RELU: run_function(form, NX_ACTIVATION_SQUARED_RELU, *c); return;
  case NX_ACTIVATION_SILU: run_function(form, NX_ACTIVATION_SILU, *c); return;
  case NX_ACTIVATION_QUICK_GELU: run_function(form, NX_ACTIVATION_QUICK_GELU, *c); return;
  case NX_ACTIVATION_MISH: run_function(form, NX_ACTIVATION_MISH, *c); return;
  case NX_ACTIVATION_SOFTSIGN: run_function(form, NX_ACTIVATION_SOFTSIGN, *c); return;
  case NX_ACTIVATION_SIGMOID: run_function(form, NX_ACTIVATION_SIGMOID, *c); return;
  case NX_ACTIVATION_IDENTITY: run_function(form, NX_ACTIVATION_IDENTITY, *c); return;
  }
}

static void run_whole(chunk_form form, nx_activation function, const chunk *c) {
  switch (form) {
  case PLAIN: run_whole_form(PLAIN, function, c); return;
  case PLAIN_GRAD: run_whole_form(PLAIN_GRAD, function, c); return;
  case GATED: run_whole_form(GATED, function, c); return;
  case GATED_GRAD: run_whole_form(GATED_GRAD, function, c);
  }
}

/* What whole vectors leave of a chunk fills a part of one. */
static void run_rest(chunk_form form, nx_activation function, const chunk *c, int64_t done) {
  float room[5][LANES] = {{0}};
  int64_t n = c->n - done;
  const void *from[3] = {c->dy, c->x, c->up};
  for (int i = 0; i < 3; i++)
    if (from[i]) vec_copy(room[i], NX_f32, 0, from[i], c->type, done, n);
  const chunk rest = {NX_f32, room[0], room[1], room[2], room[3], room[4], LANES};
  run_whole(form, function, &rest);
  vec_copy(c->y, c->type, done, room[3], NX_f32, 0, n);
  if (c->dup) vec_copy(c->dup, c->type, done, room[4], NX_f32, 0, n);
}

static void run_form(chunk_form form, nx_activation function, const chunk *c) {
  chunk whole = *c;
  whole.n = lanes_whole(c->n);
  run_whole(form, function, &whole);
  if (whole.n < c->n) run_rest(form, function, c, whole.n);
}

/* Operands that are all bf16, or all f32, are read and written where they are, and a chunk may be as long as
 * there are elements in a row. Others are widened and narrowed chunk by chunk. */
typedef struct chunk_way {
  nx_dtype type;
  int64_t most; /* elements */
} chunk_way;

static chunk_way chunk_way_of(const nxk_kernel *kernel) {
  nx_dtype type = kernel->operator.args[0].dtype;
  bool alike = type == NX_f32 || lanes_round_to(type);
  for (uint32_t i = 0; i < kernel->operator.n_in + kernel->operator.n_out; i++)
    alike = alike && kernel->operator.args[i].dtype == type;
  return alike ? (chunk_way){type, INT64_MAX} : (chunk_way){NX_f32, SHORT_CHUNK};
}

/* Halves of a line of memory that are written in place, one while the other is read, take twice as long. */
static chunk_way chunk_way_in_place(chunk_way way) {
  return way.type == NX_f32 ? way : (chunk_way){NX_f32, SHORT_CHUNK};
}

static int64_t chunk_of(const chunk_way *way, int64_t start, int64_t end) {
  return end - start < way->most ? end - start : way->most;
}

/* An operand: where it stands, and of what type. */
typedef struct operand {
  void *data;
  nx_dtype type;
} operand;

static operand operand_in(const nxk_kernel *kernel, const nxk_frame *frame, uint32_t i) {
  return (operand){cpu_in_at(kernel, frame, i), cpu_in(kernel, i)->dtype};
}

static operand operand_out(const nxk_kernel *kernel, const nxk_frame *frame, uint32_t i) {
  return (operand){cpu_out_at(kernel, frame, i), cpu_out(kernel, i)->dtype};
}

static const void *chunk_read(const chunk *c, operand x, int64_t start, float *buffer) {
  return c->type == x.type ? vec_at(x.data, x.type, start) : vec_read(x.data, x.type, start, c->n, buffer);
}

static void *chunk_target(const chunk *c, operand y, int64_t start, float *buffer) {
  return c->type == y.type ? vec_at(y.data, y.type, start) : buffer;
}

static void chunk_commit(const chunk *c, operand y, int64_t start, const void *written) {
  if (c->type != y.type) vec_commit(y.data, y.type, start, c->n, written);
}

static nx_activation function_of(const nxk_kernel *kernel, const nxk_frame *frame) {
  return (nx_activation)cpu_int(kernel, frame, NX_activation_function);
}

/* y of x; of gradients, with dy before x, y is dx. */
static void run_elements(const nxk_kernel *kernel, const nxk_frame *frame, bool grad) {
  const operand dy = operand_in(kernel, frame, 0), x = operand_in(kernel, frame, grad),
                y = operand_out(kernel, frame, 0);
  nx_activation function = function_of(kernel, frame);
  chunk_way way = chunk_way_of(kernel);
  if (grad && (y.data == dy.data || y.data == x.data)) way = chunk_way_in_place(way);
  int64_t n = nxk_n_elements(cpu_out(kernel, 0)), n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer dy_buffer, x_buffer, y_buffer;
    cpu_span span = cpu_share(n, VEC_CHUNK, omp_get_thread_num(), n_threads);
    for (int64_t start = span.begin, n_here; start < span.end; start += n_here) {
      n_here = chunk_of(&way, start, span.end);
      chunk c = {.type = way.type, .n = n_here};
      if (grad) c.dy = chunk_read(&c, dy, start, dy_buffer);
      c.x = chunk_read(&c, x, start, x_buffer);
      c.y = chunk_target(&c, y, start, y_buffer);
      run_form(grad ? PLAIN_GRAD : PLAIN, function, &c);
      chunk_commit(&c, y, start, c.y);
    }
  }
}

void CPU_NAME(cpu_activation)(const nxk_kernel *kernel, const nxk_frame *frame) {
  run_elements(kernel, frame, false);
}

void CPU_NAME(cpu_activation_grad)(const nxk_kernel *kernel, const nxk_frame *frame) {
  run_elements(kernel, frame, true);
}

/* A bound value, or dy (behind which x stands) where x is not held. */
static void clamp_elements(const nxk_kernel *kernel, const nxk_frame *frame, bool grad) {
  const operand dy = operand_in(kernel, frame, 0), x = operand_in(kernel, frame, grad),
                y = operand_out(kernel, frame, 0);
  float limit = (float)cpu_real(kernel, NX_clamp_limit);
  int64_t n = nxk_n_elements(cpu_out(kernel, 0)), n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer dy_buffer, x_buffer, y_buffer;
    cpu_span span = cpu_share(n, VEC_CHUNK, omp_get_thread_num(), n_threads);
    for (int64_t start = span.begin; start < span.end; start += VEC_CHUNK) {
      int64_t count = span.end - start < VEC_CHUNK ? span.end - start : VEC_CHUNK;
      const float *slope = grad ? vec_read(dy.data, dy.type, start, count, dy_buffer) : dy_buffer,
                  *value = vec_read(x.data, x.type, start, count, x_buffer);
      float *made = vec_target(y.data, y.type, start, y_buffer);
      for (int64_t i = 0; i < count; i++) {
        bool held = fabsf(value[i]) > limit;
        float bound = held ? copysignf(limit, value[i]) : value[i];
        made[i] = grad ? held ? 0 : slope[i] : bound;
      }
      vec_commit(y.data, y.type, start, count, made);
    }
  }
}

void CPU_NAME(cpu_clamp)(const nxk_kernel *kernel, const nxk_frame *frame) {
  clamp_elements(kernel, frame, false);
}

void CPU_NAME(cpu_clamp_grad)(const nxk_kernel *kernel, const nxk_frame *frame) {
  clamp_elements(kernel, frame, true);
}

/* What else is done to the halves before their product, and where they stand (ops.def). */
typedef struct halves {
  float limit, offset;
  bool in_turn, plain; /* plain: nothing is, and one half stands behind the other */
} halves;

static halves halves_of(const nxk_kernel *kernel) {
  const nxk_attr *a = kernel->operator.attrs;
  halves h = {(float)a[NX_gated_limit].real, (float)a[NX_gated_offset].real,
              a[NX_gated_interleaved].integer != 0, false};
  h.plain = h.limit == 0 && h.offset == 0 && !h.in_turn;
  return h;
}

/* Work on x[T,2F] is split by pieces of a row's F columns: piece i is columns of row i / n_pieces. */
typedef struct gated {
  int64_t n_columns, width, n_pieces, n_chunks;
} gated;

static gated gated_of(const nxk_tensor *half, const chunk_way *way, const halves *form) {
  int64_t n = cpu_columns(half), most = form->plain ? way->most : VEC_CHUNK;
  int64_t width = n < most ? n : most, n_pieces = (n + width - 1) / width;
  return (gated){n, width, n_pieces, n_pieces * cpu_rows(half)};
}

/* n features of a row: where they begin in y or dy, and their halves in x or dx. */
typedef struct piece {
  int64_t n, at, gate, up;
} piece;

static piece piece_of(const gated *shape, const halves *form, int64_t i) {
  int64_t f = shape->n_columns, row = i / shape->n_pieces, column = i % shape->n_pieces * shape->width;
  int64_t n = f - column < shape->width ? f - column : shape->width;
  int64_t at = row * f + column, gate = form->in_turn ? 2 * at : at + row * f;
  return (piece){n, at, gate, gate + (form->in_turn ? 1 : f)};
}

/* The halves of a chunk as they are stored, and bounded, with the offset. */
typedef struct halves_chunk {
  vec_buffer gate, up, bounded_gate, bounded_up, dgate, dup;
} halves_chunk;

static void halves_bound(const halves *h, operand x, const piece *p, halves_chunk *room) {
  if (h->in_turn) {
    float pairs[2 * VEC_CHUNK];
    vec_copy(pairs, NX_f32, 0, x.data, x.type, p->gate, 2 * p->n);
    for (int64_t i = 0; i < p->n; i++) room->gate[i] = pairs[2 * i], room->up[i] = pairs[2 * i + 1];
  } else {
    vec_copy(room->gate, NX_f32, 0, x.data, x.type, p->gate, p->n);
    vec_copy(room->up, NX_f32, 0, x.data, x.type, p->up, p->n);
  }
  float most = h->limit > 0 ? h->limit : INFINITY;
#pragma omp simd
  for (int64_t i = 0; i < p->n; i++) {
    float gate = room->gate[i], up = room->up[i];
    up = up > most ? most : up;
    up = up < -most ? -most : up;
    room->bounded_gate[i] = gate > most ? most : gate;
    room->bounded_up[i] = up + h->offset;
  }
}

/* Gradients by the bounded halves become those by the stored ones, and are stored where these stand. */
static void halves_store(const halves *h, operand dx, const piece *p, halves_chunk *room) {
  float most = h->limit > 0 ? h->limit : INFINITY;
#pragma omp simd
  for (int64_t i = 0; i < p->n; i++) {
    room->dgate[i] = room->gate[i] > most ? 0.0F : room->dgate[i];
    room->dup[i] = room->up[i] > most || room->up[i] < -most ? 0.0F : room->dup[i];
  }
  if (h->in_turn) {
    float pairs[2 * VEC_CHUNK];
    for (int64_t i = 0; i < p->n; i++) pairs[2 * i] = room->dgate[i], pairs[2 * i + 1] = room->dup[i];
    vec_copy(dx.data, dx.type, p->gate, pairs, NX_f32, 0, 2 * p->n);
  } else {
    vec_copy(dx.data, dx.type, p->gate, room->dgate, NX_f32, 0, p->n);
    vec_copy(dx.data, dx.type, p->up, room->dup, NX_f32, 0, p->n);
  }
}

/* The chunk of a piece, with what its halves are. */
static chunk halves_read(const halves *h, const chunk_way *way, operand x, const piece *p,
                         halves_chunk *room) {
  chunk c = {.type = h->plain ? way->type : NX_f32, .n = p->n};
  if (h->plain) {
    c.x = chunk_read(&c, x, p->gate, room->gate);
    c.up = chunk_read(&c, x, p->up, room->up);
    return c;
  }
  halves_bound(h, x, p, room);
  c.x = room->bounded_gate, c.up = room->bounded_up;
  return c;
}

/* Where a chunk's gradients by its halves are made. */
static void halves_target(const halves *h, chunk *c, operand dx, const piece *p, halves_chunk *room) {
  c->y = h->plain ? chunk_target(c, dx, p->gate, room->dgate) : room->dgate;
  c->dup = h->plain ? chunk_target(c, dx, p->up, room->dup) : room->dup;
}

static void halves_commit(const halves *h, const chunk *c, operand dx, const piece *p, halves_chunk *room) {
  if (!h->plain) {
    halves_store(h, dx, p, room);
    return;
  }
  chunk_commit(c, dx, p->gate, c->y);
  chunk_commit(c, dx, p->up, c->dup);
}

/* As run_elements, of halves; a row of dx has both. */
static void run_gated(const nxk_kernel *kernel, const nxk_frame *frame, bool grad) {
  const operand dy = operand_in(kernel, frame, 0), x = operand_in(kernel, frame, grad),
                y = operand_out(kernel, frame, 0);
  nx_activation function = function_of(kernel, frame);
  chunk_way way = chunk_way_of(kernel);
  halves form = halves_of(kernel);
  gated shape = gated_of(grad ? cpu_in(kernel, 0) : cpu_out(kernel, 0), &way, &form);
  int64_t n_threads = kernel->device->n_threads;
#pragma omp parallel num_threads(n_threads)
  {
    vec_buffer buffer;
    halves_chunk room;
    cpu_span span = cpu_share(shape.n_chunks, 1, omp_get_thread_num(), n_threads);
    for (int64_t i = span.begin; i < span.end; i++) {
      const piece p = piece_of(&shape, &form, i);
      chunk c = halves_read(&form, &way, x, &p, &room);
      if (grad) {
        c.dy = chunk_read(&c, dy, p.at, buffer);
        halves_target(&form, &c, y, &p, &room);
        run_form(GATED_GRAD, function, &c);
        halves_commit(&form, &c, y, &p, &room);
      } else {
        c.y = chunk_target(&c, y, p.at, buffer);
        run_form(GATED, function, &c);
        chunk_commit(&c, y, p.at, c.y);
      }
    }
  }
}

void CPU_NAME(cpu_gated)(const nxk_kernel *kernel, const nxk_frame *frame) {
  run_gated(kernel, frame, false);
}

void CPU_NAME(cpu_gated_grad)(const nxk_kernel *kernel, const nxk_frame *frame) {
  run_gated(kernel, frame, true);
}
