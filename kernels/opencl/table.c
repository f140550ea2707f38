/* SPDX-License-Identifier: Apache-2.0 */
/* The operators of this backend: which kernels of which file run over what. */
#include "kernels/opencl/opencl.h"

#include "schema/objective.h"
#include "schema/optimizers.h"

#include <string.h>


/* ---- sums over blocks and rows ---- */

static uint64_t norm_blocks(const nxk_device *device, const nxk_operator *operator) {
  (void)device;
  return ocl_ceil((uint64_t)ocl_elements(operator, 0), NX_DEVICE_BLOCK);
}

/* Of a vector that comes out. */
static uint64_t vector_blocks(const nxk_device *device, const nxk_operator *operator) {
  (void)device;
  return ocl_ceil((uint64_t)ocl_elements(operator, OCL_OUT(0)), NX_DEVICE_BLOCK);
}

static void norm_define(FILE *text, const nxk_device *device, const nxk_operator *operator) {
  (void)device;
  (void)operator;
  fprintf(text, "#define NORM_BLOCK %d\n", NX_DEVICE_BLOCK);
}

/* Sums of columns go over the rows of the first operand (programs/columns.cl). */
static uint64_t column_blocks(const nxk_operator *operator) {
  int64_t n = ocl_last_dim(&operator->args[0]);
  return n ? ocl_ceil((uint64_t)(ocl_elements(operator, 0) / n), NX_DEVICE_ROWS) : 0;
}

static uint64_t column_groups(const nxk_device *device, const nxk_operator *operator) {
  return column_blocks(operator) * ocl_ceil((uint64_t)ocl_last_dim(&operator->args[0]), device->local);
}

static void column_define(FILE *text, const nxk_device *device, const nxk_operator *operator) {
  (void)device;
  (void)operator;
  fprintf(text, "#define COLUMN_ROWS %d\n", NX_DEVICE_ROWS);
}

/* ---- heads ---- */

static int64_t rotary_pairs(const nxk_operator *operator) {
  uint32_t rotary = nx_op_find_attr(nx_op_find(operator->op), "rotary_dims", strlen("rotary_dims"));
  return operator->attrs[rotary].integer / 2;
}

static uint64_t n_turns(const nxk_operator *operator) {
  return (uint64_t)(ocl_elements(operator, ocl_positions_of(operator)) * rotary_pairs(operator));
}

static uint64_t turns(const nxk_device *device, const nxk_operator *operator) {
  return ocl_ceil(n_turns(operator), device->local);
}

/* An item for each feature of each head's key and value. */
static uint64_t split_latent(const nxk_device *device, const nxk_operator *operator) {
  int64_t n = ocl_elements(operator, OCL_OUT(0)) + ocl_elements(operator, OCL_OUT(1));
  return ocl_ceil((uint64_t)n, device->local);
}

/* ---- attention ---- */

static uint64_t query_groups(const nxk_device *device, const nxk_operator *operator) {
  const int64_t *q = operator->args[ocl_is_backward(operator)].dims;
  return (uint64_t)(q[0] * q[1]) * ocl_ceil((uint64_t)q[2], device->local);
}

static uint64_t key_groups(const nxk_device *device, const nxk_operator *operator) {
  const int64_t *k = operator->args[2].dims;
  return (uint64_t)(k[0] * k[1]) * ocl_ceil((uint64_t)k[2], device->local);
}

/* ---- products ---- */

static uint64_t matmul_tiles(const nxk_device *device, const nxk_operator *operator) {
  int64_t n = ocl_last_dim(ocl_operand(operator, OCL_OUT(0)));
  return n ? ocl_tiles(device, ocl_elements(operator, OCL_OUT(0)) / n, n) : 0;
}

/* Tiles of all rows of a block, for each expert. */
static uint64_t grouped_tiles(const nxk_device *device, const nxk_operator *operator) {
  int64_t n_pairs = ocl_elements(operator, 1), n_blocks = n_pairs / ocl_last_dim(&operator->args[1]);
  int64_t width = ocl_last_dim(ocl_operand(operator, OCL_OUT(0)));
  return (uint64_t)n_pairs * ocl_tiles(device, ocl_elements(operator, OCL_OUT(0)) / width / n_blocks, width);
}

static uint64_t wgrad_tiles(const nxk_device *device, const nxk_operator *operator) {
  const int64_t *dw = ocl_operand(operator, OCL_OUT(0))->dims;
  return (uint64_t)dw[0] * ocl_tiles(device, dw[1], dw[2]);
}

/* ---- mixtures of experts ---- */

