/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/step/bind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const nx_item_kind program_items[] = {NX_ITEM_FORWARD, NX_ITEM_BACKWARD, NX_ITEM_EVALUATE,
                                             NX_ITEM_STEP};
enum { N_PROGRAM_ITEMS = sizeof program_items / sizeof *program_items };

static uint32_t program_of(const nx_chunk *chunk, nx_item_kind kind) {
  switch (kind) {
    case NX_ITEM_FORWARD: return chunk->forward;
    case NX_ITEM_BACKWARD: return chunk->backward;
    case NX_ITEM_EVALUATE: return chunk->evaluate;
    case NX_ITEM_STEP: return chunk->step;
    default: return NX_NONE;
  }
}

void *nxr_value_address(const nx_plan *plan, uint32_t index, const nxk_frame *frame) {
  const nx_value *value = &plan->values[index];
  int64_t shift = value->offset_shift == NX_NONE ? 0 : frame->constants[value->offset_shift];
  return (uint8_t *)frame->base[value->arena] + value->offset + shift;
}

/* ---- frames ---- */

static bool open_frames(nxr_machine *machine) {
  const nx_plan *plan = machine->plan;
  size_t n_constants = plan->n[NX_SECTION_CONSTANTS];
  machine->frames = calloc((size_t)machine->n_chunks * machine->n_slots, sizeof *machine->frames);
  machine->constants = calloc(machine->n_chunks * n_constants + 1, sizeof *machine->constants);
  if (!machine->frames || !machine->constants) return false;
  for (uint32_t chunk = 0; chunk < machine->n_chunks; chunk++) {
    int64_t *constants = machine->constants + chunk * n_constants;
    for (uint32_t i = 0; i < n_constants; i++)
      constants[i] = nx_constant_value(plan, i, machine->world->rank, chunk);
    for (uint32_t slot = 0; slot < machine->n_slots; slot++) {
      nxk_frame *frame = &machine->frames[(size_t)chunk * machine->n_slots + slot];
      nxr_arenas_frame(machine->arenas, plan, chunk, slot, frame->base);
      frame->constants = constants;
      frame->seed = plan->run->seed;
      frame->stochastic = plan->run->stochastic != 0;
      frame->alarm = machine->alarm.raise ? &machine->alarm : NULL;
    }
  }
  return true;
}

/* ---- kernels ---- */

static void describe_tensor(const nx_value *value, nxk_tensor *tensor) {
  *tensor = (nxk_tensor){.dtype = value->dtype, .n_dims = value->n_dims, .arena = value->arena,
                         .offset = value->offset, .shift_constant = value->offset_shift};
  memcpy(tensor->dims, value->dims, sizeof tensor->dims);
}

static void describe_attribute(const nx_attribute *from, nxk_attr *to) {
  static const nxk_attr_kind kinds[] = {[NX_ATTRIBUTE_INT] = NXK_INT, [NX_ATTRIBUTE_REAL] = NXK_REAL,
                                        [NX_ATTRIBUTE_CONSTANT] = NXK_CONSTANT};
  *to = (nxk_attr){.kind = kinds[from->kind], .constant = from->constant};
  if (from->kind == NX_ATTRIBUTE_REAL)
    to->real = from->real;
  else
    to->integer = from->integer;
}

static void describe_operator(const nx_plan *plan, const nx_operator *op, nxk_operator *out) {
  *out = (nxk_operator){.op = op->op, .n_in = op->n_in, .n_out = op->n_out, .n_attrs = op->n_attrs};
  for (uint32_t i = 0; i < (uint32_t)op->n_in + op->n_out; i++)
    describe_tensor(&plan->values[plan->arguments[op->first_argument + i]], &out->args[i]);
  for (uint32_t i = 0; i < op->n_attrs; i++)
    describe_attribute(&plan->attributes[op->first_attribute + i], &out->attrs[i]);
}

