/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/estimate.h"

#include "compiler/show/plan_dump.h"

#include <inttypes.h>
#include <string.h>

bool nxc_estimate_read(nxc_arena *arena, const char *command, const char *memory, const char *machine,
                       nxc_estimate_request *out) {
  *out = (nxc_estimate_request){.system = out->system};
  if (memory != NULL && !nxc_bytes_parse(memory, &out->memory_bytes)) {
    fprintf(stderr, "nxcfg %s: --memory takes a number of bytes, as 80GiB, not %s\n", command, memory);
    return false;
  }
  if (machine == NULL) return true;
  const nxc_render render = {.format = NXC_FORMAT_TEXT};
  nxc_sink *sink = nxc_sink_new(arena);
  out->machine = nxc_machine_read(arena, machine, sink);
  nxc_sink_print(sink, &render, stderr);
  return out->machine != NULL;
}

/* ---- judging ---- */

static void check_memory(const nxc_estimate_request *request, const nxc_settings *settings,
                         const nx_plan *plan, const nxc_sink *obstacles, nxc_arena *arena, nxc_sink *sink, nxc_estimate *out) {
  uint64_t limit = request->memory_bytes;
  const char *source = "--memory";
  if (limit == 0 && request->machine != NULL) {
    limit = request->machine->memory_bytes;
    source = request->machine->name;
  }
  if (limit == 0) return;
  if (plan == NULL) out->memory_skipped = nxc_memory_skip(obstacles, arena, sink);
  else nxc_memory_check(settings, plan, limit, source, arena, sink);
}

nxc_estimate nxc_estimate_make(const nxc_estimate_request *request, const nxc_settings *settings,
                               const nx_plan *plan, const nxc_sink *obstacles, nxc_arena *arena,
                               nxc_sink *sink) {
  nxc_estimate estimate = {.machine = request->machine};
  check_memory(request, settings, plan, obstacles, arena, sink, &estimate);
  if (request->machine == NULL || plan == NULL) return estimate;
  if (request->machine->device != NULL) return estimate; /* not one that nxrun runs on */
  const char *lacks = nxc_forecast_lacks(plan, request->machine, arena);
  if (lacks != NULL) {
    nxc_report(sink, "NX3111", NXC_SEVERITY_WARNING, (nxc_span){0}, NULL,
               "no forecast: the machine description %s has no %s", request->machine->source->name, lacks);
    return estimate;
  }
  estimate.forecast = nxc_forecast_step(plan, request->machine, arena);
  estimate.forecast_made = true;
  return estimate;
}

/* ---- the file's own system ---- */

nxc_own_estimate nxc_own_estimate_make(const nxc_estimate_request *request, const nxc_settings *settings,
                                       const char *dialect, nxc_arena *arena) {
  nxc_own_estimate own = {.system = request->system ? request->system : dialect};
  const nxc_system *system = nxc_system_open(arena, own.system);
  nxc_sink *obstacles = nxc_sink_new(arena);
  nxc_training training;
  if (system == NULL) own.system = NULL;
  if (system == NULL) return own;
  if (!nxc_training_read(settings, obstacles, &training)) {
    own.lacks = nxc_sink_finding(obstacles, 0)->message;
    return own;
  }
  own.sizes = nxc_sizes_read(&training, settings);
  own.memory = nxc_own_memory_of(system, &own.sizes, &training, arena);
  own.timed = request->machine != NULL && request->machine->device != NULL;
  if (!own.timed) return own;
  own.held_bytes = own.memory.total * request->machine->device->allocator;
  own.device_bytes = own.held_bytes + (double)request->machine->device->reserved_bytes;
  own.time = nxc_own_time_of(system, &own.sizes, &training, request->machine, arena);
  return own;
}

json_t *nxc_own_estimate_json(const nxc_own_estimate *own) {
  if (own->system == NULL || own->lacks != NULL) return json_null();
  json_t *memory = json_object(), *parts = json_object(), *object = json_object();
  for (int part = 0; part < NXC_N_PARTS; part++)
    json_object_set_new(memory, nxc_part_names[part], json_real(own->memory.parts[part]));
  json_object_set_new(memory, "total", json_real(own->memory.total));
  if (own->timed) {
    json_object_set_new(memory, "with_allocator", json_real(own->held_bytes));
    json_object_set_new(memory, "of_device", json_real(own->device_bytes));
  }
  json_object_set_new(object, "system", json_string(own->system));
  json_object_set_new(object, "stage", json_integer(own->memory.stage));
  json_object_set_new(object, "memory_bytes", memory);
  if (!own->timed) return json_decref(parts), object;
  for (int part = 0; part < NXC_N_SPENT; part++)
    json_object_set_new(parts, nxc_spent_names[part], json_real(own->time.parts[part]));
  json_object_set_new(object, "step_seconds", json_real(own->time.step_s));
  json_object_set_new(object, "seconds", parts);
  json_object_set_new(object, "tokens_per_second", json_real(own->time.tokens_per_s));
  json_object_set_new(object, "utilisation", json_real(own->time.utilisation));
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

/* What was measured with other threads, or laid out otherwise, is not what would run. */
static void print_cautions(const nxc_estimate *estimate, const nx_plan *plan, FILE *out) {
  const nxc_machine *machine = estimate->machine;
  if (machine->threads && machine->threads != plan->run->n_threads)
    fprintf(out, "  the machine is described for %u thread%s a rank, the plan has %u\n", machine->threads,
            machine->threads == 1 ? "" : "s", plan->run->n_threads);
  if (estimate->forecast.ranks_per_host < plan->run->n_ranks / plan->run->n_hosts)
    fprintf(out, "  the plan puts %u ranks on a host, the machine has %u: reckoned with %u\n",
            plan->run->n_ranks / plan->run->n_hosts, machine->ranks_per_host, machine->ranks_per_host);
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
  fprintf(out, "  %.0f tokens/s, %.1f %% of the peak of %s products\n", f->tokens_per_s, 100 * f->utilisation,
          nx_dtype_name(f->type));
  print_cautions(estimate, plan, out);
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
  return object;
}
