/* SPDX-License-Identifier: Apache-2.0 */
/* The mesh: rank numbers in the orders that the real systems publish, and the common refinement of dense
 * layers and experts over many factorisations. */
#include "tests/unit/program_case.h"

#include "compiler/program/mesh/mesh.h"

static nxc_degrees degrees(uint32_t tensor, uint32_t context, uint32_t data, uint32_t pipeline) {
  return (nxc_degrees){.kv_replica = 1, .kv_group = tensor, .ulysses = 1, .ring = context, .shard = data,
                       .replicate = 1, .pipeline = pipeline, .expert = 1, .expert_tensor = tensor,
                       .order = "tp-cp-ep-dp-pp"};
}

static nxc_mesh mesh_of(const nxc_degrees *d) {
  nxc_mesh mesh;
  nx_fault fault = {.text = ""};
  bool good = nxc_mesh_new(d, &mesh, &fault);
  if (!good) fail_msg("%s", fault.text);
  return mesh;
}

static uint32_t coordinate(const nxc_mesh *mesh, nxc_axis_id axis, uint32_t rank) {
  uint32_t coordinate = 0, scale = 1;
  for (uint32_t atom = 0; atom < mesh->n_atoms; atom++) {
    if (!(nxc_axis(mesh, axis) & 1u << atom)) continue;
    coordinate += scale * (rank / mesh->stride[atom] % mesh->size[atom]);
    scale *= mesh->size[atom];
  }
  return coordinate;
}

static bool differs_only_on(const nxc_mesh *mesh, nxc_axis_id axis, uint32_t a, uint32_t b) {
  for (uint32_t atom = 0; atom < mesh->n_atoms; atom++) {
    uint32_t stride = mesh->stride[atom], size = mesh->size[atom];
    if (!(nxc_axis(mesh, axis) & 1u << atom) && a / stride % size != b / stride % size) return false;
  }
  return true;
}

/* "0 2, 1 3, ...": the groups of an axis, each in ascending order, by their first rank. */
static void assert_groups(const nxc_degrees *d, nxc_axis_id axis, const char *expected) {
  const nxc_mesh mesh = mesh_of(d);
  char text[512] = "";
  for (uint32_t first = 0; first < mesh.n_ranks; first++) {
    if (coordinate(&mesh, axis, first) != 0) continue;
    if (*text) strcat(text, ", ");
    for (uint32_t rank = first, n = 0; rank < mesh.n_ranks; rank++)
      if (differs_only_on(&mesh, axis, rank, first))
        sprintf(text + strlen(text), "%s%u", n++ ? " " : "", rank);
  }
  assert_string_equal(text, expected);
}

/* ---- published orders ---- */

/* parallel_state.py: 16 ranks, 2 tensor, 4 pipeline. */
static void ranks_are_numbered_as_megatron_documents(void **state) {
  (void)state;
  const nxc_degrees d = degrees(2, 1, 2, 4);
  assert_groups(&d, NXC_AXIS_TENSOR, "0 1, 2 3, 4 5, 6 7, 8 9, 10 11, 12 13, 14 15");
  assert_groups(&d, NXC_AXIS_DATA, "0 2, 1 3, 4 6, 5 7, 8 10, 9 11, 12 14, 13 15");
  assert_groups(&d, NXC_AXIS_PIPELINE, "0 4 8 12, 1 5 9 13, 2 6 10 14, 3 7 11 15");
}

static void pipeline_stages_may_come_before_data(void **state) {
  (void)state;
  static const char *const orders[] = {"tp-cp-ep-pp-dp", "tp-pp-dp"};
  for (int i = 0; i < 2; i++) {
    nxc_degrees d = degrees(2, 1, 2, 4);
    d.order = orders[i];
    assert_groups(&d, NXC_AXIS_TENSOR, "0 1, 2 3, 4 5, 6 7, 8 9, 10 11, 12 13, 14 15");
    assert_groups(&d, NXC_AXIS_PIPELINE, "0 2 4 6, 1 3 5 7, 8 10 12 14, 9 11 13 15");
    assert_groups(&d, NXC_AXIS_DATA, "0 8, 1 9, 2 10, 3 11, 4 12, 5 13, 6 14, 7 15");
  }
}

