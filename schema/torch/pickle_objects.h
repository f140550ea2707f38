/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of a pickle as they are made: memory in blocks that go together. */
#ifndef NX_PICKLE_OBJECTS_H
#define NX_PICKLE_OBJECTS_H

#include "schema/torch/pickle.h"

/* NULL without memory, all three. */
nx_object *nx_object_new(nx_pickle *pickle, nx_object_kind kind);
char *nx_object_text(nx_pickle *pickle, const char *first, size_t n_first, const char *second,
                     size_t n_second);
bool nx_object_append(nx_pickle *pickle, nx_object *list, nx_object *item);

#endif
