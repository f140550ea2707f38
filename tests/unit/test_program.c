/* SPDX-License-Identifier: Apache-2.0 */
/* Plans as the compiler makes them: properties that must hold on every layout, from the bytes alone. */
#include "tests/unit/plan_lookups.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- names ---- */

static void pieces_have_hugging_face_names(void **state) {
  (void)state;
  program_case c = program_good("");
  static const char *const llama[] = {"model.embed_tokens.weight",
                                      "model.layers.1.input_layernorm.weight",
                                      "model.layers.1.self_attn.q_proj.weight",
                                      "model.layers.1.self_attn.o_proj.weight",
                                      "model.layers.0.mlp.gate_proj.weight",
                                      "model.layers.0.mlp.down_proj.weight",
                                      "model.norm.weight",
                                      "lm_head.weight"};
  for (size_t i = 0; i < sizeof llama / sizeof *llama; i++)
    assert_non_null(piece_named(&c.out.plan, llama[i]));
  program_end(&c);
  c = program_good("model.tied_embeddings=true");
  assert_null(piece_named(&c.out.plan, "lm_head.weight"));
  program_end(&c);
}

static void gpt2_keeps_one_transposed_tensor_for_qkv(void **state) {
  (void)state;
  program_case c = program_good(
      "model.position_embedding=learned model.bias=true model.normalization=layernorm "
      "model.activation=gelu model.kv_heads=4 mesh.world=2 mesh.tensor=2");
  const nx_plan *plan = &c.out.plan;
  int64_t starts[3];
  int n = 0;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PIECES]; i++) {
    const nx_piece *piece = &plan->pieces[i];
    if (strcmp(nx_plan_string(plan, piece->name), "transformer.h.0.attn.c_attn.weight") != 0) continue;
    assert_int_equal(piece->flags, NX_PIECE_TRANSPOSED);
    assert_int_equal(piece->logical_rows, 96);
    starts[n++] = nx_constant_value(plan, piece->row_start, 1, 0);
  }
  assert_int_equal(n, 3);
  assert_int_equal(starts[0], 16);
  assert_int_equal(starts[1], 32 + 16);
  assert_int_equal(starts[2], 64 + 16);
  assert_int_equal(piece_named(plan, "transformer.wpe.weight")->flags, 0);
  assert_non_null(piece_named(plan, "transformer.ln_f.bias"));
  program_end(&c);
}

/* Where nobody names a family, one is taken that has names for all that the model has. */
static void all_parts_have_names(void **state) {
  (void)state;
  static const char *const cases[] = {
      "model.kv_heads=4 model.latent_rank=8 model.latent_rope_dim=4 model.latent_query_rank=8",
      "moe.experts=4 moe.top_k=2 moe.router_correction=true",
      "moe.experts=4 moe.top_k=2 model.attention_sinks=true model.bias=true moe.router_bias=true",
      "moe.experts=4 moe.top_k=2 model.bias=true"};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    program_case c = program_compile(cases[i]);
    if (!c.ok) fail_msg("%s: no plan", cases[i]);
    program_end(&c);
  }
}

/* ---- micro-batches, recomputation, size ---- */

/* One micro-batch: nothing is added up, so nothing runs conditionally. Several: each gradient's first writer
 * has two forms. */
static void first_writers_overwrite(void **state) {
  (void)state;
  program_case one = program_good("batch.global=2"), four = program_good("batch.global=8");
  uint32_t n_one = one.out.plan.programs[2].first_operator, n_four = four.out.plan.programs[2].first_operator;
  for (uint32_t i = 0; i < n_one; i++)
    assert_int_equal(one.out.plan.operators[i].when, NX_WHEN_ALWAYS);
  uint32_t first = 0, later = 0;
  for (uint32_t i = 0; i < n_four; i++) {
    first += four.out.plan.operators[i].when == NX_WHEN_FIRST;
    later += four.out.plan.operators[i].when == (NX_WHEN_MIDDLE | NX_WHEN_LAST);
  }
  assert_int_equal(first, later + 1); /* the embedding's gradient is filled, and then always added to */
  assert_int_equal(count_operators(&four.out.plan, NX_OP_fill), 1);
  program_end(&one);
  program_end(&four);
}

