/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/files/fault.h"
#include "runtime/plan_paths.h"
#include "runtime/state/init.h"
#include "runtime/training.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- set up ---- */

static bool open_device(nxr_training *run) {
  const nx_run *wanted = run->plan->run;
  const char *given = run->options->backend, *name = given ? given : nx_target_find(wanted->target)->backend;
  nxk_fault why = {""};
  run->machine.backend = nxk_backend_find(name);
  if (!run->machine.backend && !given && strcmp(name, "cpu") == 0) run->machine.backend = &nxk_ref;
  if (!run->machine.backend)
    return nxr_fault_set(
        &run->fault,
        "this nxrun was built without the backend %s: build it where tools/install runtime has been, or "
        "give --backend ref",
        name);
  const nxk_device_options options = {.n_threads = wanted->n_threads, .target = wanted->target,
                                      .workspace_bytes = wanted->workspace_bytes,
                                      .device = run->options->device, .local_rank = run->world->local_rank,
                                      .local_size = run->world->local_size};
  if (run->options->device && !run->machine.backend->devices)
    return nxr_fault_set(&run->fault,
                         "backend %s runs on the host's processors: --device belongs to a backend of which "
                         "nxrun --devices lists numbers",
                         run->machine.backend->name);
  if (run->machine.backend->open(&options, &run->machine.device, &why)) return true;
  return nxr_fault_set(&run->fault, "rank %u, backend %s: %s", run->world->rank, run->machine.backend->name,
                       why.text);
}

static bool open_memory(nxr_training *run) {
  nxr_machine *machine = &run->machine;
  bool window = run->world->local_size > 1 && machine->backend->host_addressable && !run->options->force_p2p;
  return nxr_arenas_open(run->world, run->plan, machine->backend, machine->device,
                         nxr_comm_control_bytes(run->plan), window, &run->arenas, &run->fault);
}

/* Data that the plan has no room for: no rank can go on. */
static void raise_alarm(void *context, const char *text) {
  const nxr_training *run = context;
  const nx_operator *op = &run->plan->operators[run->machine.running];
  nxr_fault said = {""};
  nxr_fault_set(&said, "nxrun: rank %u, step %llu, %s of %s: %s", run->world->rank,
                (unsigned long long)run->done + 1, nx_op_find(op->op)->name,
                nx_plan_string(run->plan, op->origin), text);
  nxr_print(stderr, "%s\n", said.text);
  nxr_world_abort(NXR_EXIT_FAILED);
}

static bool open_machine(nxr_training *run) {
  nxr_machine *machine = &run->machine;
  machine->plan = run->plan, machine->world = run->world, machine->arenas = &run->arenas;
  machine->alarm = (nxk_alarm){raise_alarm, run};
  if (!nxr_comm_open(run->world, run->plan, machine->backend, machine->device, &run->arenas,
                     run->plan->run_names->deadline_s, &run->comm, &run->fault))
    return false;
  machine->comm = run->comm;
  machine->generates = run->options->generation.prompt != NULL;
  machine->finite = &run->finite;
  if (run->options->check_numbers && !nxr_finite_open(&run->finite, &run->fault)) return false;
  return nxr_machine_open(machine, &run->fault);
}

static void open_pieces(nxr_training *run) {
  const char *directory = nx_plan_text(run->plan, run->plan->run_names->directory);
  if (directory[0] == '\0') directory = nx_plan_text(run->plan, run->plan->run_names->name);
  if (run->options->directory) directory = run->options->directory;
  run->pieces = (nxr_pieces){.plan = run->plan, .rank = run->world->rank, .stage = run->machine.stage,
                             .backend = run->machine.backend, .device = run->machine.device};
  memcpy(run->pieces.base, run->arenas.base, sizeof run->pieces.base);
  const char *temporary = nx_plan_text(run->plan, run->plan->run_names->temporary);
  snprintf(run->temporary, sizeof run->temporary, "%s%s%s", temporary[0] == '/' ? "" : directory,
           temporary[0] == '/' ? "" : "/", temporary);
  run->checkpoint =
      (nxr_checkpoint){.run = {.plan = run->plan},
                       .world = run->world,
                       .pieces = &run->pieces,
                       .directory = directory,
                       .trusted = run->options->trusted,
                       .temporary = run->plan->run_names->temporary_every ? run->temporary : NULL};
}

