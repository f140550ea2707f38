/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/files/fault.h"

#include <stdarg.h>
#include <stdio.h>

/* A plan's strings come from elsewhere, and end on a terminal: of control characters only the ends of our own
 * lines are let through. */
static void hide_control_characters(char *text) {
  for (; *text != '\0'; text++)
    if (((unsigned char)*text < ' ' && *text != '\n') || *text == '\x7f') *text = '?';
}

bool nxr_fault_set(nxr_fault *fault, const char *format, ...) {
  if (fault->text[0] != '\0') return false;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(fault->text, sizeof fault->text, format, arguments);
  va_end(arguments);
  hide_control_characters(fault->text);
  return false;
}
