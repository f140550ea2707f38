/* SPDX-License-Identifier: Apache-2.0 */
/* What a test program prints for meson (protocol: 'tap'): a line for each result, notes, and how many there
 * were. */
#ifndef NX_TESTS_TAP_H
#define NX_TESTS_TAP_H

#include <stdbool.h>

/* The next result, by its name; gives `good` back. */
bool tap_report(bool good, const char *name, ...) __attribute__((format(printf, 2, 3)));
/* The next result was not looked for. */
void tap_skip(const char *name, const char *why);
/* A line for people, to stderr, before the result that it explains: meson shows it where the test fails. */
void tap_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Nothing goes on. */
_Noreturn void tap_bail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Ends the program's output; what main returns. */
int tap_end(void);
/* In place of all results. */
int tap_skip_all(const char *why);

#endif
