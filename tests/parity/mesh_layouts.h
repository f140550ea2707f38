/* SPDX-License-Identifier: Apache-2.0 */
/* The meshes of mesh_cases.h: layouts of ranks by what divides them. */
#ifndef TESTS_PARITY_MESH_LAYOUTS_H
#define TESTS_PARITY_MESH_LAYOUTS_H

#include "tests/parity/mesh_words.h"

static const mesh dense[] = {
    {"dp2", 2, WORLD("2"), NULL},
    {"dp2-zero1", 2, WORLD("2") ZERO1, NULL},
    {"dp4-zero1", 4, WORLD("4") ZERO1, NULL},
    {"tp2", 2, WORLD("2") TENSOR("2"), NULL},
    {"tp2-sp", 2, WORLD("2") TENSOR("2") SEQUENCE, NULL},
    {"tp2-dp2", 4, WORLD("4") TENSOR("2"), NULL},
    {"tp2-sp-dp2-zero1", 4, WORLD("4") TENSOR("2") SEQUENCE ZERO1, NULL},
    {"tp4-kv2", 4, WORLD("4") TENSOR("4") SET("mesh.kv_replicator", "2"), NULL},
    {"tp4-kv2-sp-zero1", 4, WORLD("4") TENSOR("4") SEQUENCE ZERO1 SET("mesh.kv_replicator", "2"), NULL},
    {"tp2-sp-messages", 2, WORLD("2") TENSOR("2") SEQUENCE ZERO1, "--comm p2p"},
};
static const mesh few[] = {
    {"dp2-zero1", 2, WORLD("2") ZERO1, NULL},
    {"tp2", 2, WORLD("2") TENSOR("2"), NULL},
    {"tp2-sp-dp2-zero1", 4, WORLD("4") TENSOR("2") SEQUENCE ZERO1, NULL},
};

