/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/quantized.h"
#include "schema/plan.h"

#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

const char *nx_plan_string(const nx_plan *plan, uint32_t string) {
  return plan->strings + string;
}

const char *nx_plan_text(const nx_plan *plan, uint32_t text) {
  return plan->provenance_text + text;
}

char **nx_plan_texts(const nx_plan *plan, uint32_t text, size_t *n) {
  const char *all = nx_plan_text(plan, text);
  size_t n_bytes = strlen(all) + 1, n_most = 2;
  for (const char *at = all; (at = strchr(at, '\n')) != NULL; at++) n_most++;
  char **texts = malloc(n_most * sizeof *texts + n_bytes);
  *n = 0;
  if (texts == NULL) return NULL;
  char *rest = memcpy(texts + n_most, all, n_bytes);
  for (char *one; (one = strsep(&rest, "\n")) != NULL;)
    if (one[0] != '\0') texts[(*n)++] = one;
  texts[*n] = NULL;
  return texts;
}

const nx_arena_record *nx_plan_arena(const nx_plan *plan, uint32_t kind) {
  for (uint32_t i = 0; i < plan->n[NX_SECTION_ARENAS]; i++)
    if (plan->arenas[i].kind == kind) return &plan->arenas[i];
  return NULL;
}

void nx_hex(const uint8_t bytes[32], char hex[65]) {
  static const char digits[] = "0123456789abcdef";
  for (int i = 0; i < 32; i++) {
    hex[2 * i] = digits[bytes[i] >> 4];
    hex[2 * i + 1] = digits[bytes[i] & 15];
  }
  hex[64] = '\0';
}

void nx_sha256_hex(const void *bytes, uint64_t n_bytes, char hex[65]) {
  uint8_t digest[SHA256_DIGEST_SIZE];
  struct sha256_ctx state;
  sha256_init(&state);
  sha256_update(&state, n_bytes, bytes);
  sha256_digest(&state, sizeof digest, digest);
  nx_hex(digest, hex);
}

uint64_t nx_plan_stage_bytes(const nx_plan *plan, uint32_t stage, uint32_t kind) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_CHUNKS]; i++) {
    const nx_chunk *chunk = &plan->chunks[i];
    uint64_t end =
        chunk->arena_base[kind] + chunk->arena_bytes[kind] * (kind == NX_ARENA_slot ? chunk->n_slots : 1);
    if (chunk->stage == stage && end > bytes) bytes = end;
  }
  return bytes;
}

uint64_t nx_plan_copy_bytes(const nx_plan *plan, uint32_t stage) {
  static const nx_arena_kind saved[] = {NX_ARENA_param, NX_ARENA_master, NX_ARENA_state};
  uint64_t bytes = 0;
  if (!(plan->run_names->rules & NX_RUN_SAVES_ASIDE)) return 0;
  for (size_t i = 0; i < sizeof saved / sizeof *saved; i++)
    bytes += nx_plan_stage_bytes(plan, stage, saved[i]);
  return bytes;
}

uint8_t nx_pass_when(uint32_t micro_batch, uint32_t n_micro_batches, uint32_t most) {
  if (n_micro_batches == 1 && most > 1) return NX_WHEN_ONLY;
  uint8_t when = micro_batch == 0 ? NX_WHEN_FIRST : 0;
  if (micro_batch + 1 == n_micro_batches) when |= NX_WHEN_LAST;
  return when ? when : NX_WHEN_MIDDLE;
}

uint8_t nx_when_later(uint8_t when) {
  uint8_t later = (uint8_t)((when & NX_WHEN_ALWAYS) << NX_WHEN_COMPRESSED);
  return when & NX_WHEN_ONLY ? later | NX_WHEN_EVALUATED : later;
}

uint8_t nx_when_now(uint8_t when) {
  return when & (NX_WHEN_ALWAYS | NX_WHEN_ONLY);
}

bool nx_chunk_is_cut(const nx_plan *plan, const nx_chunk *chunk) {
  const nx_program *program = chunk->backward == NX_NONE ? NULL : &plan->programs[chunk->backward];
  for (uint32_t i = 0; program && i < program->n_operators; i++)
    if (nx_when_now(plan->operators[program->first_operator + i].when) == 0) return true;
  return false;
}