bool nxr_training_set_up(nxr_training *run) {
  nxr_world_pin(run->world, run->plan);
  open_device(run);
  if (!nxr_training_agree(run)) return false;
  open_memory(run);
  if (!nxr_training_agree(run)) return false;
  open_machine(run);
  if (!nxr_training_agree(run)) return false;
  open_pieces(run);
  if (run->plan->run_names->compare_every) nxr_replicas_open(&run->replicas, &run->pieces, &run->fault);
  nxr_plan_paths_allowed(run->plan, run->checkpoint.directory, run->checkpoint.temporary, &run->fault);
  return nxr_training_agree(run);
}

/* ---- state ---- */

static bool resumes(const nxr_training *run) {
  return run->options->resume || run->plan->run_names->resume;
}

/* Drawn, or read where the plan says. */
static bool load_base(nxr_training *run) {
  const char *init_from = nx_plan_string(run->plan, run->plan->run->init_from);
  nxr_init_weights(&run->pieces, &run->fault);
  if (init_from[0] != '\0' && access(init_from, F_OK) != 0)
    nxr_fault_set(
        &run->fault,
        "there is no %s to read weights from: a model on Hugging Face is fetched with hf download NAME "
        "--local-dir FOLDER, and run.init_from names the folder",
        init_from);
  if (!nxr_training_agree(run)) return false;
  if (init_from[0] != '\0') nxr_checkpoint_import(&run->checkpoint, init_from, &run->fault);
  return nxr_training_agree(run);
}

static bool load_weights(nxr_training *run) {
  if (!load_base(run)) return false;
  const char *adapters = nx_plan_string(run->plan, run->plan->run->adapter_from);
  if (adapters[0] == '\0') return true;
  nxr_checkpoint_import_adapters(&run->checkpoint, adapters, &run->fault);
  return nxr_training_agree(run);
}

/* ---- what is only evaluated ---- */

bool nxr_only_evaluates(const nxr_training *run) {
  return run->options->evaluate || run->options->generation.prompt ||
         run->plan->run_names->rules & NX_RUN_ONLY_EVALUATES;
}

/* The step that is in the name of a checkpoint's folder. */
static uint64_t step_of(const char *path) {
  const char *name = strstr(path, "step-");
  for (const char *next = name; next; next = strstr(next + 1, "step-")) name = next;
  return name ? strtoull(name + strlen("step-"), NULL, 10) : 0;
}

/* A given checkpoint, or the newest of the run; where there is none, what the run would begin with. */
static bool load_evaluated(nxr_training *run) {
  const char *given = run->options->checkpoint;
  bool generates = run->options->generation.prompt != NULL;
  if (run->plan->n[NX_SECTION_EVALUATIONS] == 0 && !generates)
    nxr_fault_set(&run->fault,
                  "the plan evaluates no set: compile it with evaluate.batches or evaluate.share, and "
                  "a dataset for validation (data.split)");
  if (!nxr_training_agree(run) || !load_weights(run)) return false;
  if (given) {
    run->done = step_of(given);
    nxr_checkpoint_import(&run->checkpoint, given, &run->fault);
    return nxr_training_agree(run);
  }
  nxr_checkpoint_prepare(&run->checkpoint, true, &run->fault);
  if (!nxr_training_agree(run)) return false;
  const nxr_resume newest = {.directory = run->checkpoint.directory};
  nxr_checkpoint_resume(&run->checkpoint, &newest, &run->done, &run->fault);
  if (!nxr_training_agree(run)) return false;
  if (run->done == 0 && generates)
    return nxr_fault_set(&run->fault,
                         "%s has no checkpoint: train first, or name a folder of weights by --checkpoint",
                         run->checkpoint.directory) ||
           nxr_training_agree(run);
  if (run->done == 0 && run->world->rank == 0)
    nxr_print(stderr, "nxrun: %s has no checkpoint: the weights that the run begins with are evaluated\n",
            run->checkpoint.directory);
  return true;
}

/* All ranks must read the same; what they read goes into the checkpoints. */
static bool open_data(nxr_training *run) {
  bool trains = !nxr_only_evaluates(run);
  nxr_reads reads = run->options->generation.prompt ? NXR_READS_NOTHING
                    : trains                        ? NXR_READS_ALL
                                                    : NXR_READS_EVALUATED;
  nxr_data_open(run->plan, run->world->rank, reads, &run->data, &run->fault);
  if (!nxr_training_agree(run)) return false;
  const nxr_fingerprint *own = nxr_data_everything(run->data);
  nxr_fingerprint first = *own;
  nxr_world_broadcast(run->world, &first, sizeof first);
  if (!nxr_fingerprint_equal(own, &first))
    nxr_fault_set(
        &run->fault,
        "the data that rank %u reads (%llu documents, %llu tokens) is not that of rank 0 (%llu documents, "
        "%llu tokens): give every host the same files, as at %s",
        run->world->rank, (unsigned long long)own->n_documents, (unsigned long long)own->n_tokens,
        (unsigned long long)first.n_documents, (unsigned long long)first.n_tokens,
        nx_plan_string(run->plan, run->plan->sources[0].prefix));
  if (trains) run->checkpoint.run.dataset = nxr_data_fingerprint(run->data);
  run->checkpoint.run.new_dataset = run->options->new_dataset;
  return nxr_training_agree(run);
}

