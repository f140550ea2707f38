/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/step/exec.h"

#include "runtime/world/clock.h"
#include "runtime/step/finite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void write_value(const nxr_machine *machine, uint32_t value, const void *host) {
  machine->backend->copy_in(machine->device, nxr_value_address(machine->plan, value, machine->frames), host,
                            machine->plan->values[value].bytes);
}

static void read_numbers(const nxr_machine *machine, uint32_t value, const nxk_frame *frame,
                         double *numbers) {
  machine->backend->copy_out(machine->device, numbers, nxr_value_address(machine->plan, value, frame),
                             machine->plan->values[value].bytes);
}

static double read_number(const nxr_machine *machine, uint32_t value) {
  double number;
  read_numbers(machine, value, machine->frames, &number);
  return number;
}

static void read_answers(const nxr_machine *machine, double answers[NX_N_ANSWER_METRICS]) {
  uint32_t metrics = machine->plan->run->metrics;
  memset(answers, 0, NX_N_ANSWER_METRICS * sizeof *answers);
  if (metrics != NX_NONE) read_numbers(machine, metrics, machine->frames, answers);
}

/* A host copy of an input; NULL where the plan has none. */
static bool host_copy(const nx_plan *plan, uint32_t value, void **copy) {
  *copy = value == NX_NONE ? NULL : calloc(1, plan->values[value].bytes);
  return value == NX_NONE || *copy;
}

static bool open_batch(nxr_exec *exec) {
  const nx_plan *plan = exec->machine->plan;
  const nx_run *run = plan->run;
  nxr_batch *batch = &exec->batch;
  return host_copy(plan, run->tokens, (void **)&batch->tokens) &&
         host_copy(plan, run->labels, (void **)&batch->labels) &&
         host_copy(plan, run->positions, (void **)&batch->positions) &&
         host_copy(plan, run->samples, (void **)&batch->samples) &&
         host_copy(plan, run->starts, (void **)&batch->starts) &&
         host_copy(plan, run->weights, (void **)&batch->weights) &&
         host_copy(plan, run->later_labels, (void **)&batch->later_labels) &&
         host_copy(plan, run->later_weights, (void **)&batch->later_weights) &&
         host_copy(plan, run->reference, (void **)&batch->reference) &&
         host_copy(plan, run->rewards, (void **)&batch->rewards);
}

static void write_fixed_values(const nxr_machine *machine) {
  const nx_plan *plan = machine->plan;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_FIXED_VALUES]; i++) {
    const nx_fixed_value *fixed = &plan->fixed_values[i];
    write_value(machine, fixed->value, plan->table + fixed->table);
  }
}

bool nxr_exec_open(nxr_exec *exec, nxr_machine *machine, nxr_data *data, nxr_fault *fault) {
  *exec = (nxr_exec){.machine = machine, .data = data, .loaded = NX_NONE};
  if (!open_batch(exec)) return nxr_fault_set(fault, "out of memory");
  write_fixed_values(machine);
  if (data && machine->plan->run->places != NX_NONE)
    write_value(machine, machine->plan->run->places, nxr_data_places(data));
  return true;
}

void nxr_exec_close(nxr_exec *exec) {
  void *copies[] = {exec->batch.tokens,       exec->batch.labels,        exec->batch.positions,
                    exec->batch.samples,      exec->batch.starts,        exec->batch.weights,
                    exec->batch.later_labels, exec->batch.later_weights, exec->batch.reference,
                    exec->batch.rewards};
  for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) free(copies[i]);
}

static void write_batch(const nxr_machine *machine, const nxr_batch *batch) {
  const nx_run *run = machine->plan->run;
  write_value(machine, run->tokens, batch->tokens);
  write_value(machine, run->labels, batch->labels);
  write_value(machine, run->positions, batch->positions);
  write_value(machine, run->samples, batch->samples);
  if (batch->starts) write_value(machine, run->starts, batch->starts);
  if (batch->weights) write_value(machine, run->weights, batch->weights);
  if (batch->later_labels) write_value(machine, run->later_labels, batch->later_labels);
  if (batch->later_weights) write_value(machine, run->later_weights, batch->later_weights);
  if (batch->reference) write_value(machine, run->reference, batch->reference);
  if (batch->rewards) write_value(machine, run->rewards, batch->rewards);
}

