/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers that depend on nothing but what they are for: Philox4x32-10 (Salmon et al., SC'11).
 *
 * key = (seed, tensor id); counter = where in the logical tensor. So every mesh draws the same numbers, and a
 * mask is drawn again in the backward pass instead of being stored. One call gives four 32-bit words; a
 * dropout mask uses word (feature mod 4) of counter (feature / 4, token, sample), an attention mask word (key
 * mod 4) of counter (key / 4, query, sample, head). Integer arithmetic only: the same bits on every
 * backend. */
#ifndef NX_PHILOX_H
#define NX_PHILOX_H

#include <stdint.h>

typedef struct nx_philox {
  uint32_t word[4];
} nx_philox;

static inline nx_philox nx_philox_draw(uint64_t seed, uint32_t tensor_id, uint32_t c0, uint32_t c1,
                                       uint32_t c2, uint32_t c3) {
  uint32_t k0 = (uint32_t)seed ^ (tensor_id * UINT32_C(0x9E3779B1));
  uint32_t k1 = (uint32_t)(seed >> 32) ^ tensor_id;
  for (int round = 0; round < 10; round++) {
    uint64_t p0 = (uint64_t)UINT32_C(0xD2511F53) * c0, p1 = (uint64_t)UINT32_C(0xCD9E8D57) * c2;
    uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c1 = (uint32_t)p1, c3 = (uint32_t)p0, c0 = n0, c2 = n2;
    k0 += UINT32_C(0x9E3779B9), k1 += UINT32_C(0xBB67AE85);
  }
  return (nx_philox){{c0, c1, c2, c3}};
}

/* The words of four neighbouring features of a dropout mask; feature4 = feature / 4. */
static inline nx_philox nx_philox_dropout(uint64_t seed, uint32_t tensor_id, uint64_t sample, uint32_t token,
                                          uint32_t feature4) {
  return nx_philox_draw(seed, tensor_id, feature4, token, (uint32_t)sample, (uint32_t)(sample >> 32));
}

/* The words of four neighbouring keys of an attention mask; key4 = key / 4. Heads are below 2^16; of a
 * sample's number the upper half shares a word with them. */
static inline nx_philox nx_philox_attention(uint64_t seed, uint32_t tensor_id, uint64_t sample, uint32_t head,
                                            uint32_t query, uint32_t key4) {
  return nx_philox_draw(seed, tensor_id, key4, query, (uint32_t)sample,
                        head ^ (uint32_t)(sample >> 32) << 16);
}

/* Whether a word keeps its element when elements are dropped with probability p. */
static inline uint32_t nx_philox_threshold(double p) {
  return (uint32_t)(p * 4294967296.0);
}

static inline int nx_philox_keeps(uint32_t word, uint32_t threshold) {
  return word >= threshold;
}

#endif
