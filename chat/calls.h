/* SPDX-License-Identifier: Apache-2.0 */
/* Filters, tests, methods and functions: rows of tables that say what they take. */
#ifndef NXJ_CALLS_H
#define NXJ_CALLS_H

#include "chat/node.h"

typedef struct nxj_run nxj_run; /* a rendering (run.h) */

enum { NXJ_MOST_PARAMETERS = 5, NXJ_MOST_ARGUMENTS = 24 };

typedef struct nxj_arguments {
  nxj_value given[NXJ_MOST_PARAMETERS]; /* in order of the row's parameters; absent where not given */
  /* as they were written: */
  nxj_value values[NXJ_MOST_ARGUMENTS];
  const char *names[NXJ_MOST_ARGUMENTS]; /* NULL: by its position */
  size_t n;
} nxj_arguments;

struct nxj_row {
  const char *name;
  const char
      *parameters; /* names with spaces between, those that must be given with ! behind; NULL: takes any */
  nxj_value (*call)(nxj_run *run, nxj_value self, const nxj_arguments *arguments);
};

struct nxj_callable {
  const nxj_row *row; /* or NULL: a macro's */
  nxj_value self;
  const nxj_node *macro;
  struct nxj_frame *frame; /* where the macro stands */
};

/* NULL: not covered. */
const nxj_row *nxj_find_filter(const char *name);
const nxj_row *nxj_find_test(const char *name);
const nxj_row *nxj_find_function(const char *name);
/* Of values of a kind; of any kind where it is NXJ_ABSENT. */
const nxj_row *nxj_find_method(nxj_kind kind, const char *name);

/* Tables end with a row without a name. */
extern const nxj_row nxj_filters[], nxj_selecting_filters[], nxj_tests[], nxj_functions[];
extern const nxj_row nxj_text_methods[], nxj_list_methods[], nxj_dict_methods[], nxj_loop_methods[];

nxj_value nxj_call_row(nxj_run *run, const nxj_row *row, nxj_value self, nxj_arguments *arguments);
_Noreturn void nxj_not_covered(nxj_pool *pool, const char *what, const char *name);
bool nxj_is_given(nxj_value value); /* neither absent nor none */

#endif
