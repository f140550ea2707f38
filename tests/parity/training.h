/* SPDX-License-Identifier: Apache-2.0 */
/* A training as the tests run it: a configuration in the nx dialect is compiled by nxcfg and run by nxrun,
 * and its metrics and first gradients are read back.
 *
 * Programs are named by the environment: NX_NXCFG, NX_NXRUN, NX_TRAIN_PLANS, NX_MPIEXEC. Everything is
 * written below `folder`, which is made anew. A failure of any program ends the test with its output. */
#ifndef NX_TEST_TRAINING_H
#define NX_TEST_TRAINING_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { TRAINING_MAX_STEPS = 64 };

typedef struct training {
  const char *folder;    /* made anew; holds the configuration, plan, metrics and gradients */
  const char *config;    /* text of the configuration */
  const char *overrides; /* further arguments of `nxcfg plan`, as "--set nx:mesh.world=2"; may be NULL */
  const char *arguments; /* further arguments of nxrun; may be NULL */
  unsigned n_ranks;
  bool gradients; /* dump the first step's to folder/gradients */
} training;

typedef struct training_step {
  double loss, grad_norm, lr;
} training_step;

typedef struct training_result {
  size_t n_steps;
  training_step steps[TRAINING_MAX_STEPS];
  size_t n_evaluations;
  double evaluations[TRAINING_MAX_STEPS]; /* losses, in order */
} training_result;

/* With what models, families and adapters were recorded (record_families.py, record_lora.py); SET is one
 * more. */
static const char training_recorded[] =
    "batch: {micro: 2, global: 8}\n"
    "model: {sequence: 32}\n"
    "optimizer: {name: adamw, lr: 1e-3, betas: [0.9, 0.95], weight_decay: 0.1, "
    "clip_norm: 1.0, epsilon: 1e-8}\n"
    "schedule: {name: cosine, warmup_steps: 4, min_lr: 1e-4, max_steps: 20}\n"
    "data: {shuffle: false}\n"
    "run: {seed: 7}\n";
#define SET(path, value) " --set nx:" path "=" value

/* The cases that one start of a test tries: "2of3", the second of every three; NULL, or another word: all. */
typedef struct training_share {
  size_t first, n;
  const char *name; /* the word, or "all" */
} training_share;

training_share training_share_of(const char *word);
bool training_is_in(const training_share *share, size_t which);

/* Ends the program (exit 1) when anything fails. */
void training_run(const training *request, training_result *result);
/* The same in parts: the plan alone; then many by train_plans, told by its words; then what came out of
 * one. */
void training_compile(const training *request);
void training_together(unsigned n_ranks, const char *name, const char *words);
void training_read(const char *folder, training_result *result);
/* The steps that a record has, from `first` on. */
void training_expect(const json_t *steps, size_t first, training_result *expected);
/* Demands equal steps: relative differences of losses within `tolerance`, of gradient norms within their own,
 * of rates within 1e-12. Prints the largest. False, and what differs, otherwise. */
bool training_compare(const training_result *expected, const training_result *actual, double tolerance,
                      double norm_tolerance);
/* Demands the same tensors in two safetensors files, each with |a - b| / |a| within `tolerance`. Prints the
 * largest. */
bool training_compare_tensors(const char *expected_path, const char *actual_path, double tolerance);

#endif
