/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/checkpoint_beside.h"
#include "runtime/files/fault.h"
#include "runtime/rehearse.h"
#include "runtime/report.h"
#include "runtime/signals.h"
#include "runtime/state/merge.h"
#include "runtime/training.h"
#include "runtime/world/clock.h"
#include "runtime/world/launch.h"

#include <math.h>
#include <stdio.h>

/* ---- a step ---- */

static bool is_line_due(const nxr_training *run) {
  return run->done % run->plan->run_names->log_every == 0 || run->done == run->n_steps;
}

/* The next step's loss scale. */
static void adapt(nxr_training *run, const nxr_numbers *numbers) {
  const nx_run *plan = run->plan->run;
  bool skipped = nxr_loss_scale_is_used(plan) && !isfinite(numbers->grad_norm);
  uint64_t n_samples = nx_plan_phase(run->plan, run->done - 1).global_batch;
  if (nxr_loss_scale_next(&run->scale, plan, skipped, n_samples)) return;
  nxr_fault_set(
      &run->fault,
      "step %llu: a gradient is no number, and the loss scale of %g is %s; the run ends, and the newest "
      "checkpoint stays as it is",
      (unsigned long long)run->done, run->scale.factor,
      plan->loss_scale_rules & NX_LOSS_SCALE_DYNAMIC ? "at its least" : "fixed");
}

static bool run_step(nxr_training *run, nxr_numbers *numbers) {
  double start = nxr_clock_s();
  if (!nxr_exec_step(&run->exec, run->done, &run->scale, &run->plateau, numbers, &run->fault)) {
    nxr_print(stderr, "nxrun: rank %u, step %llu: %s\n", run->world->rank, (unsigned long long)run->done + 1,
            run->fault.text);
    nxr_world_abort(NXR_EXIT_FAILED);
  }
  run->done++;
  numbers->loss_scale = run->scale.factor;
  adapt(run, numbers);
  nxr_metrics_step(run, numbers, nxr_clock_s() - start);
  run->timers.n_steps++;
  if (run->timers.used && is_line_due(run)) {
    nxr_metrics_end_line(&run->metrics);
    nxr_timers_report(&run->timers, run->world, run->plan->run_names, run->done,
                      run->metrics.events.path ? &run->metrics.events : NULL);
  }
  return true;
}

/* Where this step is one after which they begin anew; a checkpoint under way has the weights before. */
static bool merge_adapters(nxr_training *run) {
  uint32_t every = run->plan->run->merge_every;
  if (every == 0 || run->done % every != 0) return true;
  if (!nxr_saves_finish(run)) return false;
  return nxr_merge_adapters(&run->pieces, run->world, run->done / every - 1, &run->fault);
}

/* A step that overflows is skipped: the run goes on, and looks at the next. */
static void tell_overflow(nxr_training *run) {
  if (!run->finite.looks || !nxr_finite_agree(&run->finite, run->world)) return;
  if (run->finite.found[0] != '\0')
    nxr_print(stderr, "nxrun: %s, so that the step is skipped\n", run->finite.found);
  run->finite.found[0] = '\0';
}

/* The other ranks have the same numbers, so all find this at the same step. */
static bool is_finite(nxr_training *run, const nxr_numbers *numbers) {
  if (nxr_loss_scale_is_used(run->plan->run)) {
    tell_overflow(run);
    return true;
  }
  if (run->finite.looks && nxr_finite_agree(&run->finite, run->world))
    return run->finite.found[0] == '\0' || nxr_fault_set(&run->fault, "%s", run->finite.found);
  if (isfinite(numbers->loss) && isfinite(numbers->grad_norm)) return true;
  if (run->plan->run_names->rules & NX_RUN_GOES_ON_AT_NAN) return true;
  return nxr_fault_set(
      &run->fault,
      "step %llu: the loss is %g and the gradient norm %g; the run ends, and the newest checkpoint "
      "stays as it is (a smaller optimizer.lr or a longer warm-up may help; --resume --check-numbers says "
      "where it begins)",
      (unsigned long long)run->done, isnan(numbers->loss) ? (double)NAN : numbers->loss,
      isnan(numbers->grad_norm) ? (double)NAN : numbers->grad_norm);
}

