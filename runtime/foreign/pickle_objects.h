/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of a pickle as they are made: memory in blocks that go together. */
#ifndef NXR_PICKLE_OBJECTS_H
#define NXR_PICKLE_OBJECTS_H

#include "runtime/foreign/pickle.h"

/* NULL without memory, all three. */
nxr_object *nxr_object_new(nxr_pickle *pickle, nxr_object_kind kind);
char *nxr_object_text(nxr_pickle *pickle, const char *first, size_t n_first, const char *second,
                      size_t n_second);
bool nxr_object_append(nxr_pickle *pickle, nxr_object *list, nxr_object *item);

#endif
