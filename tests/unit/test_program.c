/* SPDX-License-Identifier: Apache-2.0 */
/* Plans as the compiler makes them: properties that must hold on every layout, from the bytes alone. */
#include "tests/plan_edit.h"
#include "tests/unit/program_case.h"

#include "compiler/config/rules/presets.h"
#include "compiler/program/passes/overlap.h"
#include "compiler/settings/catalogue.h"

/* ---- lookups ---- */

static const nx_value *value_named(const nx_plan *plan, const char *name) {
  for (uint32_t i = 0; i < plan->n[NX_SECTION_VALUES]; i++)
    if (strcmp(nx_plan_string(plan, plan->values[i].name), name) == 0) return &plan->values[i];
  fail_msg("the plan has no value %s", name);
  return NULL;
}

static void assert_dims(const nx_plan *plan, const char *name, int64_t a, int64_t b, int64_t c, int64_t d) {
  const nx_value *value = value_named(plan, name);
  const int64_t dims[] = {a, b, c, d};
  for (int dim = 0; dim < 4; dim++)
    if (value->dims[dim] != dims[dim])
      fail_msg("%s has dimension %d of %lld, not %lld", name, dim, (long long)value->dims[dim],
               (long long)dims[dim]);
}

static const nx_piece *piece_named(const nx_plan *plan, const char *name) {
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PIECES]; i++)
    if (strcmp(nx_plan_string(plan, plan->pieces[i].name), name) == 0) return &plan->pieces[i];
  return NULL;
}

static uint32_t count_operators(const nx_plan *plan, nx_op op) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_OPERATORS]; i++) n += plan->operators[i].op == op;
  return n;
}

static uint64_t arena_bytes(const nx_plan *plan, nx_arena_kind kind) {
  uint64_t bytes[NX_N_ARENAS];
  nxc_forecast_memory(plan, bytes);
  return bytes[kind];
}

/* ---- shapes and arenas ---- */

static void shapes_are_local(void **state) {
  (void)state;
  program_case c = program_good("mesh.world=2 mesh.tensor=2 sequence_parallel=true model.vocab_divisor=8");
  const nx_plan *plan = &c.out.plan;
  assert_dims(plan, "embedding.weight", 32, 32, 1, 1);
  assert_dims(plan, "embedding.sum", 2, 8, 32, 1);
  assert_dims(plan, "layers.0.attention.whole", 2, 16, 32, 1);
  assert_dims(plan, "layers.0.attention.qkv_weight", 32, 32, 1, 1);
  assert_dims(plan, "layers.0.attention.q", 2, 2, 16, 8);
  assert_dims(plan, "layers.0.attention.k", 2, 1, 16, 8);
  assert_dims(plan, "layers.1.ffn.up_weight", 48, 32, 1, 1);
  assert_dims(plan, "layers.1.ffn.out_weight", 32, 24, 1, 1);
  assert_dims(plan, "output.logits", 2, 16, 32, 1);
  assert_dims(plan, "output.all_stats", 2, 32, 3, 1);
  program_end(&c);
}

static void arenas_have_the_bytes_of_the_model(void **state) {
  (void)state;
  program_case c = program_good("precision.param=bf16 precision.compute=bf16 precision.master_weights=true");
  const nx_plan *plan = &c.out.plan;
  uint64_t n_elements = 0;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_RANGES]; i++) n_elements += plan->ranges[i].n_elements;
  assert_true(n_elements >= plan->run->n_parameters && n_elements < plan->run->n_parameters + 16 * 32 + 64);
  assert_int_equal(arena_bytes(plan, NX_ARENA_param), 2 * n_elements);
  assert_int_equal(arena_bytes(plan, NX_ARENA_master), 4 * n_elements);
  assert_int_equal(arena_bytes(plan, NX_ARENA_grad), 4 * n_elements);
  assert_int_equal(arena_bytes(plan, NX_ARENA_state), 8 * n_elements);
  assert_int_equal(arena_bytes(plan, NX_ARENA_comm), 0);
  assert_int_equal(value_named(plan, "output.logits")->dtype, NX_bf16);
  assert_int_equal(value_named(plan, "layers.0.ffn.residual")->dtype, NX_bf16);
  assert_int_equal(value_named(plan, "layers.0.ffn_norm.y.rstd")->dtype, NX_f32);
  program_end(&c);
}

