/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/backend.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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
