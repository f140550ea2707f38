/* SPDX-License-Identifier: Apache-2.0 */
/* The least plan that trains: small_plan OUT [RANKS] [name=value]...
 *
 * One parameter of 64 elements with a constant gradient of 1, summed over all ranks and descended by SGD, so
 * that its course is known: after n steps every element is -n lr RANKS. Written without nxcfg, so that
 * nxrun's launch, loop, memory and checkpoints can be tested by themselves. Names: steps, hosts, threads,
 * target, deadline (seconds), save, batch, sequence, directory, data, format. */
#include "schema/plan_check.h"

#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 1 << 16, N_ELEMENTS = 64 };

static uint8_t file[ROOM];
static uint64_t at;
static char strings[4096];
static uint32_t n_strings = 1;
static nx_value values[32];
static uint32_t n_values, arguments[64], n_arguments, n_operators, n_attributes;
static nx_operator operators[32];
static nx_attribute attributes[64];
static uint64_t arena_bytes[NX_N_ARENAS];

/* What was asked for. */
static int n_options;
static char **options;
static uint32_t n_ranks, batch, sequence;

/* The values that the run names, and those of the one parameter. */
static uint32_t tokens, labels, positions, samples, step, loss, loss_total, norm, lr, sum, scale, decay;
static uint32_t param, grad, stored;

static uint32_t text(const char *from) {
  uint32_t start = n_strings;
  memcpy(strings + start, from, strlen(from) + 1);
  n_strings += (uint32_t)strlen(from) + 1;
  return start;
}

static uint32_t value(const char *name, nx_arena_kind arena, nx_dtype dtype, uint32_t n_dims, int64_t rows,
                      int64_t columns) {
  uint64_t n_bytes = (uint64_t)(rows * columns) * nx_dtype_bits(dtype) / 8;
  values[n_values] = (nx_value){.name = text(name), .dtype = dtype, .n_dims = (uint8_t)n_dims, .arena = arena,
                                .dims = {rows, columns, 1, 1}, .offset = arena_bytes[arena], .bytes = n_bytes,
                                .view_of = NX_NONE, .offset_shift = NX_NONE};
  arena_bytes[arena] += (n_bytes + 63) / 64 * 64;
  return n_values++;
}

static void operation(nx_op op, uint32_t group, uint32_t n_in, uint32_t n_out, const uint32_t *args) {
  operators[n_operators++] = (nx_operator){.op = op, .when = NX_WHEN_ALWAYS, .n_in = (uint8_t)n_in,
                                           .n_out = (uint8_t)n_out, .first_argument = n_arguments,
                                           .first_attribute = n_attributes, .group = group, .origin = 0};
  for (uint32_t i = 0; i < n_in + n_out; i++) arguments[n_arguments++] = args[i];
}

static void real(double number) {
  attributes[n_attributes++] = (nx_attribute){.kind = NX_ATTRIBUTE_REAL, .constant = 0, .real = number};
  operators[n_operators - 1].n_attrs++;
}

static void integer(int64_t number) {
  attributes[n_attributes++] = (nx_attribute){.kind = NX_ATTRIBUTE_INT, .constant = 0, .integer = number};
  operators[n_operators - 1].n_attrs++;
}

static void section(nx_section_type type, uint32_t flags, const void *records, uint32_t n) {
  nx_header *header = (nx_header *)(void *)file;
  uint32_t record_bytes = nx_section_record_bytes(type);
  nx_section *entry = (nx_section *)(void *)(file + sizeof *header) + header->n_sections++;
  *entry = (nx_section){.type = type, .flags = flags, .offset = at, .bytes = (uint64_t)n * record_bytes,
                        .record_bytes = record_bytes, .n_records = n};
  memcpy(file + at, records, entry->bytes);
  struct sha256_ctx state;
  sha256_init(&state);
  sha256_update(&state, entry->bytes, file + at);
  sha256_digest(&state, 32, entry->sha256);
  at = (at + entry->bytes + 63) / 64 * 64;
}

