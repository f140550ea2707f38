/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of WIDTH numbers: 4, or as many as a processor multiplies at once. X0_WIDE(i, end) of an input:
 * those from i on, 0 from `end` on. */
#define JOINED(a, b) a##b
#define JOIN(a, b) JOINED(a, b)
typedef JOIN(float, WIDTH) wide;
typedef JOIN(int, WIDTH) wide_int;
typedef JOIN(uint, WIDTH) wide_uint;
#define LOAD_WIDE(p) JOIN(vload, WIDTH)(0, p)
#define STORE_WIDE(x, p) JOIN(vstore, WIDTH)(x, 0, p)
/* Up to the next whole number of them. */
#define PADDED(n) (((n) + WIDTH - 1) / WIDTH * WIDTH)

#if WIDTH == RUN
#define load_wide_f32 load_run_f32
#define load_wide_f16 load_run_f16
#define load_wide_bf16 load_run_bf16
#else
/* As nx_bf16_to_float: what would be denormal is 0. */
static wide bf16_wide(global const ushort *p) {
  wide_uint bits = JOIN(convert_uint, WIDTH)(LOAD_WIDE(p)) << 16;
  wide_int normal = (bits & 0x7F800000U) != 0;
  return JOIN(as_float, WIDTH)(normal ? bits : bits & 0x80000000U);
}

#define WIDE_OF(type, whole) \
  static wide load_wide_##type(global const uchar *p, long i, long end) { \
    float part[WIDTH]; \
    if (i + WIDTH <= end) return whole; \
    for (int k = 0; k < WIDTH; k++) part[k] = k < end - i ? LOAD_##type(p, i + k) : 0; \
    return LOAD_WIDE(part); \
  }
WIDE_OF(f32, LOAD_WIDE((global const float *)p + i))
WIDE_OF(f16, JOIN(vload_half, WIDTH)(0, (global const half *)p + i))
WIDE_OF(bf16, bf16_wide((global const ushort *)p + i))
#endif
