/* SPDX-License-Identifier: Apache-2.0 */
/* What functions of the expression language are made of. One more is a function and its row, in the file of
 * what it is about; each table ends with a row without a name. */
#ifndef NXC_EXPRESSION_FUNCTION_H
#define NXC_EXPRESSION_FUNCTION_H

#include "compiler/expression/expression_tree.h"

typedef const nxc_value *const *arguments;
typedef nxc_evaluation evaluation;

enum { MANY = 64 }; /* arguments */

extern const nxc_expression_function nxc_number_functions[], nxc_text_functions[], nxc_list_functions[];

/* One list argument stands for its items. */
arguments nxc_spread(evaluation *e, arguments args, size_t *n_args);

#endif
