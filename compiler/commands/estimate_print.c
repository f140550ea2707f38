/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates and forecasts as text and as JSON. */
#include "compiler/commands/estimate.h"
#include "compiler/program/emit/emit_forecast.h"
#include "compiler/show/plan_dump.h"

#include <inttypes.h>

json_t *nxc_assumed_json(const nxc_assumed *assumed) {
  json_t *list = json_array();
  if (assumed->defaults)
    json_array_append_new(
        list, json_pack("{s:s, s:s}", "setting", "defaults", "value", "of what other texts may give"));
  if (assumed->arguments != NULL)
    json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "setting", "arguments of the script", "value",
                                          assumed->arguments, "why", "as a comment of it shows"));
  if (assumed->model != NULL)
    json_array_append_new(list, json_pack("{s:s, s:s}", "setting", "model", "value", assumed->model));
  for (size_t i = 0; i < assumed->n_items; i++)
    json_array_append_new(
        list, json_pack("{s:s, s:s, s:s}", "setting", nxc_setting_path(assumed->items[i].setting), "value",
                        assumed->items[i].value, "why", assumed->items[i].why));
  return list;
}

json_t *nxc_own_estimate_json(const nxc_own_estimate *own) {
  if (own->system == NULL) return json_null();
  if (own->lacks != NULL) {
    const char *kind = nxc_settings_show(own->compiled.settings, NX_SETTING_MODEL_KIND);
    return json_pack("{s:s, s:s, s:s, s:o}", "system", own->system, "lacks", own->lacks, "kind", kind,
                     "assumed", nxc_assumed_json(&own->assumed));
  }
  json_t *memory = json_object(), *parts = json_object(), *object = json_object();
  for (int part = 0; part < NXC_N_MEMORY_PARTS; part++)
    json_object_set_new(memory, nxc_memory_part_names[part], json_real(own->memory.parts[part]));
  json_object_set_new(memory, "total", json_real(own->memory.total));
  if (own->timed) {
    json_object_set_new(memory, "with_allocator", json_real(own->held_bytes));
    json_object_set_new(memory, "of_device", json_real(own->device_bytes));
  }
  json_object_set_new(object, "system", json_string(own->system));
  json_object_set_new(object, "assumed", nxc_assumed_json(&own->assumed));
  json_object_set_new(object, "stage", json_integer(own->memory.stage));
  json_object_set_new(object, "memory_bytes", memory);
  json_t *stages = json_array();
  for (uint32_t stage = 0; stage < own->training.layout.pipeline; stage++)
    json_array_append_new(stages, json_real(own->stage_bytes[stage]));
  json_object_set_new(object, "stage_bytes", stages);
  if (!own->timed) return json_decref(parts), object;
  for (int part = 0; part < NXC_N_SPENT; part++)
    json_object_set_new(parts, nxc_spent_names[part], json_real(own->time.parts[part]));
  json_object_set_new(object, "step_seconds", json_real(own->time.step_s));
  json_object_set_new(object, "seconds", parts);
  json_object_set_new(object, "tokens_per_second", json_real(own->time.tokens_per_s));
  json_object_set_new(object, "utilisation", json_real(own->time.utilisation));
  json_object_set_new(object, "model_flops_per_second", json_real(own->time.model_flops / own->time.step_s));
  return object;
}

json_t *nxc_column_json(const nxc_column *column) {
  if (column->whose == NULL) return json_null();
  json_t *memory = json_object(), *object = json_object();
  for (int part = 0; part < NXC_N_MEMORY_PARTS; part++)
    json_object_set_new(memory, nxc_memory_part_names[part], json_real(column->parts[part]));
  json_object_set_new(memory, "allocator_and_driver", json_real(column->beside));
  json_object_set_new(memory, "total", json_real(column->total));
  json_object_set_new(object, "system", json_string(column->whose));
  json_object_set_new(object, "stage", json_integer(column->stage));
  json_object_set_new(object, "memory_bytes", memory);
  if (!column->timed) return object;
  json_object_set_new(object, "step_seconds", json_real(column->step_s));
  json_object_set_new(object, "tokens_per_second", json_real(column->tokens_per_s));
  json_object_set_new(object, "utilisation", json_real(column->utilisation));
  return object;
}

/* ---- printing ---- */

static void print_seconds(double seconds, FILE *out) {
  if (seconds >= 1 || seconds == 0) fprintf(out, "%7.3g s ", seconds);
  else if (seconds >= 1e-3) fprintf(out, "%7.3g ms", seconds * 1e3);
  else fprintf(out, "%7.3g us", seconds * 1e6);
}

static void print_part(const char *name, double seconds, double step_s, FILE *out) {
  fprintf(out, "  %-14s ", name);
  print_seconds(seconds, out);
  fprintf(out, "  %5.1f %%\n", 100 * seconds / step_s);
}

static void print_group(const nxc_group_cost *cost, const nx_plan *plan, FILE *out) {
  const nx_group *group = &plan->groups[cost->group];
  fprintf(out, "  over %s (%u ranks on %u host%s): %" PRIu64 " collectives, %" PRIu64 " steps, ",
          nx_plan_string(plan, group->name), group->size, cost->n_hosts, cost->n_hosts == 1 ? "" : "s",
          cost->n_collectives, cost->n_steps);
  nxc_print_quantity(out, (double)cost->bytes, "B");
  fputs(" received,", out);
  print_seconds(cost->seconds, out);
  fputc('\n', out);
}

