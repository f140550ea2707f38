/* SPDX-License-Identifier: Apache-2.0 */
/* Of mesh_cases.h: the meshes of fine-tuning, and what is trained on them. */
#ifndef TESTS_PARITY_MESH_TUNED_H
#define TESTS_PARITY_MESH_TUNED_H

#include "tests/parity/mesh_layouts.h"

/* What is trained beside frozen weights, and answers: every kind of parallelism, and kinds of it together. */
#define RECOMPUTED SET("recompute.granularity", "full")
static const mesh tuned[] = {
    {"recomputed", 1, WORLD("1") RECOMPUTED, NULL},
    {"tp2", 2, WORLD("2") TENSOR("2"), NULL},
    {"tp2-sp", 2, WORLD("2") TENSOR("2") SEQUENCE, NULL},
    {"pp2", 2, WORLD("2") STAGES("2"), NULL},
    {"ring2", 2, WORLD("2") RING("2"), NULL},
    {"ulysses2-recomputed", 2, WORLD("2") ULYSSES("2") RECOMPUTED, NULL},
    {"dp2-zero1", 2, WORLD("2") ZERO1, NULL},
    {"dp2-zero2", 2, WORLD("2") ZERO("2") OVERLAP, NULL},
    {"dp2-zero3", 2, WORLD("2") ZERO("3") OVERLAP, NULL},
    {"tp2-sp-dp2-zero1", 4, WORLD("4") TENSOR("2") SEQUENCE ZERO1, NULL},
    {"pp2-dp2-zero3-recomputed", 4, WORLD("4") STAGES("2") ZERO("3") RECOMPUTED, NULL},
    {"pp2-tp2-sp", 4, WORLD("4") STAGES("2") TENSOR("2") SEQUENCE, NULL},
    {"ring2-tp2-messages", 4, WORLD("4") RING("2") TENSOR("2"), "--comm p2p"},
};
static const mesh tuned_few[] = {
    {"tp2-sp-recomputed", 2, WORLD("2") TENSOR("2") SEQUENCE RECOMPUTED, NULL},
    {"pp2-vpp2-dp2-zero1", 4, WORLD("4") STAGES("2") CHUNKS("2") ZERO1, NULL},
    {"ring2-dp2-zero3", 4, WORLD("4") RING("2") ZERO("3") OVERLAP, NULL},
};
static const mesh tuned_experts[] = {
    {"ep2", 2, WORLD("2") EXPERT("2"), NULL},
    {"ep2-recomputed", 2, WORLD("2") EXPERT("2") RECOMPUTED, NULL},
    {"tp2-etp2", 2, WORLD("2") TENSOR("2"), NULL},
    {"ep2-edp2-zero3", 4, WORLD("4") EXPERT("2") ZERO("3") OVERLAP, NULL},
    {"pp2-ep2", 4, WORLD("4") STAGES("2") EXPERT("2"), NULL},
    {"tp2-sp-ep4-zero1", 4, WORLD("4") TENSOR("2") SEQUENCE EXPERT("4") EXPERT_TENSOR("1") ZERO1, NULL},
};
enum { TUNED = sizeof tuned / sizeof *tuned, TUNED_EXPERTS = sizeof tuned_experts / sizeof *tuned_experts };
#define LORA SET("lora.rank", "4") SET("lora.alpha", "8")
/* A block of a quantized matrix is not divided: 64 columns and more a rank. */
#define QLORA LORA SET("lora.base_type", "nf4") SET("model.hidden", "128") SET("model.ffn_hidden", "256")
#define PAIRS "preferences/pairs" /* data: texts and their answers */
#define DPO SET("alignment.strategy", "dpo") SET("alignment.beta", "0.5")
/* Documents side by side, of which only answers count in the loss. */
#define ANSWERS                                                                                              \
  SET("data.labels", "answers") SET("data.sampler", "packed") SET("data.reset_attention_mask", "true")       \
  SET("data.reset_position_ids", "true") SET("loss.mean", "step") SET("model.sequence", "64")

#endif