static bool ends_in(const char *name, const char *end) {
  size_t n_name = strlen(name), n_end = strlen(end);
  return n_name >= n_end && strcmp(name + n_name - n_end, end) == 0;
}

/* What forward leaves for backward: fp32 is for the statistics of a row alone. */
static void stored_activations_are_bf16(void **state) {
  (void)state;
  static const char gpt[] =
      "precision.preset=mixed_precision model.normalization=layernorm model.activation=gelu "
      "model.bias=true model.position_embedding=learned recompute.granularity=none";
  static const char *const variants[] = {
      "precision.preset=mixed_precision",
      "precision.preset=mixed_precision mesh.world=2 mesh.tensor=2 sequence_parallel=true", gpt};
  for (size_t k = 0; k < sizeof variants / sizeof *variants; k++) {
    program_case c = program_settings(variants[k]);
    assert_true(nxc_presets_apply(c.arena, c.settings, nxc_dialect_find("nx"), c.sink));
    assert_true(nxc_program_compile(c.settings, c.arena, c.sink, &c.out));
    const nx_plan *plan = &c.out.plan;
    size_t n_bf16 = 0;
    for (uint32_t i = 0; i < plan->n[NX_SECTION_VALUES]; i++) {
      const nx_value *value = &plan->values[i];
      const char *name = nx_plan_string(plan, value->name);
      if (value->arena != NX_ARENA_slot) continue;
      n_bf16 += value->dtype == NX_bf16;
      bool statistic = ends_in(name, ".rstd") || ends_in(name, ".mean") || ends_in(name, ".lse");
      if (value->dtype == NX_f32 && !statistic) fail_msg("%s: %s is stored in fp32", variants[k], name);
    }
    assert_true(n_bf16 > 15);
    program_end(&c);
  }
}

static void zero_divides_the_optimizer_state(void **state) {
  (void)state;
  program_case whole = program_good("mesh.world=4"),
               divided = program_good("mesh.world=4 optimizer.zero_stage=1");
  assert_int_equal(arena_bytes(&whole.out.plan, NX_ARENA_state),
                   4 * arena_bytes(&divided.out.plan, NX_ARENA_state));
  assert_int_equal(arena_bytes(&whole.out.plan, NX_ARENA_param),
                   arena_bytes(&divided.out.plan, NX_ARENA_param));
  program_end(&whole);
  program_end(&divided);
}

/* Parameters, gradients, master copies and moments: all that stands between steps, of one rank. */
static uint64_t standing_bytes(const nx_plan *plan) {
  return arena_bytes(plan, NX_ARENA_param) + arena_bytes(plan, NX_ARENA_grad) +
         arena_bytes(plan, NX_ARENA_master) + arena_bytes(plan, NX_ARENA_state);
}

static void zero_divides_gradients_and_parameters(void **state) {
  (void)state;
  const char types[] =
      "precision.param=bf16 precision.compute=bf16 precision.master_weights=true mesh.world=4";
  static const char *const stages[] = {
      "0", "1", "2", "3", "3 optimizer.reshard_after_forward=false", "2 reduce.once=true"};
  /* bytes of an element: 2 parameter, 4 gradient, 4 master, 8 moments, each whole or a quarter */
  static const double bytes[] = {18, 2 + 4 + 3, 2 + 1 + 3, 0.5 + 1 + 3, 2 + 1 + 3, 2 + 4 + 3};
  char changes[256];
  for (int i = 0; i < 6; i++) {
    snprintf(changes, sizeof changes, "%s optimizer.zero_stage=%s", types, stages[i]);
    program_case c = program_good(changes);
    double n = (double)c.out.plan.run->n_parameters,
           padding = c.out.plan.n[NX_SECTION_RANGES] * 4.0 * 32 + 16 * 32;
    double standing = (double)standing_bytes(&c.out.plan);
    if (standing < n * bytes[i] || standing > (n + padding) * bytes[i])
      fail_msg("ZeRO %s: %g bytes of each parameter, not %g", stages[i], standing / n, bytes[i]);
    program_end(&c);
  }
}

