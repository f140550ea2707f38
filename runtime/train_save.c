/* SPDX-License-Identifier: Apache-2.0 */
/* When a training is saved, and what becomes of it where that fails. */
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/checkpoint/checkpoint_link.h"
#include "runtime/files/fault.h"
#include "runtime/files/mapping.h"
#include "runtime/signals.h"
#include "runtime/training.h"
#include "runtime/world/clock.h"

#include <stdio.h>

/* The newest checkpoint, as rank 0 knows it; 0: there is none. */
static uint64_t newest(const nxr_training *run) {
  uint64_t own = run->saver ? nxr_saver_newest(run->saver) : 0;
  return own ? own : run->found;
}

void nxr_tell(nxr_training *run, const char *phase, const char *event) {
  const nxr_progress_state state = {
      .step = run->done, .saved = newest(run), .loss = run->loss, .phase = phase};
  nxr_progress_write(&run->progress, &state, event != NULL);
  if (event) nxr_progress_log(&run->progress, &state, event);
}

static void tell_saved(void *run) {
  nxr_tell(run, "training", "saved");
}

bool nxr_saves_open(nxr_training *run) {
  const nx_run_names *names = run->plan->run_names;
  run->saved = run->done > 0 ? run->done : UINT64_MAX;
  run->saved_s = nxr_clock_s();
  if (run->world->rank == 0) {
    nxr_folder_newest(run->checkpoint.directory, UINT64_MAX, &run->found);
    nxr_folder_may_grow(run->checkpoint.directory, &run->fault);
  }
  if (names->save_epochs > 0 && nxr_data_trained(run->data) != NX_NONE)
    run->save_epochs = nxr_steps_of_epochs(names->save_epochs, run->data, run->plan->run);
  if (nxr_data_trained(run->data) != NX_NONE)
    run->checkpoint.run.epoch_steps = nxr_steps_of_epochs(1, run->data, run->plan->run);
  char name[NXR_LINK_BYTES];
  const char *pattern = nx_plan_text(run->plan, names->link_name);
  if (pattern[0] != '\0' && !nxr_link_name(pattern, 0, 0, 0, NULL, name))
    nxr_fault_set(&run->fault, "checkpoint.link_name makes no name of a file: %.200s", pattern);
  if (!nxr_training_agree(run)) return false;
  bool opened =
      nxr_saver_open(&run->checkpoint, names->rules & NX_RUN_SAVES_ASIDE, &run->saver, &run->fault);
  if (opened) nxr_saver_tells(run->saver, tell_saved, run);
  return nxr_training_agree(run);
}

static void explain_unsaved(const nxr_training *run) {
  unsigned long long done = run->done, kept = newest(run);
  if (kept > 0)
    nxr_print(stderr,
              "nxrun: the run ends at step %llu, which is not saved (checkpoint.on_failure); once it can be, "
              "--resume goes on from step %llu\n",
              done, kept);
  else
    nxr_print(stderr,
              "nxrun: the run ends at step %llu, which is not saved (checkpoint.on_failure), nor was any "
              "before it\n",
              done);
}

/* A failure of the run, or one that it outlives. */
static bool judge(nxr_training *run, bool good) {
  if (good) return true;
  nxr_metrics_end_line(&run->metrics);
  run->unsaved = !(run->plan->run_names->rules & NX_RUN_SAVES_MAY_FAIL);
  if (run->unsaved) {
    nxr_training_agree(run);
    if (run->world->rank == 0) explain_unsaved(run);
    return false;
  }
  if (run->fault.text[0] != '\0')
    nxr_print(stderr, "nxrun: %s; the training goes on (checkpoint.on_failure)\n", run->fault.text);
  run->fault.text[0] = '\0';
  run->saved = UINT64_MAX;
  return true;
}

bool nxr_saves_finish(nxr_training *run) {
  run->world->phase = "while a checkpoint is written";
  bool good = judge(run, nxr_saver_finish(run->saver, &run->fault));
  run->world->phase = "between steps";
  return good;
}

/* Of each host one rank looks, whenever there is something to lose. */
static void warn_of_changes(nxr_training *run) {
  if (run->world->local_rank != 0) return;
  for (const char *path; (path = nxr_mapping_changed()) != NULL;) {
    nxr_metrics_end_line(&run->metrics);
    nxr_print(
        stderr,
        "nxrun: %s was written to by step %llu, while it is read: steps since the last checkpoint may have "
        "trained on other numbers; let nothing write to it, and go on from the checkpoint before\n",
        path, (unsigned long long)run->done);
  }
}

static bool begin(nxr_training *run, bool temporary) {
  if (run->saved == run->done) return true;
  warn_of_changes(run);
  if (nxr_saver_is_open(run->saver) && run->plan->run_names->rules & NX_RUN_SKIPS_SAVES) {
    if (run->world->rank == 0)
      nxr_print(stderr, "nxrun: step %llu is not saved, since another checkpoint is still being written\n",
              (unsigned long long)run->done);
    return true;
  }
  if (!nxr_saves_finish(run)) return false;
  nxr_tell(run, "saving", NULL);
  run->world->phase = "while a checkpoint is written";
  if (!temporary) run->saved = run->done, run->saved_s = nxr_clock_s();
  bool good = judge(run, nxr_saver_begin(run->saver, run->done, temporary, &run->fault));
  run->world->phase = "between steps";
  return good;
}

static bool is_multiple(uint64_t every, uint64_t step) {
  return every && step > 0 && step % every == 0;
}

/* Whether a multiple of so many sequences was reached with this step. */
static bool is_reached(const nx_plan *plan, uint64_t every, uint64_t step) {
  return every && step > 0 &&
         nx_plan_samples_before(plan, step) / every > nx_plan_samples_before(plan, step - 1) / every;
}

/* Whether a checkpoint is due after so many steps. */
static bool is_due(const nxr_training *run, uint64_t step) {
  const nx_plan *plan = run->plan;
  const nx_run_names *names = plan->run_names;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_EXTRA_SAVES]; i++)
    if (plan->extra_saves[i] == step) return true;
  return is_multiple(names->save_every, step) || is_multiple(run->save_epochs, step) ||
         is_reached(plan, names->save_samples, step);
}

bool nxr_saves_ask(nxr_training *run) {
  double after_s = run->plan->run_names->save_after_s;
  bool late = run->world->rank == 0 && after_s > 0 && nxr_clock_s() - run->saved_s >= after_s;
  return nxr_signals_save() || late;
}

bool nxr_saves_continue(nxr_training *run, bool busy) {
  if (busy || !nxr_saver_is_open(run->saver)) return true;
  return judge(run, nxr_saver_advance(run->saver, &run->fault));
}

bool nxr_saves_step(nxr_training *run, bool asked) {
  bool temporary = is_multiple(run->plan->run_names->temporary_every, run->done);
  if (asked || is_due(run, run->done)) return begin(run, false);
  return !temporary || begin(run, true);
}

bool nxr_saves_end(nxr_training *run) {
  return nxr_saves_finish(run) && begin(run, false) && nxr_saves_finish(run) && run->saved == run->done;
}
