/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a table by token or by position, and their gradients. A row's gradient is the row plus the sum over
 * its tokens in ascending order, rounded once. */
#include "kernels/ref/ref.h"

#include <math.h>

/* Which row of the table a token reads: the tokens are a window of S in sequences of S_all. */
typedef struct row_source {
  ref_operand indices; /* [B,S_all] */
  int64_t n_tokens, n_all, window_start, first_row;
} row_source;

static int64_t row_of(const row_source *rows, int64_t token) {
  int64_t at = token / rows->n_tokens * rows->n_all + rows->window_start + token % rows->n_tokens;
  return ref_index(&rows->indices, at) - rows->first_row;
}

static row_source token_rows(const ref_operand *tokens, int64_t row_start) {
  return (row_source){*tokens, tokens->dims[1], tokens->dims[1], 0, row_start};
}

static row_source position_rows(const ref_operand *positions, const ref_operand *x, int64_t seq_start) {
  return (row_source){*positions, x->dims[1], positions->dims[1], seq_start, 0};
}

void ref_embedding(const ref_call *call) {
  ref_operand tokens = ref_in(call, 0), table = ref_in(call, 1), y = ref_out(call, 0);
  row_source rows = token_rows(&tokens, ref_int(call, NX_embedding_row_start));
  int64_t h = ref_last_dim(&table);
  double scale = ref_real(call, NX_embedding_scale);
  for (int64_t t = 0; t < tokens.n_elements; t++) {
    int64_t row = row_of(&rows, t);
    bool local = row >= 0 && row < table.dims[0];
    for (int64_t i = 0; i < h; i++)
      ref_store(&y, t * h + i, local ? scale * ref_load(&table, row * h + i) : 0);
  }
}

void ref_position_add(const ref_call *call) {
  ref_operand x = ref_in(call, 0), table = ref_in(call, 1), positions = ref_in(call, 2), y = ref_out(call, 0);
  row_source rows = position_rows(&positions, &x, ref_int(call, NX_position_add_seq_start));
  int64_t h = ref_last_dim(&table);
  for (int64_t t = 0; t * h < x.n_elements; t++) {
    int64_t row = row_of(&rows, t);
    bool present = row >= 0 && row < table.dims[0];
    for (int64_t i = 0; i < h; i++)
      ref_store(&y, t * h + i, ref_load(&x, t * h + i) + (present ? ref_load(&table, row * h + i) : 0));
  }
}

void ref_sinusoid_add(const ref_call *call) {
  ref_operand x = ref_in(call, 0), positions = ref_in(call, 1), y = ref_out(call, 0);
  row_source rows = position_rows(&positions, &x, ref_int(call, NX_sinusoid_add_seq_start));
  int64_t h = ref_last_dim(&x);
  for (int64_t t = 0; t * h < x.n_elements; t++) {
    double position = (double)row_of(&rows, t);
    for (int64_t i = 0; i < h; i++) {
      double angle = position * pow(10000, -2 * (double)(i % (h / 2)) / (double)h);
      ref_store(&y, t * h + i, ref_load(&x, t * h + i) + (i < h / 2 ? sin(angle) : cos(angle)));
    }
  }
}

static void table_grad(const ref_operand *dy, const row_source *rows, const ref_operand *dtable,
                       double scale, double *sums) {
  int64_t h = ref_last_dim(dtable), n_tokens = dy->n_elements / h;
  for (int64_t first = 0; first < n_tokens; first++) {
    int64_t row = row_of(rows, first), before = 0;
    if (row < 0 || row >= dtable->dims[0]) continue;
    while (row_of(rows, before) != row) before++;
    if (before < first) continue; /* its row is done */
    ref_load_row(dtable, row * h, 1, h, sums);
    for (int64_t t = first; t < n_tokens; t++) {
      if (row_of(rows, t) != row) continue;
      for (int64_t i = 0; i < h; i++) sums[i] += scale * ref_load(dy, t * h + i);
    }
    ref_store_row(dtable, row * h, h, sums);
  }
}

void ref_embedding_grad(const ref_call *call) {
  ref_operand tokens = ref_in(call, 0), dy = ref_in(call, 1), dtable = ref_out(call, 0);
  row_source rows = token_rows(&tokens, ref_int(call, NX_embedding_grad_row_start));
  table_grad(&dy, &rows, &dtable, ref_real(call, NX_embedding_grad_scale), call->work);
}

void ref_position_grad(const ref_call *call) {
  ref_operand dy = ref_in(call, 0), positions = ref_in(call, 1), dtable = ref_out(call, 0);
  row_source rows = position_rows(&positions, &dy, ref_int(call, NX_position_grad_seq_start));
  table_grad(&dy, &rows, &dtable, 1, call->work);
}
