/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train.h"

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/world/clock.h"
#include "runtime/evaluate.h"
#include "runtime/step/exec.h"
#include "runtime/step/finite.h"
#include "runtime/state/init.h"
#include "runtime/report.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stop_signal;
static time_t first_signal;

/* A terminal and mpiexec may both send the same Ctrl-C: a second signal counts as one after a second. */
static void on_signal(int number) {
  time_t now = time(NULL);
  if (!stop_signal) first_signal = now;
  if (now > first_signal + 1) {
    signal(number, SIG_DFL);
    raise(number);
  }
  stop_signal = number;
}

/* Only while there are steps to stop between: before and after, a signal ends the process at once. */
static const int stop_signals[] = {SIGTERM, SIGINT, SIGHUP};
enum { N_STOP_SIGNALS = sizeof stop_signals / sizeof *stop_signals };
static struct sigaction usual_actions[N_STOP_SIGNALS];

static void catch_signals(void) {
  const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  for (int i = 0; i < N_STOP_SIGNALS; i++) {
    sigaction(stop_signals[i], NULL, &usual_actions[i]);
    bool no_hangup = stop_signals[i] == SIGHUP && usual_actions[i].sa_handler == SIG_IGN; /* nohup */
    if (!no_hangup) sigaction(stop_signals[i], &action, NULL);
  }
}

static void release_signals(void) {
  for (int i = 0; i < N_STOP_SIGNALS; i++) sigaction(stop_signals[i], &usual_actions[i], NULL);
}

typedef struct training {
  nxr_world *world;
  const nx_plan *plan;
  const nxr_options *options;
  nxr_arenas arenas;
  nxr_comm *comm;
  nxr_machine machine;
  nxr_finite finite;
  nxr_pieces pieces;
  nxr_checkpoint checkpoint;
  nxr_data *data;
  nxr_exec exec;
  nxr_evaluations evaluations;
  nxr_profile profile;
  nxr_loss_scale scale;
  nxr_score score; /* of the next checkpoint */
  nxr_metrics metrics;
  nxr_fault fault;
  uint64_t done;  /* steps behind the run */
  uint64_t saved; /* at which the newest checkpoint was written */
} training;

/* Whether all ranks succeeded; where one did not, it has said why. */
static bool agree(training *run) {
  return nxr_world_agree(run->world, &run->fault);
}

/* ---- set up ---- */

static bool open_device(training *run) {
  const nx_run *wanted = run->plan->run;
  const char *name = run->options->backend;
  nxk_fault why = {""};
  run->machine.backend = nxk_backend_find(name ? name : "cpu");
  if (!run->machine.backend && !name) run->machine.backend = &nxk_ref;
  if (!run->machine.backend)
    return nxr_fault_set(&run->fault, "this nxrun was built without the backend %s: give --backend ref",
                         name);
  const nxk_device_options options = {.n_threads = wanted->n_threads, .target = wanted->target,
                                      .workspace_bytes = wanted->workspace_bytes};
  if (run->machine.backend->open(&options, &run->machine.device, &why)) return true;
  return nxr_fault_set(&run->fault, "rank %u, backend %s: %s", run->world->rank, run->machine.backend->name,
                       why.text);
}

static bool open_memory(training *run) {
  nxr_machine *machine = &run->machine;
  bool window = run->world->local_size > 1 && machine->backend->host_addressable && !run->options->force_p2p;
  return nxr_arenas_open(run->world, run->plan, machine->backend, machine->device,
                         nxr_comm_control_bytes(run->plan), window, &run->arenas, &run->fault);
}

/* Data that the plan has no room for: no rank can go on. */
static void raise_alarm(void *context, const char *text) {
  const training *run = context;
  const nx_operator *op = &run->plan->operators[run->machine.running];
  nxr_fault said = {""};
  nxr_fault_set(&said, "nxrun: rank %u, step %llu, %s of %s: %s", run->world->rank,
                (unsigned long long)run->done + 1, nx_op_find(op->op)->name,
                nx_plan_string(run->plan, op->origin), text);
  fprintf(stderr, "%s\n", said.text);
  nxr_world_abort(NXR_EXIT_FAILED);
}

static bool open_machine(training *run) {
  nxr_machine *machine = &run->machine;
  machine->plan = run->plan, machine->world = run->world, machine->arenas = &run->arenas;
  machine->alarm = (nxk_alarm){raise_alarm, run};
  if (!nxr_comm_open(run->world, run->plan, machine->backend, machine->device, &run->arenas,
                     run->plan->run_names->deadline_s, &run->comm, &run->fault))
    return false;
  machine->comm = run->comm;
  machine->finite = &run->finite;
  if (run->options->check_numbers && !nxr_finite_open(&run->finite, &run->fault)) return false;
  return nxr_machine_open(machine, &run->fault);
}