#define STAGES(n) SET("mesh.pipeline", n)
#define CHUNKS(n) SET("mesh.virtual_pipeline", n)
#define LAYERS(n) SET("model.layers", n)
/* Layouts of one rank, of tensor-parallel ranks and of data-parallel ranks, each with stages beside it. */
static const mesh stages[] = {
    {"pp2", 2, WORLD("2") STAGES("2"), NULL},
    {"pp2-gpipe", 2, WORLD("2") STAGES("2") SET("pipeline.schedule", "gpipe"), NULL},
    {"pp2-vpp2", 2, WORLD("2") STAGES("2") CHUNKS("2"), NULL},
    {"pp4", 4, WORLD("4") STAGES("4"), NULL},
    {"pp2-cuts", 2, WORLD("2") STAGES("2") SET("pipeline.cuts", "[layers.0]"), NULL},
    {"pp2-vpp2-cuts", 2,
     WORLD("2") STAGES("2") CHUNKS("2") SET("pipeline.cuts", "[layers.0,layers.2,layers.3]"), NULL},
    {"pp4-messages", 4, WORLD("4") STAGES("4"), "--comm p2p"},
    {"pp4-ahead", 4, WORLD("4") STAGES("4") SET("pipeline.receive_ahead", "true"), NULL},
    {"pp2-vpp2-ahead", 2,
     WORLD("2") STAGES("2") CHUNKS("2") SET("pipeline.receive_ahead", "true") SET("pipeline.group", "3"),
     NULL},
    {"pp4-ends-alone", 4, WORLD("4") STAGES("4") SET("pipeline.cuts", "[embedding,layers.1,layers.4]"), NULL},
};
static const mesh staged[] = {
    {"pp2", 2, WORLD("2") STAGES("2"), NULL},
    {"pp4-vpp2", 4, WORLD("4") STAGES("4") CHUNKS("2"), NULL},
};
/* More micro-batches than transfers may be under way, and a last group that is not full. */
static const mesh staged_gpipe[] = {
    {"pp2", 2, WORLD("2") STAGES("2"), NULL},
    {"pp2-vpp2", 2, WORLD("2") STAGES("2") CHUNKS("2"), NULL},
    {"pp2-vpp4-messages", 2, WORLD("2") STAGES("2") CHUNKS("4"), "--comm p2p"},
};
static const mesh staged_tensor[] = {
    {"tp2", 2, WORLD("2") TENSOR("2") SEQUENCE, NULL},
    {"pp2-tp2", 4, WORLD("4") STAGES("2") TENSOR("2") SEQUENCE, NULL},
    {"pp2-vpp2-tp2", 4, WORLD("4") STAGES("2") CHUNKS("2") TENSOR("2") SEQUENCE, NULL},
};
/* The first and the last stage hold the same matrix. */
static const mesh staged_tied[] = {
    {"pp2", 2, WORLD("2") STAGES("2"), NULL},
    {"pp4", 4, WORLD("4") STAGES("4"), NULL},
    {"pp2-vpp2", 2, WORLD("2") STAGES("2") CHUNKS("2"), NULL},
    {"pp4-messages", 4, WORLD("4") STAGES("4"), "--comm p2p"},
};
/* All stages hold a table too. */
static const mesh staged_relative[] = {
    {"pp2", 2, WORLD("2") STAGES("2"), NULL},
    {"pp4-messages", 4, WORLD("4") STAGES("4"), "--comm p2p"},
    {"pp2-tp2-sp", 4, WORLD("4") STAGES("2") TENSOR("2") SEQUENCE, NULL},
    {"pp2-dp2-zero1", 4, WORLD("4") STAGES("2") ZERO1 OVERLAP, NULL},
};
static const mesh staged_tied_mixed[] = {
    {"pp2-dp2", 4, WORLD("4") STAGES("2"), NULL},
    {"pp2-dp2-zero1", 4, WORLD("4") STAGES("2") ZERO1, NULL},
    {"pp2-dp2-zero2", 4, WORLD("4") STAGES("2") ZERO("2"), NULL},
    {"pp2-dp2x2-zero3", 8, WORLD("8") STAGES("2") REPLICATE("2") ZERO("3") OVERLAP, NULL},
    {"pp2-tp2-sp", 4, WORLD("4") STAGES("2") TENSOR("2") SEQUENCE, NULL},
    {"pp2-vpp2-tp2-dp2-zero1", 8, WORLD("8") STAGES("2") CHUNKS("2") TENSOR("2") SEQUENCE ZERO1, NULL},
    {"pp4-dp2-order", 8, WORLD("8") STAGES("4") ZERO1 SET("mesh.order", "tp-pp-dp"), NULL},
};
#define ORDERED(order) CHUNKS("2") SET("pipeline.schedule", order)
#define ZBV ORDERED("zbv")
#define DUALPIPEV ORDERED("dualpipev")
/* A stage has a chunk and the one as far from the end; two neighbours exchange within the last stage. */
static const mesh mirrored[] = {
    {"zbv2", 2, WORLD("2") STAGES("2") ZBV, NULL},
    {"zbv4", 4, WORLD("4") STAGES("4") ZBV, NULL},
    {"dualpipev2", 2, WORLD("2") STAGES("2") DUALPIPEV, NULL},
    {"dualpipev4-messages", 4, WORLD("4") STAGES("4") DUALPIPEV, "--comm p2p"},
    {"zbv2-cuts", 2, WORLD("2") STAGES("2") ZBV SET("pipeline.cuts", "[layers.0,layers.4,layers.5]"), NULL},
    {"zbv4-ahead", 4, WORLD("4") STAGES("4") ZBV SET("pipeline.receive_ahead", "true"), NULL},
    {"zero-bubble2", 2, WORLD("2") STAGES("2") ORDERED("zero_bubble"), NULL},
    {"zero-bubble4", 4, WORLD("4") STAGES("4") SET("pipeline.schedule", "zero_bubble"), NULL},
};
static const mesh mirrored_mixed[] = {
    {"zbv2-dp2", 4, WORLD("4") STAGES("2") ZBV, NULL},
    {"zbv2-dp2-zero1", 4, WORLD("4") STAGES("2") ZBV ZERO1 OVERLAP, NULL},
    {"dualpipev2-dp2-zero2", 4, WORLD("4") STAGES("2") DUALPIPEV ZERO("2"), NULL},
    {"zbv2-dp2x2-zero3", 8, WORLD("8") STAGES("2") REPLICATE("2") ZBV ZERO("3") OVERLAP, NULL},
    {"zbv2-tp2-sp-dp2-zero1", 8, WORLD("8") STAGES("2") TENSOR("2") SEQUENCE ZBV ZERO1, NULL},
    {"zbv4-dp2-order", 8, WORLD("8") STAGES("4") ZBV ZERO1 SET("mesh.order", "tp-pp-dp"), NULL},
    {"zero-bubble2-dp2-zero2", 4, WORLD("4") STAGES("2") ORDERED("zero_bubble") ZERO("2"), NULL},
};
static const mesh staged_data[] = {
    {"dp2-zero1", 2, WORLD("2") ZERO1, NULL},
    {"pp2-dp2-zero1", 4, WORLD("4") STAGES("2") ZERO1, NULL},
    {"pp2-tp2-dp2-zero1", 8, WORLD("8") STAGES("2") TENSOR("2") ZERO1, NULL},
    {"tp2-pp2-dp2-order", 8, WORLD("8") STAGES("2") TENSOR("2") ZERO1 SET("mesh.order", "tp-pp-dp"), NULL},
};

