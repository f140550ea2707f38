/* SPDX-License-Identifier: Apache-2.0 */
/* What nxrun refuses of a training that is well formed. */
#include "compiler/program/records/plateau.h"
#include "compiler/settings/refusal.h"
#include "schema/merge.h"
#include "compiler/program/records/demands.h"
#include "compiler/program/judge_parts.h"
#include "compiler/program/passes/passes.h"

static bool judge_settings(const nxc_settings *settings, nxc_sink *sink) {
  bool good = true;
  for (nxc_setting_id id = 0; id < NX_N_SETTINGS; id++) {
    if (!nxc_setting_is_refused(settings, id)) continue;
    const char *instead = nxc_setting_rows[id].instead, *fix = "leave it out";
    if (instead != NULL) fix = nxc_arena_printf(nxc_settings_arena(settings), "use %s", instead);
    nxc_report(sink, "NX3001", NXC_SEVERITY_ERROR, nxc_settings_span(settings, id), fix,
               "nxrun cannot execute %s = %s: %s", nxc_setting_name_in_dialect(settings, id),
               nxc_settings_show(settings, id), nxc_setting_rows[id].why);
    good = false;
  }
  return good;
}

/* Numbers of the run that no size depends on. Shares of an unknown number of steps follow from it. */
static bool judge_known(const nxc_settings *settings, nxc_sink *sink) {
  const nxc_setting_id ids[] = {NX_SETTING_OPTIMIZER_LR,          NX_SETTING_SCHEDULE_MAX_STEPS,
                                NX_SETTING_SCHEDULE_WARMUP_STEPS, NX_SETTING_SCHEDULE_HOLD_STEPS,
                                NX_SETTING_SCHEDULE_CONSTANT_STEPS};
  bool counted = nxc_has(settings, NX_SETTING_SCHEDULE_MAX_STEPS);
  size_t n_ids = counted ? sizeof ids / sizeof *ids : 2, n_unknown = 0;
  nxc_setting_id unknown[sizeof ids / sizeof *ids];
  for (size_t i = 0; i < n_ids; i++)
    if (!nxc_has(settings, ids[i])) unknown[n_unknown++] = ids[i];
  nxc_report_unknown(settings, sink, unknown, n_unknown);
  return n_unknown == 0;
}

static bool lacks_frequencies(const nxc_settings *s, const nxc_layer_spec *layer) {
  const nxc_rope_spec *rope = &layer->attention.rope;
  return nxc_is(s, NX_SETTING_MODEL_ROPE_SCALING, "longrope") && rope->dims > 0 && rope->frequencies == NULL;
}

static bool is_sparse(const nxc_model *m) {
  for (uint32_t i = 0; i < m->n_specs; i++)
    if (m->specs[i].attention.sparse != NXC_SPARSE_NONE) return true;
  return false;
}

