/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/show/plan_dump.h"

#include "compiler/diagnostics/characters.h"

#include <inttypes.h>
#include <string.h>

const char *nxc_in_words(nxc_arena *arena, double number) {
  if (number >= 1e12) return nxc_arena_printf(arena, "%.3g trillion", number / 1e12);
  if (number >= 1e9) return nxc_arena_printf(arena, "%.3g billion", number / 1e9);
  if (number >= 1e6) return nxc_arena_printf(arena, "%.3g million", number / 1e6);
  return nxc_arena_printf(arena, number >= 100 ? "%.0f" : "%.3g", number);
}

void nxc_print_quantity(FILE *out, double quantity, const char *unit) {
  static const char *const prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t prefix = 0;
  for (; quantity >= 999.5 && prefix + 1 < sizeof prefixes / sizeof *prefixes; prefix++) quantity /= 1000;
  int decimals = prefix == 0 || quantity >= 99.95 ? 0 : quantity >= 9.995 ? 1 : 2;
  fprintf(out, "%.*f %s%s", decimals, quantity, prefixes[prefix], unit);
}

/* A text of the plan between two of ours. */
static void print_text(FILE *out, const char *before, const char *text, const char *behind) {
  fputs(before, out);
  nxc_characters_print(text, out);
  fputs(behind, out);
}

static void print_box(FILE *out, const nx_value *value) {
  fprintf(out, "%s[", nx_dtype_name(value->dtype));
  for (int dim = 0; dim < value->n_dims; dim++) fprintf(out, "%s%" PRId64, dim ? "," : "", value->dims[dim]);
  fputc(']', out);
}

/* The atoms, slowest first: "shard:kv_group". */
static void print_set(const nx_plan *plan, uint32_t atoms, FILE *out) {
  const char *joint = "";
  if (atoms == NX_NONE) fputs("chunk", out);
  for (uint32_t atom = plan->n[NX_SECTION_ATOMS]; atoms != NX_NONE && atom-- > 0;) {
    if (!(atoms & 1u << atom)) continue;
    print_text(out, joint, nx_plan_string(plan, plan->atoms[atom].name), "");
    joint = ":";
  }
}

/* base, then each term: "0 + 64 shard", "384 x layers[...]". */
static void print_constant(const nx_plan *plan, uint32_t index, FILE *out) {
  const nx_constant *constant = &plan->constants[index];
  fprintf(out, "%" PRId64, constant->base);
  for (uint32_t i = 0; i < constant->n_terms; i++) {
    const nx_term *term = &plan->terms[constant->first_term + i];
    if (term->kind == NX_TERM_STRIDE) fprintf(out, " + %" PRId64 " ", term->stride);
    else fprintf(out, " %c table[", term->kind == NX_TERM_ENTRY ? '+' : 'x');
    print_set(plan, term->atoms, out);
    if (term->kind != NX_TERM_STRIDE) fputc(']', out);
  }
}

/* The name of one of the values that the row lists. */
static void print_named(const nx_attr_row *row, int64_t number, FILE *out) {
  const char *name = row->values;
  for (; number > 0 && strchr(name, ' ') != NULL; number--) name = strchr(name, ' ') + 1;
  fprintf(out, "%.*s", (int)strcspn(name, " "), name);
}

static void print_attribute(const nx_plan *plan, const nx_attr_row *row, const nx_attribute *attribute,
                            FILE *out) {
  fprintf(out, " %s=", row->name);
  if (attribute->kind == NX_ATTRIBUTE_REAL) fprintf(out, "%.9g", attribute->real);
  else if (attribute->kind == NX_ATTRIBUTE_INT && row->values != NULL)
    print_named(row, attribute->integer, out);
  else if (attribute->kind == NX_ATTRIBUTE_INT) fprintf(out, "%" PRId64, attribute->integer);
  else print_constant(plan, attribute->constant, out);
}