/* Where the run begins, or this step is one after which copies of weights are compared. */
static bool compare_copies(nxr_training *run, bool begins) {
  uint32_t every = run->plan->run_names->compare_every;
  if (every == 0 || (!begins && run->done % every != 0)) return true;
  run->world->phase = "while copies of weights are compared";
  nxr_replicas_compare(&run->replicas, &run->pieces, run->world, run->done, &run->fault);
  run->world->phase = "between steps";
  return nxr_training_agree(run);
}

/* ---- evaluations ---- */

/* A checkpoint goes on meanwhile; one that fails ends the run, and so the evaluation. */
static bool is_stopped(void *context) {
  nxr_training *run = context;
  bool votes[] = {nxr_signals_stop(), run->saver && nxr_saver_is_busy(run->saver)};
  nxr_comm_votes(run->comm, votes, 2);
  return (run->saver && !nxr_saves_continue(run, votes[1])) || votes[0];
}

static bool open_evaluations(nxr_training *run) {
  run->evaluations = (nxr_evaluations){.exec = &run->exec, .data = run->data, .stops = is_stopped,
                                       .context = run};
  if (run->world->rank == 0) run->evaluations.metrics = &run->metrics;
  nxr_evaluations_open(&run->evaluations, &run->fault);
  return nxr_training_agree(run);
}

/* What the next checkpoint is judged by. */
static void judge(nxr_training *run, const nxr_numbers *numbers) {
  const nx_run_names *names = run->plan->run_names;
  const nxr_evaluation *by =
      names->best_evaluation == NX_NONE ? NULL : &run->evaluations.at[names->best_evaluation];
  if (names->best == 0) return;
  double own = names->rules & NX_RUN_BEST_BY_STEP   ? (double)run->done
               : names->rules & NX_RUN_BEST_BY_RATE ? numbers->lr
               : names->rules & NX_RUN_BEST_BY_NORM ? numbers->grad_norm
                                                    : numbers->loss;
  if (by == NULL) run->score.known = true, run->score.loss = own;
  else if (by->evaluated == run->done) run->score.known = true, run->score.loss = by->loss;
}

/* The learning rate's next look at the loss that it follows, where one is due. */
static void follow(nxr_training *run, const nxr_numbers *numbers) {
  const nx_plateau *plateau = &run->plan->run->plateau;
  if (!nxr_plateau_is_used(run->plan->run)) return;
  const nxr_evaluation *by =
      plateau->evaluation == NX_NONE ? NULL : &run->evaluations.at[plateau->evaluation];
  bool is_new = by == NULL || by->evaluated == run->done;
  if (is_new) run->plateau.loss = by ? by->loss : numbers->loss;
  bool due = plateau->every ? run->done % plateau->every == 0 && !isnan(run->plateau.loss) : is_new;
  if (due) nxr_plateau_look(&run->plateau, plateau, numbers->lr);
}

/* What cannot be read ends the run: ranks that could are waiting. */
static void end_unread(const nxr_training *run) {
  nxr_print(stderr, "nxrun: rank %u, evaluation after step %llu: %s\n", run->world->rank,
          (unsigned long long)run->done, run->fault.text);
  nxr_world_abort(NXR_EXIT_FAILED);
}

/* False where it was given up, since the run shall end. */
static bool evaluate(nxr_training *run, bool (*which)(nxr_evaluations *, uint64_t step, nxr_fault *)) {
  run->world->phase = "during an evaluation";
  if (!which(&run->evaluations, run->done, &run->fault)) end_unread(run);
  bool whole = !run->evaluations.given_up;
  if (whole) run->score.evaluated = run->done;
  run->evaluations.given_up = false;
  run->world->phase = "between steps";
  return whole;
}

/* ---- the loop ---- */

/* Why the run ends here, to be resumed; NULL: it goes on. Rank 0's clock counts. */
static const char *find_stop(const nxr_training *run, double start_s) {
  const nx_run_names *names = run->plan->run_names;
  bool late = names->stop_after_s > 0 && nxr_clock_s() - start_s >= names->stop_after_s;
  if (nxr_signals_stop()) return "by a signal";
  if (nxr_launch_is_orphan()) return "since its launcher is gone";
  if (names->stop_every && run->done % names->stop_every == 0) return "by run.stop_every";
  return late && run->world->rank == 0 ? "by run.stop_after_minutes" : NULL;
}

