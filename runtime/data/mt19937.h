/* SPDX-License-Identifier: Apache-2.0 */
/* The Mersenne Twister with the shuffle of numpy.random.RandomState, by which Megatron's datasets are
 * ordered, and the permutation of PyTorch's generator for the CPU, by which samplers are: bit for bit. */
#ifndef NXR_MT19937_H
#define NXR_MT19937_H

#include <stdint.h>

enum { NXR_MT19937_WORDS = 624 };

typedef struct nxr_mt19937 {
  uint32_t words[NXR_MT19937_WORDS];
  uint32_t at;
} nxr_mt19937;

void nxr_mt19937_seed(nxr_mt19937 *random, uint32_t seed);
/* RandomState.shuffle. */
void nxr_mt19937_shuffle(nxr_mt19937 *random, uint64_t *items, uint64_t n);

/* items[i] becomes the i-th of torch.randperm(n). */
void nxr_mt19937_permute(nxr_mt19937 *random, uint64_t *items, uint64_t n);

#endif
