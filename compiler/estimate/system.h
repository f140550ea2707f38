/* SPDX-License-Identifier: Apache-2.0 */
/* What a training system keeps in memory and how it works, as schema/systems/NAME.yaml says, one file a
 * system.
 *
 * A row of a file is something that is kept, with its bytes as an expression over sizes.def, or a trait of
 * how the system works, with its value. The tables are made at build time; expressions are parsed when a
 * system is opened, and belong to the arena that it was opened in. */
#ifndef NXC_SYSTEM_H
#define NXC_SYSTEM_H

#include "compiler/estimate/sizes.h"

/* What a row's bytes are of. */
typedef enum nxc_keep {
  NXC_KEEP_STAGE,     /* of the whole stage, once */
  NXC_KEEP_LAYER,     /* of each layer and micro-batch in flight */
  NXC_KEEP_DENSE,     /* of each layer without experts, and micro-batch in flight */
  NXC_KEEP_MIXTURE,   /* of each layer with experts, and micro-batch in flight */
  NXC_KEEP_INPUT,     /* of each layer that is computed again, and micro-batch in flight */
  NXC_KEEP_BATCH,     /* of the stage, and micro-batch in flight */
  NXC_KEEP_TRANSIENT, /* for a moment: of these only the largest counts */
  NXC_KEEP_GROWING,   /* of the stage, as its activations go, in a step of one micro-batch that begins without
                       */
  NXC_N_KEEPS
} nxc_keep;

typedef enum nxc_memory_part {
  NXC_PART_PARAMETERS,
  NXC_PART_GRADIENTS,
  NXC_PART_OPTIMIZER,
  NXC_PART_ACTIVATIONS,
  NXC_PART_BUFFERS,
  NXC_N_MEMORY_PARTS
} nxc_memory_part;

extern const char *const nxc_memory_part_names[NXC_N_MEMORY_PARTS]; /* "parameters", ... */

