/* SPDX-License-Identifier: Apache-2.0 */
/* What every program begins with, behind the text that program.c makes for an operator:
 *
 *     OPERANDS          the parameters of each kernel of the operator
 *     X0(i), X1(i)...   element i of an input      Y0(i)...  of an output, as it stands
 *     SET_Y0(i, value)  rounds once to the type of the output
 *     X0_RUN(i, end), SET_Y0_RUN(i, end, value)   RUN elements from i on, those from `end` on are 0 and stay
 *     call.dims         of inputs, then outputs, from the right: [3] is the last one
 *     A_name            an attribute
 *     N_IN, N_OUT       operands that are there
 *     LOCAL             work-items of a group, a power of two; TILE_SIDE is its root
 *     WIDTH, ITEM_ROWS  numbers of a vector of wide.cl; rows of a product that an item has
 *     scratch           memory of the operator, shared by its kernels
 *
 * All arithmetic is fp32 (fp64 where an operand is and the device has it), and sums have one order: rows by
 * a tree over the items of a group, each of which takes every LOCAL-th element, columns by ascending rows. So
 * a device gives the same bits on every run. */
#ifndef NO_FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

typedef uchar uint8_t;
typedef ushort uint16_t;
typedef int int32_t;
typedef uint uint32_t;
typedef long int64_t;
typedef ulong uint64_t;
#define UINT32_C(x) x##U
#define UINT64_C(x) x##UL
#define INT64_C(x) x##L
#define INT64_MAX LONG_MAX
#ifndef NULL
#define NULL 0
#endif

/* The headers that are shared with C copy bits so. */
static void __attribute__((overloadable)) copy_bits(uint *to, const float *from) {
  *to = as_uint(*from);
}
static void __attribute__((overloadable)) copy_bits(float *to, const uint *from) {
  *to = as_float(*from);
}
#ifndef NO_FP64
static void __attribute__((overloadable)) copy_bits(ulong *to, const double *from) {
  *to = as_ulong(*from);
}
static void __attribute__((overloadable)) copy_bits(double *to, const ulong *from) {
  *to = as_double(*from);
}
#endif
#define memcpy(to, from, n_bytes) copy_bits(to, from)

/* Without fp64 what is double elsewhere is fp32. An operand in f64 is converted by its bits, and an attribute
 * comes in two parts, of which the second has what the first rounded off. */
#ifdef NO_FP64
#define double float
typedef float2 real_attr;
#define REAL_OF(attr) (attr).x

static float f64_to_float(ulong bits) {
  int exponent = (int)(bits >> 52 & 0x7FF) - 1023;
  uint sign = (uint)(bits >> 32) & 0x80000000U;
  ulong fraction = bits & 0xFFFFFFFFFFFFFUL, rest = fraction & 0x1FFFFFFFUL;
  if (exponent == 1024 && fraction) return NAN;
  if (exponent > 127) return as_float(sign | 0x7F800000U);
  if (exponent < -126) return as_float(sign);
  uint near = (uint)(exponent + 127) << 23 | (uint)(fraction >> 29);
  return as_float(sign | (near + (rest + (near & 1) > 0x10000000UL)));
}
static ulong f64_of_float(float value) {
  uint bits = as_uint(value), exponent = bits >> 23 & 0xFF;
  ulong sign = (ulong)(bits & 0x80000000U) << 32, fraction = (ulong)(bits & 0x7FFFFFU) << 29;
  if (exponent == 0) return sign;
  return sign | (exponent == 0xFF ? 0x7FFUL : (ulong)exponent + 896) << 52 | fraction;
}
/* As nx_philox_threshold, to the bit. */
static uint threshold_of(real_attr p) {
  float scaled = p.x * 0x1p32f, rest = p.y * 0x1p32f;
  return (uint)((long)floor(scaled) + (long)floor(scaled - floor(scaled) + rest));
}
#define THRESHOLD(name) threshold_of(REAL_##name)
#else
typedef double real_attr;
#define REAL_OF(attr) (attr)
#define THRESHOLD(name) nx_philox_threshold(REAL_##name)
#endif

#include "schema/round_odd.h"
#include "schema/bf16.h"

typedef struct call_values {
  ulong seed;
  long stochastic;
  long round; /* of kernels that are repeated; behind them, how often */
  long dims[N_ARGS][4];
  ulong at[N_ARGS];
  long ints[N_ATTRS];
  real_attr reals[N_ATTRS];
} call_values;