static void route_define(FILE *text, const nxk_device *device, const nxk_operator *operator) {
  (void)device;
  int experts = operator->op == NX_OP_moe_route ? OCL_OUT(0) : 2;
  fprintf(text, "#define ROUTE_E %lld\n#define ROUTE_K %lld\n", (long long)operator->args[1].dims[2],
          (long long)ocl_operand(operator, experts)->dims[2]);
}

static void quantile_define(FILE *text, const nxk_device *device, const nxk_operator *operator) {
  (void)device;
  fprintf(text, "#define ROUTE_E %lld\n#define ROUTE_K %lld\n", (long long)operator->args[0].dims[2],
          (long long)operator->attrs[NX_moe_quantile_top_k].integer);
}

static uint64_t quantile_tokens(const nxk_device *device, const nxk_operator *operator) {
  return ocl_ceil((uint64_t)(operator->args[0].dims[0] * operator->args[0].dims[1]), device->local);
}

static uint64_t route_rounds(const nxk_device *device, const nxk_operator *operator) {
  (void)device;
  return operator->attrs[NX_moe_route_sinkhorn].integer ? 1 : 0;
}

/* An item for each token, or for each claim of one. */
static uint64_t route_tokens(const nxk_device *device, const nxk_operator *operator) {
  const int64_t *all = operator->args[1].dims;
  return ocl_ceil((uint64_t)(all[0] * all[1]), device->local);
}

static uint64_t route_claims(const nxk_device *device, const nxk_operator *operator) {
  const int64_t *all = operator->args[1].dims;
  return ocl_ceil((uint64_t)(all[0] * all[1] * ocl_operand(operator, OCL_OUT(0))->dims[2]), device->local);
}

static uint64_t permuted(const nxk_device *device, const nxk_operator *operator) {
  return ocl_ceil((uint64_t)(ocl_elements(operator, 1) * ocl_last_dim(&operator->args[0])), device->local);
}

/* ---- fp8 ---- */

/* Items, or a group for each box that shares a scale. */
static uint64_t rounded(const nxk_device *device, const nxk_operator *operator) {
  uint64_t n = (uint64_t)ocl_elements(operator, 0), columns = (uint64_t)ocl_last_dim(&operator->args[0]);
  if (operator->n_in > 1 || columns == 0) return ocl_ceil(n, device->local);
  return ocl_ceil(n / columns, (uint64_t)operator->attrs[NX_fp8_round_block_rows].integer) *
         ocl_ceil(columns, (uint64_t)operator->attrs[NX_fp8_round_block_columns].integer);
}

/* ---- answers ---- */

static void answers_define(FILE *text, const nxk_device *device, const nxk_operator *operator) {
  (void)device;
  (void)operator;
  fprintf(text, "#define N_METRICS %d\n", NX_N_ANSWER_METRICS);
}

/* ---- layout ---- */

static void slice_define(FILE *text, const nxk_device *device, const nxk_operator *operator) {
  (void)device;
  fprintf(text, "#define RANK_Y0 %u\n", ocl_operand(operator, OCL_OUT(0))->n_dims);
}

/* ---- the rows ---- */

#define ELEMENTWISE(file, kernel)                                                                            \
  { file, {{kernel, OCL_ITEMS, OCL_OUT(0), 0, NULL}}, NULL }
#define RUNS(file, kernel)                                                                                   \
  { file, {{kernel, OCL_RUNS, OCL_OUT(0), 0, NULL}}, NULL }
#define ROWS(file, kernel, operand)                                                                          \
  { file, {{kernel, OCL_ROWS, operand, 0, NULL}}, NULL }
#define TURNED(kernel, over)                                                                                 \
  {                                                                                                          \
    "heads", {{"turns", OCL_COUNTED, 0, 0, turns}, {kernel, OCL_ITEMS, over, 0, NULL}}, \
        ocl_heads_define                                                                                     \
  }
#define BLOCK_SUMS                                                                                           \
  {                                                                                                          \
    "reduction", {{"block_sums", OCL_COUNTED, 0, 0, norm_blocks}, {"block_total", OCL_ONE, 0, 0, NULL}},     \
        norm_define                                                                            \
  }
#define ONE_BIT                                                                                              \
  {                                                                                                          \
    "onebit",                                                                                                \
        {{"onebit_vector", OCL_ITEMS, OCL_OUT(0), 0, NULL},                                                  \
         {"block_sums", OCL_COUNTED, 0, 0, vector_blocks},                                                   \
         {"onebit_size", OCL_ONE, 0, 0, NULL},                                                               \
         {"onebit_bits", OCL_ITEMS, OCL_OUT(1), 0, NULL}},                                                   \
        norm_define                                                                          \
  }
