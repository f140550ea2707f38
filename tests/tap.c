/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/tap.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static int n_reported, n_failed;

static void print_line(FILE *to, const char *before, const char *format, va_list args) {
  fputs(before, to);
  vfprintf(to, format, args);
  putc('\n', to);
  fflush(to);
}

bool tap_report(bool good, const char *name, ...) {
  va_list args;
  va_start(args, name);
  printf("%sok %d - ", good ? "" : "not ", ++n_reported);
  print_line(stdout, "", name, args);
  va_end(args);
  n_failed += !good;
  return good;
}

void tap_skip(const char *name, const char *why) {
  printf("ok %d - %s # SKIP %s\n", ++n_reported, name, why);
}

void tap_note(const char *format, ...) {
  va_list args;
  va_start(args, format);
  print_line(stderr, "# ", format, args);
  va_end(args);
}

void tap_bail(const char *format, ...) {
  va_list args;
  va_start(args, format);
  print_line(stdout, "Bail out! ", format, args);
  va_end(args);
  exit(EXIT_FAILURE);
}

int tap_end(void) {
  printf("1..%d\n", n_reported);
  return n_failed > 0;
}

int tap_skip_all(const char *why) {
  printf("1..0 # SKIP %s\n", why);
  return 0;
}
