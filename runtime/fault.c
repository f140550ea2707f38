/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/fault.h"

#include <stdarg.h>
#include <stdio.h>

bool nxr_fault_set(nxr_fault *fault, const char *format, ...) {
  if (fault->text[0] != '\0') return false;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(fault->text, sizeof fault->text, format, arguments);
  va_end(arguments);
  return false;
}