static void print_operand(const nx_plan *plan, uint32_t index, FILE *out) {
  const nx_value *value = &plan->values[index];
  print_text(out, "", nx_plan_string(plan, value->name), ":");
  print_box(out, value);
  fprintf(out, "@%s+%" PRIu64, nx_arena_name(value->arena), value->offset);
  if (value->offset_shift == NX_NONE) return;
  fputs("+(", out);
  print_constant(plan, value->offset_shift, out);
  fputc(')', out);
}

static void print_operands(const nx_plan *plan, const nx_operator *op, uint32_t first, uint32_t n,
                           const char *label, FILE *out) {
  for (uint32_t i = 0; i < n; i++) {
    fprintf(out, "        %s ", i == 0 ? label : "  ");
    print_operand(plan, plan->arguments[op->first_argument + first + i], out);
    fputc('\n', out);
  }
}

/* "by hosts (1.2 ms; direct 3.4 ms)" */
static void print_route(const nx_route *route, FILE *out) {
  fprintf(out, " by %s (%.3g ms", nx_way_name((nx_way)route->way), 1e3 * (double)route->seconds);
  if (route->next != route->way)
    fprintf(out, "; %s %.3g ms", nx_way_name((nx_way)route->next), 1e3 * (double)route->next_seconds);
  fputc(')', out);
}

/* A capital one where it runs apart: cut off a backward pass, or in steps with compressed reductions. */
static char when_letter(const nx_operator *op, uint8_t when, char letter) {
  if (op->when & when) return letter;
  return op->when & nx_when_later(when) ? (char)(letter - 'a' + 'A') : '-';
}

static void dump_operator(const nx_plan *plan, uint32_t index, FILE *out) {
  const nx_operator *op = &plan->operators[index];
  const nx_op_row *row = nx_op_find(op->op);
  fprintf(out, "%5u %c%c%c %s", index, when_letter(op, NX_WHEN_FIRST, 'f'),
          when_letter(op, NX_WHEN_MIDDLE, 'm'), when_letter(op, NX_WHEN_LAST, 'l'), row->name);
  if (op->group != NX_NONE) {
    print_text(out, " over ", nx_plan_string(plan, plan->groups[op->group].name), " ");
    fprintf(out, "(%u)", plan->groups[op->group].size);
  }
  for (uint32_t i = 0; i < op->n_attrs; i++)
    print_attribute(plan, &row->attrs[i], &plan->attributes[op->first_attribute + i], out);
  const nx_route *route = nx_plan_route(plan, index);
  if (route) print_route(route, out);
  print_text(out, "  [", nx_plan_string(plan, op->origin), "");
  if (op->flops) fputs("; ", out), nxc_print_quantity(out, (double)op->flops, "FLOP");
  if (op->moved_bytes) fputs("; ", out), nxc_print_quantity(out, (double)op->moved_bytes, "B");
  fputs("]\n", out);
  print_operands(plan, op, op->n_in, op->n_out, "->", out);
  print_operands(plan, op, 0, op->n_in, "<-", out);
}

static void program_cost(const nx_plan *plan, const nx_program *program, uint64_t *flops, uint64_t *bytes) {
  *flops = *bytes = 0;
  for (uint32_t i = 0; i < program->n_operators; i++) {
    *flops += plan->operators[program->first_operator + i].flops;
    *bytes += plan->operators[program->first_operator + i].moved_bytes;
  }
}

void nxc_dump_ops(const nx_plan *plan, FILE *out) {
  fputs(
      "number, in which micro-batches of a step (first, middle, last), operator, attributes [origin; cost]\n",
      out);
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PROGRAMS]; i++) {
    const nx_program *program = &plan->programs[i];
    uint64_t flops, bytes;
    program_cost(plan, program, &flops, &bytes);
    print_text(out, "\nprogram ", nx_plan_string(plan, program->name), ": ");
    fprintf(out, "%u operators, ", program->n_operators);
    nxc_print_quantity(out, (double)flops, "FLOP");
    fputs(", ", out);
    nxc_print_quantity(out, (double)bytes, "B");
    fputs(" moved\n", out);
    for (uint32_t op = 0; op < program->n_operators; op++)
      dump_operator(plan, program->first_operator + op, out);
  }
}