/* Several micro-batches may be in flight, but the input arena holds one: what comes next is brought back. */
static bool load_micro_batch(nxr_exec *exec, uint32_t micro_batch, nxr_fault *fault) {
  const nxr_batch *batch = &exec->batch;
  bool same_batch = exec->loaded_number == exec->number && exec->loaded_set == exec->set;
  if (!exec->data || (exec->loaded == micro_batch && same_batch)) return true;
  nxr_comm_progress(exec->machine->comm);
  if (!nxr_data_read(exec->data, exec->set, exec->number, micro_batch, batch, fault)) return false;
  write_batch(exec->machine, batch);
  exec->loaded = micro_batch, exec->loaded_number = exec->number, exec->loaded_set = exec->set;
  return true;
}

static void run_communication(nxr_machine *machine, const nx_item *item, uint32_t index, nxr_timers *timers) {
  if (machine->plan->operators[index].op != NX_OP_wait) {
    nxr_comm_start(machine->comm, nxr_machine_collective(machine, item->chunk, item->slot, index));
    return;
  }
  double begin_s = nxr_timers_now(timers);
  for (uint32_t i = machine->first_awaited[index]; i < machine->first_awaited[index + 1]; i++) {
    nxr_collective *collective =
        nxr_machine_collective(machine, item->chunk, item->slot, machine->awaited[i]);
    if (collective) nxr_comm_wait(machine->comm, collective);
  }
  nxr_timers_add(timers, NXR_TIMER_WAIT, begin_s);
}

static bool is_recorded(const nxr_exec *exec) {
  return exec->profile && exec->profile->recording;
}

/* To or from a chunk of this stage; there is nothing to wait for. */
static void hand_over(const nxr_machine *machine, const nx_item *item) {
  const nxk_frame *frame = nxr_machine_frame(machine, item->chunk, item->slot);
  uint32_t value = machine->plan->chunks[item->chunk].ports[item->port];
  if (item->kind == NX_ITEM_WAIT) return;
  nxr_neighbours_start(machine->neighbours, item->chunk, (nx_port)item->port,
                       nxr_value_address(machine->plan, value, frame));
}

static void run_transfer(nxr_machine *machine, const nx_item *item, uint64_t step) {
  uint32_t index = (uint32_t)(item - machine->plan->items);
  nxr_collective *transfer =
      machine->transfers[((size_t)item->chunk * machine->n_slots + item->slot) * NX_N_PORTS + item->port];
  nxr_comm_beat(machine->comm, step + 1, machine->n_operators + index);
  if (transfer == NULL) {
    hand_over(machine, item);
    return;
  }
  nxr_comm_name_transfer(machine->comm, transfer, index);
  if (item->kind == NX_ITEM_WAIT) {
    nxr_comm_wait(machine->comm, transfer);
    return;
  }
  nxr_comm_start(machine->comm, transfer);
}

static void run_operator(nxr_exec *exec, const nx_item *item, const nxk_frame *frame, uint32_t index) {
  nxr_machine *machine = exec->machine;
  const nxr_kernel *kernel = &machine->kernels[index];
  if (!kernel->backend) {
    run_communication(machine, item, index, exec->timers);
    return;
  }
  kernel->backend->enqueue(kernel->device, kernel->kernel, frame);
  nxr_comm_enqueued(machine->comm);
}

/* What is only enqueued is waited for, so that its time is its own. */
static void time_operator(nxr_exec *exec, const nx_item *item, const nxk_frame *frame, uint32_t index) {
  double begin_s = nxr_clock_s();
  run_operator(exec, item, frame, index);
  nxk_synchronize(exec->machine->backend, exec->machine->device);
  exec->timers->operators_s[exec->machine->plan->operators[index].op] += nxr_clock_s() - begin_s;
}

static void record_operator(nxr_exec *exec, const nx_item *item, const nxk_frame *frame, uint32_t index) {
  double begin_s = nxr_clock_s();
  if (exec->profile->backend && exec->machine->kernels[index].backend) {
    nxr_profile_enqueue(exec->profile, (uint32_t)(item - exec->machine->plan->items), index);
    run_operator(exec, item, frame, index);
    return;
  }
  run_operator(exec, item, frame, index);
  if (!exec->profile->backend) nxk_synchronize(exec->machine->backend, exec->machine->device);
  nxr_profile_add(exec->profile, (uint32_t)(item - exec->machine->plan->items), index, begin_s);
}