/* What the largest unit's parameters and gradients take when they are whole. */
static uint64_t unit_bytes(const nx_plan *plan) {
  uint64_t most = 0;
  static const char *const units[] = {"embedding.", "layers.0.", "output."};
  for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < plan->n[NX_SECTION_RANGES]; i++)
      if (strncmp(nx_plan_string(plan, plan->ranges[i].name), units[u], strlen(units[u])) == 0)
        bytes += plan->ranges[i].n_elements * (4 + 4);
    if (bytes > most) most = bytes;
  }
  return most;
}

/* However many layers there are, ZeRO 3 has no more than two of them whole at once; one where nothing
 * overlaps. */
static void at_most_two_layers_are_whole(void **state) {
  (void)state;
  const char *const overlaps[] = {"", "reduce.overlap=true gather.overlap=true",
                                  "recompute.granularity=full gather.overlap=true"};
  for (size_t i = 0; i < 3; i++) {
    char changes[256];
    uint64_t comm[2];
    for (int many = 0; many < 2; many++) {
      snprintf(changes, sizeof changes,
               "mesh.world=4 optimizer.zero_stage=3 model.layers=%d batch.micro=1 %s", many ? 12 : 4,
               overlaps[i]);
      program_case c = program_good(changes);
      comm[many] = arena_bytes(&c.out.plan, NX_ARENA_comm);
      uint64_t unit = unit_bytes(&c.out.plan);
      assert_true(comm[many] <= (i == 0 ? 1 : 2) * (unit + unit / 8)); /* and the shard of a pass's sum */
      program_end(&c);
    }
    assert_int_equal(comm[0], comm[1]);
  }
}

/* Buckets bound what ZeRO 2 keeps of a pass's gradients. */
static void buckets_bound_whole_gradients(void **state) {
  (void)state;
  program_case c =
      program_good("mesh.world=4 optimizer.zero_stage=2 model.layers=8 reduce.bucket_elements=4000");
  uint64_t n_largest = 0;
  for (uint32_t i = 0; i < c.out.plan.n[NX_SECTION_RANGES]; i++)
    if (c.out.plan.ranges[i].n_elements > n_largest) n_largest = c.out.plan.ranges[i].n_elements;
  assert_in_range(n_largest, 2000, 4000 + 64);
  assert_true(arena_bytes(&c.out.plan, NX_ARENA_comm) <= 3 * 4 * n_largest);
  program_end(&c);
}

static void sums_are_stored_in_the_reduce_type(void **state) {
  (void)state;
  program_case c = program_good("mesh.world=2 mesh.tensor=2 precision.param=bf16 precision.compute=bf16");
  assert_int_equal(value_named(&c.out.plan, "layers.0.ffn.out")->dtype, NX_f32);
  assert_int_equal(value_named(&c.out.plan, "layers.0.ffn.sum")->dtype, NX_bf16);
  program_end(&c);
  c = program_good(
      "mesh.world=2 mesh.tensor=2 precision.param=bf16 precision.compute=bf16 precision.reduce=bf16");
  assert_int_equal(value_named(&c.out.plan, "layers.0.ffn.out")->dtype, NX_bf16);
  program_end(&c);
}

/* ---- every logical element, exactly once ---- */