static void dump_mesh(const nx_plan *plan, FILE *out) {
  fprintf(out, "ranks       %u on %u host%s, %u thread%s each\n", plan->run->n_ranks, plan->run->n_hosts,
          plan->run->n_hosts == 1 ? "" : "s", plan->run->n_threads, plan->run->n_threads == 1 ? "" : "s");
  fputs("mesh        ", out);
  for (uint32_t i = 0; i < plan->n[NX_SECTION_ATOMS]; i++) {
    print_text(out, i ? " x " : "", nx_plan_string(plan, plan->atoms[i].name), " ");
    fprintf(out, "%u", plan->atoms[i].size);
  }
  fputs(plan->n[NX_SECTION_ATOMS] ? "\n" : "one rank\n", out);
}

/* What ranks hold a part of, and of how many: "optimizer state, gradients in 4, 9 of 10 ranges". */
static void dump_shards(const nx_plan *plan, FILE *out) {
  uint32_t n_divided = 0, n_most = 0;
  bool gradients = false, parameters = false;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_RANGES]; i++) {
    const nx_range *range = &plan->ranges[i];
    const nx_value *param = &plan->values[range->param];
    if (range->shard_group == NX_NONE) continue;
    n_divided++;
    if (plan->groups[range->shard_group].size > n_most) n_most = plan->groups[range->shard_group].size;
    if (range->grad != NX_NONE) gradients |= (uint64_t)plan->values[range->grad].dims[0] == range->n_shard;
    parameters |= (uint64_t)param->dims[0] == range->n_shard && param->view_of == NX_NONE;
  }
  if (n_divided == 0) return;
  fprintf(out, "shards      optimizer state%s%s in %u, %u of %u ranges\n", gradients ? ", gradients" : "",
          parameters ? ", parameters" : "", n_most, n_divided, plan->n[NX_SECTION_RANGES]);
}

static uint64_t elements_of_group(const nx_plan *plan, uint32_t group) {
  uint64_t n = 0;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_RANGES]; i++)
    if (plan->ranges[i].parameter_group == group) n += plan->ranges[i].n_elements;
  return n;
}

/* What is not updated, and the bytes that a rank keeps of it. */
static void dump_frozen(const nx_plan *plan, FILE *out) {
  uint64_t n = elements_of_group(plan, NX_NONE), bytes = 0;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_RANGES]; i++)
    if (plan->ranges[i].parameter_group == NX_NONE) bytes += plan->values[plan->ranges[i].param].bytes;
  if (n == 0) return;
  fputs("            frozen: ", out);
  nxc_print_quantity(out, (double)n, "elements");
  fputs(" of a rank, ", out);
  nxc_print_quantity(out, (double)bytes, "B");
  fputs(" kept\n", out);
}

/* What is updated alike: "decayed: adamw, lr x 1, weight decay 0.1, 1.2 Melements". */
static void dump_parameter_groups(const nx_plan *plan, FILE *out) {
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PARAMETER_GROUPS]; i++) {
    const nx_parameter_group *group = &plan->parameter_groups[i];
    print_text(out, i ? "            " : "groups      ", nx_plan_string(plan, group->name), ": ");
    fprintf(out, "%s, lr x %.6g, weight decay %.6g, ", nx_optimizer_of(group->optimizer)->name,
            group->lr_factor, group->weight_decay);
    nxc_print_quantity(out, (double)elements_of_group(plan, i), "elements");
    fputs(" of a rank\n", out);
  }
  dump_frozen(plan, out);
}