#define RING(n) SET("mesh.context", n) SET("attention.ring", "true")
#define ULYSSES(n) SET("mesh.context", n) SET("attention.ulysses", "true")
#define BOTH(n, of) RING(n) SET("attention.ulysses", "true") SET("mesh.ulysses", of)
/* A sequence divided over ranks, alone and with every other axis. */
static const mesh context[] = {
    {"ring2", 2, WORLD("2") RING("2"), NULL},
    {"ring4", 4, WORLD("4") RING("4"), NULL},
    {"ulysses2", 2, WORLD("2") ULYSSES("2"), NULL},
    {"ulysses2-ring2", 4, WORLD("4") BOTH("4", "2"), NULL},
    {"ring4-messages", 4, WORLD("4") RING("4"), "--comm p2p"},
    {"ulysses2-ring2-messages", 4, WORLD("4") BOTH("4", "2"), "--comm p2p"},
    {"ring2-tp2-sp", 4, WORLD("4") RING("2") TENSOR("2") SEQUENCE, NULL},
    {"ring2-tp4-kv2", 8, WORLD("8") RING("2") TENSOR("4") SET("mesh.kv_replicator", "2"), NULL},
    {"ulysses2-dp2-zero1", 4, WORLD("4") ULYSSES("2") ZERO1, NULL},
    {"ring2-dp2-zero1", 4, WORLD("4") RING("2") ZERO1, NULL},
    {"ring2-dp2-zero3", 4, WORLD("4") RING("2") ZERO("3") OVERLAP, NULL},
    {"ring2-tp2-dp2-zero1", 8, WORLD("8") RING("2") TENSOR("2") SEQUENCE ZERO1, NULL},
};
static const mesh contexts[] = {
    {"ring2", 2, WORLD("2") RING("2"), NULL},
    {"ulysses2", 2, WORLD("2") ULYSSES("2"), NULL},
    {"ulysses2-ring2", 4, WORLD("4") BOTH("4", "2"), NULL},
    {"ring2-tp2-sp", 4, WORLD("4") RING("2") TENSOR("2") SEQUENCE, NULL},
};
static const mesh staged_context[] = {
    {"ring2", 2, WORLD("2") RING("2"), NULL},
    {"pp2-ring2", 4, WORLD("4") STAGES("2") RING("2"), NULL},
    {"pp2-vpp2-ulysses2", 4, WORLD("4") STAGES("2") CHUNKS("2") ULYSSES("2"), NULL},
    {"pp2-ring2-tp2", 8, WORLD("8") STAGES("2") RING("2") TENSOR("2") SEQUENCE, NULL},
};

