/* SPDX-License-Identifier: Apache-2.0 */
/* A small model as settings, changed by "path=value" lines, and compiled. */
#ifndef NX_TESTS_PROGRAM_CASE_H
#define NX_TESTS_PROGRAM_CASE_H

#include "compiler/config/rules/assignment.h"
#include "compiler/program/program.h"
#include "tests/unit/cmocka_all.h"

#include <stdlib.h>
#include <string.h>

typedef struct program_case {
  nxc_arena *arena;
  nxc_sink *sink;
  nxc_settings *settings;
  nxc_plan_bytes out;
  bool ok;
} program_case;

/* Two layers, 4 heads on 2 key heads, a vocabulary that needs padding from 4 ranks on. */
static const char *const program_base[] = {
    "mesh.world=1",       "batch.micro=2",
    "batch.global=8",     "model.layers=2",
    "model.hidden=32",    "model.heads=4",
    "model.kv_heads=2",   "model.ffn_hidden=48",
    "model.sequence=16",  "model.vocab=50",
    "optimizer.lr=1e-3",  "schedule.max_steps=10",
    "data.path=[tokens]", NULL,
};

static inline void program_set(program_case *c, const char *line) {
  char *path = nxc_arena_strdup(c->arena, line), *value = strchr(path, '=');
  *value++ = '\0';
  assert_true(nxc_settings_set_text(c->settings, path, value, c->sink));
}

/* `changes`: "path=value path=value", without blanks in values. */
static inline program_case program_settings(const char *changes) {
  program_case c = {.arena = nxc_arena_new()};
  c.sink = nxc_sink_new(c.arena);
  c.settings = nxc_settings_new(c.arena);
  for (const char *const *line = program_base; *line; line++) program_set(&c, *line);
  char *rest = nxc_arena_strdup(c.arena, changes);
  for (char *line = strtok(rest, " "); line; line = strtok(NULL, " ")) program_set(&c, line);
  nxc_settings_derive(c.settings, c.sink);
  return c;
}

static inline program_case program_compile(const char *changes) {
  program_case c = program_settings(changes);
  c.ok = nxc_program_compile(c.settings, c.arena, c.sink, &c.out);
  return c;
}

/* Compiles, and fails with what was found where it should not. */
static inline program_case program_good(const char *changes) {
  program_case c = program_compile(changes);
  if (!c.ok && nxc_sink_n_findings(c.sink)) fail_msg("%s: %s", changes, nxc_sink_finding(c.sink, 0)->message);
  assert_true(c.ok);
  return c;
}

static inline void program_end(program_case *c) {
  nxc_arena_free(c->arena);
}

static inline bool program_found(const program_case *c, const char *id) {
  for (size_t i = 0; i < nxc_sink_n_findings(c->sink); i++)
    if (strcmp(nxc_sink_finding(c->sink, i)->id, id) == 0) return true;
  return false;
}

/* Layouts that the properties are tested on. */
static const char *const program_layouts[] = {
    "",
    "mesh.world=2",
    "mesh.world=2 mesh.tensor=2",
    "mesh.world=2 mesh.tensor=2 sequence_parallel=true model.tied_embeddings=true",
    "mesh.world=4 mesh.tensor=2 optimizer.zero_stage=1",
    "mesh.world=4 mesh.tensor=2 optimizer.zero_stage=1 sequence_parallel=true "
    "optimizer.norm_weight_decay=true",
    "mesh.world=4 mesh.tensor=4 mesh.kv_replicator=2 sequence_parallel=true optimizer.zero_stage=1",
    "mesh.world=8 mesh.tensor=4 mesh.kv_replicator=2 model.vocab_divisor=16 optimizer.zero_stage=1",
    "mesh.world=8 mesh.tensor=4 mesh.kv_replicator=2 model.bias=true model.normalization=layernorm",
    "mesh.world=4 mesh.tensor=2 model.position_embedding=learned model.bias=true "
    "model.normalization=layernorm "
    "model.activation=gelu_tanh model.tied_embeddings=true sequence_parallel=true optimizer.zero_stage=1",
    "model.position_embedding=learned model.qkv_bias=true model.fused_qkv=false",
    "mesh.world=4 mesh.tensor=2 precision.param=bf16 precision.compute=bf16 precision.master_weights=true "
    "optimizer.zero_stage=1 model.fused_qkv=false",
    "mesh.world=2 mesh.tensor=2 recompute.granularity=full sequence_parallel=true model.hidden_dropout=0.1 "
    "model.attention_dropout=0.1 model.ffn_dropout=0.1",
    "mesh.world=2 mesh.pipeline=2",
    "mesh.world=4 mesh.tensor=2 mesh.pipeline=2 sequence_parallel=true model.layers=4 "
    "mesh.virtual_pipeline=2",
    "mesh.world=16 mesh.tensor=2 mesh.pipeline=4 model.layers=6 optimizer.zero_stage=1 "
    "recompute.granularity=full",
    "mesh.world=4 mesh.pipeline=4 model.layers=5 pipeline.cuts=[layers.0,layers.1,layers.3] "
    "model.hidden_dropout=0.1 "
    "model.query_key_layer_scaling=true pipeline.schedule=gpipe",
    "mesh.world=4 optimizer.zero_stage=2 reduce.overlap=true gather.overlap=true reduce.bucket_elements=3000",
    "mesh.world=4 mesh.tensor=2 optimizer.zero_stage=2 sequence_parallel=true batch.micro=1",
    "mesh.world=4 optimizer.zero_stage=3 reduce.overlap=true gather.overlap=true recompute.granularity=full",
    "mesh.world=8 mesh.tensor=2 mesh.replicate=2 optimizer.zero_stage=3 sequence_parallel=true "
    "model.tied_embeddings=true precision.param=bf16 precision.compute=bf16 precision.master_weights=true",
    "mesh.world=4 optimizer.zero_stage=3 optimizer.reshard_after_forward=false gather.overlap=true "
    "batch.micro=1",
    "mesh.world=4 mesh.replicate=2 optimizer.zero_stage=1 reduce.overlap=true reduce.bucket_elements=3000",
    "mesh.world=8 mesh.pipeline=2 mesh.virtual_pipeline=2 model.layers=4 mesh.replicate=2 "
    "optimizer.zero_stage=3 "
    "reduce.overlap=true batch.micro=1",
    "mesh.world=8 mesh.pipeline=2 mesh.replicate=2 optimizer.zero_stage=3 model.tied_embeddings=true "
    "reduce.overlap=true "
    "batch.micro=1",
    "mesh.world=2 reduce.overlap=true reduce.bucket_elements=2000 model.bias=true "
    "model.normalization=layernorm",
    "mesh.world=4 mesh.tensor=4 mesh.kv_replicator=2 optimizer.zero_stage=3 sequence_parallel=true",
    "mesh.world=4 optimizer.name=sgd precision.param=bf16 precision.compute=bf16 "
    "precision.grad_accumulation=bf16",
    "mesh.world=4 mesh.pipeline=4 model.layers=4 model.position_embedding=relative model.relative_buckets=8 "
    "model.tied_embeddings=true",
    "mesh.world=2 mesh.pipeline=2 mesh.virtual_pipeline=2 model.layers=4 pipeline.schedule=gpipe "
    "batch.micro=1 "
    "batch.global=24",
    "moe.experts=4 moe.top_k=2 moe.top_groups=2 moe.group_best=3",
};
enum { N_PROGRAM_LAYOUTS = sizeof program_layouts / sizeof *program_layouts };

#endif