/* TRAIT(name, default, meaning) */
#define NXC_TRAITS(TRAIT)                                                                                    \
  TRAIT(pointwise_passes, 1, "how often a tensor between products is read and written, beside the least")    \
  TRAIT(more_stream, 0, "elements moved for each one of the residual stream, beside those of fused kernels") \
  TRAIT(more_heads, 0, "the same for each one of queries and keys")                                          \
  TRAIT(more_activation, 0, "the same for each one of the network's width")                                  \
  TRAIT(more_scores, 0, "the same for each score that is stored")                                            \
  TRAIT(loss_bytes, 8, "that the loss moves for each logit")                                                 \
  TRAIT(loss_back_bytes, 6, "that the gradient of the loss moves for each logit")                            \
  TRAIT(attention, 1, "speed of the attention, beside the best that the machine has")                        \
  TRAIT(attention_before, 0, "1 where its kernels are those for the generation of devices before")           \
  TRAIT(hides_tensor, 0, "share of tensor-parallel communication beneath products")                          \
  TRAIT(hides_reduce, 0, "share of the reduction of gradients beneath the backward pass")                    \
  TRAIT(hides_gather, 0, "share of gathering parameters beneath the passes")                                 \
  TRAIT(stops_early, 0, "1 where what is computed again ends at the last input that a gradient reads")       \
  TRAIT(hides_stages, 0, "share of what goes between stages beneath the passes")                             \
  TRAIT(divides_sends, 0, "1 where tensor-parallel ranks send stages a part each, which is gathered there")  \
  TRAIT(hides_experts, 0, "1 where rows go to experts beneath the work of another micro-batch")              \
  TRAIT(tensor_forward, 1, "exchanges of tensor-parallel ranks forward, for each one of the least")          \
  TRAIT(tensor_back, 1, "exchanges of tensor-parallel ranks backward, for each one forward")                 \
  TRAIT(hides_inputs, 0, "1 where inputs' gradients are summed beneath the products of weights' gradients")  \
  TRAIT(tensor_copies, 0, "1 where what tensor-parallel ranks gather and scatter is copied once more")       \
  TRAIT(references, 0, "models that go forward for each micro-batch beside the one that is trained")         \
  TRAIT(copies_gathered, 1, "0 where what is gathered, and gradients, lie where they are read and sent")     \
  TRAIT(gathers_once, 0, "1 where what is divided is gathered once a step, not for each micro-batch")        \
  TRAIT(reduces_once, 0, "1 where gradients are divided behind the last micro-batch, not behind each")       \
  TRAIT(copies_once, 1, "1 where sums of shards over copies are made once a step, not for each micro-batch") \
  TRAIT(sums_whole, 0, "1 where each rank gets the whole sum of gradients that ZeRO divides")                \
  TRAIT(host_sums, 0,                                                                                        \
        "1 where the host sums the gradients of micro-batches, for the optimizer's state there")             \
  TRAIT(updates_on_host, 1, "0 where the optimizer's state comes from the host's memory for the update")     \
  TRAIT(moving_bytes, 0, "activations on their way to the host's memory and back at most; 0: two layers")    \
  TRAIT(tf32, 0, "1 where products in fp32 are rounded to TF32, half as fast as bf16")                       \
  TRAIT(fp8_speed, 1, "of fp8 products, beside the best that the machine has")                               \
  TRAIT(pads_capacity, 0, "1 where experts multiply all rows that they have room for, empty ones too")       \
  TRAIT(cast_passes, 2.5, "bf16 elements moved for each one that is cast for an fp8 product")                \
  TRAIT(casts_weights, 0, "1 where weights are cast in each pass, not once a step")                          \
  TRAIT(more_rows, 0, "the same for each one of what experts make")                                          \
  TRAIT(gathers_rows, 0, "1 where ranks that divide experts gather rows for them, and not tokens before")    \
  TRAIT(pads_experts, 0, "copies of the rows of experts, to and from counts that fp8 products accept")       \
  TRAIT(padded_rows, 0, "rows that an expert gets more by that, from each rank that sends it some")          \
  TRAIT(more_sorting, 0, "times that a row is moved more when rows are sorted by expert, and back")          \
  TRAIT(launches, 1, "kernels of a layer, beside one for each operator")                                     \
  TRAIT(sum_bytes, 0, "that adding a gradient to those of earlier micro-batches moves; 0: products add")     \
  TRAIT(update_bytes, 30, "that the update of a parameter moves")                                            \
  TRAIT(clear_bytes, 0, "that clearing a parameter's gradient moves, once a step")

typedef struct nxc_traits {
#define TRAIT(name, otherwise, meaning) double name;
  NXC_TRAITS(TRAIT)
#undef TRAIT
} nxc_traits;

typedef struct nxc_system_row {
  const char *name, *bytes, *when; /* of what is kept; expressions, `when` may be NULL */
  nxc_keep keep;
  nxc_memory_part part;
  const char *module;   /* that recomputation may name, or NULL */
  const char *input_of; /* the module whose input it is, which offload.modules may name; or NULL */
  const char *trait, *value;
} nxc_system_row;

typedef struct nxc_system_table {
  const char *name; /* of the dialect whose own system it is */
  const nxc_system_row *rows;
  size_t n_rows;
} nxc_system_table;

extern const nxc_system_table nxc_system_tables[];
extern const size_t nxc_n_system_tables;

typedef struct nxc_system nxc_system;

/* NULL where the dialect has no system of its own. */
const nxc_system *nxc_system_open(nxc_arena *arena, const char *name);
nxc_traits nxc_system_traits(const nxc_system *system, const nxc_sizes *sizes, nxc_arena *arena);

/* What one row takes of the rank whose sizes these are. */
typedef struct nxc_kept {
  const nxc_system_row *row;
  double bytes;
} nxc_kept;

/* Whether selective recomputation names the module, so that nothing of it is kept; without names it is the
 * core of the attention. */
bool nxc_computes_again(const nxc_training *training, const char *module);
/* All rows that apply, in their order; modules that are computed again are left out. */
nxc_kept *nxc_system_keeps(const nxc_system *system, const nxc_sizes *sizes, const nxc_training *training,
                           nxc_arena *arena, size_t *n_kept);

#endif
