/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/backend.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const nxk_backend *const backends[] = {
    &nxk_ref,
#ifdef NX_WITH_CPU
    &nxk_cpu,
#endif
};

const nxk_backend *nxk_backend_find(const char *name) {
  for (size_t index = 0; index < sizeof backends / sizeof *backends; index++)
    if (strcmp(backends[index]->name, name) == 0) return backends[index];
  return NULL;
}

void nxk_fail(const nxk_frame *frame, const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (frame->alarm) frame->alarm->raise(frame->alarm->context, text);
  fprintf(stderr, "%s\n", text);
  abort();
}
