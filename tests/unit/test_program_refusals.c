/* SPDX-License-Identifier: Apache-2.0 */
/* What nxcfg makes no plan of, and says why. */
#include "tests/unit/plan_lookups.h"

/* Changes of a configuration that runs. */
static const struct {
  const char *changes, *id;
} refused[] = {
    {"mesh.pipeline=2 mesh.world=3", "NX2002"},
    {"mesh.pipeline=2 mesh.world=2 model.layers=1", "NX2126"},
    {"mesh.pipeline=2 mesh.virtual_pipeline=2 mesh.world=2 model.layers=3", "NX2126"},
    {"mesh.pipeline=2 mesh.world=2 pipeline.cuts=[layers.2]", "NX2122"},
    {"mesh.pipeline=3 mesh.world=3 pipeline.cuts=[layers.0,layers.0]", "NX2124"},
    {"mesh.pipeline=2 mesh.world=2 pipeline.cuts=[layers.0,layers.1]", "NX2120"},
    {"pipeline.cuts=[layers.0]", "NX2120"},
    {"mesh.virtual_pipeline=2 pipeline.cuts=[layers.0]", "NX3008"},
    {"mesh.pipeline=3 mesh.world=3 pipeline.cuts=[layers.0,embedding]", "NX2125"},
    {"mesh.world=4 mesh.replicate=3", "NX2016"},
    {"mesh.world=4 mesh.context=4 mesh.ulysses=3 attention.ulysses=true attention.ring=true", "NX2143"},
    {"mesh.world=4 mesh.tensor=4 model.vocab_padded=50", "NX2144"},
    {"mesh.world=2 mesh.tensor=2 moe.experts=4 moe.shared_ffn_hidden=33", "NX2707"},
    {"mesh.world=4 mesh.data=3", "NX2011"},
    {"mesh.world=8 mesh.context=8 attention.ulysses=true", "NX2142"},
    {"mesh.world=4 mesh.pipeline=4 mesh.virtual_pipeline=3 model.layers=12 batch.micro=1 batch.global=9",
     "NX3015"},
    {"model.layers=3 model.unique_layers=2", "NX2216"},
    {"model.layers=4 model.unique_layers=2 optimizer.zero_stage=2 mesh.world=2", "NX3014"},
    {"model.layers=4 model.unique_layers=2 mesh.pipeline=2 mesh.virtual_pipeline=2 mesh.world=2", "NX3014"},
    {"model.layers=4 model.unique_layers=2 moe.experts=4", "NX3014"},
    {"moe.experts=4 moe.top_k=5", "NX2701"},
    {"moe.experts=4 moe.pattern=([1]+[0]+[1])", "NX3011"},
    {"moe.experts=4 moe.pattern=2x", "NX3011"},
    {"moe.experts=4 moe.frequency=2 moe.offset=2", "NX2708"},
    {"moe.experts=3 mesh.expert=2 mesh.world=2", "NX2705"},
    {"moe.experts=4 moe.ffn_hidden=33 mesh.tensor=2 mesh.world=2", "NX2706"},
    {"moe.experts=4 mesh.expert=2 mesh.expert_tensor=1 mesh.tensor=2 mesh.world=2", "NX3012"},
    {"moe.experts=4 moe.aux_loss_coef=0.1 moe.aux_loss_scope=model moe.aux_loss_over=step mesh.pipeline=2 "
     "mesh.world=2",
     "NX3012"},
    {"moe.experts=4 model.ffn_dropout=0.1", "NX3012"},
    {"model.kind=recurrent", "NX3001"},
    {"model.position_embedding=relative model.relative_buckets=7", "NX3003"},
    {"model.position_embedding=relative model.relative_max_distance=15", "NX3003"},
    {"model.position_embedding=relative mesh.pipeline=2 mesh.world=4 optimizer.zero_stage=2", "NX3014"},
    {"model.rope_scaling=longrope", "NX3003"},
    {"model.rope_scaling=longrope model.rope_short_factors=[1,2,3]", "NX3003"},
    {"model.block=normformer moe.experts=4", "NX3003"},
    {"model.attention_pattern=[local,global,local]", "NX3016"},
    {"model.attention_pattern=[lokal]", "NX3016"},
    {"model.attention_pattern=[local] model.sparse_block=5", "NX3016"},
    {"model.attention_pattern=[bigbird] model.sparse_block=4 model.sparse_random_blocks=2", "NX3016"},
    {"model.attention_pattern=[sparse_fixed] model.sparse_block=1 model.sparse_global_blocks=3", "NX3016"},
    {"model.attention_pattern=[bslongformer] model.sparse_block=4 model.sparse_global_to=[1,2]", "NX3016"},
    {"model.predict_depth=1 model.position_embedding=learned", "NX3017"},
    {"model.kv_heads=4 model.attention_gate=head model.latent_rank=8 model.latent_rope_dim=4", "NX3003"},
    {"moe.experts=4 moe.aux_loss_coef=1e-2 moe.aux_loss_over=step moe.step_aux_loss_coef=1e-2", "NX3012"},
    {"run.reproducible=elastic precision.grad_accumulation=bf16", "NX3050"},
    {"batch.growth=[2@0,4@8]", "NX3025"},
    {"batch.growth=[1@0,8@8]", "NX3025"},
    {"batch.growth=[4/0,8@8]", "NX3025"},
    {"precision.stochastic_rounding=true optimizer.name=muon", "NX3001"},
    {"mesh.world=3 mesh.tensor=3 model.ffn_hidden=48", "NX2101"},
    {"batch.global=7", "NX2005"},
    {"data.kind=counting", "NX3001"},
    {"model.heads=8 model.kv_heads=6 mesh.world=4 mesh.tensor=4 model.hidden=64", "NX2204"},
    {"model.heads=12 model.kv_heads=6 model.head_dim=8 mesh.world=4 mesh.tensor=4", "NX3004"},
    {"precision.compute=bf16", "NX3005"},
    {"data.reset_attention_mask=true", "NX3020"},
    {"data.eod_mask_loss=true data.end_of_document=256", "NX3020"},
    {"mesh.world=4 mesh.context=4 attention.ulysses=true", "NX3003"},
    {"model.checkpoint_names=gpt2 moe.experts=4", "NX3006"},
    {"model.checkpoint_names=llama model.attention_sinks=true", "NX3006"},
    {"moe.experts=4 model.attention_sinks=true model.activation=relu", "NX3006"},
    {"model.checkpoint_names=phi3 model.activation=relu", "NX3006"},
    {"model.hidden=9223372036854775807", "NX3007"},
    {"schedule.max_steps=9000000000000000000", "NX3007"},
    {"model.sliding_window=2147483648", "NX3007"},
    {"model.predict_depth=1000000007", "NX3007"},
    {"model.hidden=2147483647 model.ffn_hidden=2147483647", "NX3007"},
    {"batch.micro=2147483647 batch.global=2147483647 model.sequence=2147483647", "NX3007"},
};

static void what_cannot_run_is_refused(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    program_case c = program_compile(refused[i].changes);
    if (c.ok || !program_found(&c, refused[i].id))
      fail_msg("%s: %s was not found", refused[i].changes, refused[i].id);
    program_end(&c);
  }
}

static void an_unknown_size_is_named(void **state) {
  (void)state;
  nxc_arena *arena = nxc_arena_new();
  nxc_sink *sink = nxc_sink_new(arena);
  nxc_plan_bytes out;
  assert_false(nxc_program_compile(nxc_settings_new(arena), arena, sink, &out));
  assert_string_equal(nxc_sink_finding(sink, 0)->id, "NX3002");
  nxc_arena_free(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_cannot_run_is_refused),
      cmocka_unit_test(an_unknown_size_is_named),
  };
  return cmocka_run_group_tests_name("program_refusals", tests, NULL, NULL);
}