static bool judge_form(const nxc_settings *s, nxc_sink *sink, const nxc_training *t) {
  const nxc_layer_spec *layer = &t->model.specs[0];
  const nxc_demand demands[] = {
      {!nxc_data_needs_document_ends(&t->data) ||
           (t->data.end_of_document >= 0 && t->data.end_of_document < t->model.vocab),
       NX_SETTING_DATA_END_OF_DOCUMENT, "NX3020",
       "documents are told apart by a token that ends each, and this is no token of the vocabulary"},
      {t->layout.kv_replica == 1 || layer->attention.kv_heads * t->layout.kv_replica == t->layout.tensor,
       NX_SETTING_MODEL_KV_HEADS, "NX3004",
       "key heads can be copied only where each tensor-parallel rank then holds one"},
      {layer->attention.kv_heads * t->layout.kv_replica % (t->layout.tensor * t->layout.ulysses) == 0,
       NX_SETTING_MESH_ULYSSES, "NX3003",
       "the ranks that exchange heads for sequence do not divide a tensor-parallel rank's key heads"},
      {t->layout.context == 1 || t->model.sequence % (2 * t->layout.context) == 0, NX_SETTING_MODEL_SEQUENCE,
       "NX3003", "the sequence is not a whole number of pieces, two for each context-parallel rank"},
      {layer->attention.qk_norm != NXC_QK_NORM_OF_ALL ||
           t->model.sequence / t->layout.context % t->layout.tensor == 0,
       NX_SETTING_MODEL_QK_NORM, "NX3003",
       "ranks exchange features for tokens to normalize a projection, and they do not divide the tokens"},
      {layer->attention.qk_norm != NXC_QK_NORM_OF_ALL || t->layout.kv_replica == 1, NX_SETTING_MODEL_QK_NORM,
       "NX3003", "the norm of a whole projection cannot be taken where key heads are copied"},
      {layer->attention.gates == 0 || layer->attention.kv_rank == 0, NX_SETTING_MODEL_ATTENTION_GATE,
       "NX3003", "latent attention has no gate"},
      {layer->attention.limit == 0 || layer->attention.kv_rank == 0, NX_SETTING_MODEL_QKV_LIMIT, "NX3003",
       "what latent attention makes of its latents is not bounded"},
      {!layer->attention.alibi || layer->attention.soft_cap == 0, NX_SETTING_MODEL_ATTENTION_SOFT_CAP,
       "NX3003", "scores are capped or biased by distance, not both"},
      {layer->attention.rope.n_frequencies == 0 ||
           2 * layer->attention.rope.n_frequencies == layer->attention.rope.dims,
       NX_SETTING_MODEL_ROPE_SCALING, "NX3003",
       "longrope has a factor for each pair of features of a head that is rotated"},
      {!lacks_frequencies(s, layer), NX_SETTING_MODEL_ROPE_SCALING, "NX3003",
       "longrope needs the factors for sequences of this length, short or long"},
      {layer->attention.relative.buckets % 2 == 0 &&
           layer->attention.relative.buckets <= 2 * layer->attention.relative.max_distance,
       NX_SETTING_MODEL_RELATIVE_MAX_DISTANCE, "NX3003",
       "half of the buckets of distances are for the shortest, and the last is farther than these"},
      {layer->attention.relative.buckets == 0 || !is_sparse(&t->model), NX_SETTING_MODEL_ATTENTION_PATTERN,
       "NX3003", "attention is sparse or has biases of distances, not both"},
      {layer->attention.relative.buckets == 0 || layer->attention.soft_cap == 0,
       NX_SETTING_MODEL_ATTENTION_SOFT_CAP, "NX3003", "scores are capped or biased by distance, not both"},
      {!layer->norm_within || t->model.mixture == NULL, NX_SETTING_MODEL_BLOCK, "NX3003",
       "experts have no norm before their last product"},
      {!layer->norm_within || t->model.sequence / t->layout.context % t->layout.tensor == 0,
       NX_SETTING_MODEL_BLOCK, "NX3003",
       "ranks exchange features for tokens for the norm inside the feed-forward part, and they do not divide "
       "the "
       "tokens"},
      {!t->model.embedding_norm || t->model.predict_depth == 0, NX_SETTING_MODEL_EMBEDDING_NORM, "NX3003",
       "embeddings of tokens that are predicted further ahead are not normalized twice"},
      {t->types.param == t->types.activation, NX_SETTING_PRECISION_PARAM, "NX3005",
       "parameters and activations must have one type for the products"},
  };
  return nxc_demands_check(s, sink, demands, sizeof demands / sizeof *demands);
}

/* Of those whose weights a model may lack. */
static bool is_norm(nxc_part part) {
  return part == NXC_PART_FINAL_NORM || part == NXC_PART_EMBEDDING_NORM || part == NXC_PART_ATTENTION_NORM ||
         part == NXC_PART_FFN_NORM || part == NXC_PART_ATTENTION_AFTER_NORM ||
         part == NXC_PART_FFN_AFTER_NORM || part == NXC_PART_FFN_INNER_NORM || part == NXC_PART_Q_NORM ||
         part == NXC_PART_K_NORM || part == NXC_PART_Q_LATENT_NORM || part == NXC_PART_KV_LATENT_NORM;
}