void nxc_print_evaluation(const nx_plan *plan, const nx_evaluation *e, FILE *out) {
  const char *sep = "";
  print_text(out, "", nx_plan_text(plan, e->name), ": ");
  if (e->batches) fprintf(out, "%" PRIu64 " batch%s", e->batches, e->batches == 1 ? "" : "es");
  else if (e->share < 1) fprintf(out, "%.4g of the set", e->share);
  else fputs("all of the set", out);
  if (e->sanity_batches) fprintf(out, " before the first step"), sep = ",";
  if (e->every)
    fprintf(out, "%s every %" PRIu64 " step%s", sep, e->every, e->every == 1 ? "" : "s"), sep = " and";
  else if (e->every_epochs > 0) fprintf(out, "%s every %.4g epochs", sep, e->every_epochs), sep = " and";
  if (e->flags & NX_EVALUATION_AT_END) fprintf(out, "%s at the end", sep);
}

static void dump_evaluations(const nx_plan *plan, FILE *out) {
  for (uint32_t i = 0; i < plan->n[NX_SECTION_EVALUATIONS]; i++) {
    fputs(i ? "            " : "evaluations ", out);
    nxc_print_evaluation(plan, &plan->evaluations[i], out);
    fputc('\n', out);
  }
}

enum { N_PHASES_SHOWN = 8 };

/* The first phases, and the last one. */
static void dump_phases(const nx_plan *plan, FILE *out) {
  uint32_t n = plan->n[NX_SECTION_PHASES];
  for (uint32_t i = 0; i < n; i++) {
    const nx_phase *phase = &plan->phases[i];
    if (n > N_PHASES_SHOWN && i >= N_PHASES_SHOWN - 1 && i + 1 < n) continue;
    const nx_schedule *schedule = &plan->schedules[phase->schedule];
    fprintf(out, "  from step %" PRIu64 " on %u sequences, %u micro-batches", phase->first_step + 1,
            phase->global_batch, schedule->n_micro_batches);
    if (schedule->flags & NX_SCHEDULE_COMPRESSED) {
      fputs(", compressed reductions: a rank receives ", out);
      nxc_print_quantity(out, (double)nx_schedule_received(plan, schedule, 0), "B");
      fputs(" a step, and before that ", out);
      nxc_print_quantity(out, (double)nx_schedule_received(plan, plan->schedules, 0), "B");
    }
    fputc('\n', out);
  }
}

void nxc_dump_summary(const nx_plan *plan, FILE *out) {
  const nx_run *run = plan->run;
  char plan_id[65], file_hash[65];
  nx_hex(plan->header->plan_id, plan_id);
  nx_sha256_hex(plan->bytes, plan->n_bytes, file_hash);
  fprintf(out, "plan_id     %s\nfile_sha256 %s\n", plan_id, file_hash);
  fprintf(out, "file        format %u.%u, %" PRIu64 " bytes\n", plan->header->major, plan->header->minor,
          plan->n_bytes);
  dump_mesh(plan, out);
  dump_shards(plan, out);
  fputs("model       ", out);
  nxc_print_quantity(out, (double)run->n_parameters, "parameters");
  if (run->adapter_config) fputs(", ", out), nxc_print_quantity(out, (double)run->n_trained, " of adapters");
  fprintf(out, "\nstep        %u sequences of %u tokens, ", run->global_batch, run->sequence);
  nxc_print_quantity(out, run->flops_per_step, "FLOP");
  fprintf(out, "\n            %u micro-batch%s of %u on each of %u data-parallel rank%s\n",
          run->n_micro_batches, run->n_micro_batches == 1 ? "" : "es", run->micro_batch, run->data_size,
          run->data_size == 1 ? "" : "s");
  dump_parameter_groups(plan, out);
  fprintf(out, "training    %" PRIu64 " steps, ", run->n_steps);
  nxc_print_quantity(out, (double)nx_plan_samples_before(plan, run->n_steps) * run->sequence, "tokens");
  fputc('\n', out);
  dump_phases(plan, out);
  dump_evaluations(plan, out);
  fprintf(out, "operators   %u in %u programs\n", plan->n[NX_SECTION_OPERATORS],
          plan->n[NX_SECTION_PROGRAMS]);
}