static void open_pieces(training *run) {
  const char *directory = nx_plan_text(run->plan, run->plan->run_names->directory);
  if (directory[0] == '\0') directory = nx_plan_text(run->plan, run->plan->run_names->name);
  if (run->options->directory) directory = run->options->directory;
  run->pieces = (nxr_pieces){.plan = run->plan, .rank = run->world->rank, .stage = run->machine.stage,
                             .backend = run->machine.backend, .device = run->machine.device};
  memcpy(run->pieces.base, run->arenas.base, sizeof run->pieces.base);
  run->checkpoint = (nxr_checkpoint){.run = {.plan = run->plan}, .world = run->world, .pieces = &run->pieces,
                                     .directory = directory};
}

static bool set_up(training *run) {
  nxr_world_pin(run->world, run->plan);
  open_device(run);
  if (!agree(run)) return false;
  open_memory(run);
  if (!agree(run)) return false;
  open_machine(run);
  if (!agree(run)) return false;
  open_pieces(run);
  nxr_world_barrier(run->world);
  return true;
}

/* ---- state ---- */

static bool resumes(const training *run) {
  return run->options->resume || run->plan->run_names->resume;
}

/* Drawn, or read where the plan says. */
static bool load_weights(training *run) {
  const char *init_from = nx_plan_string(run->plan, run->plan->run->init_from);
  nxr_init_weights(&run->pieces, &run->fault);
  if (init_from[0] != '\0' && access(init_from, F_OK) != 0)
    nxr_fault_set(
        &run->fault,
        "there is no %s to read weights from: a model on Hugging Face is fetched with hf download NAME "
        "--local-dir FOLDER, and run.init_from names the folder",
        init_from);
  if (!agree(run)) return false;
  if (init_from[0] != '\0') nxr_checkpoint_import(&run->checkpoint, init_from, &run->fault);
  const char *adapters = nx_plan_string(run->plan, run->plan->run->adapter_from);
  if (!agree(run) || adapters[0] == '\0') return run->fault.text[0] == '\0';
  nxr_checkpoint_import_adapters(&run->checkpoint, adapters, &run->fault);
  return agree(run);
}

/* ---- what is only evaluated ---- */

static bool only_evaluates(const training *run) {
  return run->options->evaluate || run->plan->run_names->rules & NX_RUN_ONLY_EVALUATES;
}

/* The step that is in the name of a checkpoint's folder. */
static uint64_t step_of(const char *path) {
  const char *name = strstr(path, "step-");
  for (const char *next = name; next; next = strstr(next + 1, "step-")) name = next;
  return name ? strtoull(name + strlen("step-"), NULL, 10) : 0;
}

/* A given checkpoint, or the newest of the run; where there is none, what the run would begin with. */
static bool load_evaluated(training *run) {
  const char *given = run->options->checkpoint;
  if (run->plan->n[NX_SECTION_EVALUATIONS] == 0)
    nxr_fault_set(&run->fault, "the plan evaluates no set: compile it with evaluate.batches or evaluate.share, and "
                               "a dataset for validation (data.split)");
  if (!agree(run) || !load_weights(run)) return false;
  if (given) {
    run->done = step_of(given);
    nxr_checkpoint_import(&run->checkpoint, given, &run->fault);
    return agree(run);
  }
  nxr_checkpoint_prepare(&run->checkpoint, true, &run->fault);
  if (!agree(run)) return false;
  const nxr_resume newest = {.directory = run->checkpoint.directory};
  nxr_checkpoint_resume(&run->checkpoint, &newest, &run->done, &run->fault);
  if (!agree(run)) return false;
  if (run->done == 0 && run->world->rank == 0)
    fprintf(stderr, "nxrun: %s has no checkpoint: the weights that the run begins with are evaluated\n",
            run->checkpoint.directory);
  return true;
}

/* All ranks must read the same; what they read goes into the checkpoints. */
static bool open_data(training *run) {
  bool trains = !only_evaluates(run);
  nxr_data_open(run->plan, run->world->rank, trains, &run->data, &run->fault);
  if (!agree(run)) return false;
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
  return agree(run);
}

/* From the run's own folder, or else from the one that the plan names; else with weights that are drawn, which is
 * also what a folder of weights leaves to adapters. */