static bool has_part(const nxc_training *t, nxc_part part) {
  const nxc_model *m = &t->model;
  const nxc_layer_spec *layer = &m->specs[0];
  bool latent = layer->attention.kv_rank > 0;
  bool mixed = m->mixture != NULL, gated = layer->ffn.activation->gated;
  bool dense = nxc_model_mixtures(m) < m->layers, shares = mixed && m->mixture->shared_hidden > 0;
  if (layer->norm.kind->plain && is_norm(part)) return false;
  switch (part) {
    case NXC_PART_POSITIONS: return m->learned_positions > 0;
    case NXC_PART_EMBEDDING_NORM: return m->embedding_norm;
    case NXC_PART_OUTPUT: return !m->tied && !t->objective.row->has_values;
    case NXC_PART_SCORE: return t->objective.row->has_values;
    case NXC_PART_ATTENTION_NORM: return layer->norm_before || layer->norm_of_sum;
    case NXC_PART_FFN_NORM: return (layer->norm_before || layer->norm_of_sum) && !layer->one_norm;
    case NXC_PART_ATTENTION_AFTER_NORM: return layer->norm_after;
    case NXC_PART_FFN_AFTER_NORM: return layer->norm_after && !layer->norm_within;
    case NXC_PART_FFN_INNER_NORM: return layer->norm_within;
    case NXC_PART_RELATIVE: return layer->attention.relative.buckets > 0;
    case NXC_PART_PREDICT_EMBEDDING_NORM:
    case NXC_PART_PREDICT_HIDDEN_NORM:
    case NXC_PART_PREDICT_JOIN:
    case NXC_PART_PREDICT_NORM: return m->predict_depth > 0;
    case NXC_PART_Q_NORM:
    case NXC_PART_K_NORM: return layer->attention.qk_norm != NXC_QK_PLAIN;
    case NXC_PART_SINKS: return layer->attention.sinks;
    case NXC_PART_ATTENTION_GATE: return layer->attention.gates > 0;
    case NXC_PART_Q_DOWN:
    case NXC_PART_Q_UP: return latent && layer->attention.query_rank > 0;
    case NXC_PART_Q_LATENT_NORM:
      return layer->attention.latent_norm.kind != NULL && layer->attention.query_rank > 0;
    case NXC_PART_KV_LATENT_NORM: return layer->attention.latent_norm.kind != NULL;
    case NXC_PART_KV_DOWN:
    case NXC_PART_ROPE_KEY:
    case NXC_PART_KV_UP: return latent;
    case NXC_PART_Q: return !latent || layer->attention.query_rank == 0;
    case NXC_PART_K:
    case NXC_PART_V: return !latent;
    case NXC_PART_ROUTER_CORRECTION: return mixed && m->mixture->corrected;
    case NXC_PART_GATE: return dense && gated;
    case NXC_PART_UP:
    case NXC_PART_DOWN: return dense;
    case NXC_PART_SHARED_GATE: return shares && gated;
    case NXC_PART_SHARED_UP:
    case NXC_PART_SHARED_DOWN: return shares;
    case NXC_PART_SHARED_MIX: return shares && m->mixture->shared_gate;
    case NXC_PART_EXPERT_GATE: return mixed && gated;
    case NXC_PART_ROUTER:
    case NXC_PART_EXPERT_UP:
    case NXC_PART_EXPERT_DOWN: return mixed;
    default: return true;
  }
}

/* A part that stands in one tensor with this one, and that the model lacks. */
static bool find_lone(const nxc_training *t, nxc_part part, nxc_part *missing) {
  const nxc_tensor_row *tensor = t->model.family->tensors[part];
  for (*missing = 0; *missing < NXC_N_PARTS; ++*missing)
    if (t->model.family->tensors[*missing] == tensor && !has_part(t, *missing)) return true;
  return false;
}

