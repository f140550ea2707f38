/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/own_advice.h"

#include "compiler/program/emit/emit_forecast.h"
#include "compiler/program/program.h"

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

/* ---- nxrun ---- */

static bool is_accelerator(const nxc_machine *machine) {
  return machine != NULL && machine->device != NULL;
}

static void forecast(const nx_plan *plan, nxc_arena *arena, nxc_sink *sink, nxc_estimate *out) {
  const nxc_machine *machine = out->machine;
  if (machine == NULL || plan == NULL || is_accelerator(machine)) return; /* nxrun runs on processors */
  const char *lacks = nxc_forecast_lacks(plan, machine, arena);
  out->forecast_made = lacks == NULL;
  if (lacks == NULL) out->forecast = nxc_forecast_step(plan, machine, arena);
  else
    nxc_report(sink, "NX3111", NXC_SEVERITY_WARNING, (nxc_span){0},
               "give it there, or measure this machine with nxrun --calibrate",
               "no forecast: the machine description %s has no %s", machine->source->name, lacks);
}

/* ---- the file's own system ---- */

bool nxc_estimate_compile(const nxc_estimate_request *asked, const nxc_request *request, nxc_arena *arena,
                          nxc_sink *sink, nxc_compiled *compiled, nxc_assumed *assumed) {
  *assumed = (nxc_assumed){.request = *request};
  if (asked->assumes_nothing) nxc_compile_settings(arena, request, sink, compiled);
  else nxc_assume_compile(arena, request, asked->assumptions, asked->n_assumptions, sink, compiled, assumed);
  return compiled->settings != NULL;
}

static double *bytes_of_stages(const nxc_own_estimate *own, const nxc_system *system,
                               const nxc_machine *machine, nxc_arena *arena) {
  uint32_t n_stages = own->training.layout.pipeline;
  double *bytes = nxc_arena_array(arena, n_stages, sizeof *bytes);
  for (uint32_t stage = 0; stage < n_stages; stage++) {
    nxc_own_memory m = nxc_own_memory_of_stage(system, &own->sizes, &own->training, stage, arena);
    bytes[stage] =
        is_accelerator(machine) ? nxc_own_taken(machine->device, m.total, own->sizes.world) : m.total;
  }
  return bytes;
}

static void time_on(const nxc_machine *machine, const nxc_system *system, nxc_arena *arena,
                    nxc_own_estimate *own) {
  own->timed = is_accelerator(machine);
  if (!own->timed) return;
  own->held_bytes = own->memory.total * machine->device->allocator;
  own->device_bytes = nxc_own_taken(machine->device, own->memory.total, own->sizes.world);
  own->time = nxc_own_time_of(system, &own->sizes, &own->training, machine, arena);
}

void nxc_own_estimate_sizes(nxc_own_estimate *own, const nxc_estimate_request *asked, nxc_arena *arena) {
  const nxc_system *system = nxc_system_open(arena, own->system);
  own->sizes = nxc_sizes_read(&own->training, own->compiled.settings);
  own->memory = nxc_own_memory_of(system, &own->sizes, &own->training, arena);
  own->stage_bytes = bytes_of_stages(own, system, asked->machine, arena);
  time_on(asked->machine, system, arena, own);
}

nxc_own_estimate nxc_own_estimate_make(const nxc_estimate_request *asked, const nxc_request *request,
                                       nxc_arena *arena) {
  nxc_own_estimate own = {.findings = nxc_sink_new(arena)};
  nxc_sink *obstacles = nxc_sink_new(arena);
  if (!nxc_estimate_compile(asked, request, arena, own.findings, &own.compiled, &own.assumed)) return own;
  const char *name = asked->system ? asked->system : own.compiled.dialect->name;
  if (nxc_system_open(arena, name) == NULL) return own;
  own.system = name;
  if (nxc_training_read(own.compiled.settings, obstacles, &own.training))
    nxc_own_estimate_sizes(&own, asked, arena);
  else {
    own.lacks = nxc_sink_finding(obstacles, 0)->message;
    own.remedy = nxc_sink_finding(obstacles, 0)->fix;
  }
  return own;
}

/* ---- judging ---- */

uint64_t nxc_own_bytes(const nxc_own_estimate *own) {
  return (uint64_t)(own->timed ? own->device_bytes : own->memory.total);
}

enum { N_LINES_TOLD = 3 };