typedef struct coverage {
  const char *name;
  int64_t columns, n_elements;
  uint8_t *owned, *weighed;
} coverage;

static coverage *cover(const nx_plan *plan, uint32_t *n_tensors) {
  coverage *tensors = calloc(plan->n[NX_SECTION_PIECES], sizeof *tensors);
  *n_tensors = 0;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PIECES]; i++) {
    const nx_piece *piece = &plan->pieces[i];
    const char *name = nx_plan_string(plan, piece->name);
    bool known = false;
    for (uint32_t t = 0; t < *n_tensors; t++) known |= strcmp(tensors[t].name, name) == 0;
    if (known) continue;
    int64_t n = piece->logical_rows * piece->logical_columns;
    tensors[(*n_tensors)++] =
        (coverage){name, piece->logical_columns, n, calloc((size_t)n, 1), calloc((size_t)n, 1)};
  }
  return tensors;
}

static coverage *tensor_of(coverage *tensors, const nx_plan *plan, const nx_piece *piece) {
  while (strcmp(tensors->name, nx_plan_string(plan, piece->name)) != 0) tensors++;
  return tensors;
}

/* Whether an operator's operand holds element `at` of a range's gradient on a rank. */
static bool holds_element(const nx_plan *plan, uint32_t operand, const nx_range *range, uint64_t at,
                          uint32_t rank) {
  const nx_value *x = &plan->values[operand], *whole = &plan->values[range->grad];
  if (operand != range->grad && x->view_of != range->grad) return false;
  uint64_t size = nx_dtype_bits(x->dtype) / 8, first = (x->offset - whole->offset) / size;
  if ((uint64_t)whole->dims[0] == range->n_shard)
    first += (uint64_t)nx_constant_value(plan, range->shard_start, rank, 0);
  if (x->offset_shift != NX_NONE) first += (uint64_t)nx_constant_value(plan, x->offset_shift, rank, 0) / size;
  return at >= first && at < first + x->bytes / size;
}

/* The weight with which a rank counts element `at` of a range in the global norm. */
static int64_t norm_weight(const nx_plan *plan, uint32_t range, uint64_t at, uint32_t rank) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_OPERATORS]; i++) {
    const nx_operator *op = &plan->operators[i];
    if (op->op != NX_OP_norm_sq) continue;
    if (!holds_element(plan, plan->arguments[op->first_argument], &plan->ranges[range], at, rank)) continue;
    const nx_attribute *weight = &plan->attributes[op->first_attribute + NX_norm_sq_weight];
    sum += weight->kind == NX_ATTRIBUTE_CONSTANT ? nx_constant_value(plan, weight->constant, rank, 0)
                                                 : weight->integer;
  }
  return sum;
}

static void cover_piece(coverage *tensors, const nx_plan *plan, const nx_piece *piece, uint32_t rank) {
  coverage *tensor = tensor_of(tensors, plan, piece);
  if (plan->chunks[piece->chunk].stage != nx_plan_stage(plan, rank)) return;
  int64_t first_row = nx_constant_value(plan, piece->row_start, rank, 0);
  int64_t first_column = nx_constant_value(plan, piece->column_start, rank, 0);
  int64_t owner = nx_constant_value(plan, piece->owner, rank, 0);
  assert_true(owner == 0 || owner == 1);
  for (int64_t row = 0; row < piece->rows; row++) {
    for (int64_t column = 0; column < piece->columns; column++) {
      if (first_row + row >= piece->logical_rows || first_column + column >= piece->logical_columns) continue;
      int64_t at = (first_row + row) * tensor->columns + first_column + column;
      tensor->owned[at] += (uint8_t)owner;
      uint64_t in_range = piece->range_offset + (uint64_t)(row * piece->columns + column);
      tensor->weighed[at] += (uint8_t)norm_weight(plan, piece->range, in_range, rank);
    }
  }
}