/* A run goes on without one that cannot be written. */
static void write_profile(nxr_training *run) {
  run->profile.last = run->done;
  nxr_fault why = {""};
  nxr_metrics_end_line(&run->metrics);
  if (!nxr_profile_write(&run->profile, run->checkpoint.directory, &why) && why.text[0] != '\0')
    nxr_print(stderr, "nxrun: %s; the training goes on without the profile\n", why.text);
}

/* What the ranks ask each other after each step. */
enum { FAULT, STOP, BUSY, SAVE, N_VOTES };

/* What is between two steps; *why the run ends here. */
static bool between(nxr_training *run, const nxr_numbers *numbers, double start_s, const char **why,
                    bool *stop) {
  bool votes[N_VOTES];
  *why = find_stop(run, start_s);
  is_finite(run, numbers);
  votes[FAULT] = run->fault.text[0] != '\0', votes[STOP] = *why != NULL;
  votes[BUSY] = nxr_saver_is_busy(run->saver), votes[SAVE] = nxr_saves_ask(run);
  nxr_comm_votes(run->comm, votes, N_VOTES);
  if (votes[FAULT]) return nxr_training_agree(run);
  if (!nxr_saves_continue(run, votes[BUSY])) return false;
  *stop = !evaluate(run, nxr_evaluate_step) || votes[STOP];
  judge(run, numbers);
  follow(run, numbers);
  double since_s = nxr_timers_now(&run->timers);
  bool good = !run->unsaved && nxr_saves_step(run, votes[SAVE]);
  nxr_timers_add(&run->timers, NXR_TIMER_SAVE, since_s);
  return good;
}

static void tell_wait(void *run, const char *wait) {
  nxr_progress_waits(&((nxr_training *)run)->progress, wait);
}

static void open_progress(nxr_training *run) {
  if (run->world->rank != 0) return;
  nxr_comm_tells(run->comm, tell_wait, run);
  run->progress = (nxr_progress){.directory = run->checkpoint.directory,
                                 .plan = run->plan,
                                 .world = run->world,
                                 .logs = (run->plan->run_names->rules & NX_RUN_KEEPS_PROGRESS) != 0,
                                 .begun_s = nxr_clock_s(),
                                 .begun_at = run->done};
  nxr_tell(run, "training", "begins");
}

static bool train(nxr_training *run, uint64_t last, const char **why, bool *stop) {
  bool dump = run->options->dump_gradients != NULL;
  double start_s = nxr_clock_s();
  nxr_numbers numbers;
  if (!compare_copies(run, true)) return false;
  if (run->done == 0 && !nxr_saves_step(run, false)) return false;
  if (run->done == 0) evaluate(run, nxr_evaluate_sanity);
  if (run->unsaved) return false;
  while (run->done < last && !*stop) {
    if (nx_plan_skips(run->plan, run->done)) {
      run->done++;
      continue;
    }
    nxr_profile_step(&run->profile, run->done + 1);
    run_step(run, &numbers);
    if (!merge_adapters(run)) return false;
    if (run->profile.first && run->done == run->profile.last) write_profile(run);
    if (dump) nxr_checkpoint_gradients(&run->checkpoint, run->options->dump_gradients, &run->fault);
    dump = false;
    if (!compare_copies(run, false) || !between(run, &numbers, start_s, why, stop)) return false;
  }
  return true;
}

static void tell_stop(const nxr_training *run, const char *why) {
  char folder[NXR_PATH_BYTES];
  nxr_folder_path(run->checkpoint.directory, run->done, "", folder);
  nxr_print(stderr, "nxrun: stopped %s after step %llu, saved as %s; --resume continues\n", why,
            (unsigned long long)run->done, folder);
}

