/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN's primitives: made once per form, scratchpads in our memory. */
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/dnnl_compat.h"
#include "kernels/cpu/product.h"
#include "schema/plan.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { PRIMITIVE_BYTES = 160 * 1024 /* measured: what one generated product holds in oneDNN's memory */ };

/* One operand that oneDNN wants in its own layout. */
typedef struct gemm_pack {
  dnnl_primitive_t reorder; /* NULL: the operand is used as it is */
  dnnl_memory_t from, to;
  uint64_t n_bytes; /* of the packed operand */
} gemm_pack;

struct cpu_gemm {
  cpu_gemm *next;
  cpu_gemm_form form;
  bool own; /* product.h's, and nothing of oneDNN's */
  dnnl_primitive_t primitive;
  dnnl_memory_t a, b, bias, c, scratchpad;
  gemm_pack pack_a, pack_b;
  uint64_t scratchpad_bytes;
};

bool cpu_dnnl_open(nxk_device *device, nxk_fault *fault) {
  /* Ignored where oneDNN has been used before in this process: then the machine's best is used. */
  if (device->target == NX_TARGET_CPU_AVX2) dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
  if (device->target == NX_TARGET_CPU_AVX512) dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_bf16);
  if (dnnl_engine_create(&device->engine, dnnl_cpu, 0) == dnnl_success &&
      dnnl_stream_create(&device->stream, device->engine, dnnl_stream_default_flags) == dnnl_success)
    return true;
  return cpu_fail(fault, "oneDNN has no CPU engine");
}

static void pack_free(gemm_pack *pack) {
  if (pack->reorder) dnnl_primitive_destroy(pack->reorder);
  if (pack->from) dnnl_memory_destroy(pack->from);
  if (pack->to) dnnl_memory_destroy(pack->to);
}

static void gemm_free(cpu_gemm *gemm) {
  dnnl_memory_t memories[] = {gemm->a, gemm->b, gemm->bias, gemm->c, gemm->scratchpad};
  for (size_t i = 0; i < sizeof memories / sizeof *memories; i++)
    if (memories[i]) dnnl_memory_destroy(memories[i]);
  if (gemm->primitive) dnnl_primitive_destroy(gemm->primitive);
  pack_free(&gemm->pack_a);
  pack_free(&gemm->pack_b);
}

void cpu_dnnl_close(nxk_device *device) {
  for (cpu_gemm *gemm = device->gemms; gemm; gemm = gemm->next) gemm_free(gemm);
  device->gemms = NULL;
  if (device->stream) dnnl_stream_destroy(device->stream);
  if (device->engine) dnnl_engine_destroy(device->engine);
}

static dnnl_data_type_t gemm_type(nx_dtype type) {
  return type == NX_f32 ? dnnl_f32 : type == NX_bf16 ? dnnl_bf16 : dnnl_data_type_undef;
}

static bool matrix_md(dnnx_md *md, int64_t rows, int64_t columns, int64_t stride, bool transposed,
                      nx_dtype type) {
  dnnl_dims_t dims = {rows, columns}, strides = {transposed ? 1 : stride, transposed ? stride : 1};
  return dnnx_md_make(md, 2, dims, gemm_type(type), stride ? strides : NULL) == dnnl_success;
}

static dnnl_primitive_attr_t gemm_attr(bool accumulate) {
  dnnl_primitive_attr_t attr = NULL;
  dnnl_post_ops_t post_ops = NULL;
  if (dnnl_primitive_attr_create(&attr) != dnnl_success) return NULL;
  bool made = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user) == dnnl_success;
  if (made && accumulate) {
    made = dnnl_post_ops_create(&post_ops) == dnnl_success && dnnx_append_sum(post_ops) == dnnl_success &&
           dnnl_primitive_attr_set_post_ops(attr, post_ops) == dnnl_success;
    dnnl_post_ops_destroy(post_ops);
  }
  if (made) return attr;
  dnnl_primitive_attr_destroy(attr);
  return NULL;
}