static void context_lies_between_tensor_and_data(void **state) {
  (void)state;
  const nxc_degrees d = degrees(2, 2, 2, 1);
  assert_groups(&d, NXC_AXIS_CONTEXT, "0 2, 1 3, 4 6, 5 7");
  assert_groups(&d, NXC_AXIS_DATA, "0 4, 1 5, 2 6, 3 7");
}

static void ulysses_lies_within_the_ring_and_shards_within_copies(void **state) {
  (void)state;
  nxc_degrees d = degrees(1, 2, 2, 1);
  d.ulysses = 2, d.replicate = 2;
  assert_groups(&d, NXC_AXIS_ULYSSES, "0 1, 2 3, 4 5, 6 7, 8 9, 10 11, 12 13, 14 15");
  assert_groups(&d, NXC_AXIS_RING, "0 2, 1 3, 4 6, 5 7, 8 10, 9 11, 12 14, 13 15");
  assert_groups(&d, NXC_AXIS_CONTEXT, "0 1 2 3, 4 5 6 7, 8 9 10 11, 12 13 14 15");
  assert_groups(&d, NXC_AXIS_SHARD, "0 4, 1 5, 2 6, 3 7, 8 12, 9 13, 10 14, 11 15");
  assert_groups(&d, NXC_AXIS_REPLICATE, "0 8, 1 9, 2 10, 3 11, 4 12, 5 13, 6 14, 7 15");
}

/* ---- experts ---- */

static nxc_degrees with_experts(nxc_degrees d, uint32_t expert_tensor, uint32_t expert) {
  d.has_experts = true, d.expert_tensor = expert_tensor, d.expert = expert;
  return d;
}

/* Megatron: 8 ranks, 2 tensor, 2 expert. */
static void experts_follow_tensor(void **state) {
  (void)state;
  nxc_degrees d = with_experts(degrees(2, 1, 4, 1), 2, 2);
  assert_groups(&d, NXC_AXIS_EXPERT_TENSOR, "0 1, 2 3, 4 5, 6 7");
  assert_groups(&d, NXC_AXIS_EXPERT, "0 2, 1 3, 4 6, 5 7");
  assert_groups(&d, NXC_AXIS_EXPERT_DATA, "0 4, 1 5, 2 6, 3 7");
  assert_groups(&d, NXC_AXIS_DATA, "0 2 4 6, 1 3 5 7");
}

static void experts_may_span_tensor_context_and_data(void **state) {
  (void)state;
  nxc_degrees d = with_experts(degrees(2, 2, 2, 1), 1, 8);
  assert_groups(&d, NXC_AXIS_EXPERT, "0 1 2 3 4 5 6 7");
  d = with_experts(degrees(4, 1, 2, 1), 2, 4);
  assert_groups(&d, NXC_AXIS_EXPERT_TENSOR, "0 1, 2 3, 4 5, 6 7");
  assert_groups(&d, NXC_AXIS_EXPERT, "0 2 4 6, 1 3 5 7");
  const nxc_mesh mesh = mesh_of(&d);
  assert_int_equal(mesh.n_atoms, 3);
  assert_string_equal(mesh.name[0], "kv_group.expert_tensor");
  assert_string_equal(mesh.name[1], "kv_group.expert");
  assert_string_equal(mesh.name[2], "shard");
}

static void assert_refused(const nxc_degrees *d, const char *expected) {
  nxc_mesh mesh;
  nx_fault fault = {.text = ""};
  assert_false(nxc_mesh_new(d, &mesh, &fault));
  if (!strstr(fault.text, expected)) fail_msg("\"%s\" does not say \"%s\"", fault.text, expected);
}