void nxc_forecast_print_cautions(const nxc_estimate *estimate, const nx_plan *plan, FILE *out) {
  const nxc_machine *machine = estimate->machine;
  if (machine->threads && machine->threads != plan->run->n_threads)
    fprintf(out, "  the machine is described for %u thread%s a rank, the plan has %u\n", machine->threads,
            machine->threads == 1 ? "" : "s", plan->run->n_threads);
  if (estimate->forecast.ranks_per_host < plan->run->n_ranks / plan->run->n_hosts)
    fprintf(out, "  the plan puts %u ranks on a host, the machine has %u: reckoned with %u\n",
            plan->run->n_ranks / plan->run->n_hosts, machine->ranks_per_host, machine->ranks_per_host);
}

static void print_evaluations(double batch_s, double n_batches, double train_s, FILE *out) {
  double all_s = n_batches * batch_s;
  fputs("  evaluation", out);
  print_seconds(batch_s, out);
  fputs(" a batch", out);
  if (all_s > 0) fprintf(out, ", %.1f %% of the training's time", 100 * all_s / (train_s + all_s));
  fputc('\n', out);
}

void nxc_forecast_print_evaluations(const nxc_forecast *f, const nx_plan *plan, FILE *out) {
  double n = 0;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_EVALUATIONS]; i++)
    n += nxc_evaluated_batches(&plan->evaluations[i], plan->run->n_steps);
  if (f->evaluation_s > 0) print_evaluations(f->evaluation_s, n, f->training_s, out);
}

void nxc_own_print_evaluations(const nxc_own_estimate *own, FILE *out) {
  const nxc_evaluations *evaluations = &own->training.evaluations;
  uint64_t n_steps = (uint64_t)own->training.rate.max_steps;
  double n = 0;
  for (uint32_t i = 0; i < evaluations->n; i++)
    n += nxc_evaluated_batches(&evaluations->at[i].record, n_steps);
  if (evaluations->n) print_evaluations(own->time.evaluation_s, n, own->time.step_s * (double)n_steps, out);
}

void nxc_deadline_print(const nx_plan *plan, const nxc_settings *settings, FILE *out) {
  fprintf(out, "  run.deadline_s %g: a silent rank is given up after ", plan->run_names->deadline_s);
  if (nxc_has(settings, NX_SETTING_RUN_DEADLINE_S)) fputs("so many seconds\n", out);
  else fprintf(out, "%d steps, at least %d s\n", NXC_DEADLINE_STEPS, NXC_DEADLINE_LEAST_S);
}

void nxc_forecast_print(const nxc_estimate *estimate, const nx_plan *plan, FILE *out) {
  const nxc_forecast *f = &estimate->forecast;
  if (!estimate->forecast_made) return;
  fprintf(out, "forecast of a step on %s", estimate->machine->name);
  if (nx_plan_n_stages(plan) > 1) fprintf(out, "; of stage %u, which works longest", f->stage);
  fputc('\n', out);
  for (int class = 0; class < NXC_N_COSTS; class++)
    if (f->class_s[class] > 0) print_part(nxc_cost_names[class], f->class_s[class], f->step_s, out);
  if (f->bubble_s > 0) print_part("bubble", f->bubble_s, f->step_s, out);
  print_part("step", f->step_s, f->step_s, out);
  for (size_t i = 0; i < f->n_groups; i++)
    if (f->groups[i].n_steps) print_group(&f->groups[i], plan, out);
  nxc_forecast_print_evaluations(f, plan, out);
  fprintf(out, "  %.0f tokens/s, %.1f %% of the peak of %s products\n", f->tokens_per_s, 100 * f->utilisation,
          nx_dtype_name(f->type));
}

static json_t *group_json(const nxc_group_cost *cost, const nx_plan *plan) {
  const nx_group *group = &plan->groups[cost->group];
  json_t *object = json_pack("{s:s, s:i, s:i}", "name", nx_plan_string(plan, group->name), "size",
                             (int)group->size, "hosts", (int)cost->n_hosts);
  json_object_set_new(object, "collectives", json_integer((json_int_t)cost->n_collectives));
  json_object_set_new(object, "steps", json_integer((json_int_t)cost->n_steps));
  json_object_set_new(object, "bytes", json_integer((json_int_t)cost->bytes));
  json_object_set_new(object, "seconds", json_real(cost->seconds));
  return object;
}

json_t *nxc_forecast_json(const nxc_estimate *estimate, const nx_plan *plan) {
  const nxc_forecast *f = &estimate->forecast;
  if (!estimate->forecast_made) return json_null();
  json_t *seconds = json_object(), *groups = json_array();
  for (int class = 0; class < NXC_N_COSTS; class++)
    json_object_set_new(seconds, nxc_cost_names[class], json_real(f->class_s[class]));
  json_object_set_new(seconds, "bubble", json_real(f->bubble_s));
  for (size_t i = 0; i < f->n_groups; i++)
    if (f->groups[i].n_steps) json_array_append_new(groups, group_json(&f->groups[i], plan));
  json_t *object = json_pack("{s:s, s:f, s:i}", "machine", estimate->machine->name, "step_seconds", f->step_s,
                             "stage", (int)f->stage);
  json_object_set_new(object, "seconds", seconds);
  json_object_set_new(object, "groups", groups);
  json_object_set_new(object, "tokens_per_second", json_real(f->tokens_per_s));
  json_object_set_new(object, "utilisation", json_real(f->utilisation));
  json_object_set_new(object, "peak_flops", json_real(plan->run_names->peak_flops));
  json_object_set_new(object, "deadline_seconds", json_real(plan->run_names->deadline_s));
  if (f->evaluation_s > 0) json_object_set_new(object, "evaluation_seconds", json_real(f->evaluation_s));
  return object;
}
