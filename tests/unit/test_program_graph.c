/* SPDX-License-Identifier: Apache-2.0 */
/* The graph between the passes: what is summed over which ranks, and that a wrong sum does not get
 * through. */
#include "tests/unit/program_case.h"

#include "compiler/program/graph/rules.h"

static nxc_graph *build(program_case *c, const char *changes) {
  nxc_training training;
  *c = program_settings(changes);
  assert_true(nxc_training_read(c->settings, c->sink, &training));
  nxc_pipeline *pipeline = nxc_program_build(&training, c->arena, c->sink);
  assert_non_null(pipeline);
  return pipeline->graphs[0];
}

static nxc_value_node *find(nxc_graph *graph, const char *name) {
  for (size_t i = 1; i < graph->n_values; i++)
    if (strcmp(graph->values[i].name, name) == 0) return &graph->values[i];
  fail_msg("there is no value %s", name);
  return NULL;
}

/* The ranks over which a value is yet to be summed. */
static const char *partial(nxc_graph *graph, const char *name) {
  uint32_t atoms = nxc_atoms_placed(&find(graph, name)->shape.placement, NXC_PARTIAL);
  return nxc_mesh_set_name(graph->arena, &graph->mesh, atoms);
}


/* ---- what is summed over whom ---- */

static void matrices_are_summed_over_data(void **state) {
  (void)state;
  program_case c;
  nxc_graph *graph = build(&c, "mesh.world=4 mesh.tensor=2");
  static const char *const names[] = {"embedding.weight.grad", "layers.0.attention.qkv_weight.grad",
                                      "layers.1.attention.out_weight.grad", "layers.0.ffn.up_weight.grad",
                                      "output.weight.grad"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    assert_string_equal(partial(graph, names[i]), "data");
  program_end(&c);
}

static void norms_are_summed_over_tensor_under_sequence_parallelism(void **state) {
  (void)state;
  program_case c;
  nxc_graph *graph = build(&c, "mesh.world=4 mesh.tensor=2");
  assert_string_equal(partial(graph, "layers.0.attention_norm.weight.grad"), "data");
  program_end(&c);
  graph = build(&c, "mesh.world=4 mesh.tensor=2 sequence_parallel=true");
  assert_string_equal(partial(graph, "layers.0.attention_norm.weight.grad"), "data+tensor");
  assert_string_equal(partial(graph, "final_norm.weight.grad"), "data+tensor");
  program_end(&c);
}

static void row_parallel_biases_follow_the_sequence(void **state) {
  (void)state;
  const char *const gpt2 =
      "mesh.world=4 mesh.tensor=2 model.bias=true model.position_embedding=learned "
      "model.normalization=layernorm model.activation=gelu";
  program_case c;
  nxc_graph *graph = build(&c, gpt2);
  assert_string_equal(partial(graph, "layers.0.ffn.out_bias.grad"), "data");
  assert_string_equal(partial(graph, "layers.0.ffn.up_bias.grad"), "data");
  assert_string_equal(partial(graph, "embedding.positions.grad"), "data");
  program_end(&c);
  char with_sequence[256];
  snprintf(with_sequence, sizeof with_sequence, "%s sequence_parallel=true", gpt2);
  graph = build(&c, with_sequence);
  assert_string_equal(partial(graph, "layers.0.ffn.out_bias.grad"), "data+tensor");
  assert_string_equal(partial(graph, "layers.0.ffn.up_bias.grad"), "data");
  assert_string_equal(partial(graph, "embedding.positions.grad"), "data+tensor");
  program_end(&c);
}

static void copied_key_heads_are_summed_over_their_copies(void **state) {
  (void)state;
  program_case c;
  nxc_graph *graph = build(&c, "mesh.world=8 mesh.tensor=4 mesh.kv_replicator=2");
  assert_string_equal(partial(graph, "layers.0.attention.q_weight.grad"), "data");
  assert_string_equal(partial(graph, "layers.0.attention.k_weight.grad"), "data+kv_replica");
  assert_string_equal(partial(graph, "layers.0.attention.v_weight.grad"), "data+kv_replica");
  assert_string_equal(partial(graph, "layers.0.attention.out_weight.grad"), "data");
  program_end(&c);
}

static void the_loss_is_summed_over_data_alone(void **state) {
  (void)state;
  program_case c;
  nxc_graph *graph = build(&c, "mesh.world=4 mesh.tensor=2");
  assert_string_equal(partial(graph, "loss"), "data");
  assert_string_equal(partial(graph, "loss_total"), "");
  assert_true(graph->loss != graph->loss_total);
  program_end(&c);
  graph = build(&c, "mesh.world=2 mesh.tensor=2");
  assert_int_equal(graph->loss, graph->loss_total);
  program_end(&c);
}

/* One sum forward and one back per region, as Megatron has it: no collective too many. */
static void a_layer_has_two_sums_each_way(void **state) {
  (void)state;
  program_case c;
  nxc_graph *graph = build(&c, "mesh.world=2 mesh.tensor=2");
  uint32_t n[NXC_N_PROGRAMS] = {0};
  for (nxc_program_index program = 0; program < NXC_N_PROGRAMS; program++)
    for (size_t i = 0; i < graph->programs[program].n; i++)
      n[program] += graph->operators[graph->programs[program].operators[i]].op == NX_OP_all_reduce;
  assert_int_equal(n[NXC_FORWARD], 1 + 2 * 2);  /* embedding, then two a layer */
  assert_int_equal(n[NXC_BACKWARD], 1 + 2 * 2); /* logits, then two a layer */
  assert_int_equal(n[NXC_STEP], 1);             /* the norm */
  program_end(&c);
}

/* ---- a broken sum ---- */

static nxc_operator_node *operator_in(nxc_graph *graph, nxc_program_index program, nx_op op, size_t nth) {
  for (size_t i = 0; i < graph->programs[program].n; i++) {
    nxc_operator_node *at = &graph->operators[graph->programs[program].operators[i]];
    if (at->op == op && nth-- == 0) return at;
  }
  fail_msg("there is no such operator");
  return NULL;
}

static void a_reduction_over_too_few_ranks_is_caught(void **state) {
  (void)state;
  program_case c;
  nxc_graph *graph = build(&c, "mesh.world=4 mesh.tensor=2 sequence_parallel=true optimizer.zero_stage=1");
  assert_null(nxc_graph_check(graph));
  for (size_t i = 0; i < graph->n_ranges; i++) {
    if (graph->ranges[i].group_atoms != nxc_axis(&graph->mesh, NXC_AXIS_WORLD)) continue;
    graph->ranges[i].group_atoms = nxc_axis(&graph->mesh, NXC_AXIS_DATA);
    assert_non_null(nxc_graph_check(graph));
    assert_non_null(strstr(graph->fault, "other ranks than hold its summands"));
    program_end(&c);
    return;
  }
  fail_msg("no range is summed over tensor and data");
}

static void a_collective_over_the_wrong_group_is_caught(void **state) {
  (void)state;
  program_case c;
  nxc_graph *graph = build(&c, "mesh.world=4 mesh.tensor=2");
  operator_in(graph, NXC_STEP, NX_OP_all_reduce, 1)->group_atoms = nxc_axis(&graph->mesh, NXC_AXIS_TENSOR);
  assert_non_null(nxc_graph_check(graph));
  assert_non_null(strstr(graph->fault, "group"));
  program_end(&c);
}

/* A residual add that reads the summand instead of the sum. */
static void a_forgotten_sum_is_caught(void **state) {
  (void)state;
  program_case c;
  nxc_graph *graph = build(&c, "mesh.world=2 mesh.tensor=2");
  nxc_operator_node *add = operator_in(graph, NXC_FORWARD, NX_OP_add, 0);
  const nxc_operator_node *sum = nxc_producer(graph, add->args[1]);
  assert_int_equal(sum->op, NX_OP_all_reduce);
  add->args[1] = sum->args[0];
  assert_non_null(nxc_graph_check(graph));
  program_end(&c);
}

static void a_gradient_that_skips_its_sum_is_caught(void **state) {
  (void)state;
  program_case c;
  nxc_graph *graph = build(&c, "mesh.world=2");
  nxc_operator_node *adamw = operator_in(graph, NXC_STEP, NX_OP_adamw, 0);
  adamw->args[3] = graph->values[adamw->args[3]].view_of;
  assert_non_null(nxc_graph_check(graph));
  assert_non_null(strstr(graph->fault, "partial"));
  program_end(&c);
}

static void a_value_read_too_early_is_caught(void **state) {
  (void)state;
  program_case c;
  nxc_graph *graph = build(&c, "");
  nxc_program_list *list = &graph->programs[NXC_FORWARD];
  nxc_id first = list->operators[2];
  list->operators[2] = list->operators[3];
  list->operators[3] = first;
  assert_non_null(nxc_graph_check(graph));
  assert_non_null(strstr(graph->fault, "before it is written"));
  program_end(&c);
}

/* ---- sequences over several ranks ---- */

static const char ring[] = "mesh.world=4 mesh.context=2 attention.ring=true";

static size_t count(const nxc_graph *graph, nxc_program_index program, nx_op op) {
  size_t n = 0;
  for (size_t i = 0; i < graph->programs[program].n; i++)
    n += graph->operators[graph->programs[program].operators[i]].op == op;
  return n;
}

/* Of parameters that all ranks of a context hold each has a summand; keys and values go around once forward,
 * and once more backward with their gradients. */
static void a_ring_sums_over_its_ranks(void **state) {
  (void)state;
  program_case c;
  nxc_graph *graph = build(&c, ring);
  assert_string_equal(partial(graph, "layers.0.attention.qkv_weight.grad"), "data+context");
  assert_string_equal(partial(graph, "layers.1.ffn_norm.weight.grad"), "data+context");
  assert_string_equal(partial(graph, "embedding.weight.grad"), "data+context");
  assert_string_equal(partial(graph, "loss"), "data+context");
  assert_int_equal(count(graph, NXC_FORWARD, NX_OP_shift), 2 * 2);  /* k, v of two layers */
  assert_int_equal(count(graph, NXC_BACKWARD, NX_OP_shift), 2 * 6); /* k, v; dk, dv on, and home */
  assert_int_equal(count(graph, NXC_FORWARD, NX_OP_attention), 2 * 2);
  assert_int_equal(count(graph, NXC_FORWARD, NX_OP_attention_merge), 2);
  program_end(&c);
}

/* The exchange for the next round has begun when the attention of this one runs, and is awaited behind it. */
static void keys_travel_while_attention_runs(void **state) {
  (void)state;
  program_case c;
  nxc_graph *graph = build(&c, ring);
  const nxc_program_list *list = &graph->programs[NXC_FORWARD];
  size_t at = 0;
  while (graph->operators[list->operators[at]].op != NX_OP_attention) at++;
  assert_int_equal(graph->operators[list->operators[at - 1]].op, NX_OP_shift);
  assert_int_equal(graph->operators[list->operators[at - 2]].op, NX_OP_shift);
  assert_int_equal(graph->operators[list->operators[at + 1]].op, NX_OP_wait);
  assert_int_equal(graph->operators[list->operators[at + 2]].op, NX_OP_wait);
  program_end(&c);
}

/* Products between the last exchange of the first attention's gradients and its wait. */
static size_t products_while_gradients_come_home(const char *changes) {
  program_case c;
  nxc_graph *graph = build(&c, changes);
  const nxc_program_list *list = &graph->programs[NXC_BACKWARD];
  size_t n_shifts = 0, at = 0, n = 0;
  for (; n_shifts < 6; at++) n_shifts += graph->operators[list->operators[at]].op == NX_OP_shift;
  for (; graph->operators[list->operators[at]].op == NX_OP_matmul; at++, n++)
    if (!strstr(graph->values[graph->operators[list->operators[at]].args[2]].name, "_weight.grad"))
      fail_msg("%s stands there", graph->values[graph->operators[list->operators[at]].args[2]].name);
  assert_int_equal(graph->operators[list->operators[at]].op, NX_OP_wait);
  program_end(&c);
  return n;
}

/* Both of the network's, and that of the attention's output; but not what holds activations that were made
 * again. */
static void weights_have_their_gradients_while_those_of_keys_come_home(void **state) {
  (void)state;
  assert_int_equal(products_while_gradients_come_home("mesh.world=4 mesh.context=2 attention.ring=true"), 3);
  assert_int_equal(products_while_gradients_come_home(
                       "mesh.world=2 mesh.context=2 attention.ring=true recompute.granularity=full"),
                   0);
}

static void attention_to_a_part_of_a_sequence_is_caught(void **state) {
  (void)state;
  program_case c;
  nxc_graph *graph = build(&c, ring);
  operator_in(graph, NXC_FORWARD, NX_OP_attention, 0)->group_atoms = 0;
  assert_non_null(nxc_graph_check(graph));
  assert_non_null(strstr(graph->fault, "whole sequences"));
  program_end(&c);
}

static void heads_are_exchanged_and_come_back(void **state) {
  (void)state;
  program_case c;
  nxc_graph *graph = build(&c, "mesh.world=2 mesh.context=2 attention.ulysses=true");
  assert_int_equal(count(graph, NXC_FORWARD, NX_OP_all_to_all), 2 * 4); /* q, k, v; o */
  assert_int_equal(count(graph, NXC_BACKWARD, NX_OP_all_to_all), 2 * 4);
  assert_int_equal(find(graph, "layers.0.attention.q_whole")->shape.dims[1], 2);
  assert_int_equal(find(graph, "layers.0.attention.q_whole")->shape.dims[2], 16);
  operator_in(graph, NXC_FORWARD, NX_OP_all_to_all, 0)->attrs[NX_all_to_all_concat_axis] = nxc_integer(3);
  assert_non_null(nxc_graph_check(graph));
  program_end(&c);
}

/* ---- dropout ---- */

static int64_t coordinate(const nxc_mesh *mesh, uint32_t atoms, uint32_t rank) {
  int64_t coordinate = 0, scale = 1;
  for (uint32_t atom = 0; atom < mesh->n_atoms; atom++) {
    if (!(atoms & 1u << atom)) continue;
    coordinate += scale * (rank / mesh->stride[atom] % mesh->size[atom]);
    scale *= mesh->size[atom];
  }
  return coordinate;
}

static int64_t value_at(const nxc_graph *graph, const nx_attribute *attribute, uint32_t rank) {
  if (attribute->kind != NX_ATTRIBUTE_CONSTANT) return attribute->integer;
  const nxc_rank_number *number = &graph->tables->constants[attribute->constant];
  int64_t value = number->base;
  for (uint32_t i = 0; i < number->n_terms; i++)
    value += number->terms[i].stride * coordinate(&graph->mesh, number->terms[i].atoms, rank);
  return value;
}

/* A rank drops what lies in its part of the logical tensor; forward, backward and recomputation drop the
 * same. */
static void masks_know_their_place(void **state) {
  (void)state;
  program_case c;
  nxc_graph *graph = build(&c,
                           "mesh.world=2 mesh.tensor=2 sequence_parallel=true model.hidden_dropout=0.1 "
                           "model.ffn_dropout=0.2 model.attention_dropout=0.3 recompute.granularity=full");
  uint32_t n_ffn = 0;
  for (nxc_program_index program = NXC_FORWARD; program <= NXC_BACKWARD; program++) {
    for (size_t i = 0; i < graph->programs[program].n; i++) {
      const nxc_operator_node *op = &graph->operators[graph->programs[program].operators[i]];
      if (op->op != NX_OP_dropout) continue;
      bool in_ffn = op->attrs[NX_dropout_probability].real > 0.15;
      assert_int_equal(value_at(graph, &op->attrs[NX_dropout_seq_start], 1), in_ffn ? 0 : 8);
      assert_int_equal(value_at(graph, &op->attrs[NX_dropout_feature_start], 1), in_ffn ? 24 : 0);
      n_ffn += in_ffn;
    }
  }
  assert_int_equal(n_ffn, 3 * 2); /* forward, again, backward; two layers */
  const nxc_operator_node *attention = operator_in(graph, NXC_FORWARD, NX_OP_attention, 0);
  assert_int_equal(value_at(graph, &attention->attrs[NX_attention_head_start], 1), 2);
  program_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(matrices_are_summed_over_data),
      cmocka_unit_test(norms_are_summed_over_tensor_under_sequence_parallelism),
      cmocka_unit_test(row_parallel_biases_follow_the_sequence),
      cmocka_unit_test(copied_key_heads_are_summed_over_their_copies),
      cmocka_unit_test(the_loss_is_summed_over_data_alone),
      cmocka_unit_test(a_layer_has_two_sums_each_way),
      cmocka_unit_test(a_reduction_over_too_few_ranks_is_caught),
      cmocka_unit_test(a_collective_over_the_wrong_group_is_caught),
      cmocka_unit_test(a_forgotten_sum_is_caught),
      cmocka_unit_test(a_gradient_that_skips_its_sum_is_caught),
      cmocka_unit_test(a_ring_sums_over_its_ranks),
      cmocka_unit_test(keys_travel_while_attention_runs),
      cmocka_unit_test(weights_have_their_gradients_while_those_of_keys_come_home),
      cmocka_unit_test(attention_to_a_part_of_a_sequence_is_caught),
      cmocka_unit_test(heads_are_exchanged_and_come_back),
      cmocka_unit_test(a_value_read_too_early_is_caught),
      cmocka_unit_test(masks_know_their_place),
  };
  return cmocka_run_group_tests_name("program graph", tests, NULL, NULL);
}