#define EXPERT(n) SET("mesh.expert", n)
#define EXPERT_TENSOR(n) SET("mesh.expert_tensor", n)
#define GATHER SET("moe.dispatcher", "allgather")
/* Experts over data-parallel ranks, over tensor-parallel ones, over both; divided or whole on a rank. */
static const mesh expert_meshes[] = {
    {"dp2", 2, WORLD("2"), NULL},
    {"ep2", 2, WORLD("2") EXPERT("2"), NULL},
    {"ep4", 4, WORLD("4") EXPERT("4"), NULL},
    {"ep2-edp2-zero1", 4, WORLD("4") EXPERT("2") ZERO1, NULL},
    {"tp2-etp2", 2, WORLD("2") TENSOR("2"), NULL},
    {"tp2-etp1", 2, WORLD("2") TENSOR("2") EXPERT_TENSOR("1"), NULL},
    {"tp2-sp-etp2", 2, WORLD("2") TENSOR("2") SEQUENCE, NULL},
    {"tp2-sp-ep2", 2, WORLD("2") TENSOR("2") SEQUENCE EXPERT("2") EXPERT_TENSOR("1"), NULL},
    {"tp2-sp-etp2-ep2", 4, WORLD("4") TENSOR("2") SEQUENCE EXPERT("2"), NULL},
    {"tp2-sp-ep4-zero1", 4, WORLD("4") TENSOR("2") SEQUENCE EXPERT("4") EXPERT_TENSOR("1") ZERO1, NULL},
    {"etp2-ep2", 4, WORLD("4") EXPERT("2") EXPERT_TENSOR("2"), NULL},
    {"pp2-ep2", 4, WORLD("4") STAGES("2") EXPERT("2"), NULL},
    {"ep2-edp2-zero2", 4, WORLD("4") EXPERT("2") ZERO("2") OVERLAP, NULL},
    {"ep2-edp2-zero3", 4, WORLD("4") EXPERT("2") ZERO("3") OVERLAP, NULL},
    {"tp2-sp-ep2-edp2-zero3", 4, WORLD("4") TENSOR("2") SEQUENCE EXPERT("2") EXPERT_TENSOR("1") ZERO("3"),
     NULL},
    {"ep2-messages", 2, WORLD("2") EXPERT("2"), "--comm p2p"},
};
static const mesh gather_meshes[] = {
    {"ep2", 2, WORLD("2") EXPERT("2") GATHER, NULL},
    {"tp2-ep2", 2, WORLD("2") TENSOR("2") EXPERT("2") EXPERT_TENSOR("1") GATHER, NULL},
    {"tp2-sp-ep4-zero1", 4, WORLD("4") TENSOR("2") SEQUENCE EXPERT("4") EXPERT_TENSOR("1") GATHER ZERO1,
     NULL},
    {"tp2-sp-etp2-ep2", 4, WORLD("4") TENSOR("2") SEQUENCE EXPERT("2") GATHER, NULL},
};
static const mesh few_expert_meshes[] = {
    {"ep2", 2, WORLD("2") EXPERT("2"), NULL},
    {"tp2-sp-ep4", 4, WORLD("4") TENSOR("2") SEQUENCE EXPERT("4") EXPERT_TENSOR("1"), NULL},
    {"tp2-sp-etp2-ep2-gather", 4, WORLD("4") TENSOR("2") SEQUENCE EXPERT("2") GATHER, NULL},
};
/* What one rank has in a micro-batch of two sequences two ranks have in one each; which sequences are in a
 * pass, and so the load of the step so far, hangs on how many ranks share the batch. */