static bool loop(nxr_training *run) {
  uint64_t last = run->n_steps;
  if (run->options->stop_after && run->options->stop_after < last) last = run->options->stop_after;
  bool stop = false, trained = run->done < last;
  open_progress(run);
  const char *why = NULL;
  if (!trained && run->world->rank == 0)
    nxr_print(stderr, "nxrun: %llu of %llu steps are done already: nothing is left to train\n",
            (unsigned long long)run->done, (unsigned long long)last);
  bool skipped = run->done > 0 && nx_plan_skips(run->plan, run->done - 1);
  if (run->score.evaluated < run->done && !skipped) evaluate(run, nxr_evaluate_step); /* that was given up */
  if (trained && !train(run, last, &why, &stop)) {
    nxr_saves_finish(run); /* the one before this is whole */
    nxr_tell(run, "failed", "fails");
    return false;
  }
  nxr_metrics_end_line(&run->metrics);
  bool recorded = run->profile.first && run->done >= run->profile.first && run->done < run->profile.last;
  if (recorded) write_profile(run); /* as far as the run came */
  if (!nxr_saves_end(run)) {
    nxr_tell(run, "failed", "cannot be saved");
    return false;
  }
  if (trained && run->done == run->n_steps) evaluate(run, nxr_evaluate_end);
  bool done = run->done == run->n_steps;
  nxr_tell(run, done ? "done" : "stopped", done ? "ends" : "stops");
  run->stopped = stop && !done;
  if (!stop && trained) why = "by --stop-after";
  if ((stop || (trained && !done)) && run->world->rank == 0) tell_stop(run, why ? why : "by a signal");
  return true;
}

static void tear_down(nxr_training *run, int status) {
  nxr_metrics_close(&run->metrics, status);
  nxr_evaluations_close(&run->evaluations);
  nxr_saver_close(run->saver);
  nxr_reference_close(&run->reference);
  nxr_exec_close(&run->exec);
  nxr_profile_close(&run->profile);
  nxr_timers_close(&run->timers);
  if (run->data) nxr_data_close(run->data);
  nxr_machine_close(&run->machine);
  nxr_finite_close(&run->finite);
  nxr_replicas_close(&run->replicas);
  nxr_comm_close(run->comm);
  nxr_arenas_close(&run->arenas);
  if (run->machine.device) run->machine.backend->close(run->machine.device);
}

/* With the tokenizer that stands beside the checkpoint, or else that of the plan. */
static bool generate(nxr_training *run) {
  char folder[NXR_PATH_BYTES], path[NXR_PATH_BYTES] = "";
  const char *given = run->options->checkpoint;
  nxr_folder_path(run->checkpoint.directory, run->done, "", folder);
  nxr_tokenizer_find(run->plan, given ? given : folder, path);
  run->world->phase = "while a text is continued";
  return nxr_generate(&run->exec, &run->options->generation, path, &run->fault);
}

static bool run_all(nxr_training *run) {
  bool generates = run->options->generation.prompt != NULL;
  if (generates && !nxr_can_generate(run->plan, &run->fault)) return nxr_training_agree(run);
  double begun_s = nxr_clock_s();
  if (!nxr_training_set_up(run)) return false;
  if (run->options->as_ranks) nxr_rehearse_report(&run->machine, run->options, nxr_clock_s() - begun_s);
  if (run->options->dry_run) {
    bool aside = run->plan->run_names->rules & NX_RUN_SAVES_ASIDE;
    nxr_report_memory(&run->machine, aside ? nxr_saver_copy_bytes(&run->checkpoint) : 0, run->options->log);
    return true;
  }
  if (!nxr_training_load(run)) return false;
  if (generates) return generate(run);
  if (!nxr_metrics_begin(run) || !open_evaluations(run)) return false;
  nxr_signals_catch();
  bool well = true;
  if (nxr_only_evaluates(run)) evaluate(run, nxr_evaluate_all);
  else well = loop(run);
  nxr_signals_release();
  return well;
}

int nxr_train(nxr_world *world, const nx_plan *plan, const nxr_options *options) {
  nxr_training run = {.world = world, .plan = plan, .options = options};
  bool well = run_all(&run);
  int status = !well ? NXR_EXIT_FAILED : run.stopped ? NXR_EXIT_STOPPED : NXR_EXIT_OK;
  tear_down(&run, status);
  return status;
}
