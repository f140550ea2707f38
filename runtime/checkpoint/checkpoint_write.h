/* SPDX-License-Identifier: Apache-2.0 */
/* One file of logical tensors, written by all ranks at once: each puts its own spans where they belong.
 *
 * A rank needs no other for it, and may do it in a thread of its own, from a copy of what it writes. The file
 * is whole when all ranks have done their parts; its checksum is the sum of theirs. */
#ifndef NXR_CHECKPOINT_WRITE_H
#define NXR_CHECKPOINT_WRITE_H

#include "runtime/checkpoint/checkpoint_sum.h"
#include "runtime/checkpoint/checkpoint_tensors.h"

/* What a rank writes of a file. */
typedef struct nxr_part {
  const nxr_tensors *tensors;
  nxr_content content;
  uint32_t shard; /* nxr_checkpoint_file's */
  const char *path;
  bool first;           /* this rank gives the file its size and what stands before the tensors */
  const uint8_t *taken; /* what nxr_part_take has copied; NULL: it is read where it stands */
  void (*sign)(void *context); /* called before each write: it goes on */
  void *context;
} nxr_part;

/* Writes and syncs it, and adds to the file's checksum. A file that is there already must be empty, or
 * written by the other ranks. After a failure what there is of it is the caller's to remove. */
bool nxr_part_write(const nxr_part *part, nxr_sum *sum, nxr_fault *fault);
/* Copies what this rank writes of a file; returns how many bytes that are. With NULL it only counts them. */
uint64_t nxr_part_take(const nxr_tensors *tensors, nxr_content content, uint32_t shard, uint8_t *to);

/* Whether it is true on all ranks; meets them. */
bool nxr_world_all(nxr_world *world, bool own);

#endif