nx_phase nx_plan_phase(const nx_plan *plan, uint64_t step) {
  uint32_t n = plan->n[NX_SECTION_PHASES];
  if (n == 0) return (nx_phase){.global_batch = plan->run->global_batch};
  while (n > 1 && plan->phases[n - 1].first_step > step) n--;
  return plan->phases[n - 1];
}

uint64_t nx_plan_samples_before(const nx_plan *plan, uint64_t step) {
  nx_phase phase = nx_plan_phase(plan, step);
  return phase.first_sample + (step - phase.first_step) * phase.global_batch;
}

uint32_t nx_plan_evaluated_batch(const nx_plan *plan) {
  const nx_schedule *schedule = nx_plan_schedule(plan, NX_SCHEDULE_EVALUATE);
  const nx_run *run = plan->run;
  return schedule ? run->micro_batch * schedule->n_micro_batches * run->data_size : run->global_batch;
}

bool nx_plan_skips(const nx_plan *plan, uint64_t step) {
  for (uint32_t i = 0; i < plan->n[NX_SECTION_SKIPPED] && plan->skipped[i] <= step + 1; i++)
    if (plan->skipped[i] == step + 1) return true;
  return false;
}

uint64_t nx_plan_skipped_before(const nx_plan *plan, uint64_t step, uint64_t *samples) {
  uint32_t n = 0;
  *samples = 0;
  for (; n < plan->n[NX_SECTION_SKIPPED] && plan->skipped[n] <= step; n++)
    *samples += nx_plan_phase(plan, plan->skipped[n] - 1).global_batch;
  return n;
}

const nx_recipe *nx_source_recipe(const nx_plan *plan, const nx_source *source) {
  for (uint32_t i = 0; i < plan->n[NX_SECTION_RECIPES]; i++)
    if (plan->recipes[i].prefix == source->prefix) return &plan->recipes[i];
  return NULL;
}

uint32_t nx_plan_sample_rows(const nx_plan *plan) {
  return nx_objective_find(plan->run->objective)->rows;
}

const nx_dataset *nx_plan_train_set(const nx_plan *plan) {
  for (uint32_t i = 0; i < plan->n[NX_SECTION_DATASETS]; i++)
    if (plan->datasets[i].role == NX_DATASET_TRAIN) return &plan->datasets[i];
  return NULL;
}

const nx_form_row *nx_form_find(uint32_t form) {
  enum { TILE = NX_FP8_TILE };
  static const nx_form_row rows[NX_N_FORMS] = {
      [NX_FORM_PLAIN] = {1, 1, 0, 1, false},
      [NX_FORM_NF4] = {1, 2, NX_u8, NX_NF4_BLOCK / 2, false},
      [NX_FORM_NF4_ABSMAX] = {1, NX_NF4_BLOCK, NX_f32, 1, true},
      [NX_FORM_NVFP4] = {1, 2, NX_u8, NX_NVFP4_BLOCK / 2, false},
      [NX_FORM_NVFP4_SCALE] = {1, NX_NVFP4_BLOCK, NX_f32, 1, true},
      [NX_FORM_MXFP4] = {1, 2, NX_u8, NX_MXFP4_BLOCK / 2, false},
      [NX_FORM_MXFP4_SCALE] = {1, NX_MXFP4_BLOCK, NX_u8, 1, true},
      [NX_FORM_FP8] = {1, 1, NX_u8, 1, false},
      [NX_FORM_FP8_SCALE] = {TILE, TILE, NX_f32, 1, true},
  };
  return &rows[form];
}

int64_t nx_form_elements(uint32_t form) {
  return nx_form_find(form)->elements;
}

bool nx_form_is_scale(uint32_t form) {
  return nx_form_find(form)->scales;
}

const nx_optimizer_row *nx_range_rule(const nx_plan *plan, const nx_range *range) {
  if (range->parameter_group == NX_NONE) return NULL;
  return nx_optimizer_of(plan->parameter_groups[range->parameter_group].optimizer);
}