void nxc_dump_settings(const nx_plan *plan, FILE *out) {
  for (uint32_t i = 0; i < plan->n[NX_SECTION_SETTINGS]; i++) {
    const nx_setting_record *setting = &plan->settings[i];
    const char *path = nx_plan_text(plan, setting->path);
    print_text(out, "", path, " ");
    for (size_t column = strlen(path); column < 32; column++) fputc(' ', out);
    print_text(out, "", nx_plan_text(plan, setting->value), "");
    for (uint32_t p = 0; p < plan->n[NX_SECTION_PROVENANCES]; p++) {
      const nx_provenance *from = &plan->provenances[p];
      if (from->setting != i) continue;
      const char *option = nx_plan_text(plan, from->option), *file = nx_plan_text(plan, from->file);
      print_text(out, "  # ", nx_plan_text(plan, from->kind), "");
      if (option[0]) print_text(out, " ", option, "");
      if (file[0]) print_text(out, " ", file, ":"), fprintf(out, "%u:%u", from->line, from->column);
    }
    fputc('\n', out);
  }
}

enum { N_LARGEST = 5 };

/* The largest values of an arena that are no views, largest first, earlier ones first among equals. */
static uint32_t find_largest(const nx_plan *plan, uint32_t kind, uint32_t largest[N_LARGEST]) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_VALUES]; i++) {
    const nx_value *value = &plan->values[i];
    if (value->arena != kind || value->view_of != NX_NONE) continue;
    uint32_t at = n < N_LARGEST ? n++ : N_LARGEST;
    while (at > 0 && plan->values[largest[at - 1]].bytes < value->bytes) {
      if (at < N_LARGEST) largest[at] = largest[at - 1];
      at--;
    }
    if (at < N_LARGEST) largest[at] = i;
  }
  return n;
}

void nxc_dump_memory(const nx_plan *plan, FILE *out) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_ARENAS]; i++) {
    const nx_arena_record *arena = &plan->arenas[i];
    uint32_t largest[N_LARGEST], n = find_largest(plan, arena->kind, largest);
    total += arena->bytes;
    fprintf(out, "%-8s %14" PRIu64 " bytes%s  %s\n", nx_arena_name(arena->kind), arena->bytes,
            arena->flags & NX_ARENA_SHARED ? ", shared" : "        ", nx_arena_meaning(arena->kind));
    for (uint32_t v = 0; v < n; v++) {
      const nx_value *value = &plan->values[largest[v]];
      fprintf(out, "         %14" PRIu64 "         ", value->bytes);
      print_text(out, "", nx_plan_string(plan, value->name), " ");
      print_box(out, value);
      fputc('\n', out);
    }
  }
  uint32_t n_stages = nx_plan_n_stages(plan);
  for (uint32_t stage = 0; n_stages > 1 && stage < n_stages; stage++) {
    uint64_t bytes = 0;
    for (uint32_t kind = 0; kind < NX_N_ARENAS; kind++) bytes += nx_plan_stage_bytes(plan, stage, kind);
    fprintf(out, "stage %-2u %14" PRIu64 " bytes for each of its ranks\n", stage, bytes);
  }
  fprintf(out, "%-8s %14" PRIu64 " bytes for each rank%s, and at most %" PRIu64 " of workspace\n", "total",
          total, n_stages > 1 ? " at most" : "", plan->run->workspace_bytes);
}

void nxc_dump_tensors(const nx_plan *plan, FILE *out) {
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PIECES]; i++) {
    const nx_piece *piece = &plan->pieces[i];
    print_text(out, "", nx_plan_string(plan, piece->name), " ");
    fprintf(out, "[%" PRId64 ",%" PRId64 "]%s: local [%" PRId64 ",%" PRId64 "] at row ",
            piece->logical_rows, piece->logical_columns,
            piece->flags & NX_PIECE_TRANSPOSED ? " (stored transposed)" : "", piece->rows, piece->columns);
    print_constant(plan, piece->row_start, out);
    fputs(", column ", out);
    print_constant(plan, piece->column_start, out);
    fprintf(out, "; row %" PRId64 " of ", piece->row);
    print_operand(plan, piece->value, out);
    print_text(out, "; range ", nx_plan_string(plan, plan->ranges[piece->range].name), "\n");
  }
}