static void every_element_is_owned_and_weighed_once(void **state) {
  (void)state;
  for (int layout = 0; layout < N_PROGRAM_LAYOUTS; layout++) {
    program_case c = program_good(program_layouts[layout]);
    const nx_plan *plan = &c.out.plan;
    uint32_t n_tensors;
    uint64_t n_elements = 0;
    coverage *tensors = cover(plan, &n_tensors);
    for (uint32_t rank = 0; rank < plan->run->n_ranks; rank++)
      for (uint32_t i = 0; i < plan->n[NX_SECTION_PIECES]; i++)
        cover_piece(tensors, plan, &plan->pieces[i], rank);
    for (uint32_t t = 0; t < n_tensors; t++) {
      for (int64_t at = 0; at < tensors[t].n_elements; at++)
        if (tensors[t].owned[at] != 1 || tensors[t].weighed[at] != 1)
          fail_msg("%s: %s[%lld] is owned %d times and weighed %d times", program_layouts[layout],
                   tensors[t].name, (long long)at, tensors[t].owned[at], tensors[t].weighed[at]);
      n_elements += (uint64_t)tensors[t].n_elements;
      free(tensors[t].owned);
      free(tensors[t].weighed);
    }
    assert_int_equal(n_elements, plan->run->n_parameters);
    free(tensors);
    program_end(&c);
  }
}

static void shards_partition_their_range(void **state) {
  (void)state;
  for (int layout = 0; layout < N_PROGRAM_LAYOUTS; layout++) {
    program_case c = program_good(program_layouts[layout]);
    const nx_plan *plan = &c.out.plan;
    for (uint32_t i = 0; i < plan->n[NX_SECTION_RANGES]; i++) {
      const nx_range *range = &plan->ranges[i];
      if (range->n_shard == range->n_elements) continue;
      for (uint32_t rank = 0; rank < plan->run->n_ranks; rank++) {
        uint64_t position = nx_group_position(plan, range->shard_group, rank);
        assert_int_equal(nx_constant_value(plan, range->shard_start, rank, 0),
                         (int64_t)(position * range->n_shard));
      }
      assert_int_equal(range->n_shard * plan->groups[range->shard_group].size, range->n_elements);
    }
    program_end(&c);
  }
}

/* Columns of the logits that a rank holds and that are words add up to the vocabulary. */
static void valid_columns_add_up(void **state) {
  (void)state;
  const char *const padded[] = {
      "mesh.world=4 mesh.tensor=4 mesh.kv_replicator=2 model.vocab_divisor=16",
      "mesh.world=4 mesh.tensor=4 mesh.kv_replicator=2 model.vocab_divisor=2 model.vocab=49",
      "mesh.world=4 mesh.tensor=4 model.kv_heads=4 model.vocab_divisor=16",
      "mesh.world=2 mesh.tensor=2 model.vocab=51",
  };
  for (size_t i = 0; i < sizeof padded / sizeof *padded; i++) {
    program_case c = program_good(padded[i]);
    const nx_plan *plan = &c.out.plan;
    for (uint32_t at = 0; at < plan->n[NX_SECTION_OPERATORS]; at++) {
      const nx_operator *op = &plan->operators[at];
      if (op->op != NX_OP_ce_stats) continue;
      const nx_attribute *attribute = &plan->attributes[op->first_attribute];
      int64_t sum = 0, columns = plan->values[plan->arguments[op->first_argument]].dims[2];
      assert_int_equal(attribute[NX_ce_stats_n_valid].kind, NX_ATTRIBUTE_CONSTANT);
      for (uint32_t rank = 0; rank < plan->run->n_ranks; rank++) {
        int64_t start = nx_constant_value(plan, attribute[NX_ce_stats_row_start].constant, rank, 0);
        int64_t valid = nx_constant_value(plan, attribute[NX_ce_stats_n_valid].constant, rank, 0);
        int64_t rest = (int64_t)plan->run->vocab - start;
        assert_int_equal(valid, rest < 0 ? 0 : rest > columns ? columns : rest);
        sum += valid;
      }
      assert_int_equal(sum, plan->run->vocab);
    }
    program_end(&c);
  }
}

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