static bool begin(training *run) {
  const nx_run_names *names = run->plan->run_names;
  const nxr_resume own = {.directory = run->checkpoint.directory,
                          .step = nx_plan_text(run->plan, names->load)[0] == '\0' ? names->load_step : 0};
  const nxr_resume other = {.directory = nx_plan_text(run->plan, names->load), .step = names->load_step,
                            .weights_only = names->load_weights};
  bool loaded = false, elsewhere = !nxr_manifest_has_base(run->plan); /* what is frozen is in no checkpoint */
  if (elsewhere && !load_weights(run)) return false;
  if (resumes(run)) nxr_checkpoint_resume(&run->checkpoint, &own, &run->done, &run->fault);
  if (!agree(run)) return false;
  if (run->done > 0) return true;
  if (!elsewhere && !load_weights(run)) return false;
  if (other.directory[0] != '\0')
    nxr_checkpoint_load(&run->checkpoint, &other, &run->done, &loaded, &run->fault);
  if (!agree(run)) return false;
  if (!loaded && names->load_required)
    nxr_fault_set(&run->fault, "there is no checkpoint in %s, and checkpoint.required asks for one",
                  other.directory[0] ? other.directory : own.directory);
  return agree(run);
}

static bool open_profile(training *run) {
  const nx_run_names *names = run->plan->run_names;
  const nxr_options *options = run->options;
  bool given = options->profile_first > 0;
  nxr_profile_open(
      &run->profile, run->plan, run->world, given ? options->profile_first : names->profile_first,
      given ? options->profile_last : names->profile_last,
      given ? options->profile_ranks : nx_plan_text(run->plan, names->profile_ranks), &run->fault);
  if (run->profile.first > 0) run->exec.profile = &run->profile;
  return agree(run);
}

static bool load_state(training *run) {
  run->world->phase = "while data and weights are read";
  run->scale = nxr_loss_scale_begin(run->plan->run);
  run->checkpoint.run.scale = &run->scale;
  run->checkpoint.run.score = &run->score;
  if (!open_data(run)) return false;
  if (only_evaluates(run)) {
    if (!load_evaluated(run)) return false;
    nxr_exec_open(&run->exec, &run->machine, run->data, &run->fault);
    return agree(run);
  }
  nxr_checkpoint_prepare(&run->checkpoint, resumes(run), &run->fault);
  if (!agree(run) || !begin(run)) return false;
  run->saved = run->done > 0 ? run->done : UINT64_MAX;
  const char *gradients = run->options->dump_gradients;
  if (gradients) nxr_checkpoint_prepare_gradients(&run->checkpoint, gradients, &run->fault);
  if (!agree(run)) return false;
  nxr_exec_open(&run->exec, &run->machine, run->data, &run->fault);
  return agree(run) && open_profile(run);
}

static bool open_metrics(training *run) {
  char path[4096];
  const nx_run_names *names = run->plan->run_names;
  run->metrics = (nxr_metrics){.log = run->options->log, .log_every = names->log_every,
                               .n_steps = run->plan->run->n_steps, .window_bytes = run->arenas.segment_bytes};
  snprintf(path, sizeof path, "%s/metrics.jsonl", run->checkpoint.directory);
  const char *file = run->options->metrics ? run->options->metrics : path;
  bool reports = run->world->rank == 0 && (run->options->metrics || !only_evaluates(run));
  nxr_metrics_open(&run->metrics, reports ? file : NULL, only_evaluates(run) ? 0 : run->done, &run->fault);
  const char *tensorboard = nx_plan_text(run->plan, names->tensorboard);
  run->metrics.events_every = names->tensorboard_every, run->metrics.events_show = names->tensorboard_shows;
  if (reports && tensorboard[0] != '\0')
    nxr_events_open(&run->metrics.events, tensorboard, run->done, &run->fault);
  return agree(run);
}

/* ---- a step ---- */

static bool save(training *run) {
  if (run->saved == run->done) return true;
  run->world->phase = "while a checkpoint is written";
  nxr_checkpoint_save(&run->checkpoint, run->done, &run->fault);
  run->saved = run->done;
  bool well = agree(run);
  run->world->phase = "between steps";
  return well;
}

/* Whether a checkpoint is due after so many steps. */
static bool is_kept(const nx_plan *plan, uint64_t step) {
  uint64_t every = plan->run_names->save_every;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_EXTRA_SAVES]; i++)
    if (plan->extra_saves[i] == step) return true;
  return every && step > 0 && step % every == 0;
}

