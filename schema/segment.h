/* SPDX-License-Identifier: Apache-2.0 */
/* What the operator `segment` says at a step; its attributes are these members. r is the share of the span
 * that is done: (step - origin) / span, where steps go by `every` at a time. Both ends of a span are met
 * exactly. */
#ifndef NX_SEGMENT_H
#define NX_SEGMENT_H

#include <math.h>
#include <stdint.h>

enum {
  NX_SEGMENT_CONSTANT,
  NX_SEGMENT_LINEAR,
  NX_SEGMENT_COSINE,
  NX_SEGMENT_EXPONENTIAL,
  NX_SEGMENT_POLYNOMIAL,
  NX_SEGMENT_ROOT,
  NX_SEGMENT_INVERSE,
  NX_SEGMENT_LOGARITHM,
  NX_SEGMENT_TRIANGLE
};

typedef struct nx_segment {
  int64_t kind, first, every;
  double origin, span, from, to, exponent, towards, least;
} nx_segment;

/* From `from` up to `to` in the share `exponent` of each span, and down again; each time to `towards` of the
 * height before. */
static inline double nx_segment_triangle(const nx_segment *s, double r) {
  double cycle = floor(r), x = r - cycle, up = s->exponent;
  double height = x <= up ? x / up : (1 - x) / (1 - up);
  return s->from + (s->to - s->from) * height * pow(s->towards, cycle);
}

static inline double nx_segment_shape(const nx_segment *s, double done, double span) {
  double r = done / span, left = fmax(0, (span - done) / span);
  switch (s->kind) {
  case NX_SEGMENT_CONSTANT: return s->from;
  case NX_SEGMENT_LINEAR:
    return s->from < s->to ? s->from + (s->to - s->from) * done / span
                           : s->to + (s->from - s->to) * ((span - done) / span);
  case NX_SEGMENT_COSINE: return s->to + (s->from - s->to) * 0.5 * (1 + cos(3.14159265358979323846 * r));
  case NX_SEGMENT_EXPONENTIAL:
    return s->towards + (s->from - s->towards) * pow((s->to - s->towards) / (s->from - s->towards), r);
  case NX_SEGMENT_POLYNOMIAL: return s->to + (s->from - s->to) * pow(left, s->exponent);
  case NX_SEGMENT_ROOT: return s->from + (s->to - s->from) * pow(r, s->exponent);
  case NX_SEGMENT_LOGARITHM: return s->from + (s->to - s->from) * (log(fmax(done, 1)) / log(span));
  case NX_SEGMENT_TRIANGLE: return nx_segment_triangle(s, r);
  default: return s->from * pow(r, -s->exponent);
  }
}

static inline double nx_segment_at(const nx_segment *s, int64_t step) {
  double done = (double)step - s->origin;
  if (s->every > 1) done = floor(done / (double)s->every) * (double)s->every;
  return fmax(s->least, nx_segment_shape(s, done, s->span));
}

#endif
