/* SPDX-License-Identifier: Apache-2.0 */
/* Angles as parts of a whole turn in 2^-64: a position times what it turns by loses nothing, whatever the
 * position, and no fp64 is asked for. */

/* The nearest quarter is taken off, so the angle is small. */
static float2 cosine_sine(ulong turn) {
  ulong quarter = (turn + (1UL << 61)) >> 62;
  float angle = (float)(long)(turn - (quarter << 62)) * 3.40612158e-19f; /* 2 pi / 2^64 */
  float c = cos(angle), s = sin(angle);
  float2 even = quarter == 0 ? (float2)(c, s) : (float2)(-c, -s);
  float2 odd = quarter == 1 ? (float2)(-s, c) : (float2)(s, -c);
  return quarter % 2 ? odd : even;
}

/* A frequency, the bits of an f64, as such a part: times 1 / (2 pi). */
static ulong turn_of(ulong bits) {
  const ulong inverse = 0x28BE60DB9391054AUL;
  int exponent = (int)(bits >> 52 & 0x7FF) - 1023;
  ulong number = (bits & 0xFFFFFFFFFFFFFUL) << 11 | 1UL << 63, upper = mul_hi(number, inverse), turn = 0;
  if (exponent < 0 && exponent >= -64) turn = upper >> (-1 - exponent);
  if (exponent >= 0 && exponent < 63) turn = upper << (exponent + 1) | number * inverse >> (63 - exponent);
  return bits >> 63 ? -turn : turn;
}