static void judge_own(nxc_own_advice *advice, const nxc_estimate *estimate, const char *unjudged,
                      nxc_sink *sink) {
  const nxc_own_estimate *own = &estimate->own;
  nxc_arena *arena = advice->arena;
  const char *largest[N_LINES_TOLD];
  nxc_memory_need need = {.whose = own->system,
                          .bytes = nxc_own_bytes(own),
                          .limit_bytes = estimate->limit_bytes,
                          .limit_source = estimate->limit_source,
                          .largest = largest,
                          .unjudged = unjudged,
                          .after = nxc_own_after,
                          .context = advice,
                          .step_s = own->time.step_s};
  for (size_t i = 0; i < own->memory.n_lines && i < N_LINES_TOLD; i++)
    largest[need.n_largest++] = nxc_arena_printf(arena, "%s: %s", own->memory.lines[i].row->name,
                                                 nxc_bytes_show(arena, (uint64_t)own->memory.lines[i].bytes));
  double beside = own->timed ? own->device_bytes - own->memory.total : 0;
  if (own->timed) need.least_bytes = (uint64_t)(own->device_bytes - own->held_bytes + own->memory.total);
  need.parts = own->timed ? nxc_arena_printf(arena, "%s of them for allocator, driver and communicators",
                                             nxc_bytes_show(arena, (uint64_t)beside))
                          : "estimated, without what allocator and driver add";
  nxc_memory_judge(&need, own->compiled.settings, arena, sink);
}

/* The file's own system runs it, unless a plan is written, it is nx's, or the machine is no accelerator. */
static bool is_nxruns(const nxc_estimate_request *asked, const char *system) {
  if (asked->nxrun_alone || system == NULL) return true;
  return asked->machine != NULL ? !is_accelerator(asked->machine) : strcmp(system, "nx") == 0;
}

static void judge(nxc_own_advice *advice, const nxc_settings *settings, const nx_plan *plan,
                  const nxc_sink *obstacles, nxc_sink *sink, nxc_estimate *out) {
  const nxc_estimate_request *asked = advice->asked;
  bool by_own = out->own.system != NULL && out->own.lacks == NULL;
  bool by_plan = plan != NULL && is_nxruns(asked, by_own ? out->own.system : NULL);
  out->limit_bytes = asked->memory_bytes ? asked->memory_bytes
                     : asked->machine    ? asked->machine->memory_bytes
                                         : 0;
  out->limit_source = asked->memory_bytes ? "--memory" : asked->machine ? asked->machine->name : NULL;
  if (out->limit_bytes == 0) return;
  nxc_arena *arena = advice->arena;
  const char *obstacle = plan ? NULL : nxc_obstacles_show(obstacles, arena);
  const char *no_plan = plan ? NULL : nxc_arena_printf(arena, "nxrun has no plan of it: %s", obstacle);
  out->memory_judged = by_plan || by_own;
  if (by_plan) nxc_memory_check(settings, plan, out->limit_bytes, out->limit_source, arena, sink);
  else if (by_own) judge_own(advice, out, no_plan, sink);
  else nxc_memory_skip(out->own.lacks && !asked->nxrun_alone ? out->own.lacks : obstacle, sink);
}

/* What the file gives is not assumed, whatever --assume says of it. */
static void tell_unused(const nxc_estimate_request *asked, const nxc_own_estimate *own, nxc_arena *arena,
                        nxc_sink *sink) {
  const nxc_settings *settings = own->compiled.settings;
  for (size_t i = 0; i < asked->n_assumptions && settings != NULL; i++) {
    const nxc_assumption *one = &asked->assumptions[i];
    if (one->setting == NXC_ASSUMES_MODEL) {
      if (own->assumed.model == NULL)
        nxc_report(sink, "NX3112", NXC_SEVERITY_WARNING, (nxc_span){0}, "leave it out",
                   "--assume model=%s does not count: the configuration gives the model", one->value);
      continue;
    }
    const char *path = nxc_setting_path(one->setting);
    if (!nxc_has(settings, one->setting)) continue;
    if (nxc_settings_from(settings, one->setting)->kind == NXC_FROM_ASSUMED) continue;
    nxc_report(sink, "NX3112", NXC_SEVERITY_WARNING, (nxc_span){0},
               nxc_arena_printf(arena, "--set nx:%s=%s", path, one->value),
               "--assume %s=%s does not count: the configuration gives %s", path, one->value,
               nxc_value_show(arena, nxc_settings_value(settings, one->setting)));
  }
}

