/* SPDX-License-Identifier: Apache-2.0 */
/* Plans as the compiler makes them: shapes and arenas, and that every element of the model is somewhere,
 * once. */
#include "tests/unit/plan_lookups.h"

#include "compiler/config/rules/presets.h"

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

/* What a person may write is judged before the plan, whatever the setting: its own check finds nothing left
 * to refuse (NX3900 is a fault of nxcfg). */
static const char *const *odd_values(nxc_type type) {
  static const char *const
      whole[] = {"9223372036854775807", "281474976710657", "2147483648", "1000000007", NULL},
      *const real[] = {"1e300", "5e-324", "-1e300", NULL}, *const text[] = {"\"\"", NULL},
      *const wholes[] = {"[9223372036854775807]", "[2147483648]", "[0]", "[-1]", "[]", NULL},
      *const reals[] = {"[1e300]", "[0]", "[-1e300]", "[]", NULL}, *const texts[] = {"[\"\"]", "[]", NULL};
  static const char *const *const of[] = {
      [NXC_TYPE_INT] = whole,     [NXC_TYPE_FLOAT] = real,      [NXC_TYPE_STR] = text,
      [NXC_TYPE_PATH] = text,     [NXC_TYPE_LIST_INT] = wholes, [NXC_TYPE_LIST_FLOAT] = reals,
      [NXC_TYPE_LIST_STR] = texts};
  return type < sizeof of / sizeof *of && of[type] != NULL ? of[type] : whole + 4;
}

static void odd_values_are_judged(void **state) {
  (void)state;
  static const char *const bases[] = {"data.kind=text",
                                      "mesh.world=2 mesh.expert=2 moe.experts=4 moe.top_k=2 "
                                      "moe.shared_ffn_hidden=16 moe.capacity_factor=1.25 lora.rank=2",
                                      "moe.experts=4 moe.top_k=2 model.predict_depth=1 "
                                      "model.sliding_window=8 schedule.name=cosine lora.rank=2"};
  enum { N_BASES = sizeof bases / sizeof *bases };
  for (size_t i = 0; i < N_BASES * NX_N_SETTINGS; i++) {
    const nxc_setting_row *row = &nxc_setting_rows[i / N_BASES];
    for (const char *const *value = odd_values(row->domain.type); *value != NULL; value++) {
      program_case c = program_settings(bases[i % N_BASES]);
      if (nxc_settings_set_text(c.settings, row->path, *value, c.sink)) {
        nxc_settings_derive(c.settings, c.sink);
        c.ok = nxc_program_compile(c.settings, c.arena, c.sink, &c.out);
        if (program_found(&c, "NX3900"))
          fail_msg("%s=%s: %s", row->path, *value,
                   nxc_sink_finding(c.sink, nxc_sink_n_findings(c.sink) - 1)->message);
        if (!c.ok && nxc_sink_n_findings(c.sink) == 0) fail_msg("%s=%s: no word", row->path, *value);
      }
      program_end(&c);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(odd_values_are_judged),
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
  };
  return cmocka_run_group_tests_name("program_memory", tests, NULL, NULL);
}
