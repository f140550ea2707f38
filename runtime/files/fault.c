/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/files/fault.h"

#include "schema/characters.h"

#include <stdarg.h>
#include <stdio.h>

bool nxr_fault_set(nxr_fault *fault, const char *format, ...) {
  if (fault->text[0] != '\0') return false;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(fault->text, sizeof fault->text, format, arguments);
  va_end(arguments);
  nx_characters_hide(fault->text);
  return false;
}

void nxr_print(FILE *out, const char *format, ...) {
  char text[NXR_PRINTED_BYTES];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  nx_characters_hide(text);
  fputs(text, out);
}