static void report(training *run, const nxr_numbers *numbers, double seconds) {
  if (run->world->rank != 0) return;
  nxr_metrics_row row = {.step = run->done, .seconds = seconds};
  nxr_metrics_add(&row, "loss", numbers->loss);
  nxr_metrics_add(&row, "lr", numbers->lr);
  nxr_metrics_add(&row, "grad_norm", numbers->grad_norm);
  if (nxr_loss_scale_is_used(run->plan->run)) {
    nxr_metrics_add(&row, "loss_scale", numbers->loss_scale);
    nxr_metrics_add(&row, "skipped", (double)run->scale.n_skipped);
  }
  nxr_metrics_add(&row, "tokens_per_s", (double)run->plan->run->tokens_per_step / seconds);
  if (run->plan->run_names->tensorboard_shows & NX_SHOWS_WORLD_SIZE)
    nxr_metrics_add(&row, "world_size", run->plan->run->n_ranks);
  nxr_metrics_add(&row, "memory_bytes", (double)nxr_metrics_memory(&run->metrics));
  nxr_metrics_report(&run->metrics, &row);
}

/* The next step's loss scale. */
static void adapt(training *run, const nxr_numbers *numbers) {
  const nx_run *plan = run->plan->run;
  bool skipped = nxr_loss_scale_is_used(plan) && !isfinite(numbers->grad_norm);
  if (nxr_loss_scale_next(&run->scale, plan, skipped)) return;
  nxr_fault_set(
      &run->fault,
      "step %llu: a gradient is no number, and the loss scale of %g is at its least; the run ends, and the "
      "newest checkpoint stays as it is",
      (unsigned long long)run->done, run->scale.factor);
}

static bool run_step(training *run, nxr_numbers *numbers) {
  double start = nxr_clock_s();
  if (!nxr_exec_step(&run->exec, run->done, &run->scale, numbers, &run->fault)) {
    fprintf(stderr, "nxrun: rank %u, step %llu: %s\n", run->world->rank, (unsigned long long)run->done + 1,
            run->fault.text);
    nxr_world_abort(NXR_EXIT_FAILED);
  }
  run->done++;
  numbers->loss_scale = run->scale.factor;
  adapt(run, numbers);
  report(run, numbers, nxr_clock_s() - start);
  return true;
}

/* The other ranks have the same numbers, so all find this at the same step. */
static bool is_finite(training *run, const nxr_numbers *numbers) {
  if (nxr_loss_scale_is_used(run->plan->run)) return true; /* such steps are skipped */
  if (run->finite.looks && run->finite.found[0]) return nxr_fault_set(&run->fault, "%s", run->finite.found);
  if (isfinite(numbers->loss) && isfinite(numbers->grad_norm)) return true;
  return nxr_fault_set(
      &run->fault,
      "step %llu: the loss is %g and the gradient norm %g; the run ends, and the newest checkpoint "
      "stays as it is (a smaller optimizer.lr or a longer warm-up may help; --resume --check-numbers says "
      "where it begins)",
      (unsigned long long)run->done, numbers->loss, numbers->grad_norm);
}

/* ---- evaluations ---- */

static bool is_stopped(const void *context) {
  const training *run = context;
  return nxr_comm_vote(run->comm, stop_signal != 0);
}

static bool open_evaluations(training *run) {
  run->evaluations = (nxr_evaluations){.exec = &run->exec, .data = run->data, .stops = is_stopped,
                                       .context = run};
  if (run->world->rank == 0) run->evaluations.metrics = &run->metrics;
  nxr_evaluations_open(&run->evaluations, &run->fault);
  return agree(run);
}

/* What the next checkpoint is judged by. */
static void judge(training *run, double loss) {
  const nx_run_names *names = run->plan->run_names;
  const nxr_evaluation *by =
      names->best_evaluation == NX_NONE ? NULL : &run->evaluations.at[names->best_evaluation];
  if (names->best == 0) return;
  if (by == NULL) run->score.known = true, run->score.loss = loss;
  else if (by->evaluated == run->done) run->score.known = true, run->score.loss = by->loss;
}

/* What cannot be read ends the run: ranks that could are waiting. */
static void end_unread(const training *run) {
  fprintf(stderr, "nxrun: rank %u, evaluation after step %llu: %s\n", run->world->rank,
          (unsigned long long)run->done, run->fault.text);
  nxr_world_abort(NXR_EXIT_FAILED);
}

static void evaluate(training *run, bool (*which)(nxr_evaluations *, uint64_t step, nxr_fault *)) {
  run->world->phase = "during an evaluation";
  if (!which(&run->evaluations, run->done, &run->fault)) end_unread(run);
  if (!run->evaluations.given_up) run->score.evaluated = run->done;
  run->evaluations.given_up = false;
  run->world->phase = "between steps";
}

