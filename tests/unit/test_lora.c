/* SPDX-License-Identifier: Apache-2.0 */
/* Adapters in plans: what is frozen has nothing but its bytes, and what nothing reads is not computed. */
#include "tests/unit/plan_lookups.h"
#include "tests/unit/program_case.h"

static bool is_frozen(const nx_range *range) {
  return range->grad == NX_NONE;
}

static void frozen_parameters_have_no_gradient_and_no_state(void **state) {
  (void)state;
  for (const char *const *layout = program_layouts; layout < program_layouts + N_PROGRAM_LAYOUTS; layout++) {
    char changes[512];
    if (strstr(*layout, "unique_layers")) continue; /* refused */
    snprintf(changes, sizeof changes, "lora.rank=4 %s", *layout);
    program_case c = program_good(changes);
    const nx_plan *plan = &c.out.plan;
    uint32_t n_frozen = 0;
    for (uint32_t i = 0; i < plan->n[NX_SECTION_PIECES]; i++) {
      const nx_piece *piece = &plan->pieces[i];
      const nx_range *range = &plan->ranges[piece->range];
      assert_int_equal(is_frozen(range), !(piece->flags & NX_PIECE_ADAPTER));
      if (!is_frozen(range)) continue;
      n_frozen++;
      assert_int_equal(range->parameter_group, NX_NONE);
      assert_int_equal(range->master, NX_NONE);
      for (int s = 0; s < NX_MAX_STATES; s++) assert_int_equal(range->states[s], NX_NONE);
    }
    assert_true(n_frozen > 0);
    nxc_arena_free(c.arena);
  }
}

/* Under ZeRO 3 a rank keeps its share of what is frozen, and each pass gathers the rest. */
static void frozen_parameters_are_divided_by_zero_3(void **state) {
  (void)state;
  program_case whole = program_good("lora.rank=4 mesh.world=2 optimizer.zero_stage=1");
  program_case c = program_good("lora.rank=4 mesh.world=2 optimizer.zero_stage=3");
  const nx_plan *plan = &c.out.plan;
  uint32_t n_divided = 0;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_RANGES]; i++) {
    const nx_range *range = &plan->ranges[i];
    if (!is_frozen(range)) continue;
    n_divided++;
    assert_int_not_equal(range->shard_group, NX_NONE);
    assert_int_equal(plan->values[range->param].dims[0], range->n_shard);
  }
  assert_true(n_divided > 0);
  assert_true(arena_bytes(plan, NX_ARENA_param) < arena_bytes(&whole.out.plan, NX_ARENA_param) * 6 / 10);
  nxc_arena_free(whole.arena);
  nxc_arena_free(c.arena);
}

/* Of a product that is frozen there is no gradient of the matrix, and before the first adapter none at all:
 * with one adapter, on the last matrix of the last layer, the backward pass ends there. */
static void what_nothing_reads_is_not_computed(void **state) {
  (void)state;
  program_case all = program_good("");
  program_case c = program_good("lora.rank=4 lora.modules=[down_proj] batch.global=2");
  const nx_plan *plan = &c.out.plan;
  assert_int_equal(count_operators(plan, NX_OP_embedding_grad), 0);
  assert_int_equal(count_operators(plan, NX_OP_attention_grad), 1); /* of layer 1, above layer 0's adapter */
  for (uint32_t i = 0; i < plan->n[NX_SECTION_OPERATORS]; i++)
    if (plan->operators[i].op == NX_OP_rms_norm_grad) assert_int_equal(plan->operators[i].n_out, 1);
  assert_true(plan->run->flops_per_step < all.out.plan.run->flops_per_step);
  assert_true(arena_bytes(plan, NX_ARENA_grad) < arena_bytes(&all.out.plan, NX_ARENA_grad) / 10);
  assert_true(arena_bytes(plan, NX_ARENA_state) < arena_bytes(&all.out.plan, NX_ARENA_state) / 10);
  nxc_arena_free(all.arena);
  nxc_arena_free(c.arena);
}

/* A first matrix is whole where the product's inputs are, and divided with them; a second as its outputs. */
static void adapters_are_divided_as_their_products(void **state) {
  (void)state;
  program_case c = program_good("lora.rank=4 mesh.world=2 mesh.tensor=2");
  const nx_plan *plan = &c.out.plan;
  static const struct {
    const char *name;
    int64_t rows, columns;
    bool summed; /* over the tensor-parallel ranks: they have copies of it */
  } rows[] = {{"self_attn.q_proj.lora_A", 4, 32, true},
              {"self_attn.q_proj.lora_B", 16, 4, false},
              {"mlp.down_proj.lora_A", 4, 24, false},
              {"mlp.down_proj.lora_B", 32, 4, true}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char name[128];
    snprintf(name, sizeof name, "base_model.model.model.layers.1.%s.weight", rows[i].name);
    const nx_piece *piece = piece_named(plan, name);
    assert_non_null(piece);
    assert_int_equal(piece->rows, rows[i].rows);
    assert_int_equal(piece->columns, rows[i].columns);
    assert_int_equal(plan->ranges[piece->range].group != NX_NONE, rows[i].summed);
  }
  nxc_arena_free(c.arena);
}

/* One first matrix for a fused module, under the name of each of its tensors. */
static void a_fused_module_has_one_first_matrix(void **state) {
  (void)state;
  program_case c = program_good("lora.rank=4 lora.modules=[qkv_proj]");
  const nx_piece *q =
      piece_named(&c.out.plan, "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight");
  const nx_piece *v =
      piece_named(&c.out.plan, "base_model.model.model.layers.0.self_attn.v_proj.lora_A.weight");
  assert_non_null(q);
  assert_non_null(v);
  assert_int_equal(q->value, v->value);
  assert_int_equal(q->tensor_id, v->tensor_id);
  assert_false(q->flags & NX_PIECE_ALIAS);
  assert_true(v->flags & NX_PIECE_ALIAS);
  nxc_arena_free(c.arena);
}