/* Why the family's checkpoints cannot hold a part; NULL: they can. */
static const char *why_not_held(nxc_arena *arena, const nxc_training *t, nxc_part part) {
  const nxc_tensor_row *tensor = t->model.family->tensors[part];
  nxc_part missing;
  if (tensor == NULL) return "has no such part";
  if (tensor->layout == NXC_LAYOUT_GROUPS && t->layout.kv_replica > 1)
    return "holds the parts of each key head together, which several ranks here have copies of";
  if (find_lone(t, part, &missing))
    return nxc_arena_printf(arena, "holds it in one tensor with the %s, and this model has none",
                            nxc_part_name(missing));
  return NULL;
}

/* What a checkpoint cannot hold under the family's names. */
static bool judge_names(const nxc_settings *s, nxc_sink *sink, const nxc_training *t) {
  for (nxc_part part = 0; part < NXC_N_PARTS; part++) {
    const char *why = has_part(t, part) ? why_not_held(nxc_settings_arena(s), t, part) : NULL;
    if (why == NULL) continue;
    nxc_report(sink, "NX3006", NXC_SEVERITY_ERROR, nxc_settings_span(s, NX_SETTING_MODEL_CHECKPOINT_NAMES),
               "choose another family as model.checkpoint_names",
               "checkpoints of %s cannot hold this model's %s: the family %s", t->model.family->name,
               nxc_part_name(part), why);
    return false;
  }
  return true;
}

static bool judge_mixture(const nxc_settings *s, nxc_sink *sink, const nxc_training *t) {
  const nxc_mixture *m = t->model.mixture;
  const nxc_feed_forward_spec *ffn = &t->model.specs[0].ffn;
  if (m == NULL) return true;
  uint32_t tokens = nxc_axis(&t->mesh, NXC_AXIS_DATA) | nxc_axis(&t->mesh, NXC_AXIS_CONTEXT);
  if (t->layout.sequence_parallel) tokens |= nxc_axis(&t->mesh, NXC_AXIS_TENSOR);
  uint32_t expert = nxc_axis(&t->mesh, NXC_AXIS_EXPERT), width = nxc_axis(&t->mesh, NXC_AXIS_EXPERT_TENSOR);
  uint32_t whole = nxc_axis(&t->mesh, NXC_AXIS_TENSOR) & ~tokens;
  const nxc_demand demands[] = {
      {(whole & (m->gathers ? 0 : expert)) == 0, NX_SETTING_SEQUENCE_PARALLEL, "NX3012",
       "experts that are divided over tensor-parallel ranks are sent tokens that only sequence parallelism "
       "divides"},
      {(whole & ~width) == 0 || (whole & width) == 0, NX_SETTING_MESH_EXPERT_TENSOR, "NX3012",
       "without sequence parallelism experts are divided over all tensor-parallel ranks or none"},
      {m->aux == 0 || m->aux_scope != NXC_AUX_OF_MODEL || t->layout.pipeline == 1 ||
           m->aux_over == NXC_AUX_OVER_MICRO_BATCH,
       NX_SETTING_MOE_AUX_LOSS_SCOPE, "NX3012",
       "of several pipeline stages a load-balancing loss over all layers is over a micro-batch"},
      {(m->aux_sequence == 0 && m->aux_step == 0) ||
           (m->aux_scope == NXC_AUX_OF_LAYER && m->aux_over == NXC_AUX_OVER_MICRO_BATCH),
       NX_SETTING_MOE_AUX_LOSS_SCOPE, "NX3012",
       "further load-balancing losses stand beside one that is over a layer's micro-batch"},
      {ffn->dropout == 0, NX_SETTING_MODEL_FFN_DROPOUT, "NX3012", "there is no dropout inside experts"},
  };
  return nxc_demands_check(s, sink, demands, sizeof demands / sizeof *demands);
}

