/* SPDX-License-Identifier: Apache-2.0 */
/* Rates of the operators that have a speed of their own: their arithmetic or their order holds them up, and
 * not memory. An operator is made from its signature, with a size for each letter. */
#include "runtime/calibrate/calibrate_bench.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Sizes of letters and values of attributes, as rows of a decoder have them; other attributes are their least
 * value. Attention has points by heads and length of its sequences; others are measured with what caches
 * hold, and once more with LARGER times as many rows, their first letter. */
enum { LARGER = 8 };
static const struct {
  nx_op op;
  const char *sizes;
} rows[] = {
    {NX_OP_rms_norm, "T=1024 H=512"},
    {NX_OP_rms_norm_grad, "T=1024 H=512"},
    {NX_OP_layer_norm, "T=1024 H=512"},
    {NX_OP_layer_norm_grad, "T=1024 H=512"},
    {NX_OP_gated, "T=256 F=1024 G=2048 function=4"},
    {NX_OP_gated_grad, "T=256 F=1024 G=2048 function=4"},
    {NX_OP_activation, "N=524288 function=1"},
    {NX_OP_activation_grad, "N=524288 function=1"},
    {NX_OP_split_qkv, "B=1 S=256 n=8 m=8 d=64 C=1536 heads=8 kv_heads=8 rotary_dims=64 theta=10000 factor=1"},
    {NX_OP_merge_qkv, "B=1 S=256 n=8 m=8 d=64 C=1536 heads=8 kv_heads=8 rotary_dims=64 theta=10000 factor=1"},
    {NX_OP_ce_stats, "T=64 V=8192 p=1 1=1 3=3 n_valid=8192"},
    {NX_OP_ce_grad, "T=64 V=8192 n_valid=8192 scale=1"},
    {NX_OP_norm_sq, "N=524288 1=1 weight=1"},
    {NX_OP_attention, "B=1 n=8 m=8 S=256 K=256 d=32 e=32 C=256 scale=0.18"},
    {NX_OP_attention, "B=1 n=8 m=8 S=256 K=256 d=64 e=64 C=512 scale=0.125"},
    {NX_OP_attention, "B=1 n=4 m=4 S=1024 K=1024 d=64 e=64 C=256 scale=0.125"},
    {NX_OP_attention_grad, "B=1 n=8 m=8 S=256 K=256 d=32 e=32 C=256 scale=0.18"},
    {NX_OP_attention_grad, "B=1 n=8 m=8 S=256 K=256 d=64 e=64 C=512 scale=0.125"},
    {NX_OP_attention_grad, "B=1 n=4 m=4 S=1024 K=1024 d=64 e=64 C=256 scale=0.125"},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

/* What stands behind `name=`; NULL: nothing does. */
static const char *find_text(const char *sizes, const char *name, size_t n_chars) {
  for (const char *at = sizes; at; at = strchr(at, ' ')) {
    at += *at == ' ';
    if (strncmp(at, name, n_chars) == 0 && at[n_chars] == '=') return at + n_chars + 1;
  }
  return NULL;
}

/* A row of the table, and how many times as many rows it has. */
typedef struct shape {
  const char *sizes;
  int64_t times;
} shape;

static int64_t size_of(const shape *s, char letter) {
  const char *text = find_text(s->sizes, &letter, 1);
  if (!text) return isdigit((unsigned char)letter) ? letter - '0' : 1;
  return strtoll(text, NULL, 10) * (letter == *s->sizes ? s->times : 1);
}

static nx_dtype type_of(char letter, nx_dtype type) {
  static const struct {
    char letter;
    nx_dtype type;
  } types[] = {{'f', NX_f32}, {'d', NX_f64}, {'i', NX_i32}, {'l', NX_i64}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (types[i].letter == letter) return types[i].type;
  return type;
}

/* Numbers of tokens and samples are 0, and stay so: no kernel writes where they are. */
static nxk_tensor operand_of(const nx_operand_row *row, const shape *s, nx_dtype type, uint64_t *footprint) {
  nxk_tensor tensor = {.dtype = type_of(row->type, type), .dims = {1, 1, 1, 1}, .shift_constant = UINT32_MAX};
  for (uint32_t i = 0; i < row->n_chars; i++)
    if (row->dims[i] != '*') tensor.dims[tensor.n_dims++] = size_of(s, row->dims[i]);
  bool numbers = tensor.dtype == NX_i32 || tensor.dtype == NX_i64;
  tensor.arena = numbers ? NXR_BENCH_STILL : NX_ARENA_scratch;
  if (!numbers) {
    tensor.offset = *footprint;
    *footprint += nxr_bench_room(&tensor);
  }
  return tensor;
}

static nxk_attr attribute_of(const nx_attr_row *row, const char *sizes) {
  const char *text = find_text(sizes, row->name, strlen(row->name));
  if (row->type == NX_REAL)
    return (nxk_attr){.kind = NXK_REAL, .real = text ? strtod(text, NULL) : row->lowest > 0 ? 1 : 0};
  return (nxk_attr){.kind = NXK_INT, .integer = text ? strtoll(text, NULL, 10) : row->least > 0 ? 1 : 0};
}

/* Without the inputs that may be left out; with all outputs. */
static nxk_operator operator_of(nx_op number, const shape *s, nx_dtype type, uint64_t *footprint) {
  const nx_op_row *row = nx_op_find(number);
  nx_signature signature = nx_op_signature(row);
  nxk_operator op = {.op = number, .n_in = signature.min_in, .n_out = signature.n_out,
                     .n_attrs = nx_op_n_attrs(row)};
  *footprint = 0;
  for (uint32_t i = 0; i < op.n_in; i++)
    op.args[i] = operand_of(&signature.operands[i], s, type, footprint);
  for (uint32_t i = 0; i < op.n_out; i++)
    op.args[op.n_in + i] = operand_of(nx_signature_output(&signature, i), s, type, footprint);
  for (uint32_t i = 0; i < op.n_attrs; i++) op.attrs[i] = attribute_of(&row->attrs[i], s->sizes);
  return op;
}

/* The FLOP of one product of one head, of which half is dead, and how many there are; else the bytes. */
static double work_of(const nxk_operator *op, const shape *s, double *one) {
  double bytes = 0, keys = (double)size_of(s, 'K');
  for (uint32_t i = 0; i < op->n_in + op->n_out; i++) bytes += (double)nxr_bench_bytes(&op->args[i]);
  *one = nx_op_find(op->op)->class == NX_ATTENTION ? keys * keys * (double)size_of(s, 'd') : bytes;
  if (*one == bytes) return bytes;
  return *one * (double)size_of(s, 'n') * (op->op == NX_OP_attention ? 2 : 5);
}

static nxr_operator_rate *rate_of(nxr_rates *rates, nx_op op) {
  for (int i = 0; i < rates->n; i++)
    if (rates->of[i].op == op) return &rates->of[i];
  rates->of[rates->n].op = op;
  return &rates->of[rates->n++];
}

static bool measure_shape(nxr_bench *bench, nx_op number, const shape *s, nx_dtype type, nxr_rates *rates,
                          nxr_fault *fault) {
  uint64_t footprint;
  double seconds, one;
  nxr_operator_rate *rate = rate_of(rates, number);
  nxk_operator op = operator_of(number, s, type, &footprint);
  if (rate->is_slow) return true;
  if (!nxr_measure_offered(bench, &op, footprint, &seconds, fault)) return false;
  nxr_curve *curve = &rate->curve;
  double work = work_of(&op, s, &one);
  rate->is_slow = seconds <= 0 || nxr_bench_is_slow(seconds);
  if (seconds > 0) curve->size[curve->n] = one, curve->rate[curve->n++] = work / seconds;
  return true;
}

bool nxr_measure_rates(nxr_bench *bench, nx_dtype type, nxr_rates *rates, nxr_fault *fault) {
  for (int i = 0; i < N_ROWS; i++) {
    bool once = nx_op_find(rows[i].op)->class == NX_ATTENTION;
    for (int64_t times = 1; times <= (once ? 1 : LARGER); times *= LARGER) {
      const shape s = {rows[i].sizes, times};
      if (!measure_shape(bench, rows[i].op, &s, type, rates, fault)) return false;
    }
  }
  return true;
}