static bool memory_make(const nxk_device *device, dnnl_memory_t *memory, dnnx_const_md md) {
  return dnnl_memory_create(memory, md, device->engine, DNNL_MEMORY_NONE) == dnnl_success;
}

/* The reorder from the operand as it lies in memory to what the product wants. */
static bool pack_make(const nxk_device *device, gemm_pack *pack, const dnnx_md *plain, dnnx_const_md wanted) {
  dnnl_primitive_desc_t pd = NULL;
  if (dnnx_reorder(&pd, device->engine, dnnx_md_const(plain), wanted) != dnnl_success) return false;
  pack->n_bytes = cpu_align(dnnl_memory_desc_get_size(wanted));
  bool made = dnnl_primitive_create(&pack->reorder, pd) == dnnl_success &&
              memory_make(device, &pack->from, dnnx_md_const(plain)) &&
              memory_make(device, &pack->to, wanted);
  dnnl_primitive_desc_destroy(pd);
  return made;
}

/* Everything but oneDNN's reference loops, which are slower than ours. */
static bool implementation_is_fast(dnnl_primitive_desc_t pd) {
  const char *name = "";
  dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name);
  return strncmp(name, "ref", 3) != 0;
}

static bool gemm_finish(const nxk_device *device, cpu_gemm *gemm, dnnl_primitive_desc_t pd,
                        const dnnx_md *plain_a, const dnnx_md *plain_b) {
  dnnx_const_md a = dnnl_primitive_desc_query_md(pd, dnnl_query_src_md, 0);
  dnnx_const_md b = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
  dnnx_const_md c = dnnl_primitive_desc_query_md(pd, dnnl_query_dst_md, 0);
  dnnx_const_md scratchpad = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
  gemm->scratchpad_bytes = cpu_align(dnnl_memory_desc_get_size(scratchpad));
  return dnnl_primitive_create(&gemm->primitive, pd) == dnnl_success && memory_make(device, &gemm->a, a) &&
         memory_make(device, &gemm->b, b) && memory_make(device, &gemm->c, c) &&
         memory_make(device, &gemm->scratchpad, scratchpad) &&
         (!gemm->form.bias_type ||
          memory_make(device, &gemm->bias, dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 1))) &&
         (!gemm->form.pack_a || pack_make(device, &gemm->pack_a, plain_a, a)) &&
         (!gemm->form.pack_b || pack_make(device, &gemm->pack_b, plain_b, b));
}

static bool gemm_make(const nxk_device *device, cpu_gemm *gemm) {
  const cpu_gemm_form *form = &gemm->form;
  dnnx_md plain_a = {0}, plain_b = {0}, any_a = {0}, any_b = {0}, bias = {0}, c = {0};
  dnnl_primitive_desc_t pd = NULL;
  dnnl_primitive_attr_t attr = gemm_attr(form->accumulate);
  bool made = attr && matrix_md(&plain_a, form->m, form->k, form->a_stride, form->trans_a, form->type) &&
              matrix_md(&plain_b, form->k, form->n, form->b_stride, form->trans_b, form->type) &&
              matrix_md(&any_a, form->m, form->k, 0, false, form->type) &&
              matrix_md(&any_b, form->k, form->n, 0, false, form->type) &&
              matrix_md(&bias, 1, form->n, form->n, false, form->bias_type ? form->bias_type : NX_f32) &&
              matrix_md(&c, form->m, form->n, form->c_stride, false, form->c_type);
  made = made &&
         dnnx_matmul(&pd, device->engine, form->pack_a ? &any_a : &plain_a, form->pack_b ? &any_b : &plain_b,
                     form->bias_type ? &bias : NULL, &c, attr) == dnnl_success;
  made = made && implementation_is_fast(pd) && gemm_finish(device, gemm, pd, &plain_a, &plain_b);
  dnnx_md *descriptors[] = {&plain_a, &plain_b, &any_a, &any_b, &bias, &c};
  for (size_t i = 0; i < sizeof descriptors / sizeof *descriptors; i++) dnnx_md_free(descriptors[i]);
  if (pd) dnnl_primitive_desc_destroy(pd);
  if (attr) dnnl_primitive_attr_destroy(attr);
  return made;
}