/* ref, beside a backend whose arenas it can address. */
static bool open_ref(nxr_machine *machine, nxk_fault *why) {
  const nx_run *run = machine->plan->run;
  const nxk_device_options options = {.n_threads = run->n_threads, .target = run->target,
                                      .workspace_bytes = run->workspace_bytes};
  return machine->ref_device || nxk_ref.open(&options, &machine->ref_device, why);
}

static bool bind_to(nxr_kernel *kernel, const nxk_backend *backend, nxk_device *device,
                    const nxk_operator *op, nxk_fault *why) {
  if (!backend->bind(device, op, &kernel->kernel, why)) return false;
  kernel->backend = backend;
  kernel->device = device;
  return true;
}

static void add_missing(nxr_fault *missing, const nx_plan *plan, const nx_operator *op, const char *why) {
  char name[256];
  snprintf(name, sizeof name, "\n  %s of %s%s%s", nx_op_find(op->op)->name, nx_plan_string(plan, op->origin),
           why[0] ? ": " : "", why);
  static const char others[] = "\n  and others";
  enum { HEADING = 120 /* bytes of what is said before them, at most */ };
  size_t length = strlen(missing->text), room = sizeof missing->text - length;
  if (strstr(missing->text, name) || strstr(missing->text, others)) return;
  bool fits = strlen(name) + sizeof others + HEADING <= room;
  snprintf(missing->text + length, room, "%s", fits ? name : others);
}

/* Declined operators are collected in `missing`; all others have their kernel afterwards. */
static void bind_kernel(nxr_machine *machine, uint32_t index, nxr_fault *missing) {
  const nx_operator *op = &machine->plan->operators[index];
  nxr_kernel *kernel = &machine->kernels[index];
  nxk_operator described;
  nxk_fault why = {""};
  if (kernel->backend) return;
  describe_operator(machine->plan, op, &described);
  if (bind_to(kernel, machine->backend, machine->device, &described, &why)) return;
  if (why.text[0] == '\0' && machine->backend != &nxk_ref && machine->backend->host_addressable &&
      open_ref(machine, &why) && bind_to(kernel, &nxk_ref, machine->ref_device, &described, &why)) {
    machine->n_by_ref++;
    return;
  }
  add_missing(missing, machine->plan, op, why.text);
}

/* ---- collectives ---- */

/* Elements that lie together for one index of the dimensions before `axis`. */
static uint64_t run_along(const nx_value *value, uint32_t axis) {
  uint64_t n = 1;
  for (uint32_t dim = axis; dim < NX_MAX_DIMS; dim++) n *= (uint64_t)value->dims[dim];
  return n;
}

static nxr_collective_spec describe_collective(const nxr_machine *machine, const nxk_frame *frame,
                                               uint32_t index) {
  const nx_plan *plan = machine->plan;
  const nx_operator *op = &plan->operators[index];
  uint32_t x = plan->arguments[op->first_argument], y = plan->arguments[op->first_argument + 1];
  const nx_value *source = &plan->values[x];
  nxr_collective_spec spec = {.op = op->op, .group = op->group, .x_dtype = source->dtype,
                              .y_dtype = plan->values[y].dtype, .x = nxr_value_address(plan, x, frame),
                              .y = nxr_value_address(plan, y, frame), .outer = 1, .axis = 1, .inner = 1,
                              .operator = index};
  const nx_route *route = nx_plan_route(plan, index);
  if (route) spec.way = (nx_way)route->way;
  const nx_attribute *attributes = plan->attributes + op->first_attribute;
  uint32_t axis = NX_MAX_DIMS;
  if (op->n_attrs > 0) axis = (uint32_t)attributes[0].integer;
  for (uint32_t dim = 0; dim < NX_MAX_DIMS; dim++) {
    uint64_t size = (uint64_t)source->dims[dim];
    if (axis == NX_MAX_DIMS || dim == axis) spec.axis *= size;
    else if (dim < axis) spec.outer *= size;
    else spec.inner *= size;
  }
  if (op->op == NX_OP_all_to_all)
    spec.y_run = run_along(&plan->values[y], (uint32_t)attributes[NX_all_to_all_concat_axis].integer) /
                 plan->groups[op->group].size;
  return spec;
}

