/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/training.h"

#include <stdio.h>

bool nxr_metrics_begin(nxr_training *run) {
  char path[4096];
  const nx_run_names *names = run->plan->run_names;
  bool planned = names->rules & NX_RUN_LOGS_JSON;
  nxr_log log = run->options->log;
  if (log == NXR_LOG_AS_PLANNED) log = planned ? NXR_LOG_JSON : NXR_LOG_TEXT;
  run->metrics = (nxr_metrics){.log = log,
                               .log_every = names->log_every,
                               .n_steps = run->n_steps,
                               .window_bytes = run->arenas.segment_bytes};
  snprintf(path, sizeof path, "%s/metrics.jsonl", run->checkpoint.directory);
  const char *file = run->options->metrics ? run->options->metrics : path;
  bool reports = run->world->rank == 0 && (run->options->metrics || !nxr_only_evaluates(run));
  nxr_metrics_open(&run->metrics, reports ? file : NULL, nxr_only_evaluates(run) ? 0 : run->done,
                   &run->fault);
  const char *tensorboard = nx_plan_text(run->plan, names->tensorboard);
  run->metrics.events_every = names->tensorboard_every, run->metrics.events_show = names->tensorboard_shows;
  if (reports && tensorboard[0] != '\0')
    nxr_events_open(&run->metrics.events, tensorboard, run->done, &run->fault);
  run->metrics.wandb_every = names->wandb_every;
  if (reports)
    nxr_wandb_open(&run->metrics.wandb, run->plan, run->checkpoint.directory, run->done, &run->fault);
  return nxr_training_agree(run);
}

/* Of the model, for the tokens of a step: the batch may be growing. */
static double operations(const nxr_training *run, const nxr_numbers *numbers) {
  return run->plan->run->flops_per_step * numbers->tokens / (double)run->plan->run->tokens_per_step;
}

/* Of all ranks, and as a share of what they could do where the plan knows the machine. */
static void add_flops(nxr_metrics_row *row, double a_second, double peak) {
  nxr_metrics_add(row, "tflops", 1e-12 * a_second);
  if (peak > 0) nxr_metrics_add(row, "mfu", a_second / peak);
}

/* Of training that comes to compress its reductions: what a rank of the first stage receives in a step. */
static void add_received(const nxr_training *run, nxr_metrics_row *row) {
  const nx_plan *plan = run->plan;
  bool compresses = false;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_SCHEDULES]; i++)
    compresses = compresses || plan->schedules[i].flags & NX_SCHEDULE_COMPRESSED;
  if (!compresses) return;
  const nx_phase phase = nx_plan_phase(plan, run->done - 1);
  uint64_t n_bytes = nx_schedule_received(plan, &plan->schedules[phase.schedule], 0);
  nxr_metrics_add(row, "received_bytes", (double)n_bytes);
}

void nxr_metrics_step(nxr_training *run, const nxr_numbers *numbers, double seconds) {
  run->loss = numbers->loss;
  nxr_tell(run, "training", NULL);
  if (run->world->rank != 0) return;
  nxr_metrics_row row = {.step = run->done, .seconds = seconds};
  nxr_metrics_add(&row, "loss", numbers->loss);
  nxr_metrics_add_answers(&row, run->plan->run->objective, numbers->answers,
                          (uint64_t)numbers->tokens / run->plan->run->sequence);
  nxr_metrics_add(&row, "lr", numbers->lr);
  nxr_metrics_add(&row, "grad_norm", numbers->grad_norm);
  if (nxr_loss_scale_is_used(run->plan->run)) {
    nxr_metrics_add(&row, "loss_scale", numbers->loss_scale);
    nxr_metrics_add(&row, "skipped", (double)run->scale.n_skipped);
  }
  for (uint32_t i = 0; i < run->plan->n[NX_SECTION_MEASURES]; i++)
    nxr_metrics_add(&row, nx_plan_string(run->plan, run->plan->measures[i].name), numbers->measures[i]);
  add_received(run, &row);
  nxr_metrics_add(&row, "tokens_per_s", numbers->tokens / seconds);
  if (run->plan->run_names->tensorboard_shows & NX_SHOWS_WORLD_SIZE)
    nxr_metrics_add(&row, "world_size", run->plan->run->n_ranks);
  if (run->plan->run_names->rules & NX_RUN_LOGS_FLOPS)
    add_flops(&row, operations(run, numbers) / seconds, run->plan->run_names->peak_flops);
  nxr_metrics_add(&row, "memory_bytes", (double)nxr_metrics_memory(&run->metrics));
  nxr_metrics_report(&run->metrics, &row);
}