static void run_program(nxr_exec *exec, const nx_item *item, uint64_t step) {
  nxr_machine *machine = exec->machine;
  const nx_plan *plan = machine->plan;
  const nx_program *program = &plan->programs[nx_item_program(plan, item)];
  const nxk_frame *frame = nxr_machine_frame(machine, item->chunk, item->slot);
  uint8_t when = item->when;
  for (uint32_t i = 0; i < program->n_operators; i++) {
    uint32_t index = program->first_operator + i;
    if (!(plan->operators[index].when & when)) continue;
    machine->running = index;
    nxr_comm_beat(machine->comm, step + 1, index);
    if (machine->kernels[index].backend) nxr_comm_progress(machine->comm);
    if (exec->watch && exec->watch->operator == index) exec->watch->look(exec->watch->context, frame);
    if (is_recorded(exec)) record_operator(exec, item, frame, index);
    else if (exec->timers && exec->timers->by_operator) time_operator(exec, item, frame, index);
    else run_operator(exec, item, frame, index);
    if (machine->finite && machine->kernels[index].backend)
      nxr_finite_look(machine->finite, machine, item, index, step);
  }
}

/* What the last chunk said of the sequences of a micro-batch, before the next one's stand there. */
static void keep_sequence_sums(const nxr_exec *exec, const nx_item *item) {
  const nxr_machine *machine = exec->machine;
  bool says = item->kind == NX_ITEM_EVALUATE && item->chunk + 1 == machine->n_chunks;
  if (exec->sequence_sums == NULL || !says) return;
  nxr_comm_finish(machine->comm);
  read_numbers(machine, machine->plan->run->sequence_sums,
               nxr_machine_frame(machine, item->chunk, item->slot),
               exec->sequence_sums + (size_t)item->micro_batch * machine->plan->run->micro_batch);
}

static void exchange(nxr_exec *exec, const nx_item *item, uint64_t step) {
  double begin_s = is_recorded(exec) ? nxr_clock_s() : 0, since_s = nxr_timers_now(exec->timers);
  run_transfer(exec->machine, item, step);
  nxr_timers_add(exec->timers, NXR_TIMER_WAIT, since_s);
  if (is_recorded(exec))
    nxr_profile_add(exec->profile, (uint32_t)(item - exec->machine->plan->items), NX_NONE, begin_s);
}

/* What is waited for within a program is no time of its own. */
static bool compute(nxr_exec *exec, const nx_item *item, uint64_t step, nxr_fault *fault) {
  nxr_timers *timers = exec->timers;
  double since_s = nxr_timers_now(timers), waited_s = timers ? timers->spent_s[NXR_TIMER_WAIT] : 0;
  if (item->kind != NX_ITEM_STEP && !load_micro_batch(exec, item->micro_batch, fault)) return false;
  nxr_timers_add(timers, NXR_TIMER_DATA, since_s);
  since_s = nxr_timers_now(timers);
  run_program(exec, item, step);
  keep_sequence_sums(exec, item);
  if (timers) since_s += timers->spent_s[NXR_TIMER_WAIT] - waited_s;
  nxr_timers_add(timers, item->kind == NX_ITEM_STEP ? NXR_TIMER_UPDATE : NXR_TIMER_PASSES, since_s);
  return true;
}

static bool run_schedule(nxr_exec *exec, const nx_schedule *schedule, uint64_t step, nxr_fault *fault) {
  nxr_machine *machine = exec->machine;
  for (uint32_t i = 0; i < schedule->n_items; i++) {
    const nx_item *item = &machine->plan->items[schedule->first_item + i];
    if (item->stage != machine->stage) continue;
    if (item->kind >= NX_ITEM_SEND && item->kind <= NX_ITEM_WAIT) exchange(exec, item, step);
    else if (!compute(exec, item, step, fault)) return false;
  }
  double since_s = nxr_timers_now(exec->timers);
  nxr_comm_finish(machine->comm);
  nxr_timers_add(exec->timers, NXR_TIMER_PASSES, since_s);
  nxr_comm_beat(machine->comm, step + 1, NX_NONE);
  return true;
}