/* Embedding and output add up apart, and are added once: within a stage, or between two. */
static void a_tied_matrix_has_two_accumulators(void **state) {
  (void)state;
  program_case c = program_good("model.tied_embeddings=true");
  const nx_plan *plan = &c.out.plan;
  const nx_program *backward = &plan->programs[plan->chunks[0].backward];
  const nx_operator *last = &plan->operators[backward->first_operator + backward->n_operators - 1];
  assert_int_equal(last->op, NX_OP_add);
  assert_int_equal(last->when, NX_WHEN_LAST);
  assert_int_equal(count_operators(plan, NX_OP_fill), 1);
  program_end(&c);
}

static void layers_may_share_weights(void **state) {
  (void)state;
  program_case own = program_good("model.layers=4"),
               shared = program_good("model.layers=4 model.unique_layers=2"),
               two = program_good("model.layers=2");
  assert_int_equal(shared.out.plan.run->n_parameters, two.out.plan.run->n_parameters);
  assert_int_equal(shared.out.plan.n[NX_SECTION_PIECES], two.out.plan.n[NX_SECTION_PIECES]);
  assert_true(shared.out.plan.run->flops_per_step == own.out.plan.run->flops_per_step);
  assert_int_equal(arena_bytes(&shared.out.plan, NX_ARENA_param), arena_bytes(&two.out.plan, NX_ARENA_param));
  assert_int_equal(arena_bytes(&shared.out.plan, NX_ARENA_slot), arena_bytes(&own.out.plan, NX_ARENA_slot));
  program_end(&own);
  program_end(&shared);
  program_end(&two);
}

static const nx_group *group_named(const nx_plan *plan, const char *name) {
  for (uint32_t i = 0; i < plan->n[NX_SECTION_GROUPS]; i++)
    if (strcmp(nx_plan_string(plan, plan->groups[i].name), name) == 0) return &plan->groups[i];
  fail_msg("there is no group %s", name);
  return NULL;
}

static void a_matrix_tied_over_stages_is_owned_once(void **state) {
  (void)state;
  program_case c = program_good("mesh.world=12 mesh.tensor=2 mesh.pipeline=3 model.layers=3 batch.global=16 "
                                "model.tied_embeddings=true optimizer.zero_stage=1");
  const nx_plan *plan = &c.out.plan;
  const nx_group *ends = group_named(plan, "stages 0, 2");
  uint32_t group = (uint32_t)(ends - plan->groups), n_pieces = 0;
  assert_int_equal(ends->size, 2);
  assert_int_equal(nx_group_member(plan, group, 1, 1), 9);
  assert_int_equal(nx_group_position(plan, group, 9), 1);
  assert_int_equal(nx_group_position(plan, group, 5), NX_NONE);
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PIECES]; i++) {
    const nx_piece *piece = &plan->pieces[i];
    if (strcmp(nx_plan_string(plan, piece->name), "model.embed_tokens.weight") != 0) continue;
    const nx_range *range = &plan->ranges[piece->range];
    assert_int_equal(range->n_shard * 2, range->n_elements);
    for (uint32_t rank = 0; rank < 12; rank++)
      assert_int_equal(nx_constant_value(plan, piece->owner, rank, piece->chunk), rank < 4 && rank / 2 == 0);
    n_pieces++;
  }
  assert_int_equal(n_pieces, 2);
  program_end(&c);
}