/* ---- the loop ---- */

/* Why the run ends here, to be resumed; NULL: it goes on. Rank 0's clock counts. */
static const char *find_stop(const training *run, double start_s) {
  const nx_run_names *names = run->plan->run_names;
  bool late = names->stop_after_s > 0 && nxr_clock_s() - start_s >= names->stop_after_s;
  if (stop_signal) return "by a signal";
  if (names->stop_every && run->done % names->stop_every == 0) return "by run.stop_every";
  return late && run->world->rank == 0 ? "by run.stop_after_minutes" : NULL;
}

/* A run goes on without one that cannot be written. */
static void write_profile(training *run) {
  run->profile.last = run->done;
  nxr_fault why = {""};
  nxr_metrics_end_line(&run->metrics);
  if (!nxr_profile_write(&run->profile, run->checkpoint.directory, &why) && why.text[0] != '\0')
    fprintf(stderr, "nxrun: %s; the training goes on without the profile\n", why.text);
}

static bool loop(training *run) {
  uint64_t last = run->plan->run->n_steps;
  if (run->options->stop_after && run->options->stop_after < last) last = run->options->stop_after;
  bool stop = false, dump = run->options->dump_gradients != NULL;
  const char *why = NULL;
  double start_s = nxr_clock_s();
  nxr_numbers numbers;
  if (run->done >= last && run->world->rank == 0)
    fprintf(stderr, "nxrun: %llu of %llu steps are done already: nothing is left to train\n",
            (unsigned long long)run->done, (unsigned long long)last);
  bool trained = run->done < last;
  if (trained && run->done == 0 && is_kept(run->plan, 0) && !save(run)) return false;
  if (trained && run->done == 0) evaluate(run, nxr_evaluate_sanity);
  if (run->score.evaluated < run->done) evaluate(run, nxr_evaluate_step); /* that was given up */
  while (run->done < last && !stop) {
    nxr_profile_step(&run->profile, run->done + 1);
    run_step(run, &numbers);
    if (run->profile.first && run->done == run->profile.last) write_profile(run);
    if (dump) nxr_checkpoint_gradients(&run->checkpoint, run->options->dump_gradients, &run->fault);
    dump = false;
    is_finite(run, &numbers);
    if (nxr_comm_vote(run->comm, run->fault.text[0] != '\0')) return agree(run);
    evaluate(run, nxr_evaluate_step);
    judge(run, numbers.loss);
    why = find_stop(run, start_s);
    stop = nxr_comm_vote(run->comm, why != NULL);
    if (is_kept(run->plan, run->done) && !save(run)) return false;
  }
  nxr_metrics_end_line(&run->metrics);
  bool recorded = run->profile.first && run->done >= run->profile.first && run->done < run->profile.last;
  if (recorded) write_profile(run); /* as far as the run came */
  if (!save(run)) return false;
  if (trained && run->done == run->plan->run->n_steps) evaluate(run, nxr_evaluate_end);
  if (stop && run->world->rank == 0)
    fprintf(stderr, "nxrun: stopped %s after step %llu; --resume continues\n", why ? why : "by a signal",
            (unsigned long long)run->done);
  return true;
}

static void tear_down(training *run) {
  nxr_metrics_close(&run->metrics);
  nxr_evaluations_close(&run->evaluations);
  nxr_exec_close(&run->exec);
  nxr_profile_close(&run->profile);
  if (run->data) nxr_data_close(run->data);
  nxr_machine_close(&run->machine);
  nxr_finite_close(&run->finite);
  nxr_comm_close(run->comm);
  nxr_arenas_close(&run->arenas);
  if (run->machine.device) run->machine.backend->close(run->machine.device);
}

static bool run_all(training *run) {
  if (!set_up(run)) return false;
  if (run->options->dry_run) {
    nxr_report_memory(&run->machine, run->options->log);
    return true;
  }
  if (!load_state(run) || !open_metrics(run) || !open_evaluations(run)) return false;
  catch_signals();
  bool well = true;
  if (only_evaluates(run)) evaluate(run, nxr_evaluate_all);
  else well = loop(run);
  release_signals();
  return well;
}

int nxr_train(nxr_world *world, const nx_plan *plan, const nxr_options *options) {
  training run = {.world = world, .plan = plan, .options = options};
  bool well = run_all(&run);
  tear_down(&run);
  return well ? NXR_EXIT_OK : NXR_EXIT_FAILED;
}