static const char *option(const char *name, const char *otherwise) {
  size_t length = strlen(name);
  for (int i = 0; i < n_options; i++)
    if (strncmp(options[i], name, length) == 0 && options[i][length] == '=') return options[i] + length + 1;
  return otherwise;
}

static uint32_t count(const char *name, uint32_t otherwise) {
  const char *given = option(name, NULL);
  return given ? (uint32_t)strtoul(given, NULL, 10) : otherwise;
}

/* ---- records ---- */

static void add_values(void) {
  tokens = value("tokens", NX_ARENA_input, NX_i32, 2, batch, sequence);
  labels = value("labels", NX_ARENA_input, NX_i32, 2, batch, sequence);
  positions = value("positions", NX_ARENA_input, NX_i32, 2, batch, sequence);
  samples = value("samples", NX_ARENA_input, NX_i64, 1, batch, 1);
  step = value("step", NX_ARENA_input, NX_i64, 1, 1, 1);
  loss = value("loss", NX_ARENA_scalar, NX_f64, 1, 1, 1);
  loss_total = value("loss_total", NX_ARENA_scalar, NX_f64, 1, 1, 1);
  norm = value("grad_norm", NX_ARENA_scalar, NX_f64, 1, 1, 1);
  lr = value("lr", NX_ARENA_scalar, NX_f64, 1, 1, 1);
  sum = value("sum", NX_ARENA_scalar, NX_f64, 1, 1, 1);
  scale = value("scale", NX_ARENA_scalar, NX_f64, 1, 1, 1);
  decay = value("decay", NX_ARENA_scalar, NX_f64, 1, 1, 1);
  param = value("weight", NX_ARENA_param, NX_f32, 1, N_ELEMENTS, 1);
  grad = value("weight.grad", NX_ARENA_grad, NX_f32, 1, N_ELEMENTS, 1);
  stored = value("stored", NX_ARENA_slot, NX_f32, 1, N_ELEMENTS, 1);
}

static void add_step_operators(void) {
  operation(NX_OP_all_reduce, 0, 1, 1, (uint32_t[]){grad, grad});
  operation(NX_OP_all_reduce, 0, 1, 1, (uint32_t[]){loss, loss_total});
  operation(NX_OP_wait, NX_NONE, 1, 0, (uint32_t[]){grad});
  operation(NX_OP_wait, NX_NONE, 1, 0, (uint32_t[]){loss_total});
  operation(NX_OP_norm_sq, NX_NONE, 1, 1, (uint32_t[]){grad, sum}), integer(0), integer(1);
  operation(NX_OP_clip_scale, NX_NONE, 1, 2, (uint32_t[]){sum, norm, scale});
  real(1e300), integer(0), integer(0);
  operation(NX_OP_segment, NX_NONE, 1, 1, (uint32_t[]){step, lr});
  integer(0), integer(0), integer(1), real(0), real(1), real(0.5), real(0), real(0), real(0), real(0);
  operation(NX_OP_segment, NX_NONE, 1, 1, (uint32_t[]){step, decay});
  integer(0), integer(0), integer(1), real(0), real(1), real(0), real(0), real(0), real(0), real(0);
  operation(NX_OP_sgd, NX_NONE, 6, 1, (uint32_t[]){param, grad, lr, decay, scale, step, param});
}

/* Fills the three programs: forward, backward, step. */
static void add_operators(nx_program programs[3]) {
  operation(NX_OP_fill, NX_NONE, 0, 1, (uint32_t[]){stored}), real(1);
  operation(NX_OP_fill, NX_NONE, 0, 1, (uint32_t[]){loss}), real(2.5 * batch * sequence);
  uint32_t n_forward = n_operators;
  operation(NX_OP_cast, NX_NONE, 1, 1, (uint32_t[]){stored, grad});
  uint32_t n_passes = n_operators;
  add_step_operators();
  programs[0] = (nx_program){text("forward"), NX_PROGRAM_FORWARD, 0, n_forward};
  programs[1] = (nx_program){text("backward"), NX_PROGRAM_BACKWARD, n_forward, n_passes - n_forward};
  programs[2] = (nx_program){text("step"), NX_PROGRAM_STEP, n_passes, n_operators - n_passes};
}