#define MICRO(n) SET("batch.micro", n)
static const mesh two_at_once = {"one", 1, WORLD("1") MICRO("2"), NULL};
static const mesh ranks_experts[] = {
    {"ep2-zero3", 2, WORLD("2") MICRO("1") EXPERT("2") ZERO("3"), NULL},
    {"tp2-sp-ep4", 4, WORLD("4") MICRO("1") TENSOR("2") SEQUENCE EXPERT("4") EXPERT_TENSOR("1"), NULL},
};
static const mesh two_shares = {"dp2", 2, WORLD("2"), NULL};
static const mesh step_experts[] = {
    {"ep2-zero3", 2, WORLD("2") EXPERT("2") ZERO("3"), NULL},
    {"tp2-sp-ep4", 4, WORLD("4") TENSOR("2") SEQUENCE EXPERT("4") EXPERT_TENSOR("1"), NULL},
    {"pp2-vpp2-ep2", 4, WORLD("4") STAGES("2") CHUNKS("2") EXPERT("2"), NULL},
    {"pp2-dp2-recompute", 4, WORLD("4") STAGES("2") SET("recompute.granularity", "full"), NULL},
};
/* Stages whose layers share a load-balancing loss: counts go beside what they exchange. */
static const mesh model_experts[] = {
    {"pp4", 4, WORLD("4") STAGES("4"), NULL},
    {"pp2-vpp2-recompute", 2, WORLD("2") STAGES("2") CHUNKS("2") SET("recompute.granularity", "full"), NULL},
    {"pp2-tp2-sp-ep2", 4, WORLD("4") STAGES("2") TENSOR("2") SEQUENCE EXPERT("2") EXPERT_TENSOR("1"), NULL},
    {"pp2-ring2-ep2", 4, WORLD("4") STAGES("2") RING("2") EXPERT("2"), NULL},
};
static const mesh model_shares[] = {
    {"pp2-ep2-zero2", 4, WORLD("4") STAGES("2") EXPERT("2") ZERO("2"), NULL},
    {"pp4-dp2-zero1", 8, WORLD("8") STAGES("4") ZERO1, NULL},
};
/* AdaMuon divides by what is near 0 where a gradient is; its epsilon is above what rounding makes of that. */
static const mesh staged_zero[] = {{"pp2-ep2-zero2", 4, WORLD("4") STAGES("2") EXPERT("2") ZERO("2"), NULL}};
static const mesh context_experts[] = {
    {"ring2-ep2", 2, WORLD("2") RING("2") EXPERT("2"), NULL},
    {"ring2-tp2-sp-ep4", 4, WORLD("4") RING("2") TENSOR("2") SEQUENCE EXPERT("4") EXPERT_TENSOR("1"), NULL},
    {"ulysses2-ring2-ep2", 4, WORLD("4") BOTH("4", "2") EXPERT("2"), NULL},
    {"ulysses2-dp2-ep4-gather", 4, WORLD("4") ULYSSES("2") EXPERT("4") GATHER, NULL},
};
static const mesh staged_experts[] = {
    {"pp2-ep2", 4, WORLD("4") STAGES("2") EXPERT("2"), NULL},
    {"pp2-vpp2-tp2-sp-ep2", 4,
     WORLD("4") STAGES("2") CHUNKS("2") TENSOR("2") SEQUENCE EXPERT("2") EXPERT_TENSOR("1"), NULL},
};

/* A bias of keys moves all scores of a query alike, so its gradient is rounding alone; AdamW would make steps
 * of it, different ones on every mesh, were its epsilon not above that. */
#define GPT2                                                                                                 \
  SET("model.normalization", "layernorm")                                                                    \
  SET("model.position_embedding", "learned") SET("model.activation", "gelu_tanh") SET("model.bias", "true")  \
      SET("model.kv_heads", "4") SET("optimizer.epsilon", "1e-5")

#define EXPERTS(top_k)                                                                                       \
  SET("moe.experts", "4")                                                                                    \
  SET("moe.top_k", top_k) SET("moe.ffn_hidden", "48") SET("moe.aux_loss_coef", "0.05")                       \
      SET("moe.buffer_factor", "4")
#define QUANTILES SET("moe.routing", "quantiles") SET("moe.quantile_memory", "0.5")
#define MIXTURE(top_k) EXPERTS(top_k) SET("batch.micro", "2")