static bool lies_in_slot(const nx_plan *plan, const nx_operator *op) {
  const uint32_t *arguments = plan->arguments + op->first_argument;
  return plan->values[arguments[0]].arena == NX_ARENA_slot ||
         plan->values[arguments[1]].arena == NX_ARENA_slot;
}

static bool bind_collective(nxr_machine *machine, uint32_t chunk, uint32_t index, nxr_fault *fault) {
  const nx_plan *plan = machine->plan;
  bool per_slot = lies_in_slot(plan, &plan->operators[index]);
  nxr_collective **at =
      machine->collectives + (size_t)chunk * machine->n_slots * machine->n_operators + index;
  if (*at) return true;
  for (uint32_t slot = 0; slot < plan->chunks[chunk].n_slots; slot++, at += machine->n_operators) {
    if (slot > 0 && !per_slot) {
      *at = *(at - machine->n_operators);
      continue;
    }
    nxr_collective_spec spec = describe_collective(machine, nxr_machine_frame(machine, chunk, slot), index);
    if (!(*at = nxr_comm_bind(machine->comm, &spec, fault))) return false;
  }
  return true;
}

/* ---- programs ---- */

static bool is_collective(const nx_operator *op) {
  return nx_op_is_collective(nx_op_find(op->op)) && op->op != NX_OP_wait;
}

static bool bind_program(nxr_machine *machine, uint32_t chunk, const nx_program *program, nxr_fault *missing,
                         nxr_fault *fault) {
  for (uint32_t i = 0; i < program->n_operators; i++) {
    uint32_t index = program->first_operator + i;
    const nx_operator *op = &machine->plan->operators[index];
    if (is_collective(op) && !bind_collective(machine, chunk, index, fault)) return false;
    if (!nx_op_is_collective(nx_op_find(op->op))) bind_kernel(machine, index, missing);
  }
  return true;
}

/* For every wait, the collectives that write its value. */
static bool find_awaited(nxr_machine *machine) {
  const nx_plan *plan = machine->plan;
  uint32_t n_operators = machine->n_operators, n = 0;
  uint32_t *by_value = malloc(sizeof *by_value * (plan->n[NX_SECTION_VALUES] + 1));
  uint32_t *next = malloc(sizeof *next * (n_operators + 1));
  machine->first_awaited = calloc((size_t)n_operators + 1, sizeof *machine->first_awaited);
  machine->awaited = calloc((size_t)n_operators + 1, sizeof *machine->awaited);
  bool enough = by_value && next && machine->first_awaited && machine->awaited;
  for (uint32_t i = 0; enough && i < plan->n[NX_SECTION_VALUES]; i++) by_value[i] = NX_NONE;
  for (uint32_t i = n_operators; enough && i-- > 0;) {
    if (!is_collective(&plan->operators[i])) continue;
    uint32_t value = plan->arguments[plan->operators[i].first_argument + 1];
    next[i] = by_value[value];
    by_value[value] = i;
  }
  for (uint32_t i = 0; enough && i < n_operators; i++) {
    machine->first_awaited[i] = n;
    if (plan->operators[i].op != NX_OP_wait) continue;
    for (uint32_t at = by_value[plan->arguments[plan->operators[i].first_argument]]; at != NX_NONE;
         at = next[at]) {
      uint32_t *longer = realloc(machine->awaited, sizeof *longer * ((size_t)n + 1));
      if (!longer) enough = false;
      else machine->awaited = longer, machine->awaited[n++] = at;
      if (!enough) break;
    }
  }
  if (enough) machine->first_awaited[n_operators] = n;
  free(by_value);
  free(next);
  return enough;
}