static void recomputation_trades_memory_for_products(void **state) {
  (void)state;
  program_case none = program_good("model.layers=6"),
               full = program_good("model.layers=6 recompute.granularity=full");
  program_case ffn = program_good("model.layers=6 recompute.granularity=selective recompute.modules=[mlp]");
  program_case core =
      program_good("model.layers=6 recompute.granularity=selective recompute.modules=[CoreAttention]");
  uint64_t kept = arena_bytes(&none.out.plan, NX_ARENA_slot);
  assert_true(arena_bytes(&full.out.plan, NX_ARENA_slot) < kept / 3);
  assert_true(arena_bytes(&ffn.out.plan, NX_ARENA_slot) < kept);
  assert_true(arena_bytes(&ffn.out.plan, NX_ARENA_slot) > arena_bytes(&full.out.plan, NX_ARENA_slot));
  assert_int_equal(arena_bytes(&core.out.plan, NX_ARENA_slot), kept);
  assert_int_equal(count_operators(&full.out.plan, NX_OP_attention), 12);
  assert_int_equal(count_operators(&ffn.out.plan, NX_OP_attention), 6);
  assert_int_equal(count_operators(&ffn.out.plan, NX_OP_gated), 12);
  program_end(&none);
  program_end(&full);
  program_end(&ffn);
  program_end(&core);
}

static uint64_t kept_with(const char *changes) {
  program_case c = program_good(changes);
  uint64_t bytes = arena_bytes(&c.out.plan, NX_ARENA_slot);
  program_end(&c);
  return bytes;
}

/* Of full recomputation: whole layers but the first three, layers' inputs, every third layer's, a half of
 * them. */
static void layers_may_be_computed_again_in_groups(void **state) {
  (void)state;
  const uint64_t stream = 2 * 16 * 32 * sizeof(float); /* B S H */
  uint64_t none = kept_with("model.layers=6"), each = kept_with("model.layers=6 recompute.granularity=full"),
           block = kept_with(
               "model.layers=6 recompute.granularity=full recompute.method=block recompute.layers=3"),
           threes = kept_with("model.layers=6 recompute.granularity=full recompute.layers=3");
  assert_in_range(block, (none + each) / 2 - stream, (none + each) / 2 + stream);
  assert_int_equal(each - threes, 4 * stream);
  uint64_t tensor = kept_with("mesh.world=2 mesh.tensor=2 model.layers=6 recompute.granularity=full");
  uint64_t slices = kept_with(
      "mesh.world=2 mesh.tensor=2 model.layers=6 recompute.granularity=full recompute.distribute=true");
  assert_int_equal(tensor - slices, 6 * stream / 2);
}

static void a_module_that_is_none_is_told(void **state) {
  (void)state;
  program_case c = program_good("recompute.granularity=selective recompute.modules=[mlp,cake]");
  assert_true(program_found(&c, "NX3013"));
  assert_non_null(strstr(nxc_sink_finding(c.sink, 0)->message, "cake"));
  program_end(&c);
}