static nx_run make_run(void) {
  return (nx_run){.n_ranks = n_ranks, .n_hosts = count("hosts", 1), .n_threads = count("threads", 1),
                  .target = count("target", NX_TARGET_CPU_AVX2), .workspace_bytes = 1 << 20, .seed = 1,
                  .n_steps = count("steps", 4), .n_micro_batches = 1, .micro_batch = batch,
                  .sequence = sequence, .global_batch = batch * n_ranks, .vocab = 256,
                  .tokens_per_step = (uint64_t)batch * n_ranks * sequence, .flops_per_step = 1,
                  .n_parameters = N_ELEMENTS, .data_rank = 1,
                  .data_size = n_ranks, .tokens = tokens, .labels = labels, .positions = positions,
                  .samples = samples, .step = step, .loss = loss, .loss_total = loss_total,
                  .grad_norm = norm, .lr = lr, .n_slots = 1,
                  .ring_size = 1, .ulysses_size = 1, .places = NX_NONE, .starts = NX_NONE,
                  .weights = NX_NONE, .later_labels = NX_NONE, .later_weights = NX_NONE,
                  .loss_scale = NX_NONE, .seen = NX_NONE, .reference = NX_NONE,
                  .sequence_sums = NX_NONE, .metrics = NX_NONE, .rewards = NX_NONE,
                  .gradient_factor = NX_NONE, .updates = NX_NONE,
                  .reductions = NX_NONE, .end_of_document = NX_NONE};
}

static uint32_t make_arenas(nx_arena_record arenas[NX_N_ARENAS]) {
  uint32_t n = 0;
  for (uint32_t kind = 0; kind < NX_N_ARENAS; kind++) {
    bool shared = n_ranks > 1 && (kind == NX_ARENA_grad || kind == NX_ARENA_scalar);
    if (arena_bytes[kind])
      arenas[n++] = (nx_arena_record){.kind = kind, .flags = shared ? NX_ARENA_SHARED : 0,
                                      .bytes = arena_bytes[kind],
                                      .slot_bytes = kind == NX_ARENA_slot ? arena_bytes[kind] : 0};
  }
  return n;
}

/* ---- the file ---- */

enum { N_SECTIONS = 22, MEANING = NX_SECTION_MEANING };

static const nx_constant constants[] = {{0, 0, 0}, {0, 0, 1}, {1, 1, 1}}; /* 0; the rank; 1 on rank 0 */
static const nx_term terms[] = {{.atoms = 1, .stride = 1, .kind = NX_TERM_STRIDE},
                                {.atoms = 1, .kind = NX_TERM_FIRST}};
static const nx_item items[] = {
    {.kind = NX_ITEM_FORWARD, .when = NX_WHEN_FIRST | NX_WHEN_LAST},
    {.kind = NX_ITEM_BACKWARD, .when = NX_WHEN_FIRST | NX_WHEN_LAST},
    {.kind = NX_ITEM_STEP, .when = NX_WHEN_ALWAYS}};
static const nx_schedule schedule = {.kind = NX_SCHEDULE_TRAIN, .n_items = 3, .n_micro_batches = 1};

