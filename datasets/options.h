/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of a command: options by a table, and operands. */
#ifndef NXD_OPTIONS_H
#define NXD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STATUS_DONE = 0, STATUS_DAMAGED = 1, STATUS_USAGE = 2 };

typedef enum nxd_option_kind {
  NXD_FLAG,   /* bool */
  NXD_TEXT,   /* const char *, NULL until it is given */
  NXD_TEXTS,  /* nxd_texts: may be given several times */
  NXD_NUMBER, /* uint64_t */
  NXD_COUNT,  /* uint32_t */
  NXD_CHOICE  /* int: which of the choices */
} nxd_option_kind;

typedef struct nxd_texts {
  const char **items; /* to be freed; NULL: it was not given. NULL stands behind the last */
  size_t n;
} nxd_texts;

typedef struct nxd_option {
  const char *name; /* as it is given: "--force" */
  nxd_option_kind kind;
  void *value;
  const char *wants; /* what stands behind it: "a PREFIX"; of a choice the choices: "stop|skip" */
} nxd_option;

/* Moves the operands to the front of `arguments`; *n becomes their number. False after a message. */
bool nxd_options_read(int *n, char **arguments, const nxd_option *options, size_t n_options);
/* Says what is wrong with the command line; returns STATUS_USAGE. */
int nxd_usage(const char *what, const char *which);

#endif