/* Divided gradients and parameters, and hybrid sharding, alone and with every other axis. */
static const mesh zero[] = {
    {"dp2-zero2", 2, WORLD("2") ZERO("2"), NULL},
    {"dp4-zero2-overlap", 4, WORLD("4") ZERO("2") OVERLAP BUCKETS, NULL},
    {"dp2-zero3", 2, WORLD("2") ZERO("3"), NULL},
    {"dp4-zero3-overlap", 4, WORLD("4") ZERO("3") OVERLAP, NULL},
    {"dp4-zero3-kept", 4, WORLD("4") ZERO("3") KEPT OVERLAP, NULL},
    {"dp2x2-zero1", 4, WORLD("4") REPLICATE("2") ZERO1 OVERLAP BUCKETS, NULL},
    {"dp2x2-zero3", 4, WORLD("4") REPLICATE("2") ZERO("3") OVERLAP, NULL},
    {"tp2-sp-dp2-zero3", 4, WORLD("4") TENSOR("2") SEQUENCE ZERO("3") OVERLAP, NULL},
    {"tp4-kv2-zero3", 4, WORLD("4") TENSOR("4") SEQUENCE SET("mesh.kv_replicator", "2") ZERO("3"), NULL},
    {"dp2-zero3-messages", 2, WORLD("2") ZERO("3") OVERLAP, "--comm p2p"},
    {"dp2-zero3-some-kept", 2, WORLD("2") ZERO("3") OVERLAP SET("gather.keep_below", "5000"), NULL},
    {"dp4-zero2-once", 4, WORLD("4") ZERO("2") OVERLAP SET("reduce.once", "true"), NULL},
    {"ring2-dp2-zero3-data", 4,
     WORLD("4") SET("mesh.context", "2") SET("attention.ring", "true") ZERO("3")
         OVERLAP SET("optimizer.zero_context", "none"),
     NULL},
};
static const mesh zero_few[] = {
    {"dp2-zero2", 2, WORLD("2") ZERO("2") OVERLAP, NULL},
    {"dp2-zero3", 2, WORLD("2") ZERO("3") OVERLAP, NULL},
    {"tp2-sp-dp2-zero3", 4, WORLD("4") TENSOR("2") SEQUENCE ZERO("3") OVERLAP, NULL},
};
static const mesh zero_staged[] = {
    {"pp2-dp2-zero2", 4, WORLD("4") STAGES("2") ZERO("2") OVERLAP BUCKETS, NULL},
    {"pp2-dp2-zero3", 4, WORLD("4") STAGES("2") ZERO("3") OVERLAP, NULL},
    {"pp2-vpp2-dp2-zero1", 4, WORLD("4") STAGES("2") CHUNKS("2") ZERO1 OVERLAP BUCKETS, NULL},
    {"pp2-vpp2-dp2-zero3", 4, WORLD("4") STAGES("2") CHUNKS("2") ZERO("3") OVERLAP, "--comm p2p"},
    {"pp2-dp2x2-zero3", 8, WORLD("8") STAGES("2") REPLICATE("2") ZERO("3"), NULL},
};

/* Meshes whose sums are made in the same order, so that all numbers have the same bits: with one micro-batch
 * a step all stages of ZeRO; with several, those that sum over ranks once a step (0 and 1), and those that do
 * it in every pass (2 and 3). What overlaps, and how buckets are cut, never makes a difference. Norms of
 * shards are sums in another order, so nothing is clipped here. */
static const mesh dp2 = {"dp2", 2, WORLD("2"), NULL};
static const mesh dp2_zero2 = {"dp2-zero2", 2, WORLD("2") ZERO("2"), NULL};
static const mesh zero_alike[] = {
    {"zero1", 2, WORLD("2") ZERO1, NULL},
    {"zero1-overlap", 2, WORLD("2") ZERO1 OVERLAP BUCKETS, NULL},
    {"zero2", 2, WORLD("2") ZERO("2"), NULL},
    {"zero2-overlap", 2, WORLD("2") ZERO("2") OVERLAP BUCKETS, NULL},
    {"zero3", 2, WORLD("2") ZERO("3"), NULL},
    {"zero3-overlap", 2, WORLD("2") ZERO("3") OVERLAP, NULL},
    {"zero3-kept", 2, WORLD("2") ZERO("3") KEPT OVERLAP, "--comm p2p"},
};
/* What the update rules keep is divided like the rest. */
static const mesh zero_rules[] = {
    {"zero1", 2, WORLD("2") ZERO1, NULL},
    {"zero3", 2, WORLD("2") ZERO("3") OVERLAP, NULL},
};
/* Rules of whole tensors: pieces of a tensor are gathered, and whole ones dealt. */
static const mesh tensor_rules[] = {
    {"tp2", 2, WORLD("2") TENSOR("2"), NULL},
    {"tp4-kv2-zero1", 4, WORLD("4") TENSOR("4") SEQUENCE ZERO1 SET("mesh.kv_replicator", "2"), NULL},
    {"tp2-sp-dp2-zero2", 4, WORLD("4") TENSOR("2") SEQUENCE ZERO("2") OVERLAP BUCKETS, NULL},
    {"tp2-dp2-zero3", 4, WORLD("4") TENSOR("2") ZERO("3") OVERLAP, NULL},
    {"pp2-dp2-zero1", 4, WORLD("4") STAGES("2") ZERO1, NULL},
};
static const mesh tensor_few[] = {
    {"tp2", 2, WORLD("2") TENSOR("2"), NULL},
    {"tp2-dp2-zero3", 4, WORLD("4") TENSOR("2") ZERO("3") OVERLAP, NULL},
};
#define MUON                                                                                                 \
  SET("optimizer.momentum", "0.95") SET("optimizer.nesterov", "true") SET("optimizer.matrix_lr", "0.01")