/* ---- refusals ---- */

static void what_cannot_run_is_refused(void **state) {
  (void)state;
  static const struct {
    const char *changes, *id;
  } cases[] = {
      {"mesh.pipeline=2 mesh.world=3", "NX2002"},
      {"mesh.pipeline=2 mesh.world=2 model.layers=1", "NX2126"},
      {"mesh.pipeline=2 mesh.virtual_pipeline=2 mesh.world=2 model.layers=3", "NX2126"},
      {"mesh.pipeline=2 mesh.world=2 pipeline.cuts=[layers.2]", "NX2122"},
      {"mesh.pipeline=3 mesh.world=3 pipeline.cuts=[layers.0,layers.0]", "NX2124"},
      {"mesh.pipeline=2 mesh.world=2 pipeline.cuts=[layers.0,layers.1]", "NX2120"},
      {"pipeline.cuts=[layers.0]", "NX2120"},
      {"mesh.virtual_pipeline=2 pipeline.cuts=[layers.0]", "NX3008"},
      {"mesh.pipeline=3 mesh.world=3 pipeline.cuts=[layers.0,embedding]", "NX2125"},
      {"mesh.world=4 mesh.replicate=3", "NX2016"},
      {"mesh.world=4 mesh.context=4 mesh.ulysses=3 attention.ulysses=true attention.ring=true", "NX2143"},
      {"mesh.world=4 mesh.tensor=4 model.vocab_padded=50", "NX2144"},
      {"mesh.world=2 mesh.tensor=2 moe.experts=4 moe.shared_ffn_hidden=33", "NX2707"},
      {"mesh.world=4 mesh.data=3", "NX2011"},
      {"mesh.world=8 mesh.context=8 attention.ulysses=true", "NX2142"},
      {"mesh.world=4 mesh.pipeline=4 mesh.virtual_pipeline=3 model.layers=12 batch.micro=1 batch.global=9",
       "NX3015"},
      {"model.layers=3 model.unique_layers=2", "NX2216"},
      {"model.layers=4 model.unique_layers=2 optimizer.zero_stage=2 mesh.world=2", "NX3014"},
      {"model.layers=4 model.unique_layers=2 mesh.pipeline=2 mesh.virtual_pipeline=2 mesh.world=2", "NX3014"},
      {"model.layers=4 model.unique_layers=2 moe.experts=4", "NX3014"},
      {"moe.experts=4 moe.top_k=5", "NX2701"},
      {"moe.experts=4 moe.pattern=([1]+[0]+[1])", "NX3011"},
      {"moe.experts=4 moe.pattern=2x", "NX3011"},
      {"moe.experts=4 moe.frequency=2 moe.offset=2", "NX2708"},
      {"moe.experts=3 mesh.expert=2 mesh.world=2", "NX2705"},
      {"moe.experts=4 moe.ffn_hidden=33 mesh.tensor=2 mesh.world=2", "NX2706"},
      {"moe.experts=4 mesh.expert=2 mesh.expert_tensor=1 mesh.tensor=2 mesh.world=2", "NX3012"},
      {"moe.experts=4 moe.aux_loss_coef=0.1 moe.aux_loss_scope=model mesh.pipeline=2 mesh.world=2", "NX3012"},
      {"moe.experts=4 model.bias=true", "NX3012"},
      {"moe.experts=4 model.ffn_dropout=0.1", "NX3012"},
      {"model.kind=recurrent", "NX3001"},
      {"model.position_embedding=relative", "NX3001"},
      {"optimizer.name=onebitadam", "NX3001"},
      {"precision.stochastic_rounding=true optimizer.name=muon", "NX3001"},
      {"mesh.world=3 mesh.tensor=3 model.ffn_hidden=48", "NX2101"},
      {"batch.global=7", "NX2005"},
      {"model.heads=8 model.kv_heads=6 mesh.world=4 mesh.tensor=4 model.hidden=64", "NX2204"},
      {"model.heads=12 model.kv_heads=6 model.head_dim=8 mesh.world=4 mesh.tensor=4", "NX3004"},
      {"precision.compute=bf16", "NX3005"},
      {"data.reset_attention_mask=true", "NX3020"},
      {"data.eod_mask_loss=true data.end_of_document=256", "NX3020"},
      {"mesh.world=4 mesh.context=4 attention.ulysses=true", "NX3003"},
      {"model.checkpoint_names=gpt2 moe.experts=4", "NX3006"},
      {"model.hidden=9223372036854775807", "NX3007"},
      {"model.hidden=2147483647 model.ffn_hidden=2147483647", "NX3007"},
      {"batch.micro=2147483647 batch.global=2147483647 model.sequence=2147483647", "NX3007"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    program_case c = program_compile(cases[i].changes);
    if (c.ok || !program_found(&c, cases[i].id))
      fail_msg("%s: %s was not found", cases[i].changes, cases[i].id);
    program_end(&c);
  }
}

static void an_unknown_size_is_named(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  nxc_sink *sink = nxc_sink_new(arena);
  nxc_plan_bytes out;
  assert_false(nxc_program_compile(nxc_settings_new(arena), arena, sink, &out));
  assert_string_equal(nxc_sink_finding(sink, 0)->id, "NX3002");
  nxc_arena_free(arena);
}

/* ---- the overlap checker ---- */

static bool overlaps(const nx_plan *plan, const nx_value *values, char text[256]) {
  nxc_arena *arena = nxc_arena_new();
  nx_fault fault = {{0}, 0};
  nx_plan changed = *plan;
  changed.values = values;
  bool good = nxc_overlap_check(&changed, arena, &fault);
  memcpy(text, fault.text, 256);
  nxc_arena_free(arena);
  return !good;
}

/* Every value of an arena, put where another one of its size lies, is found out; returns how many were moved.
 * Values that are never there at once may share a place. */
static uint32_t move_values(const nx_plan *plan, nx_arena_kind arena, bool may_be_apart) {
  uint32_t n_values = plan->n[NX_SECTION_VALUES], n_caught = 0;
  nx_value *values = calloc(n_values, sizeof *values);
  char text[256];
  memcpy(values, plan->values, n_values * sizeof *values);
  assert_false(overlaps(plan, values, text));
  for (uint32_t i = 0; i < n_values; i++) {
    for (uint32_t other = 0; other < n_values; other++) {
      if (i == other || values[i].arena != arena || values[other].arena != arena ||
          values[i].view_of != NX_NONE || values[other].view_of != NX_NONE ||
          values[i].bytes != values[other].bytes || values[i].offset == values[other].offset)
        continue;
      uint64_t offset = values[i].offset;
      values[i].offset = values[other].offset;
      bool caught = overlaps(plan, values, text);
      if (!caught && !may_be_apart)
        fail_msg("%s on top of %s", nx_plan_string(plan, values[i].name),
                 nx_plan_string(plan, values[other].name));
      values[i].offset = offset;
      n_caught += caught;
      if (!may_be_apart) break;
    }
  }
  free(values);
  return n_caught;
}

static void a_broken_placement_is_caught(void **state) {
  (void)state;
  program_case c = program_good("mesh.world=2 mesh.tensor=2 sequence_parallel=true");
  assert_in_range(move_values(&c.out.plan, NX_ARENA_slot, false), 11, 1000);
  program_end(&c);
}

/* What is gathered ahead, or still reduced, is alive until its wait. */
static void a_buffer_in_use_is_caught(void **state) {
  (void)state;
  program_case c = program_good(
      "mesh.world=2 optimizer.zero_stage=3 model.layers=4 reduce.overlap=true gather.overlap=true");
  assert_in_range(move_values(&c.out.plan, NX_ARENA_comm, true), 11, 1000);
  program_end(&c);
}

/* A piece says where in its range it stands, and the programs read it there. */
static void parameters_stand_where_their_range_says(void **state) {
  (void)state;
  program_case c = program_good("");
  uint8_t *bytes = aligned_alloc(64, c.out.n_bytes);
  nx_plan plan;
  nx_fault fault;
  assert_non_null(bytes);
  memcpy(bytes, c.out.bytes, c.out.n_bytes);
  const nx_piece *piece = plan_record(bytes, NX_SECTION_PIECES, 3);
  nx_value *weight = plan_record(bytes, NX_SECTION_VALUES, piece->value);
  weight->offset -= 64;
  plan_seal(bytes);
  assert_false(nx_plan_check(bytes, c.out.n_bytes, &plan, &fault));
  assert_non_null(strstr(fault.text, "stands elsewhere"));
  free(bytes);
  program_end(&c);
}

/* Two parameters at one place of their range. */
static void parameters_do_not_overlap(void **state) {
  (void)state;
  program_case c = program_good("");
  nx_plan plan = c.out.plan;
  nx_fault fault;
  nx_piece *pieces = calloc(plan.n[NX_SECTION_PIECES], sizeof *pieces);
  memcpy(pieces, plan.pieces, plan.n[NX_SECTION_PIECES] * sizeof *pieces);
  pieces[3].range_offset -= 16;
  plan.pieces = pieces;
  assert_false(nxc_overlap_check(&plan, c.arena, &fault));
  assert_non_null(strstr(fault.text, "share bytes"));
  free(pieces);
  program_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shapes_are_local),
      cmocka_unit_test(arenas_have_the_bytes_of_the_model),
      cmocka_unit_test(stored_activations_are_bf16),
      cmocka_unit_test(zero_divides_the_optimizer_state),
      cmocka_unit_test(zero_divides_gradients_and_parameters),
      cmocka_unit_test(at_most_two_layers_are_whole),
      cmocka_unit_test(buckets_bound_whole_gradients),
      cmocka_unit_test(sums_are_stored_in_the_reduce_type),
      cmocka_unit_test(every_element_is_owned_and_weighed_once),
      cmocka_unit_test(shards_partition_their_range),
      cmocka_unit_test(valid_columns_add_up),
      cmocka_unit_test(pieces_have_hugging_face_names),
      cmocka_unit_test(gpt2_keeps_one_transposed_tensor_for_qkv),
      cmocka_unit_test(first_writers_overwrite),
      cmocka_unit_test(a_tied_matrix_has_two_accumulators),
      cmocka_unit_test(a_matrix_tied_over_stages_is_owned_once),
      cmocka_unit_test(layers_may_share_weights),
      cmocka_unit_test(recomputation_trades_memory_for_products),
      cmocka_unit_test(layers_may_be_computed_again_in_groups),
      cmocka_unit_test(a_module_that_is_none_is_told),
      cmocka_unit_test(sequence_parallelism_keeps_less),
      cmocka_unit_test(a_plan_does_not_grow_with_the_ranks),
      cmocka_unit_test(the_same_settings_give_the_same_bytes),
      cmocka_unit_test(the_plan_id_is_the_meaning),
      cmocka_unit_test(what_cannot_run_is_refused),
      cmocka_unit_test(an_unknown_size_is_named),
      cmocka_unit_test(a_broken_placement_is_caught),
      cmocka_unit_test(a_buffer_in_use_is_caught),
      cmocka_unit_test(parameters_stand_where_their_range_says),
      cmocka_unit_test(parameters_do_not_overlap),
  };
  return cmocka_run_group_tests_name("program", tests, NULL, NULL);
}
