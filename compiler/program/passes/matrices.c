/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/program/passes/matrices.h"

#include "compiler/program/model/parameters.h"
#include "schema/muon_scale.h"

#include <string.h>

/* What optimizer.joined may name: parts that stand one below the other. */
static const struct {
  const char *name;
  nxc_part first, last;
} joins[] = {
    {"qkv", NXC_PART_Q, NXC_PART_V},
    {"gate_up", NXC_PART_GATE, NXC_PART_UP},
    {"gate_up", NXC_PART_SHARED_GATE, NXC_PART_SHARED_UP},
    {"expert_gate_up", NXC_PART_EXPERT_GATE, NXC_PART_EXPERT_UP},
};

static bool is_asked(const nxc_optimizer *o, const char *join) {
  for (size_t i = 0; i < o->n_joined; i++)
    if (strcmp(o->joined[i].text, join) == 0) return true;
  return false;
}

static bool are_one(const nxc_optimizer *o, nxc_part a, nxc_part b) {
  bool one = a == b;
  for (size_t i = 0; i < sizeof joins / sizeof *joins; i++)
    one |= a >= joins[i].first && b <= joins[i].last && a <= b && is_asked(o, joins[i].name);
  return one;
}

/* Of a vector the columns go on, of a matrix the rows. */
static bool goes_on(const nxc_piece_node *a, const nxc_piece_node *b, bool vector) {
  return a->value == b->value && a->expert == b->expert && a->bias == b->bias && !b->alias &&
         b->row == a->row + (vector ? a->columns : a->rows);
}

nxc_piece_node nxc_matrix_at(const nxc_graph *graph, const nxc_training *t, size_t i, size_t *n) {
  nxc_piece_node matrix = graph->pieces[i];
  bool vector = graph->values[matrix.value].shape.n_dims == 1;
  for (*n = 1; i + *n < graph->n_pieces; (*n)++) {
    const nxc_piece_node *next = &graph->pieces[i + *n];
    if (!goes_on(&matrix, next, vector) || !are_one(&t->optimizer, graph->pieces[i].part, next->part)) break;
    *(vector ? &matrix.columns : &matrix.rows) += vector ? next->columns : next->rows;
    matrix.logical_rows += vector ? 0 : next->logical_rows;
  }
  return matrix;
}

bool nxc_matrix_is_first(const nxc_graph *graph, size_t piece) {
  for (size_t i = 0; i < piece; i++)
    if (graph->pieces[i].value == graph->pieces[piece].value &&
        graph->pieces[i].row == graph->pieces[piece].row)
      return false;
  return true;
}

static bool is_of_expert(const nxc_piece_node *matrix) {
  return matrix->part >= NXC_PART_EXPERT_GATE && matrix->part <= NXC_PART_EXPERT_DOWN;
}

int64_t nxc_matrix_rows_apart(const nxc_training *t, const nxc_piece_node *matrix) {
  return is_of_expert(matrix) ? 1 : t->optimizer.matrix_parts;
}

int64_t nxc_matrix_columns_apart(const nxc_training *t, const nxc_piece_node *matrix) {
  return is_of_expert(matrix) ? t->optimizer.expert_parts : 1;
}

double nxc_matrix_factor(const nxc_training *t, const nxc_piece_node *matrix) {
  const nxc_optimizer *o = &t->optimizer;
  if (!o->stacked_scale || !is_of_expert(matrix) || o->update.rule->kind != NX_MATRIX) return 1;
  bool down = matrix->part == NXC_PART_EXPERT_DOWN;
  bool gated = nxc_model_layer(&t->model, matrix->layer)->ffn.activation->gated;
  double hidden = (double)t->model.hidden, width = (double)t->model.mixture->hidden;
  *(down ? &width : &hidden) /= (double)o->expert_parts;
  int form = (int)o->update.numbers[NX_muon_update_scale];
  double own = nx_muon_scale(form, (double)matrix->logical_rows, down ? width : hidden);
  double of_stack =
      down ? nx_muon_scale(form, width, hidden) : nx_muon_scale(form, hidden, (gated ? 2 : 1) * width);
  return of_stack / own;
}