static bool forms_equal(const cpu_gemm_form *x, const cpu_gemm_form *y) {
  return x->m == y->m && x->n == y->n && x->k == y->k && x->a_stride == y->a_stride &&
         x->b_stride == y->b_stride && x->c_stride == y->c_stride && x->trans_a == y->trans_a &&
         x->trans_b == y->trans_b && x->accumulate == y->accumulate && x->pack_a == y->pack_a &&
         x->pack_b == y->pack_b && x->type == y->type && x->c_type == y->c_type &&
         x->bias_type == y->bias_type;
}

cpu_gemm *cpu_gemm_find(nxk_device *device, const cpu_gemm_form *form, nxk_fault *fault) {
  for (cpu_gemm *gemm = device->gemms; gemm; gemm = gemm->next)
    if (forms_equal(&gemm->form, form)) return gemm;
  char what[96];
  snprintf(what, sizeof what, "matmul %lld x %lld x %lld", (long long)form->m, (long long)form->n,
           (long long)form->k);
  cpu_gemm *gemm = cpu_keep(device, sizeof *gemm, what, fault);
  if (!gemm) return NULL;
  gemm->form = *form;
  gemm->own = form->pack_b && cpu_product_takes(device, form);
  if (!gemm->own && !cpu_count(device, PRIMITIVE_BYTES, what, fault)) return NULL;
  if (!gemm->own && !gemm_make(device, gemm)) {
    gemm_free(gemm);
    return NULL;
  }
  gemm->next = device->gemms;
  device->gemms = gemm;
  return gemm;
}

uint64_t cpu_gemm_scratch_bytes(const nxk_device *device, const cpu_gemm *gemm) {
  if (gemm->own) return device->products->scratch_bytes(device, &gemm->form);
  return gemm->scratchpad_bytes + gemm->pack_a.n_bytes + gemm->pack_b.n_bytes;
}

/* What the product reads: the operand itself, or its packed copy at `room`. */
static const void *pack_run(const nxk_device *device, const gemm_pack *pack, const void *operand,
                            char *room) {
  if (!pack->reorder) return operand;
  dnnl_memory_set_data_handle(pack->from, (void *)operand);
  dnnl_memory_set_data_handle(pack->to, room);
  dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, pack->from}, {DNNL_ARG_TO, pack->to}};
  dnnl_status_t status = dnnl_primitive_execute(pack->reorder, device->stream, 2, args);
  assert(status == dnnl_success);
  return room;
}

void cpu_gemm_run(const nxk_device *device, const cpu_gemm *gemm, const void *a, const void *b,
                  const void *bias, void *c, char *scratch) {
  if (gemm->own) {
    device->products->run(device, &gemm->form, &(cpu_product_operands){a, b, bias, c}, scratch);
    return;
  }
  char *a_place = scratch + gemm->scratchpad_bytes, *b_place = a_place + gemm->pack_a.n_bytes;
  dnnl_memory_set_data_handle(gemm->a, (void *)pack_run(device, &gemm->pack_a, a, a_place));
  dnnl_memory_set_data_handle(gemm->b, (void *)pack_run(device, &gemm->pack_b, b, b_place));
  dnnl_memory_set_data_handle(gemm->c, c);
  dnnl_memory_set_data_handle(gemm->scratchpad, scratch);
  dnnl_exec_arg_t args[5] = {{DNNL_ARG_SRC, gemm->a},
                             {DNNL_ARG_WEIGHTS, gemm->b},
                             {DNNL_ARG_DST, gemm->c},
                             {DNNL_ARG_SCRATCHPAD, gemm->scratchpad}};
  if (gemm->bias) {
    dnnl_memory_set_data_handle(gemm->bias, (void *)bias);
    args[4] = (dnnl_exec_arg_t){DNNL_ARG_BIAS, gemm->bias};
  }
  dnnl_status_t status = dnnl_primitive_execute(gemm->primitive, device->stream, gemm->bias ? 5 : 4, args);
  assert(status == dnnl_success);
}