/* Of what no gradient has said anything yet bases are what roundings make of them: meshes sum in one order.
 */
static const mesh soap_alike[] = {
    {"zero1", 2, WORLD("2") ZERO1, NULL},
    {"zero3", 2, WORLD("2") ZERO("3") OVERLAP, NULL},
    {"pp2-zero2", 4, WORLD("4") STAGES("2") ZERO("2"), NULL},
};
static const mesh soap_parts[] = {
    {"tp2-dp2", 4, WORLD("4") TENSOR("2"), NULL},
    {"tp2-dp2-zero3", 4, WORLD("4") TENSOR("2") ZERO("3") OVERLAP, NULL},
};
static const mesh soap_experts[] = {
    {"ep2", 2, WORLD("2") EXPERT("2"), NULL},
    {"pp2-ep2-zero1", 4, WORLD("4") STAGES("2") EXPERT("2") ZERO1, NULL},
};
#define RULE(name) SET("batch.global", "2") NO_CLIP SET("optimizer.name", name)
static const mesh zero_once[] = {
    {"overlap", 2, WORLD("2") OVERLAP, NULL},
    {"overlap-buckets", 2, WORLD("2") OVERLAP BUCKETS, NULL},
    {"zero1-overlap", 2, WORLD("2") ZERO1 OVERLAP, NULL},
    {"zero1-buckets", 2, WORLD("2") ZERO1 BUCKETS, NULL},
};
static const mesh zero_each_pass[] = {
    {"overlap", 2, WORLD("2") ZERO("2") OVERLAP, NULL},
    {"buckets", 2, WORLD("2") ZERO("2") BUCKETS, NULL},
    {"zero3", 2, WORLD("2") ZERO("3"), NULL},
    {"zero3-overlap", 2, WORLD("2") ZERO("3") OVERLAP, NULL},
    {"zero3-kept", 2, WORLD("2") ZERO("3") KEPT, NULL},
};