#define LOAD_f32(p, i) (((global const float *)(p))[i])
#ifdef NO_FP64
#define LOAD_f64(p, i) f64_to_float(((global const ulong *)(p))[i])
#define STORE_f64(p, i, v) (((global ulong *)(p))[i] = f64_of_float(v))
#else
#define LOAD_f64(p, i) (((global const double *)(p))[i])
#define STORE_f64(p, i, v) (((global double *)(p))[i] = (v))
#endif
#define LOAD_bf16(p, i) nx_bf16_to_float(((global const ushort *)(p))[i])
#define LOAD_f16(p, i) vload_half(i, (global const half *)(p))
#define LOAD_i32(p, i) (((global const int *)(p))[i])
#define LOAD_i64(p, i) (((global const long *)(p))[i])
#define LOAD_u8(p, i) ((p)[i])
#define STORE_f32(p, i, v) (((global float *)(p))[i] = (float)(v))
#define STORE_bf16(p, i, v) (((global ushort *)(p))[i] = nx_bf16_from_float(v))
#define STORE_f16(p, i, v) vstore_half_rte((float)(v), i, (global half *)(p))
#define STORE_i32(p, i, v) (((global int *)(p))[i] = (int)(v))
#define STORE_i64(p, i, v) (((global long *)(p))[i] = (long)(v))
#define STORE_u8(p, i, v) ((p)[i] = (uchar)(v))

/* Runs of elements that devices read and write at once, in the types of activations. */
#define RUN 4
#define RUNS_OF(type, whole, set_whole) \
  static float4 load_run_##type(global const uchar *p, long i, long end) { \
    float part[RUN] = {0, 0, 0, 0}; \
    if (i + RUN <= end) return whole; \
    for (int k = 0; k < end - i; k++) part[k] = LOAD_##type(p, i + k); \
    return vload4(0, part); \
  } \
  static void store_run_##type(global uchar *p, long i, long end, float4 v) { \
    float part[RUN]; \
    vstore4(v, 0, part); \
    if (i + RUN <= end) set_whole; \
    else for (int k = 0; k < end - i; k++) STORE_##type(p, i + k, part[k]); \
  }
/* Where four stand at a multiple of their bytes, they are one access. */
#define FOUR(type) \
  static type##4 __attribute__((overloadable)) four(global const type *p) { \
    return (size_t)p % sizeof(type##4) ? vload4(0, p) : *(global const type##4 *)p; \
  } \
  static void __attribute__((overloadable)) set_four(global type *p, type##4 x) { \
    if ((size_t)p % sizeof x) vstore4(x, 0, p); \
    else *(global type##4 *)p = x; \
  }
FOUR(float)
FOUR(ushort)
static float4 bf16_four(ushort4 x) {
  return (float4)(nx_bf16_to_float(x.x), nx_bf16_to_float(x.y), nx_bf16_to_float(x.z), nx_bf16_to_float(x.w));
}
static ushort4 four_bf16(float4 x) {
  return (ushort4)(nx_bf16_from_float(x.x), nx_bf16_from_float(x.y), nx_bf16_from_float(x.z),
                   nx_bf16_from_float(x.w));
}
RUNS_OF(f32, four((global const float *)p + i), set_four((global float *)p + i, v))
RUNS_OF(f16, vload_half4(0, (global const half *)p + i), vstore_half4_rte(v, 0, (global half *)p + i))
RUNS_OF(bf16, bf16_four(four((global const ushort *)p + i)), set_four((global ushort *)p + i, four_bf16(v)))

#define XDIM(k, d) call.dims[k][d]
#define YDIM(k, d) call.dims[N_IN + (k)][d]
#define XN(k) (XDIM(k, 0) * XDIM(k, 1) * XDIM(k, 2) * XDIM(k, 3))
#define YN(k) (YDIM(k, 0) * YDIM(k, 1) * YDIM(k, 2) * YDIM(k, 3))

/* Of a group; all of its items call it. */
#define GROUP_SUM(type) \
  static type __attribute__((overloadable)) group_sum(type own, local type *room) { \
    uint item = get_local_id(0); \
    barrier(CLK_LOCAL_MEM_FENCE); \
    room[item] = own; \
    barrier(CLK_LOCAL_MEM_FENCE); \
    for (uint width = LOCAL / 2; width > 0; width /= 2) { \
      if (item < width) room[item] += room[item + width]; \
      barrier(CLK_LOCAL_MEM_FENCE); \
    } \
    return room[0]; \
  }
GROUP_SUM(float)
#ifndef NO_FP64
GROUP_SUM(double)
#endif

static float group_max(float own, local float *room) {
  uint item = get_local_id(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  room[item] = own;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint width = LOCAL / 2; width > 0; width /= 2) {
    if (item < width) room[item] = fmax(room[item], room[item + width]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  return room[0];
}