#define ATTENTION                                                                                            \
  { "attention", {{"attention", OCL_COUNTED, 0, 0, query_groups}}, ocl_attention_define }
#define ATTENTION_GRAD                                                                                       \
  {                                                                                                          \
    "attention",                                                                                             \
        {{"attention_delta", OCL_ITEMS, 5, 0, NULL},                                                         \
         {"attention_grad_query", OCL_COUNTED, 0, 0, query_groups},                                          \
         {"attention_grad_key", OCL_COUNTED, 0, 0, key_groups},                                              \
         {"attention_grad_table", OCL_GROUPS, OCL_OUT(3), 4, NULL}},                                         \
        ocl_attention_define                                                                  \
  }

static const ocl_row rows[NX_OP_END] = {
    [NX_OP_matmul] = {"matmul", {{"matmul", OCL_COUNTED, 0, 0, matmul_tiles}}, NULL},
    [NX_OP_bias_grad] = {"reduction",
                         {{"bias_grad", OCL_COUNTED, 0, 0, column_groups},
                          {"bias_total", OCL_COLUMNS, 0, 0, NULL}},
                         column_define},
    [NX_OP_embedding] = ELEMENTWISE("embedding", "embedding"),
    [NX_OP_embedding_grad] = {"embedding", {{"table_grad", OCL_GROUPS, 0, 0, NULL}}, NULL},
    [NX_OP_position_add] = ELEMENTWISE("embedding", "position_add"),
    [NX_OP_position_grad] = ROWS("embedding", "table_grad", 0),
    [NX_OP_sinusoid_add] = {"embedding",
                            {{"sinusoid_add", OCL_ITEMS, OCL_OUT(0), 0, NULL}},
                            ocl_sinusoid_define},
    [NX_OP_rms_norm] = ROWS("norm", "rms_norm", 0),
    [NX_OP_rms_norm_grad] = {"norm",
                             {{"rms_norm_grad", OCL_ROWS, 0, 0, NULL},
                              {"rms_norm_gain", OCL_COUNTED, 0, 2, column_groups},
                              {"rms_norm_total", OCL_COLUMNS, 0, 2, NULL}},
                             column_define},
    [NX_OP_layer_norm] = ROWS("norm", "layer_norm", 0),
    [NX_OP_layer_norm_grad] = {"norm",
                               {{"layer_norm_grad", OCL_ROWS, 0, 0, NULL},
                                {"layer_norm_gain", OCL_COUNTED, 0, 2, column_groups},
                                {"layer_norm_total", OCL_COLUMNS, 0, 2, NULL}},
                               column_define},
    [NX_OP_scale_norm] = ROWS("norm", "scale_norm", 0),
    [NX_OP_scale_norm_grad] =
        {"norm", {{"scale_norm_grad", OCL_ROWS, 0, 0, NULL}, {"scale_norm_gain", OCL_ONE, 0, 2, NULL}}, NULL},
    [NX_OP_add] = ELEMENTWISE("pointwise", "add"),
    [NX_OP_split_qkv] = TURNED("split_qkv", 0),
    [NX_OP_merge_qkv] = TURNED("merge_qkv", OCL_OUT(0)),
    [NX_OP_split_heads] = TURNED("split_heads", 0),
    [NX_OP_merge_heads] = TURNED("merge_heads", OCL_OUT(0)),
    [NX_OP_rotate] = TURNED("rotate_heads", 0),
    [NX_OP_split_latent] = {"heads",
                            {{"turns", OCL_COUNTED, 0, 0, turns},
                             {"split_latent", OCL_COUNTED, 0, 0, split_latent}},
                            ocl_heads_define},
    [NX_OP_merge_latent] = {"heads",
                            {{"turns", OCL_COUNTED, 0, 0, turns},
                             {"merge_latent", OCL_ITEMS, OCL_OUT(0), 0, NULL},
                             {"merge_latent_sum", OCL_ITEMS, OCL_OUT(1), 0, NULL},
                             {"merge_latent_turn", OCL_ITEMS, OCL_OUT(1), 0, NULL}},
                            ocl_heads_define},
    [NX_OP_attention] = ATTENTION,
    [NX_OP_attention_relative] = ATTENTION,
    [NX_OP_attention_sparse] = ATTENTION,
    [NX_OP_attention_grad] = ATTENTION_GRAD,
    [NX_OP_attention_relative_grad] = ATTENTION_GRAD,
    [NX_OP_attention_sparse_grad] = ATTENTION_GRAD,
    [NX_OP_attention_merge] = ELEMENTWISE("attention_parts", "attention_merge"),
    [NX_OP_attention_sink] = {"attention_parts",
                              {{"attention_sink", OCL_ITEMS, OCL_OUT(0), 0, NULL},
                               {"attention_sink_lse", OCL_ITEMS, OCL_OUT(1), 0, NULL}},
                              NULL},
    [NX_OP_attention_sink_grad] = {"attention_parts",
                                   {{"attention_sink_grad", OCL_GROUPS, 3, 0, NULL}},
                                   NULL},
    [NX_OP_gated] = ROWS("activation", "gated", OCL_OUT(0)),
    [NX_OP_gated_grad] = ROWS("activation", "gated_grad", 0),
    [NX_OP_activation] = RUNS("activation", "activation"),
    [NX_OP_activation_grad] = RUNS("activation", "activation_grad"),
    [NX_OP_clamp] = ELEMENTWISE("pointwise", "clamp_value"),
    [NX_OP_clamp_grad] = ELEMENTWISE("pointwise", "clamp_grad"),
    [NX_OP_dropout] = ELEMENTWISE("pointwise", "dropout"),
    [NX_OP_ce_stats] = ROWS("loss", "ce_stats", 0),
    [NX_OP_ce_loss] = {"loss",
                       {{"ce_loss", OCL_ITEMS, OCL_OUT(0), 0, NULL}, {"ce_loss_total", OCL_ONE, 0, 0, NULL}},
                       NULL},
    [NX_OP_ce_grad] = ROWS("loss", "ce_grad", 0),
    [NX_OP_sequence_loss] = {"preference", {{"sequence_loss", OCL_GROUPS, OCL_OUT(1), 0, NULL}}, NULL},
    [NX_OP_preference] = {"preference", {{"preference", OCL_ONE, 0, 0, NULL}}, answers_define},
    [NX_OP_sequence_value] = {"preference", {{"sequence_value", OCL_GROUPS, OCL_OUT(0), 0, NULL}}, NULL},
    [NX_OP_value_grad] = ELEMENTWISE("preference", "value_grad"),
    [NX_OP_row_weights] = ELEMENTWISE("preference", "row_weights"),
    [NX_OP_loss_weights] = ELEMENTWISE("pointwise", "loss_weights"),
    [NX_OP_fill] = ELEMENTWISE("pointwise", "fill"),
    [NX_OP_cast] = ELEMENTWISE("pointwise", "cast"),
    [NX_OP_norm_sq] = BLOCK_SUMS,
    [NX_OP_count_zeros] = BLOCK_SUMS,
    [NX_OP_block_squares] = {"reduction", {{"block_squares", OCL_GROUPS, OCL_OUT(0), 0, NULL}}, NULL},
    [NX_OP_blocks_sum] = {"reduction", {{"blocks_sum", OCL_ONE, 0, 0, NULL}}, NULL},
    [NX_OP_pairs_begin] = ELEMENTWISE("pairs", "pairs_begin"),
    [NX_OP_pairs_add] = {"pairs",
                         {{"pairs_add", OCL_ITEMS, 2, 0, NULL}, {"pairs_count", OCL_ONE, 0, 0, NULL}},
                         NULL},
    [NX_OP_pairs_sum] = ELEMENTWISE("pairs", "pairs_sum"),
    [NX_OP_onebit_pack] = ONE_BIT,
    [NX_OP_onebit_sum] = ONE_BIT,
    [NX_OP_onebit_apply] = ELEMENTWISE("onebit", "onebit_apply"),
    [NX_OP_add_up] = ELEMENTWISE("pointwise", "add_up"),
    [NX_OP_jitter] = ELEMENTWISE("pointwise", "jitter"),
    [NX_OP_random_logits] = ELEMENTWISE("pointwise", "random_logits"),
    [NX_OP_clip_scale] = {"reduction", {{"clip_scale", OCL_ONE, 0, 0, NULL}}, NULL},
    [NX_OP_segment] = {"reduction", {{"segment", OCL_ONE, 0, 0, NULL}}, NULL},
    [NX_OP_vote] = ELEMENTWISE("pointwise", "vote"),
    [NX_OP_bias_add] = ELEMENTWISE("pointwise", "bias_add"),
    [NX_OP_slice] = {"pointwise", {{"slice", OCL_ITEMS, OCL_OUT(0), 0, NULL}}, slice_define},
    [NX_OP_columns_add] = ELEMENTWISE("pointwise", "columns_add"),
    [NX_OP_join] = ELEMENTWISE("pointwise", "join"),
    [NX_OP_columns] = ELEMENTWISE("pointwise", "columns"),
    [NX_OP_row_gate] = ELEMENTWISE("pointwise", "row_gate"),
    [NX_OP_row_gate_grad] = ROWS("pointwise", "row_gate_grad", 0),
    [NX_OP_dequantize_nf4] = ELEMENTWISE("quantized", "dequantize_codes"),
    [NX_OP_dequantize_nvfp4] = ELEMENTWISE("quantized", "dequantize_codes"),
    [NX_OP_dequantize_mxfp4] = ELEMENTWISE("quantized", "dequantize_codes"),
    [NX_OP_dequantize_fp8] = ELEMENTWISE("quantized", "dequantize_fp8"),
    [NX_OP_fp8_amax] = {"quantized",
                        {{"fp8_amax", OCL_COUNTED, 0, 0, norm_blocks},
                         {"fp8_amax_total", OCL_ONE, 0, 0, NULL}},
                        norm_define},
    [NX_OP_fp8_round] = {"quantized", {{"fp8_round", OCL_COUNTED, 0, 0, rounded}}, NULL},
    [NX_OP_fp8_history] = {"quantized", {{"fp8_history", OCL_ONE, 0, 0, NULL}}, NULL},
    [NX_OP_moe_route] = {"moe",
                         {{"route_sinkhorn", OCL_COUNTED, 0, 0, route_rounds},
                          {"route_choose", OCL_COUNTED, 0, 0, route_tokens},
                          {"route_count", OCL_ITEMS, OCL_OUT(2), 0, NULL},
                          {"route_drop", OCL_COUNTED, 0, 0, route_claims},
                          {"route_weigh", OCL_COUNTED, 0, 0, route_tokens},
                          {"route_losses", OCL_ONE, 0, 0, NULL}},
                         route_define},
    [NX_OP_moe_route_grad] = {"moe", {{"moe_route_grad", OCL_COUNTED, 0, 0, route_tokens}}, route_define},
    [NX_OP_moe_imbalance] = ELEMENTWISE("moe", "moe_imbalance"),
    [NX_OP_moe_quantile] = {"moe",
                            {{"quantile_bounds", OCL_COUNTED, 0, 0, quantile_tokens},
                             {"moe_quantile", OCL_GROUPS, OCL_OUT(0), 0, NULL}},
                            quantile_define},
    [NX_OP_moe_settle] = {"moe", {{"moe_settle", OCL_ONE, 0, 0, NULL}}, NULL},
    [NX_OP_moe_load] = ELEMENTWISE("moe", "moe_load"),
    [NX_OP_moe_share] = ELEMENTWISE("moe", "moe_share"),
    [NX_OP_moe_index] = {"moe",
                         {{"index_count", OCL_ITEMS, OCL_OUT(1), 0, NULL},
                          {"index_number", OCL_ITEMS, OCL_OUT(1), 0, NULL},
                          {"index_others", OCL_ITEMS, 0, 0, NULL}},
                         NULL},
    [NX_OP_moe_permute] = {"moe",
                           {{"rows_clear", OCL_ITEMS, OCL_OUT(0), 0, NULL},
                            {"moe_permute", OCL_COUNTED, 0, 0, permuted}},
                           NULL},
    [NX_OP_moe_combine] = ELEMENTWISE("moe", "moe_combine"),
    [NX_OP_moe_combine_grad] = {"moe",
                                {{"rows_clear", OCL_ITEMS, OCL_OUT(0), 0, NULL},
                                 {"moe_combine_grad", OCL_GROUPS, 2, 0, NULL}},
                                NULL},
    [NX_OP_grouped_matmul] = {"matmul",
                              {{"grouped_matmul", OCL_COUNTED, 0, 0, grouped_tiles},
                               {"grouped_clear", OCL_ITEMS, OCL_OUT(0), 0, NULL}},
                              NULL},
    [NX_OP_grouped_wgrad] = {"matmul", {{"grouped_wgrad", OCL_COUNTED, 0, 0, wgrad_tiles}}, NULL},
    [NX_OP_grouped_bias] = ELEMENTWISE("matmul", "grouped_bias"),
    [NX_OP_grouped_bias_grad] = ELEMENTWISE("matmul", "grouped_bias_grad"),
};

const ocl_row *ocl_row_of(const nxk_operator *operator) {
  if (nx_optimizer_of(operator->op)) return ocl_update_row(operator->op);
  return rows[operator->op].file ? &rows[operator->op] : NULL;
}