/* Without recomputation, and with it: the same bits. */
#define AGAIN(how) SET("recompute.granularity", how)
static const mesh again[] = {
    {"layers", 1, WORLD("1") AGAIN("full"), NULL},
    {"pairs", 1, WORLD("1") AGAIN("full") SET("recompute.layers", "2"), NULL},
    {"all-at-once", 1, WORLD("1") AGAIN("full") SET("recompute.layers", "9"), NULL},
    {"block", 1, WORLD("1") AGAIN("full") SET("recompute.method", "block") SET("recompute.layers", "3"),
     NULL},
    {"mlp", 1, WORLD("1") AGAIN("selective") SET("recompute.modules", "[mlp]"), NULL},
    {"most", 1, WORLD("1") AGAIN("selective") SET("recompute.modules", "[self_attn,moe_act,layernorm]"),
     NULL},
    {"pp2-block", 2,
     WORLD("2") STAGES("2") AGAIN("full") SET("recompute.method", "block") SET("recompute.layers", "1"),
     NULL},
};
/* Layers that share weights, on one stage and over several. */
static const mesh shared_layers[] = {
    {"tp2-sp", 2, WORLD("2") TENSOR("2") SEQUENCE, NULL},
    {"dp2-zero1", 2, WORLD("2") ZERO1, NULL},
    {"pp2", 2, WORLD("2") STAGES("2"), NULL},
    {"pp4", 4, WORLD("4") STAGES("4"), NULL},
    {"pp3", 3, WORLD("3") STAGES("3"), NULL},
    {"pp2-dp2-zero1", 4, WORLD("4") STAGES("2") ZERO1, NULL},
    {"pp4-tp2-messages", 8, WORLD("8") STAGES("4") TENSOR("2"), "--comm p2p"},
};
#define DISTRIBUTE SET("recompute.distribute", "true")
static const mesh tp2 = {"tp2", 2, WORLD("2") TENSOR("2"), NULL};
static const mesh again_divided[] = {
    {"layers", 2, WORLD("2") TENSOR("2") AGAIN("full"), NULL},
    {"divided", 2, WORLD("2") TENSOR("2") AGAIN("full") DISTRIBUTE, NULL},
    {"divided-pairs", 2, WORLD("2") TENSOR("2") AGAIN("full") DISTRIBUTE SET("recompute.layers", "2"), NULL},
    {"divided-pp2", 4, WORLD("4") TENSOR("2") STAGES("2") AGAIN("full") DISTRIBUTE, NULL},
    {"divided-messages", 2, WORLD("2") TENSOR("2") AGAIN("full") DISTRIBUTE, "--comm p2p"},
};

static const mesh ring2 = {"ring2", 2, WORLD("2") RING("2"), NULL};
static const mesh again_context[] = {
    {"layers", 2, WORLD("2") RING("2") AGAIN("full"), NULL},
    {"attention", 2, WORLD("2") RING("2") AGAIN("selective") SET("recompute.modules", "[self_attn]"), NULL},
    {"layers-messages", 2, WORLD("2") RING("2") AGAIN("full"), "--comm p2p"},
};

/* A batch that grows: steps of one micro-batch on each of two ranks, of two, and of four. */
#define GROWING SET("batch.growth", "[2@0,4@3,8@8]") SET("schedule.clock", "samples")
static const mesh growing[] = {
    {"dp2", 2, WORLD("2"), NULL},
    {"dp2-zero1-overlap", 2, WORLD("2") ZERO1 OVERLAP, NULL},
    {"dp2-zero2", 2, WORLD("2") ZERO("2"), NULL},
    {"dp2-zero3", 2, WORLD("2") ZERO("3"), NULL},
    {"tp2", 2, WORLD("2") TENSOR("2"), NULL},
    {"pp2", 2, WORLD("2") STAGES("2"), NULL},
    {"pp2-vpp2", 2, WORLD("2") STAGES("2") CHUNKS("2"), NULL},
    {"pp2-dp2-ahead", 4, WORLD("4") STAGES("2") SET("pipeline.receive_ahead", "true"), NULL},
};

/* Models of other forms: one layout of each kind of parallelism, and recomputation of whole layers. */
static const mesh formed[] = {
    {"tp2-sp", 2, WORLD("2") TENSOR("2") SEQUENCE, NULL},
    {"dp2-zero3", 2, WORLD("2") ZERO("3"), NULL},
    {"pp2", 2, WORLD("2") STAGES("2"), NULL},
    {"ring2-tp2", 4, WORLD("4") RING("2") TENSOR("2"), NULL},
    {"ulysses2", 2, WORLD("2") ULYSSES("2"), NULL},
    {"recomputed", 1, WORLD("1") AGAIN("full"), NULL},
    {"tp4-kv2", 4, WORLD("4") TENSOR("4") SET("mesh.kv_replicator", "2"), NULL},
    {"tp4-kv2-sp", 4, WORLD("4") TENSOR("4") SEQUENCE SET("mesh.kv_replicator", "2"), NULL},
};
enum { FORMED = sizeof formed / sizeof *formed };
#define FORM(name, overrides)                                                                                \
  { name, LAYERS("4") overrides, formed, FORMED }

#endif