/* The newest checkpoint of the run, which may be a temporary one; where that is damaged, one of the others.
 */
static void resume(nxr_training *run, const nxr_resume *own) {
  const nxr_checkpoint *checkpoint = &run->checkpoint;
  const nxr_resume temporary = {.directory = checkpoint->temporary};
  uint64_t newest[2] = {0, 0}; /* its own, temporary */
  if (checkpoint->temporary && own->step == 0) {
    if (run->world->rank == 0) nxr_folder_newest(own->directory, UINT64_MAX, &newest[0]);
    if (run->world->rank == 0) nxr_folder_newest(temporary.directory, UINT64_MAX, &newest[1]);
    nxr_world_broadcast(run->world, newest, sizeof newest);
  }
  nxr_fault why = {""};
  if (newest[1] > newest[0] && nxr_checkpoint_resume(checkpoint, &temporary, &run->done, &why)) return;
  if (why.text[0] != '\0') nxr_print(stderr, "nxrun: %s\n", why.text);
  nxr_checkpoint_resume(checkpoint, own, &run->done, &run->fault);
}

static nxr_resume other_of(const nxr_training *run) {
  const nx_run_names *names = run->plan->run_names;
  const char *load = nx_plan_text(run->plan, names->load);
  return (nxr_resume){.directory = run->before[0] ? run->before : load, .step = names->load_step,
                      .weights_only = names->load_weights, .without_states = names->load_states == 0};
}

/* What answers are compared with: of an earlier start of this run, or of the weights that it begins with,
 * which adapters do not change as they are drawn. */
static bool refer(nxr_training *run) {
  bool found = false;
  uint64_t done = 0;
  if (run->plan->run->reference == NX_NONE || run->options->generation.prompt) return true;
  run->reference = (nxr_reference){.exec = &run->exec, .data = run->data, .world = run->world,
                                   .directory = run->checkpoint.directory,
                                   .writes = !nxr_only_evaluates(run)};
  if (!nxr_reference_open(&run->reference, &found, &run->fault)) return false;
  if (found) return true;
  const nxr_resume other = other_of(run);
  if (!load_base(run)) return false;
  bool loaded = false, adapts = nx_plan_string(run->plan, run->plan->run->adapter_config)[0] != '\0';
  if (other.directory[0] != '\0' && !adapts)
    nxr_checkpoint_load(&run->checkpoint, &other, &done, &loaded, &run->fault);
  if (!nxr_training_agree(run)) return false;
  run->world->phase = "while the reference is computed";
  return nxr_reference_make(&run->reference, &run->fault);
}

/* From the run's own folder, or else from the one that the plan names; else with weights that are drawn,
 * which is also what a folder of weights leaves to adapters. */
static bool begin(nxr_training *run) {
  const nx_run_names *names = run->plan->run_names;
  const nxr_resume own = {.directory = run->checkpoint.directory,
                          .step = nx_plan_text(run->plan, names->load)[0] == '\0' ? names->load_step : 0};
  const nxr_resume other = other_of(run);
  bool loaded = false, elsewhere = !nxr_manifest_has_base(run->plan); /* what is frozen is in no checkpoint */
  if (elsewhere && !load_weights(run)) return false;
  if (resumes(run)) resume(run, &own);
  if (!nxr_training_agree(run)) return false;
  if (run->done > 0) return true;
  if (run->options->resume && run->world->rank == 0)
    nxr_print(stderr, "nxrun: %s has no checkpoint: nothing is resumed\n", own.directory);
  if (!elsewhere && !load_weights(run)) return false;
  if (other.directory[0] != '\0')
    nxr_checkpoint_load(&run->checkpoint, &other, &run->done, &loaded, &run->fault);
  if (!nxr_training_agree(run)) return false;
  if (!loaded && names->load_required)
    nxr_fault_set(&run->fault, "there is no checkpoint in %s, and checkpoint.required asks for one",
                  other.directory[0] ? other.directory : own.directory);
  return nxr_training_agree(run);
}

