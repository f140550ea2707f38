/* SPDX-License-Identifier: Apache-2.0 */
/* A small nxdt file that is right, and its trials. */
#ifndef NX_TESTS_SMALL_NXDT_H
#define NX_TESTS_SMALL_NXDT_H

#include "tests/unit/compile_text.h"

/* Tests add lines to its sections or replace some. */
static const char right[] =
    "name: small\n"
    "model_source: megatron\n"
    "seed: 1\n"
    "trainer:\n"
    "  devices: 4\n"
    "  num_nodes: 2\n"
    "  max_steps: 10\n"
    "  limit_val_batches: 0\n"
    "  gradient_clip_val: 1.0\n"
    "distributed_strategy:\n"
    "  tensor_model_parallel_size: 2\n"
    "  pipeline_model_parallel_size: 1\n"
    "  zero1: True\n"
    "  sequence_parallel: True\n"
    "data:\n"
    "  micro_batch_size: 1\n"
    "  global_batch_size: 16\n"
    "  data_prefix: [1.0, a/b]\n"
    "  data_impl: mmap\n"
    "  splits_string: null\n"
    "  seq_length: 64\n"
    "  num_workers: 1\n"
    "  dataloader_type: single\n"
    "  tokenizer: {library: megatron}\n"
    "model:\n"
    "  encoder_seq_length: 64\n"
    "  max_position_embeddings: 64\n"
    "  num_layers: 2\n"
    "  hidden_size: 64\n"
    "  ffn_hidden_size: 128\n"
    "  num_attention_heads: 4\n"
    "  num_kv_heads: 2\n"
    "  position_embedding_type: rope\n"
    "  activation: swiglu\n"
    "  normalization: rmsnorm\n"
    "  has_bias: False\n"
    "  fusions: {softmax: True}\n"
    "  optim:\n"
    "    name: adamw\n"
    "    lr: 3e-4\n"
    "    sched:\n"
    "      name: CosineAnnealing\n"
    "      warmup_steps: 2\n"
    "      min_lr: 1e-5\n"
    "precision:\n"
    "  type: mixed_precision\n"
    "compiler_flags: ''\n"
    "compiler_cache_url: ''\n"
    "aync_exec_max_inflight_requests: 5\n"
    "bucket_size_collectives: 512\n"
    "neuron_rt_exec_timeout: 100\n"
    "neuron_experimental_compress_rg: False\n"
    "exp_manager: {resume_from_checkpoint: null, checkpoint_callback_params: {monitor: step}}\n";

/* The text with the line `line` replaced by `by`, which may be several lines or none. */
static char *with(const char *line, const char *by) {
  static char text[8192];
  const char *found = strstr(right, line);
  assert_non_null(found);
  snprintf(text, sizeof text, "%.*s%s%s", (int)(found - right), right, by, found + strlen(line));
  return text;
}

static void run(trial *t, const char *text) {
  trial_begin(t, text);
  t->request.dialect = "nxdt";
  trial_run(t);
}

#endif
