/* SPDX-License-Identifier: Apache-2.0 */
/* The part of oneDNN's C API that differs between 2.x and 3.x, behind the few calls that a matrix product
 * needs.
 *
 * 2.x passes memory descriptors as structs and makes a primitive descriptor from an operation descriptor; 3.x
 * has opaque descriptors and one call. `dnnx_md` is owned by whoever made it; what a primitive descriptor
 * answers
 * (`dnnx_const_md`) is owned by the primitive descriptor. Nothing else in the project knows oneDNN's
 * version. */
#ifndef CPU_DNNL_COMPAT_H
#define CPU_DNNL_COMPAT_H

#include <dnnl.h>
#include <stddef.h>
#include <string.h>

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t dnnx_md;
typedef const_dnnl_memory_desc_t dnnx_const_md;
#else
typedef dnnl_memory_desc_t dnnx_md;
typedef const dnnl_memory_desc_t *dnnx_const_md;
#endif

/* A matrix, or a stack of them; NULL strides let oneDNN choose the layout (packed). */
static inline dnnl_status_t dnnx_md_make(dnnx_md *md, int n_dims, const dnnl_dims_t dims,
                                         dnnl_data_type_t type, const dnnl_dims_t strides) {
#if DNNL_VERSION_MAJOR >= 3
  return strides ? dnnl_memory_desc_create_with_strides(md, n_dims, dims, type, strides)
                 : dnnl_memory_desc_create_with_tag(md, n_dims, dims, type, dnnl_format_tag_any);
#else
  return strides ? dnnl_memory_desc_init_by_strides(md, n_dims, dims, type, strides)
                 : dnnl_memory_desc_init_by_tag(md, n_dims, dims, type, dnnl_format_tag_any);
#endif
}

static inline void dnnx_md_free(dnnx_md *md) {
#if DNNL_VERSION_MAJOR >= 3
  dnnl_memory_desc_destroy(*md);
#endif
  memset(md, 0, sizeof *md);
}

/* `bias` may be NULL. */
static inline dnnl_status_t dnnx_matmul(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, const dnnx_md *a,
                                        const dnnx_md *b, const dnnx_md *bias, const dnnx_md *c,
                                        const_dnnl_primitive_attr_t attr) {
#if DNNL_VERSION_MAJOR >= 3
  return dnnl_matmul_primitive_desc_create(pd, engine, *a, *b, bias ? *bias : NULL, *c, attr);
#else
  dnnl_matmul_desc_t desc;
  dnnl_status_t status = dnnl_matmul_desc_init(&desc, a, b, bias, c);
  return status == dnnl_success ? dnnl_primitive_desc_create(pd, &desc, attr, engine, NULL) : status;
#endif
}

static inline dnnl_status_t dnnx_append_sum(dnnl_post_ops_t post_ops) {
#if DNNL_VERSION_MAJOR >= 3
  return dnnl_post_ops_append_sum(post_ops, 1.0F, 0, dnnl_data_type_undef);
#else
  return dnnl_post_ops_append_sum(post_ops, 1.0F);
#endif
}

static inline dnnx_const_md dnnx_md_const(const dnnx_md *md) {
#if DNNL_VERSION_MAJOR >= 3
  return *md;
#else
  return md;
#endif
}

static inline dnnl_status_t dnnx_reorder(dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnx_const_md from,
                                         dnnx_const_md to) {
  return dnnl_reorder_primitive_desc_create(pd, from, engine, to, engine, NULL);
}

#endif