static void a_capacity_that_no_file_says_is_told(void **state) {
  (void)state;
  static const struct {
    const char *changes;
    bool told;
  } cases[] = {{"moe.experts=4 moe.capacity_factor=1", true},
               {"moe.experts=4 moe.capacity_factor=1 checkpoint.hugging_face=false", false},
               {"moe.experts=4 moe.dropless=true", false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    program_case c = program_good(cases[i].changes);
    assert_int_equal(program_found(&c, "NX3026"), cases[i].told);
    program_end(&c);
  }
}

/* Each rank keeps its part of the sequence of everything outside the products, and gathers again on the way
 * back. */
static void sequence_parallelism_keeps_less(void **state) {
  (void)state;
  program_case tensor = program_good("mesh.world=2 mesh.tensor=2");
  program_case sequence = program_good("mesh.world=2 mesh.tensor=2 sequence_parallel=true");
  const nx_plan *with = &sequence.out.plan, *without = &tensor.out.plan;
  uint64_t stream = 2 * 16 * 32 * sizeof(float); /* B S H */
  /* Two norms' inputs and outputs a layer, and the last norm's. */
  uint64_t saved = arena_bytes(without, NX_ARENA_slot) - arena_bytes(with, NX_ARENA_slot);
  assert_in_range(saved, 5 * stream - 4096, 5 * stream + 4096);
  assert_int_equal(count_operators(with, NX_OP_all_gather), 5 + 1 + 5 + 5);
  program_end(&tensor);
  program_end(&sequence);
}

static void a_plan_does_not_grow_with_the_ranks(void **state) {
  (void)state;
  program_case few = program_good("mesh.world=16 mesh.tensor=2 optimizer.zero_stage=1 batch.global=16");
  program_case many =
      program_good("mesh.world=16384 mesh.tensor=2 optimizer.zero_stage=1 batch.global=16384");
  for (int section = 0; section < NX_SECTION_END; section++)
    if (section != NX_SECTION_PROVENANCE_TEXT)
      assert_true(many.out.plan.n[section] <= few.out.plan.n[section]);
  program_end(&few);
  program_end(&many);
}

static void the_same_settings_give_the_same_bytes(void **state) {
  (void)state;
  for (int layout = 0; layout < N_PROGRAM_LAYOUTS; layout++) {
    program_case a = program_good(program_layouts[layout]), b = program_good(program_layouts[layout]);
    assert_int_equal(a.out.n_bytes, b.out.n_bytes);
    assert_memory_equal(a.out.bytes, b.out.bytes, a.out.n_bytes);
    program_end(&a);
    program_end(&b);
  }
}

/* Names and intervals change the file, not the training. */
static void the_plan_id_is_the_meaning(void **state) {
  (void)state;
  program_case a = program_good("run.name=one"), b = program_good("run.name=two run.log_every=7");
  program_case other = program_good("run.name=one run.seed=7");
  const uint8_t *id = a.out.plan.header->plan_id;
  assert_memory_equal(id, b.out.plan.header->plan_id, 32);
  assert_memory_not_equal(id, other.out.plan.header->plan_id, 32);
  program_end(&a);
  program_end(&b);
  program_end(&other);
}

/* ---- room to work in ---- */

/* A ceiling of soap's room alone, which is most of what that plan needs; and the usual one. */
static void kernels_have_room(void **state) {
  (void)state;
  const char *wide = "optimizer.name=soap model.hidden=2048 model.heads=16";
  program_case usual = program_good(""), soap = program_good(wide);
  assert_int_equal(usual.out.plan.run->workspace_bytes, 64 << 20);
  assert_in_range(soap.out.plan.run->workspace_bytes, 65 << 20, 1 << 30);
  uint64_t need = soap.out.plan.run->workspace_bytes - (32 << 20);
  for (int less = 0; less < 2; less++) {
    char changes[256];
    snprintf(changes, sizeof changes, "%s run.workspace_bytes=%" PRIu64, wide, need - (uint64_t)less);
    program_case c = program_compile(changes);
    assert_int_equal(c.ok, !less);
    assert_int_equal(program_found(&c, "NX3027"), less);
    if (!less) assert_int_equal(c.out.plan.run->workspace_bytes, need);
    program_end(&c);
  }
  program_end(&usual);
  program_end(&soap);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pieces_have_hugging_face_names),
      cmocka_unit_test(gpt2_keeps_one_transposed_tensor_for_qkv),
      cmocka_unit_test(all_parts_have_names),
      cmocka_unit_test(first_writers_overwrite),
      cmocka_unit_test(a_tied_matrix_has_two_accumulators),
      cmocka_unit_test(layers_may_share_weights),
      cmocka_unit_test(a_matrix_tied_over_stages_is_owned_once),
      cmocka_unit_test(recomputation_trades_memory_for_products),
      cmocka_unit_test(layers_may_be_computed_again_in_groups),
      cmocka_unit_test(a_module_that_is_none_is_told),
      cmocka_unit_test(a_capacity_that_no_file_says_is_told),
      cmocka_unit_test(sequence_parallelism_keeps_less),
      cmocka_unit_test(a_plan_does_not_grow_with_the_ranks),
      cmocka_unit_test(the_same_settings_give_the_same_bytes),
      cmocka_unit_test(the_plan_id_is_the_meaning),
      cmocka_unit_test(kernels_have_room),
  };
  return cmocka_run_group_tests_name("program", tests, NULL, NULL);
}