static void what_has_no_common_refinement_is_refused(void **state) {
  (void)state;
  nxc_degrees d = with_experts(degrees(2, 1, 6, 1), 1, 3);
  assert_refused(&d, "dense: tensor 2 x context 1 x data 6 x pipeline 1; "
                     "expert: tensor 1 x expert 3 x data 4 x pipeline 1");
  d = with_experts(degrees(2, 1, 6, 1), 1, 8);
  assert_refused(&d, "expert tensor 1 x expert 8 do not divide the 12 ranks");
  d = with_experts(degrees(2, 1, 4, 2), 1, 4);
  mesh_of(&d);
  d.order = "tp-cp-ep-pp-dp";
  assert_refused(&d, "dense: tensor 2 x context 1 x pipeline 2 x data 4; "
                     "expert: tensor 1 x expert 4 x pipeline 2 x data 2");
}

static void an_order_names_every_axis_once(void **state) {
  (void)state;
  nxc_degrees d = degrees(2, 2, 2, 2);
  static const char *const malformed[] = {"",            "tp",           "tp-cp-dp-pp-tp",
                                          "tp-cp-dp-xx", "tp-cp-dp-pp-", "tp--cp-dp-pp"};
  for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
    d.order = malformed[i];
    assert_refused(&d, i == 1 ? "leaves out" : "names each of tp, cp, ep, dp and pp once");
  }
  d.order = "tp-dp-pp";
  assert_refused(&d, "leaves out cp");
  d.order = "pp-dp-cp-tp";
  assert_groups(&d, NXC_AXIS_PIPELINE, "0 1, 2 3, 4 5, 6 7, 8 9, 10 11, 12 13, 14 15");
  assert_groups(&d, NXC_AXIS_TENSOR, "0 8, 1 9, 2 10, 3 11, 4 12, 5 13, 6 14, 7 15");
}

/* ---- all small factorisations ---- */

static uint64_t product_of(const nxc_mesh *mesh, const nxc_axis_id *axes, size_t n) {
  uint32_t seen = 0;
  for (size_t i = 0; i < n; i++) {
    assert_int_equal(seen & nxc_axis(mesh, axes[i]), 0);
    seen |= nxc_axis(mesh, axes[i]);
  }
  assert_int_equal(seen, nxc_axis(mesh, NXC_AXIS_WORLD));
  return nxc_mesh_size(mesh, seen);
}

/* Both factorisations are products of the atoms, and coordinates number all ranks. */
static void check_mesh(const nxc_degrees *d, const nxc_mesh *mesh) {
  static const nxc_axis_id dense[] = {NXC_AXIS_TENSOR, NXC_AXIS_CONTEXT, NXC_AXIS_DATA, NXC_AXIS_PIPELINE};
  static const nxc_axis_id expert[] = {NXC_AXIS_EXPERT_TENSOR, NXC_AXIS_EXPERT, NXC_AXIS_EXPERT_DATA,
                                       NXC_AXIS_PIPELINE};
  assert_int_equal(product_of(mesh, dense, 4), mesh->n_ranks);
  assert_int_equal(product_of(mesh, expert, 4), mesh->n_ranks);
  assert_int_equal(nxc_mesh_size(mesh, nxc_axis(mesh, NXC_AXIS_TENSOR)), d->kv_group * d->kv_replica);
  assert_int_equal(nxc_mesh_size(mesh, nxc_axis(mesh, NXC_AXIS_CONTEXT)), d->ring * d->ulysses);
  assert_int_equal(nxc_mesh_size(mesh, nxc_axis(mesh, NXC_AXIS_EXPERT)), d->expert);
  assert_int_equal(nxc_mesh_size(mesh, nxc_axis(mesh, NXC_AXIS_EXPERT_TENSOR)), d->expert_tensor);
  uint32_t stride = 1;
  for (uint32_t atom = 0; atom < mesh->n_atoms; stride *= mesh->size[atom++]) {
    assert_true(mesh->size[atom] > 1);
    assert_int_equal(mesh->stride[atom], stride);
  }
  assert_int_equal(stride, mesh->n_ranks);
  for (uint32_t rank = 0; rank < mesh->n_ranks; rank++) {
    uint32_t number = coordinate(mesh, NXC_AXIS_PIPELINE, rank);
    number = number * d->shard * d->replicate + coordinate(mesh, NXC_AXIS_DATA, rank);
    number = number * d->ring * d->ulysses + coordinate(mesh, NXC_AXIS_CONTEXT, rank);
    number = number * d->kv_group * d->kv_replica + coordinate(mesh, NXC_AXIS_TENSOR, rank);
    assert_int_equal(number, rank);
  }
}