static bool bind_transfers(nxr_machine *machine, uint32_t chunk, nxr_fault *fault) {
  const nx_plan *plan = machine->plan;
  for (nx_port port = 0; port < NX_N_PORTS; port++) {
    uint32_t value = plan->chunks[chunk].ports[port];
    if (value == NX_NONE || nxr_neighbours_are(plan, chunk, port)) continue;
    for (uint32_t slot = 0; slot < plan->chunks[chunk].n_slots; slot++) {
      void *bytes = nxr_value_address(plan, value, nxr_machine_frame(machine, chunk, slot));
      nxr_collective **at =
          &machine->transfers[((size_t)chunk * machine->n_slots + slot) * NX_N_PORTS + port];
      if (!(*at =
                nxr_comm_bind_transfer(machine->comm, chunk, port, bytes, plan->values[value].bytes, fault)))
        return false;
    }
  }
  return true;
}

/* An evaluation program may be there for nothing but texts to continue. */
static bool is_run(const nxr_machine *machine, const nx_program *program) {
  return program->kind != NX_PROGRAM_EVALUATE || machine->plan->n[NX_SECTION_EVALUATIONS] > 0 ||
         machine->plan->run->reference != NX_NONE ||
         machine->generates;
}

static bool bind_chunk(nxr_machine *machine, uint32_t chunk, nxr_fault *missing, nxr_fault *fault) {
  const nx_plan *plan = machine->plan;
  for (int i = 0; i < N_PROGRAM_ITEMS; i++) {
    uint32_t index = program_of(&plan->chunks[chunk], program_items[i]);
    const nx_program *program = index == NX_NONE ? NULL : &plan->programs[index];
    if (program && is_run(machine, program) && !bind_program(machine, chunk, program, missing, fault))
      return false;
  }
  return bind_transfers(machine, chunk, fault);
}

bool nxr_machine_open(nxr_machine *machine, nxr_fault *fault) {
  const nx_plan *plan = machine->plan;
  machine->stage = nx_plan_stage(plan, machine->world->rank);
  machine->n_chunks = plan->n[NX_SECTION_CHUNKS];
  machine->n_slots = plan->run->n_slots;
  machine->n_operators = plan->n[NX_SECTION_OPERATORS];
  machine->kernels = calloc(machine->n_operators, sizeof *machine->kernels);
  machine->collectives = calloc((size_t)machine->n_chunks * machine->n_slots * machine->n_operators,
                                sizeof *machine->collectives);
  machine->transfers =
      calloc((size_t)machine->n_chunks * machine->n_slots * NX_N_PORTS, sizeof *machine->transfers);
  if (!machine->kernels || !machine->collectives || !machine->transfers || !open_frames(machine) ||
      !find_awaited(machine))
    return nxr_fault_set(fault, "out of memory");
  if (!nxr_neighbours_open(plan, machine->stage, machine->backend, machine->device, &machine->neighbours,
                           fault))
    return false;
  nxr_fault missing = {""};
  for (uint32_t chunk = 0; chunk < machine->n_chunks; chunk++)
    if (plan->chunks[chunk].stage == machine->stage && !bind_chunk(machine, chunk, &missing, fault))
      return false;
  uint64_t copied = nxr_comm_copied_bytes(machine->comm),
           planned = nx_plan_staging_bytes(plan, machine->stage);
  if (copied > planned)
    return nxr_fault_set(fault, "messages are copied through %llu bytes of the host, and the plan says %llu",
                         (unsigned long long)copied, (unsigned long long)planned);
  if (missing.text[0] == '\0') return true;
  return nxr_fault_set(fault, "backend %s can not run this plan (workspace %llu MiB); it lacks:%s",
                       machine->backend->name, (unsigned long long)(plan->run->workspace_bytes >> 20),
                       missing.text);
}

void nxr_machine_close(nxr_machine *machine) {
  if (machine->ref_device) nxk_ref.close(machine->ref_device);
  free(machine->kernels);
  free(machine->collectives);
  free(machine->transfers);
  nxr_neighbours_close(machine->neighbours);
  free(machine->awaited);
  free(machine->first_awaited);
  free(machine->frames);
  free(machine->constants);
}