/* Interleaved, chunks take turns of some micro-batches. A last turn of much fewer than there are stages
 * would come round to a stage whose next pass waits for a stage that waits for it. */
static bool fills_last_turn(const nxc_training *t, int64_t n_micro) {
  int64_t stages = t->layout.pipeline, rest = n_micro % nxc_layout_turn(&t->layout, (uint32_t)n_micro);
  return n_micro <= stages || rest == 0 || rest + 2 >= stages;
}

static bool fill_last_turns(const nxc_training *t) {
  for (size_t i = 0; i < t->batch.n_phases; i++)
    if (!fills_last_turn(t, t->batch.phases[i].n_micro)) return false;
  return fills_last_turn(t, t->batch.n_micro);
}

static bool judge_pipeline(const nxc_settings *s, nxc_sink *sink, const nxc_training *t) {
  bool shares = nxc_model_shares(&t->model);
  bool weights = t->model.unique_layers != t->model.layers;
  bool one_each = t->layout.n_chunks == t->layout.pipeline;
  bool takes_turns =
      t->layout.pipeline_order != NXC_ORDER_GPIPE && !nxc_layout_is_mirrored(&t->layout);
  size_t n_cuts = 0;
  if (nxc_has(s, NX_SETTING_PIPELINE_CUTS)) (void)nxc_list(s, NX_SETTING_PIPELINE_CUTS, &n_cuts);
  const nxc_demand demands[] = {
      {t->layout.pipeline > 1 || n_cuts == 0, NX_SETTING_PIPELINE_CUTS, "NX3008",
       "one pipeline stage has no chunks to cut"},
      {one_each || !takes_turns || fill_last_turns(t), NX_SETTING_BATCH_GLOBAL, "NX3015",
       "with several chunks on a stage the last turn of micro-batches is too short"},
      {!weights || t->model.mixture == NULL, NX_SETTING_MODEL_UNIQUE_LAYERS, "NX3014",
       "mixtures of experts share no weights between layers"},
      {!shares || t->sharding.stage < 2 || (!weights && t->layout.pipeline == 1),
       weights ? NX_SETTING_MODEL_UNIQUE_LAYERS : NX_SETTING_MODEL_POSITION_EMBEDDING, "NX3014",
       "gradients of layers that share weights cannot be divided in every pass"},
      {!shares || one_each, weights ? NX_SETTING_MODEL_UNIQUE_LAYERS : NX_SETTING_MODEL_POSITION_EMBEDDING,
       "NX3014",
       "layers that share weights may not be in several chunks of one stage"},
  };
  return nxc_demands_check(s, sink, demands, sizeof demands / sizeof *demands);
}

/* What the layers that predict further tokens do not go with. */
static bool judge_prediction(const nxc_settings *s, nxc_sink *sink, const nxc_training *t) {
  const nxc_model *m = &t->model;
  if (m->predict_depth == 0) return true;
  const nxc_demand demands[] = {
      {m->learned_positions == 0 && !m->sinusoidal && m->specs[0].attention.relative.buckets == 0,
       NX_SETTING_MODEL_PREDICT_DEPTH, "NX3017",
       "positions that are added to the embedding, or learned by distance, are not those of further tokens"},
      {m->predict_depth < m->sequence, NX_SETTING_MODEL_PREDICT_DEPTH, "NX3017",
       "no sequence has so many further tokens"},
      {m->unique_layers == m->layers, NX_SETTING_MODEL_PREDICT_DEPTH, "NX3017",
       "layers that predict further tokens share no weights with others"},
      {m->mixture == NULL || m->mixture->aux_scope != NXC_AUX_OF_MODEL, NX_SETTING_MOE_AUX_LOSS_SCOPE,
       "NX3017", "the load-balancing loss over all layers is of the model's own"},
      {m->layers + m->predict_depth <= NXC_MOST_LAYERS, NX_SETTING_MODEL_PREDICT_DEPTH, "NX3017",
       "these are more layers than a plan can name"},
      {t->lora.rank == 0, NX_SETTING_MODEL_PREDICT_DEPTH, "NX3017",
       "adapters are trained for the next token alone"},
  };
  return nxc_demands_check(s, sink, demands, sizeof demands / sizeof *demands);
}

