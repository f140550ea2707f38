/* SPDX-License-Identifier: Apache-2.0 */
/* What programs are told that the host knows better: what pairs turn by, which buckets distances lie in, and
 * what the inputs of a form of attention are; and which operators a device without fp64 has not. */
#include "kernels/opencl/opencl.h"

#include "kernels/relative.h"
#include "kernels/rope.h"

#include <math.h>
#include <string.h>

/* Signs and normal numbers are to the bit those of other backends. */
bool ocl_needs_fp64(const nxk_operator *operator) {
  const nx_op_row *row = nx_op_find(operator->op);
  if (strncmp(row->name, "onebit_", strlen("onebit_")) == 0 || operator->op == NX_OP_random_logits)
    return true;
  uint32_t noise = nx_op_find_attr(row, "noise", strlen("noise"));
  return noise < operator->n_attrs && operator->attrs[noise].real> 0;
}

/* ---- heads ---- */

/* What a pair turns by at each position (programs/turns.cl). */
static void say_turns(FILE *text, const nxk_rope *rope, int64_t n_pairs) {
  fputs("constant ulong turns_of_pairs[] = {", text);
  for (int64_t pair = 0; pair < n_pairs; pair++) {
    double turn = nxk_rope_frequency(rope, pair) / (2 * 3.14159265358979323846);
    turn -= floor(turn);
    fprintf(text, "0x%llxUL, ", turn < 1 ? (unsigned long long)(turn * 0x1p64) : 0);
  }
  fputs("0};\n#define TURN(i) turns_of_pairs[i]\n", text);
}

void ocl_sinusoid_define(FILE *text, const nxk_device *device, const nxk_operator *operator) {
  (void)device;
  const nxk_rope rope = {.rotary_dims = ocl_last_dim(&operator->args[0]), .theta = 10000};
  say_turns(text, &rope, rope.rotary_dims / 2);
}

/* The input of positions; behind it may be frequencies. */
int ocl_positions_of(const nxk_operator *operator) {
  switch (operator->op) {
  case NX_OP_merge_qkv: return 3;
  case NX_OP_split_latent:
  case NX_OP_merge_latent: return 2;
  default: return 1;
  }
}

void ocl_heads_define(FILE *text, const nxk_device *device, const nxk_operator *operator) {
  (void)device;
  int positions = ocl_positions_of(operator);
  fprintf(text, "#define POSITIONS X%d\n#define N_POSITIONS XN(%d)\n", positions, positions);
  if ((int)operator->n_in > positions + 1) {
    fprintf(text, "#define TURN(i) turn_of(((global const ulong *)(buffer%d + call.at[%d]))[i])\n",
            positions + 1, positions + 1);
    return;
  }
  uint32_t first = nx_op_find_attr(nx_op_find(operator->op), "rotary_dims", strlen("rotary_dims"));
  const nxk_rope rope = nxk_rope_of(&operator->attrs[first]);
  say_turns(text, &rope, rope.rotary_dims / 2);
}

/* ---- attention ---- */

/* What the inputs of a form of attention are, in the words of attention.cl; `extra` stands behind the
 * samples. */
typedef struct attention_form {
  bool backward;
  const char *extra;
} attention_form;

static attention_form form_of(nx_op op) {
  switch (op) {
  case NX_OP_attention_grad: return (attention_form){true, NULL};
  case NX_OP_attention_relative: return (attention_form){false, "TABLE"};
  case NX_OP_attention_relative_grad: return (attention_form){true, "TABLE"};
  case NX_OP_attention_sparse: return (attention_form){false, "BLOCKS"};
  case NX_OP_attention_sparse_grad: return (attention_form){true, "BLOCKS"};
  default: return (attention_form){false, NULL};
  }
}

bool ocl_is_backward(const nxk_operator *operator) {
  return form_of(operator->op).backward;
}

/* From which distance on the next bucket of a table follows, behind those of one distance each. */
static void say_buckets(FILE *text, const nxk_operator *operator, uint32_t table) {
  const nxk_tensor *tensor = &operator->args[table];
  int64_t n = tensor->dims[tensor->n_dims - 2], exact = n / 2;
  int64_t most = operator->attrs[NX_attention_relative_max_distance].integer;
  fprintf(text, "#define EXACT %lld\nconstant int bucket_begins[] = {", (long long)exact);
  for (int64_t bucket = exact + 1; bucket < n; bucket++) {
    int64_t low = exact, high = INT32_MAX;
    while (low < high) {
      int64_t middle = (low + high) / 2;
      if (nxk_relative_bucket(middle, n, most) < bucket) low = middle + 1;
      else high = middle;
    }
    fprintf(text, "%lld, ", (long long)low);
  }
  fputs("INT_MAX};\n", text);
}

/* Blocks as long as half of the local memory takes. */
void ocl_attention_define(FILE *text, const nxk_device *device, const nxk_operator *operator) {
  static const char *const names[] = {"DO",     "Q", "K",     "V",         "O",    "LSE",
                                      "SAMPLE", "",  "PLACE", "KEY_PLACE", "START"};
  attention_form form = form_of(operator->op);
  uint32_t first = form.backward, n = 0;
  for (uint32_t i = 0; i < sizeof names / sizeof *names && n < operator->n_in; i++) {
    bool extra = names[i][0] == '\0', only_backward = i == 0 || i == 4 || i == 5;
    if ((extra && !form.extra) || (only_backward && !form.backward)) continue;
    if (extra) fprintf(text, "#define EXTRA %u\n", n);
    if (extra && strcmp(form.extra, "TABLE") == 0) say_buckets(text, operator, n);
    const char *name = extra ? form.extra : names[i];
    fprintf(text, "#define %s X%u\n#define %s_WIDE X%u_WIDE\n", name, n, name, n);
    n++;
  }
  uint64_t d = (uint64_t)operator->args[first].dims[3], e = (uint64_t)operator->args[first + 2].dims[3];
  uint64_t width = device->width, block = 32, features = width * (ocl_ceil(d, width) + ocl_ceil(e, width));
  if (form.backward) features *= 2; /* as rows, and turned */
  while (block > width && block * features * sizeof(float) > device->local_bytes / 2) block /= 2;
  fprintf(text, "#define HEAD_D %llu\n#define HEAD_E %llu\n#define BLOCK %llu\n", (unsigned long long)d,
          (unsigned long long)e, (unsigned long long)block);
}