static bool open_profile(nxr_training *run) {
  const nx_run_names *names = run->plan->run_names;
  const nxr_options *options = run->options;
  bool given = options->profile_first > 0;
  nxr_profile_open(
      &run->profile, run->plan, run->world, given ? options->profile_first : names->profile_first,
      given ? options->profile_last : names->profile_last,
      given ? options->profile_ranks : nx_plan_text(run->plan, names->profile_ranks), &run->fault);
  if (run->profile.first > 0) run->exec.profile = &run->profile;
  if (run->fault.text[0] == '\0')
    nxr_profile_device(&run->profile, run->machine.backend, run->machine.device, &run->fault);
  nxr_timers_open(&run->timers, names, run->world->size, &run->fault);
  if (run->timers.used) run->exec.timers = &run->timers;
  return nxr_training_agree(run);
}

/* Whole steps in the epochs, of so many samples each. */
static uint64_t steps_of_epochs(const nx_plan *plan, uint64_t each) {
  const nx_run *wanted = plan->run;
  uint64_t low = 0, high = wanted->n_steps;
  uint64_t all = each > UINT64_MAX / wanted->epochs ? UINT64_MAX : each * wanted->epochs;
  while (low < high) { /* the most steps that read no more */
    uint64_t middle = low + (high - low + 1) / 2;
    if (nx_plan_samples_before(plan, middle) <= all) low = middle;
    else high = middle - 1;
  }
  return low;
}

static bool count_steps(nxr_training *run) {
  const nx_run *wanted = run->plan->run;
  run->n_steps = wanted->n_steps;
  if (wanted->epochs == 0 || nxr_only_evaluates(run)) return true;
  uint32_t set = nxr_data_trained(run->data);
  uint64_t n_samples = nxr_data_samples(run->data, set);
  uint64_t each = nxr_data_pass(run->data, set, wanted->global_batch);
  uint64_t n_repeated = (uint64_t)wanted->repeat_batches * wanted->global_batch;
  if (n_repeated && n_repeated < n_samples) n_samples = each = n_repeated;
  run->n_steps = steps_of_epochs(run->plan, each);
  if (run->n_steps == 0)
    return nxr_fault_set(&run->fault,
                         "the dataset has %llu samples, which are not one batch of %u: schedule.epochs "
                         "counts whole batches",
                         (unsigned long long)n_samples, wanted->global_batch);
  if (run->n_steps < wanted->n_steps && run->world->rank == 0)
    nxr_print(stderr,
            "nxrun: %llu epochs of %llu samples are over after %llu of the schedule's %llu steps "
            "(schedule.epochs)\n",
            (unsigned long long)wanted->epochs, (unsigned long long)n_samples,
            (unsigned long long)run->n_steps, (unsigned long long)wanted->n_steps);
  return true;
}

/* The run's folder. */
static bool prepare(nxr_training *run) {
  bool own = nxr_checkpoint_begins_with_own(&run->checkpoint);
  nxr_checkpoint_prepare(&run->checkpoint, own || resumes(run), &run->fault);
  if (!nxr_training_agree(run)) return false;
  if (own) nxr_checkpoint_set_aside(&run->checkpoint, resumes(run), run->before, &run->fault);
  return nxr_training_agree(run);
}

bool nxr_training_load(nxr_training *run) {
  run->world->phase = "while data and weights are read";
  run->scale = nxr_loss_scale_begin(run->plan->run);
  run->plateau = nxr_plateau_begin();
  run->checkpoint.run.plateau = &run->plateau;
  run->checkpoint.run.scale = &run->scale;
  run->checkpoint.run.score = &run->score;
  run->checkpoint.run.optimizer_began = &run->exec.optimizer_began;
  if (!open_data(run)) return false;
  count_steps(run);
  nxr_exec_open(&run->exec, &run->machine, run->data, &run->fault);
  if (!nxr_training_agree(run)) return false;
  if (nxr_only_evaluates(run)) return refer(run) && load_evaluated(run);
  if (!prepare(run) || !refer(run) || !begin(run)) return false;
  if (!nxr_saves_open(run)) return false;
  const char *gradients = run->options->dump_gradients;
  if (gradients) nxr_checkpoint_prepare_gradients(&run->checkpoint, gradients, &run->fault);
  return nxr_training_agree(run) && open_profile(run);
}
