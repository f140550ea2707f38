/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the programs that a script starts is meant, and what it is. */
#ifndef NXC_CONFIG_LAUNCHED_H
#define NXC_CONFIG_LAUNCHED_H

#include "compiler/config/front/shell/script.h"
#include "compiler/settings/programs.h"

typedef struct nxc_launched {
  nxc_arena *arena;
  const nxc_launch *launch;
  const nxc_program_row *program; /* NULL: the training of a decoder, or none that is known */
  const char *name;               /* "pretrain_gpt.py", "deepy.py train.py"; NULL: it starts none */
  bool trains; /* it has options of a training, or may have them */
  bool own;    /* no program of the system's, so that it may have options of its own */
} nxc_launched;

/* The n-th launch that is worth judging, counted from 1; 0: the first. The script keeps those alone. */
nxc_launched nxc_launched_choose(nxc_script *script, size_t n);
/* Whether a word of it is an option of a training. */
bool nxc_launched_has_option(const nxc_launched *launched);
/* Whether a text has an option that every training has, and other programs do not. */
bool nxc_names_training_option(const char *text, size_t n_bytes);

#endif