nxc_estimate nxc_estimate_make(const nxc_estimate_request *asked, const nxc_request *request,
                               const nxc_settings *settings, const nx_plan *plan, const nxc_sink *obstacles,
                               nxc_arena *arena, nxc_sink *sink) {
  nxc_estimate estimate = {.machine = asked->machine};
  nxc_own_advice advice = {
      .asked = asked, .request = request, .own = &estimate.own, .arena = arena, .scratch = nxc_arena_new()};
  if (!asked->nxrun_alone) {
    estimate.own = nxc_own_estimate_make(asked, request, arena);
    tell_unused(asked, &estimate.own, arena, sink);
  }
  judge(&advice, settings, plan, obstacles, sink, &estimate);
  nxc_arena_free(advice.scratch);
  forecast(plan, arena, sink, &estimate);
  return estimate;
}

void nxc_estimate_apply(const nxc_estimate *estimate, const nxc_settings *settings, nxc_plan_bytes *plan) {
  const nxc_machine *machine = estimate->machine;
  double peak = estimate->forecast.peak_flops, deadline_s = 0;
  if (machine == NULL) return;
  if (is_accelerator(machine) && nx_target_find(plan->plan.run->target)->on_device)
    peak = machine->device->peak;
  if (estimate->forecast_made && !nxc_has(settings, NX_SETTING_RUN_DEADLINE_S))
    deadline_s = nxc_deadline_of(estimate->forecast.step_s);
  nxc_emit_forecast(plan->bytes, deadline_s, peak * plan->plan.run->n_ranks);
}

nxc_estimate nxc_estimate_of_plan(const nxc_estimate_request *asked, const nx_plan *plan, nxc_arena *arena,
                                  nxc_sink *sink) {
  nxc_estimate estimate = {.machine = asked->machine};
  forecast(plan, arena, sink, &estimate);
  return estimate;
}

/* ---- both in the same parts ---- */

nxc_column nxc_own_column(const nxc_own_estimate *own) {
  nxc_column column = {.whose = own->lacks == NULL ? own->system : NULL};
  if (column.whose == NULL) return column;
  column.stage = own->memory.stage;
  for (int part = 0; part < NXC_N_MEMORY_PARTS; part++) column.parts[part] = own->memory.parts[part];
  column.total = own->timed ? own->device_bytes : own->memory.total;
  column.beside = column.total - own->memory.total;
  if (own->timed) column.held = own->held_bytes - own->memory.total;
  column.timed = own->timed;
  column.step_s = own->time.step_s;
  column.tokens_per_s = own->time.tokens_per_s;
  column.utilisation = own->time.utilisation;
  if (own->timed) column.flops_per_s = own->time.model_flops / own->time.step_s;
  return column;
}

static const nxc_memory_part part_of_arena[NX_N_ARENAS] = {
    [NX_ARENA_param] = NXC_PART_PARAMETERS, [NX_ARENA_master] = NXC_PART_OPTIMIZER,
    [NX_ARENA_grad] = NXC_PART_GRADIENTS,   [NX_ARENA_state] = NXC_PART_OPTIMIZER,
    [NX_ARENA_slot] = NXC_PART_ACTIVATIONS, [NX_ARENA_scratch] = NXC_PART_ACTIVATIONS,
    [NX_ARENA_input] = NXC_PART_BUFFERS,    [NX_ARENA_scalar] = NXC_PART_BUFFERS,
    [NX_ARENA_comm] = NXC_PART_BUFFERS,
};

nxc_column nxc_nxrun_column(const nxc_estimate *estimate, const nx_plan *plan) {
  nxc_column column = {.whose = plan ? "nxrun" : NULL};
  uint64_t bytes[NX_N_ARENAS];
  if (plan == NULL) return column;
  column.stage = nxc_forecast_memory(plan, bytes);
  for (int kind = 0; kind < NX_N_ARENAS; kind++) column.parts[part_of_arena[kind]] += (double)bytes[kind];
  column.parts[NXC_PART_BUFFERS] +=
      (double)(plan->run->workspace_bytes + nx_plan_copy_bytes(plan, column.stage));
  column.total = (double)nxc_memory_of_plan(plan);
  column.timed = estimate->forecast_made;
  column.step_s = estimate->forecast.step_s;
  column.tokens_per_s = estimate->forecast.tokens_per_s;
  column.utilisation = estimate->forecast.utilisation;
  column.flops_per_s = estimate->forecast.utilisation * estimate->forecast.peak_flops;
  return column;
}