/* In ascending order: the strings come first, and so all that has a name is made before. */
static void write_sections(const nx_program programs[3]) {
  nx_arena_record arenas[NX_N_ARENAS];
  uint32_t n_arenas = make_arenas(arenas), prefix = text(option("data", "none"));
  const nx_run run = make_run();
  const nx_run_names names = {.name = text("small"), .directory = text(option("directory", "")),
                              .log_every = 1, .save_every = count("save", 0), .keep = -1,
                              .deadline_s = count("deadline", 60), .tensorboard_every = 1, .wandb_every = 1,
                              .save_optimizer = 1, .best_evaluation = NX_NONE};
  const nx_atom atom = {text("replicate"), n_ranks, 1, 0};
  const nx_group group = {text("all"), 1, n_ranks, 0};
  const nx_piece piece = {.name = text("weight"), .value = param, .logical_rows = 1,
                          .logical_columns = N_ELEMENTS, .rows = 1, .columns = N_ELEMENTS, .owner = 2,
                          .n_dims = 1};
  const nx_range range = {.name = text("weights"),
                          .group = 0,
                          .n_elements = N_ELEMENTS,
                          .n_shard = N_ELEMENTS,
                          .shard_group = NX_NONE,
                          .param = param,
                          .master = NX_NONE,
                          .grad = grad,
                          .states = {NX_NONE, NX_NONE, NX_NONE, NX_NONE}};
  const nx_parameter_group parameter_group = {
      .name = text("all"), .optimizer = NX_OP_sgd, .lr = lr, .decay = decay, .lr_factor = 1};
  const nx_dataset dataset = {.name = text("train"),
                              .role = NX_DATASET_TRAIN,
                              .n_sources = 1,
                              .sampler = NX_SAMPLER_STREAM,
                              .order = NX_ORDER_EPOCHS,
                              .blend = NX_BLEND_WEIGHTS};
  const nx_source source = {.prefix = prefix, .split = NX_SPLIT_SUMS, .weight = 1, .shares = {1}};
  nx_chunk chunk = {.forward = 0, .backward = 1, .evaluate = NX_NONE, .step = 2, .n_slots = 1,
                    .ports = {NX_NONE, NX_NONE, NX_NONE, NX_NONE}};
  memcpy(chunk.arena_bytes, arena_bytes, sizeof chunk.arena_bytes);
  section(NX_SECTION_STRINGS, MEANING, strings, n_strings);
  section(NX_SECTION_RUN, MEANING, &run, 1);
  section(NX_SECTION_ATOMS, MEANING, &atom, 1);
  section(NX_SECTION_GROUPS, MEANING, &group, 1);
  section(NX_SECTION_CONSTANTS, MEANING, constants, 3);
  section(NX_SECTION_TERMS, MEANING, terms, 2);
  section(NX_SECTION_ARENAS, MEANING, arenas, n_arenas);
  section(NX_SECTION_VALUES, MEANING, values, n_values);
  section(NX_SECTION_PIECES, MEANING, &piece, 1);
  section(NX_SECTION_RANGES, MEANING, &range, 1);
  section(NX_SECTION_OPERATORS, MEANING, operators, n_operators);
  section(NX_SECTION_ARGUMENTS, MEANING, arguments, n_arguments);
  section(NX_SECTION_ATTRIBUTES, MEANING, attributes, n_attributes);
  section(NX_SECTION_PROGRAMS, MEANING, programs, 3);
  section(NX_SECTION_CHUNKS, MEANING, &chunk, 1);
  section(NX_SECTION_ITEMS, MEANING, items, 3);
  section(NX_SECTION_DATASETS, MEANING, &dataset, 1);
  section(NX_SECTION_PROVENANCE_TEXT, 0, strings, n_strings);
  section(NX_SECTION_RUN_NAMES, 0, &names, 1);
  section(NX_SECTION_PARAMETER_GROUPS, MEANING, &parameter_group, 1);
  section(NX_SECTION_SOURCES, MEANING, &source, 1);
  section(NX_SECTION_SCHEDULES, MEANING, &schedule, 1);
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  options = argv + 2, n_options = argc - 2;
  n_ranks = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1;
  batch = count("batch", 2), sequence = count("sequence", 8);
  nx_program programs[3];
  add_values();
  add_operators(programs);
  nx_header *header = (nx_header *)(void *)file;
  *header = (nx_header){.major = (uint16_t)count("format", NX_PLAN_MAJOR),
                        .minor = NX_PLAN_MINOR,
                        .header_bytes = sizeof *header,
                        .endian = 0x01020304,
                        .section_table_offset = sizeof *header};
  memcpy(header->magic, NX_PLAN_MAGIC, sizeof header->magic);
  at = sizeof *header + N_SECTIONS * sizeof(nx_section);
  write_sections(programs);
  header->file_bytes = at;
  nx_plan_hash_meaning(file, header->plan_id);
  nx_plan_hash_root(file, header->root);
  FILE *out = fopen(argv[1], "wb");
  bool written = out && fwrite(file, at, 1, out) == 1;
  return (out && fclose(out) == 0 && written) ? 0 : 1;
}
