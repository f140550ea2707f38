/* SPDX-License-Identifier: Apache-2.0 */
/* How GPT-NeoX's files are read: flow mappings with quoted keys, several files that share no key.
 *
 * The real loader turns every - of a top-level key into _ and then lays one file beside the other. Where it
 * lets the later file win without a word (a key written with dashes in both) or misnames the place, there is
 * a finding here that names both places. Three values are completed before options are judged: the number of
 * GPUs that a hostfile gives, the list of layers that attention_config stands for, and the pattern of
 * pipe_partition_method. */
#ifndef NXC_CONFIG_FRONT_NEOX_H
#define NXC_CONFIG_FRONT_NEOX_H

#include "compiler/config/binding/dialect.h"
#include "compiler/config/front/front.h"

extern const char *const nxc_neox_versions[];

bool nxc_neox_claims(const nxc_source *text);
nxc_document *nxc_neox_read(const nxc_front_texts *texts);
/* Completes a binding whose options have been read. */
void nxc_neox_prepare(nxc_binding *binding);

/* The parts of nxc_neox_prepare: the GPUs of hostfile, include and exclude as global_num_gpus; and
 * attention_config as one word per layer, pipe_partition_method as a pattern that compiles. */
void nxc_neox_count_gpus(nxc_binding *binding);
void nxc_neox_expand_attention(nxc_binding *binding);
void nxc_neox_check_partition(nxc_binding *binding);
/* Where whole subjects are left to other files: says so once, and judges the rest as a part. */
void nxc_neox_judge_as_part(nxc_binding *binding);

#endif
