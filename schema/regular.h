/* SPDX-License-Identifier: Apache-2.0 */
/* Files that a plan, a folder or a configuration names, for reading: of a pipe nothing is awaited. */
#ifndef NX_REGULAR_H
#define NX_REGULAR_H

#include <jansson.h>
#include <stdio.h>

/* As fopen; NULL with errno, EINVAL of what is no file. */
FILE *nx_regular_open(const char *path);
/* NULL: it cannot be read, or is no JSON; `error`, unless it is NULL, says why. */
json_t *nx_json_read(const char *path, size_t flags, json_error_t *error);

#endif