static bool judge_groups(const nxc_settings *s, nxc_sink *sink) {
  size_t n;
  nxc_group_pattern pattern;
  const nxc_value *texts = nxc_list(s, NX_SETTING_OPTIMIZER_GROUPS, &n);
  for (size_t i = 0; i < n; i++) {
    const char *wrong = nxc_group_pattern_read(nxc_settings_arena(s), texts[i].text, &pattern);
    const nxc_demand demand = {wrong == NULL, NX_SETTING_OPTIMIZER_GROUPS, "NX3022", wrong};
    if (!nxc_demands_check(s, sink, &demand, 1)) return false;
  }
  return true;
}

static bool judge_growth(const nxc_settings *s, nxc_sink *sink, const nxc_training *t) {
  const char *wrong = nxc_growth_fault(s, &t->batch, &t->layout);
  const nxc_demand demand = {wrong == NULL, NX_SETTING_BATCH_GROWTH, "NX3025", wrong};
  return nxc_demands_check(s, sink, &demand, 1);
}

/* A recipe's own piece, and those of what it merges. */
static bool merges_well(const nxc_recipe *recipe) {
  nx_merge_part part;
  const char *text = recipe->parts ? recipe->input : "";
  while (nx_merge_next(&text, &part)) continue;
  return *text == '\0' && (recipe->record.pieces == 0 || recipe->record.piece < recipe->record.pieces);
}

/* Which piece of how many: one list may say what another one, of other datasets, does not have. */
static bool judge_pieces(const nxc_settings *s, nxc_sink *sink, const nxc_datasets *sets) {
  for (uint32_t i = 0; i < sets->n; i++)
    for (uint32_t k = 0; k < sets->sets[i].record.n_sources; k++) {
      const nxc_recipe *recipe = sets->sets[i].sources[k].recipe;
      bool met = !recipe || merges_well(recipe);
      const nxc_demand demand = {met, NX_SETTING_DATA_PIECE, "NX3028", "a dataset has fewer pieces"};
      if (!nxc_demands_check(s, sink, &demand, 1)) return false;
    }
  return true;
}

/* The systems pass over names that they do not know: so does this, but not in silence. */
static void judge_modules(const nxc_settings *s, nxc_sink *sink, const nxc_recomputation *r) {
  for (size_t i = 0; i < r->n_modules; i++)
    if (!nxc_recompute_knows(r->modules[i].text))
      nxc_report(sink, "NX3013", NXC_SEVERITY_WARNING, nxc_settings_span(s, NX_SETTING_RECOMPUTE_MODULES),
                 "leave it out", "there is no module %s to compute again", r->modules[i].text);
}

bool nxc_training_judge(const nxc_settings *settings, nxc_sink *sink, const nxc_training *t) {
  bool known = judge_known(settings, sink), executable = judge_settings(settings, sink);
  if (t == NULL || !known || !executable) return false;
  judge_modules(settings, sink, &t->recomputation);
  bool formed = judge_form(settings, sink, t), mixed = judge_mixture(settings, sink, t);
  bool named = judge_names(settings, sink, t), grouped = judge_groups(settings, sink);
  bool grown = judge_growth(settings, sink, t), paired = nxc_pairs_judge(settings, sink, t);
  grouped = judge_prediction(settings, sink, t) && grouped;
  grouped = judge_pieces(settings, sink, &t->datasets) && grouped;
  grouped = nxc_evaluations_judge(settings, sink, &t->evaluations) && grouped;
  grouped = nxc_plateau_judge(settings, sink, &t->plateau) && grouped;
  return nxc_adapters_judge(settings, sink, t) && judge_pipeline(settings, sink, t) && formed && mixed &&
         named && grouped && grown && paired;
}
