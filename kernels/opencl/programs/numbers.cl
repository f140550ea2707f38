/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of an update rule, and what they, or their powers, leave of 1. Where fp32 is all that there is,
 * betas near 1 would leave too few digits of that: these are made of both parts of the attribute
 * (prelude.cl). */
#ifdef NO_FP64
#define REAL_ATTR(number) (real_attr)((float)(number), 0)

static float rest_of(real_attr number) {
  return 1 - number.x - number.y;
}

/* A product of two, and what it rounds off. */
static float2 times(float2 a, float2 b) {
  float product = a.x * b.x, rest = fma(a.x, b.x, -product) + (a.x * b.y + a.y * b.x), sum = product + rest;
  return (float2)(sum, rest - (sum - product));
}

static float left_of(real_attr base, long n) {
  float2 power = (float2)(1, 0);
  for (; n > 0; n /= 2, base = times(base, base))
    if (n % 2) power = times(power, base);
  return rest_of(power);
}
#else
#define REAL_ATTR(number) (double)(number)

static double rest_of(double number) {
  return 1 - number;
}

static double left_of(double base, long n) {
  return 1 - pow(base, (double)n);
}
#endif
#define REST(name) rest_of(REAL_##name)
#define LEFT(name, n) left_of(REAL_##name, (long)(n))