/* Half a byte of a weight, and a scale of 64; whole matrices only while a product reads them, in both passes.
 */
static void quantized_weights_are_small(void **state) {
  (void)state;
  static const char wide[] =
      "model.hidden=128 model.ffn_hidden=256 model.layers=4 batch.micro=1 batch.global=4";
  for (int zero = 0; zero < 4; zero += 3) {
    char changes[256];
    snprintf(changes, sizeof changes, "lora.rank=4 mesh.world=2 optimizer.zero_stage=%d %s", zero, wide);
    program_case plain = program_good(changes);
    strcat(changes, " lora.base_type=nf4");
    program_case c = program_good(changes);
    const nx_plan *plan = &c.out.plan;
    const uint64_t matrices = 4 * (128 * 128 * 3 + 128 * 256 * 3); /* of the layers: kv_heads are half */
    uint64_t share = zero ? 2 : 1, saved = matrices * 4 - matrices / 2 - matrices / 16;
    uint64_t was = arena_bytes(&plain.out.plan, NX_ARENA_param), is = arena_bytes(plan, NX_ARENA_param);
    assert_in_range(was - is, saved / share * 99 / 100, saved / share);
    assert_int_equal(count_operators(plan, NX_OP_dequantize_nf4),
                     2 * 4 * 4 - 1); /* nothing lies below the first */
    uint64_t slots = arena_bytes(plan, NX_ARENA_slot);
    assert_int_equal(slots, arena_bytes(&plain.out.plan, NX_ARENA_slot));
    nxc_arena_free(plain.arena);
    nxc_arena_free(c.arena);
  }
}

static void names_are_judged(void **state) {
  (void)state;
  static const struct {
    const char *changes;
    bool good;
  } rows[] = {
      {"lora.rank=4 lora.modules=[self_attn.q_proj]", true},
      {"lora.rank=4 lora.modules=['*.mlp.*']", true},
      {"lora.rank=4 lora.modules=[all-linear] lora.exclude_modules=[k_proj]", true},
      {"lora.rank=4 lora.modules=[lm_head]", true},
      {"lora.rank=4 lora.modules=[q_prj]", false},
      {"lora.rank=4 lora.modules=[layers.1.q_proj]", false},
      {"lora.rank=4 lora.modules=[embed_tokens]", false},
      {"lora.rank=4 lora.modules=[q_proj] lora.exclude_modules=['*']", false},
      {"lora.rank=4 lora.modules=[qkv_proj] mesh.world=4 mesh.tensor=4 mesh.kv_replicator=2", false},
      {"lora.rank=4 lora.base_type=nf4", false}, /* rows of 32 */
      {"lora.rank=4 lora.base_type=nf4 model.hidden=64 model.ffn_hidden=128", true},
      {"lora.rank=4 lora.base_type=nf4 model.hidden=64 model.ffn_hidden=128 mesh.world=2 mesh.tensor=2",
       false},
      {"lora.rank=4 lora.modules=[up_proj] moe.experts=2", false}, /* each layer has experts instead */
      {"lora.rank=4 lora.modules=[q_proj,up_proj] moe.experts=2", true},
      {"lora.rank=4 lora.modules=[lm_head] mesh.world=2 mesh.pipeline=2", false}, /* the first stage */
      {"lora.rank=4 model.unique_layers=1", false}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    program_case c = program_compile(rows[i].changes);
    if (c.ok != rows[i].good) fail_msg("%s: %s", rows[i].changes, c.ok ? "compiles" : "is refused");
    if (!rows[i].good) assert_string_equal(nxc_sink_finding(c.sink, 0)->id, "NX3040");
    nxc_arena_free(c.arena);
  }
}

static void excluded_modules_have_none(void **state) {
  (void)state;
  program_case c = program_good("lora.rank=4 lora.exclude_modules=[k_proj,mlp.up_proj]");
  assert_null(piece_named(&c.out.plan, "base_model.model.model.layers.0.self_attn.k_proj.lora_A.weight"));
  assert_null(piece_named(&c.out.plan, "base_model.model.model.layers.0.mlp.up_proj.lora_B.weight"));
  assert_non_null(piece_named(&c.out.plan, "base_model.model.model.layers.0.mlp.gate_proj.lora_B.weight"));
  nxc_arena_free(c.arena);
}

/* A rank above the features of an expert, on ranks that hold different experts. */
static void ranks_may_be_larger_than_experts(void **state) {
  (void)state;
  static const char *const more[] = {"mesh.expert=2", "mesh.expert=2 optimizer.zero_stage=1",
                                     "mesh.tensor=2"};
  for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
    char changes[160];
    snprintf(changes, sizeof changes, "mesh.world=2 moe.experts=4 moe.top_k=2 lora.rank=100 %s", more[i]);
    program_case c = program_good(changes);
    assert_non_null(piece_named(
        &c.out.plan, "base_model.model.model.layers.0.block_sparse_moe.experts.3.w2.lora_A.weight"));
    program_end(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(frozen_parameters_have_no_gradient_and_no_state),
      cmocka_unit_test(frozen_parameters_are_divided_by_zero_3),
      cmocka_unit_test(what_nothing_reads_is_not_computed),
      cmocka_unit_test(adapters_are_divided_as_their_products),
      cmocka_unit_test(a_fused_module_has_one_first_matrix),
      cmocka_unit_test(quantized_weights_are_small),
      cmocka_unit_test(names_are_judged),
      cmocka_unit_test(excluded_modules_have_none),
      cmocka_unit_test(ranks_may_be_larger_than_experts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