/* No two sets share a name. */
static void check_names(const nxc_mesh *mesh, nxc_arena *arena) {
  const char *names[64];
  uint32_t n = 1u << mesh->n_atoms;
  for (uint32_t set = 0; set < n && n <= 64; set++) {
    names[set] = nxc_mesh_set_name(arena, mesh, set);
    for (uint32_t other = 0; other < set; other++) assert_string_not_equal(names[set], names[other]);
  }
}

static bool divides_chain(uint32_t a, uint32_t b) {
  return a % b == 0 || b % a == 0;
}

/* With cuts at tensor, tensor x context and all, and at expert_tensor and expert_tensor x expert, a
 * refinement exists where every two cuts divide one another. */
static void every_factorisation_is_refined_or_refused(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  size_t n_made = 0, n_refused = 0;
  for (uint32_t code = 0; code < 6 * 4 * 6 * 4 * 6 * 2; code++) {
    uint32_t tensor = code % 6 + 1, context = code / 6 % 4 + 1, data = code / 24 % 6 + 1;
    uint32_t expert_tensor = code / 144 % 4 + 1, expert = code / 576 % 6 + 1, pipeline = code / 3456 + 1;
    nxc_degrees d = with_experts(degrees(tensor, context, data, pipeline), expert_tensor, expert);
    uint32_t all = tensor * context * data, dense[] = {tensor, tensor * context};
    uint32_t experts[] = {expert_tensor, expert_tensor * expert};
    bool expected = all % experts[1] == 0;
    for (int i = 0; i < 4; i++) expected = expected && divides_chain(dense[i / 2], experts[i % 2]);
    nxc_mesh mesh;
    nx_fault fault;
    assert_int_equal(nxc_mesh_new(&d, &mesh, &fault), expected);
    n_made += expected, n_refused += !expected;
    if (!expected) continue;
    check_mesh(&d, &mesh);
    if (code % 7 == 0) check_names(&mesh, arena);
  }
  assert_true(n_made > 500 && n_refused > 500);
  nxc_arena_free(arena);
}

/* ---- the finding ---- */

static void a_layout_without_refinement_is_a_finding(void **state) {
  (void)state;
  program_case c = program_settings("mesh.world=4 mesh.order=tp-dp");
  nxc_training training;
  assert_true(nxc_training_read(c.settings, c.sink, &training));
  program_end(&c);
  c = program_settings("mesh.world=4 mesh.pipeline=2 mesh.order=tp-dp");
  assert_false(nxc_training_read(c.settings, c.sink, &training));
  assert_string_equal(nxc_sink_finding(c.sink, 0)->id, "NX3010");
  assert_non_null(strstr(nxc_sink_finding(c.sink, 0)->message, "leaves out pp"));
  program_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ranks_are_numbered_as_megatron_documents),
      cmocka_unit_test(pipeline_stages_may_come_before_data),
      cmocka_unit_test(context_lies_between_tensor_and_data),
      cmocka_unit_test(ulysses_lies_within_the_ring_and_shards_within_copies),
      cmocka_unit_test(experts_follow_tensor),
      cmocka_unit_test(experts_may_span_tensor_context_and_data),
      cmocka_unit_test(what_has_no_common_refinement_is_refused),
      cmocka_unit_test(an_order_names_every_axis_once),
      cmocka_unit_test(every_factorisation_is_refined_or_refused),
      cmocka_unit_test(a_layout_without_refinement_is_a_finding),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