uint32_t nx_item_program(const nx_plan *plan, const nx_item *item) {
  const nx_chunk *chunk = &plan->chunks[item->chunk];
  switch (item->kind) {
    case NX_ITEM_FORWARD: return chunk->forward;
    case NX_ITEM_BACKWARD: return chunk->backward;
    case NX_ITEM_EVALUATE: return chunk->evaluate;
    case NX_ITEM_STEP: return chunk->step;
    default: return NX_NONE;
  }
}

const nx_route *nx_plan_route(const nx_plan *plan, uint32_t operator) {
  uint32_t low = 0, high = plan->n[NX_SECTION_ROUTES];
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (plan->routes[middle].operator < operator) low = middle + 1;
    else high = middle;
  }
  bool found = low < plan->n[NX_SECTION_ROUTES] && plan->routes[low].operator == operator;
  return found ? &plan->routes[low] : NULL;
}

const char *nx_way_name(nx_way way) {
  static const char *const names[NX_N_WAYS] = {"direct", "ring", "doubling", "hosts"};
  return names[way];
}

bool nx_op_has_way(nx_op op, nx_way way) {
  return way == NX_WAY_DIRECT || op == NX_OP_all_gather || op == NX_OP_all_reduce;
}

uint8_t nx_step_phases(const nx_item *item) {
  uint8_t compressed = item->when >> NX_WHEN_COMPRESSED;
  return compressed ? compressed : item->when;
}

uint64_t nx_schedule_received(const nx_plan *plan, const nx_schedule *schedule, uint32_t stage) {
  uint64_t n_bytes = 0;
  for (uint32_t i = schedule->first_item; i < schedule->first_item + schedule->n_items; i++) {
    const nx_item *item = &plan->items[i];
    bool runs = item->kind <= NX_ITEM_EVALUATE || item->kind == NX_ITEM_STEP;
    if (item->stage != stage || !runs) continue;
    const nx_program *program = &plan->programs[nx_item_program(plan, item)];
    const nx_operator *op = &plan->operators[program->first_operator], *end = op + program->n_operators;
    for (; op < end; op++)
      if (op->when & item->when && nx_op_is_collective(nx_op_find(op->op))) n_bytes += op->moved_bytes;
  }
  return n_bytes;
}

const nx_schedule *nx_plan_schedule(const nx_plan *plan, nx_schedule_kind kind) {
  for (uint32_t i = 0; i < plan->n[NX_SECTION_SCHEDULES]; i++)
    if (plan->schedules[i].kind == kind) return &plan->schedules[i];
  return NULL;
}

uint32_t nx_port_peer(uint32_t chunk, nx_port port) {
  return port == NX_PORT_OUTPUT || port == NX_PORT_OUTPUT_GRADIENT ? chunk + 1 : chunk - 1;
}

nx_port nx_port_opposite(nx_port port) {
  static const nx_port opposites[NX_N_PORTS] = {NX_PORT_OUTPUT, NX_PORT_INPUT, NX_PORT_INPUT_GRADIENT,
                                                NX_PORT_OUTPUT_GRADIENT};
  return opposites[port];
}

const char *nx_port_name(nx_port port) {
  static const char *const names[NX_N_PORTS] = {"input", "output", "output gradient", "input gradient"};
  return names[port];
}

uint32_t nx_piece_shape(const nx_piece *piece, int64_t dims[3]) {
  bool transposed = piece->flags & NX_PIECE_TRANSPOSED;
  int64_t elements = piece->logical_columns * nx_form_elements(piece->form);
  int64_t of_rows = piece->logical_rows * nx_form_find(piece->form)->rows;
  int64_t rows = transposed ? elements : of_rows, columns = transposed ? of_rows : elements;
  if (piece->slices > 0) {
    dims[0] = piece->slices, dims[1] = rows / piece->slices, dims[2] = columns;
    return 3;
  }
  dims[0] = piece->n_dims == 1 ? elements : rows;
  if (piece->n_dims > 1) dims[1] = columns;
  return piece->n_dims;
}
