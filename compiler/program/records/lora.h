/* SPDX-License-Identifier: Apache-2.0 */
/* Low-rank adapters: which matrices have them, and their sizes. All other parameters are frozen then. */
#ifndef NXC_RECORDS_LORA_H
#define NXC_RECORDS_LORA_H

#include "compiler/settings/family.h"
#include "compiler/settings/settings.h"
#include "schema/plan.h"

/* Matrices beside which one adapter stands: a tensor of the checkpoint, or several that read the same and
 * have one first matrix. In the order in which a fused product has them. */
enum { NXC_MOST_ADAPTED = 3 };
typedef struct nxc_adapted {
  nxc_part parts[NXC_MOST_ADAPTED];
  size_t n_parts;
} nxc_adapted;

/* How matrices are kept: codes, scales of their blocks, and the operator that reads both. */
typedef struct nxc_quantization {
  const char *name;
  nx_form codes, scales;
  nx_op op;
  int64_t rows, block; /* of so many rows so many columns share a scale */
} nxc_quantization;

typedef enum nxc_lora_bias { NXC_LORA_NO_BIAS, NXC_LORA_ALL_BIASES, NXC_LORA_OWN_BIASES } nxc_lora_bias;

typedef struct nxc_lora {
  int64_t rank; /* 0: there are none, and nothing is frozen */
  double scale; /* of what an adapter adds */
  double dropout, b_init_std;
  const nxc_quantization *base; /* of matrices with adapters; NULL: they are as the others */
  double base_noise;            /* that training adds to them; 0: none */
  int64_t merge_every; /* steps after which they are added to the frozen weights; 0: never */
  bool merge_resets;   /* the optimizer begins anew then */
  nxc_lora_bias bias;
  bool shared_by_experts; /* the matrices of their adapters that meet hidden features */
  const nxc_adapted *of[NXC_N_PARTS]; /* NULL: the part has none */
  const char *unused;                 /* an entry of lora.modules that names no matrix; NULL: all do */
} nxc_lora;

nxc_lora nxc_lora_read(const nxc_settings *settings, const nxc_family *family, nxc_arena *arena);
/* Whether the bias of a part (a norm's too) is trained. */
bool nxc_lora_trains_bias(const nxc_lora *lora, nxc_part part);

#endif