/* What a step of a batch that grows reads beside its data. Skipped steps move no schedule. */
static bool write_phase(nxr_exec *exec, const nx_phase *phase, uint64_t step, const nxr_loss_scale *scale,
                        nxr_fault *fault) {
  const nxr_machine *machine = exec->machine;
  const nx_run *run = machine->plan->run;
  uint64_t left_out, from = step > run->seen_late ? step - run->seen_late : 0;
  nx_plan_skipped_before(machine->plan, from, &left_out);
  uint64_t before = nx_plan_samples_before(machine->plan, from), none = left_out + scale->n_samples;
  int64_t seen = before > none ? (int64_t)(before - none) : 0;
  double factor = (nxr_loss_scale_is_used(run) ? scale->factor : 1) * phase->global_batch / run->global_batch;
  double voters = 1;
  if (run->counts_voters && exec->data && !nxr_data_voters(exec->data, exec->set, step, &voters, fault))
    return false;
  factor *= voters;
  if (run->seen != NX_NONE) write_value(machine, run->seen, &seen);
  if (run->gradient_factor != NX_NONE) write_value(machine, run->gradient_factor, &factor);
  return true;
}

static void read_measures(const nxr_machine *machine, nxr_numbers *numbers) {
  const nx_plan *plan = machine->plan;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_MEASURES]; i++) {
    const nx_measure *measure = &plan->measures[i];
    double sum, number;
    const char *at = nxr_value_address(plan, measure->value, machine->frames);
    machine->backend->copy_out(machine->device, &sum, at + measure->element * sizeof sum, sizeof sum);
    number = measure->factor * sum + measure->offset;
    if (measure->flags & NX_MEASURE_OF_TOKENS) number /= numbers->tokens;
    numbers->measures[i] = measure->flags & NX_MEASURE_ROOT ? sqrt(number) : number;
  }
}

bool nxr_exec_step(nxr_exec *exec, uint64_t step, const nxr_loss_scale *scale, const nxr_plateau *plateau,
                   nxr_numbers *numbers, nxr_fault *fault) {
  nxr_machine *machine = exec->machine;
  const nx_plan *plan = machine->plan;
  const nx_phase phase = nx_plan_phase(plan, step);
  uint64_t samples, left_out = nx_plan_skipped_before(plan, step, &samples);
  int64_t number = (int64_t)(step - left_out - scale->n_skipped);
  write_value(machine, plan->run->step, &number);
  int64_t updates = number - exec->optimizer_began;
  if (plan->run->merge_every && (int64_t)(step % plan->run->merge_every) < updates)
    updates = (int64_t)(step % plan->run->merge_every);
  if (plan->run->updates != NX_NONE) write_value(machine, plan->run->updates, &updates);
  if (nxr_loss_scale_is_used(plan->run)) write_value(machine, plan->run->loss_scale, &scale->factor);
  if (nxr_plateau_is_used(plan->run)) write_value(machine, plan->run->reductions, &plateau->n_reductions);
  exec->set = exec->data ? nxr_data_trained(exec->data) : NX_NONE, exec->number = step;
  if (!write_phase(exec, &phase, step, scale, fault)) return false;
  if (!run_schedule(exec, &plan->schedules[phase.schedule], step, fault)) return false;
  if (is_recorded(exec)) nxr_profile_collect(exec->profile);
  numbers->tokens = (double)phase.global_batch * plan->run->sequence;
  numbers->loss = read_number(machine, plan->run->loss_total) / numbers->tokens;
  numbers->grad_norm = read_number(machine, plan->run->grad_norm);
  numbers->lr = read_number(machine, plan->run->lr);
  read_measures(machine, numbers);
  read_answers(machine, numbers->answers);
  return true;
}

bool nxr_exec_evaluate(nxr_exec *exec, uint32_t set, uint64_t batch, uint64_t step, nxr_evaluated *evaluated,
                       nxr_fault *fault) {
  exec->set = set, exec->number = batch;
  const nx_schedule *schedule = nx_plan_schedule(exec->machine->plan, NX_SCHEDULE_EVALUATE);
  if (!run_schedule(exec, schedule, step, fault)) return false;
  evaluated->loss = read_number(exec->machine, exec->machine->plan->run->loss_total);
  read_answers(exec->machine, evaluated->answers);
  return true;
}

void nxr_exec_forward(nxr_exec *exec, const int32_t *tokens, uint32_t n, const nxr_watch *watch) {
  nxr_machine *machine = exec->machine;
  const nx_schedule *schedule = nx_plan_schedule(machine->plan, NX_SCHEDULE_EVALUATE);
  nxr_data_give(exec->data, tokens, n, &exec->batch);
  write_batch(machine, &exec->batch);
  exec->loaded = NX_NONE;
  exec->watch = watch;
  run_program(exec, &machine->plan->items[schedule->first_item], 0); /* of one chunk that is a pass */
  exec->watch = NULL;
  nxr_comm_finish(machine->comm);
  nxr_comm_beat(machine->comm, 1, NX_NONE);
}
