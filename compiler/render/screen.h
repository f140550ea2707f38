/* SPDX-License-Identifier: Apache-2.0 */
/* Text for a screen: paragraphs that are filled to a width, and bars. */
#ifndef NXC_SCREEN_H
#define NXC_SCREEN_H

#include "compiler/arena.h"

#include <stdio.h>

/* How wide lines of `out` may be: as wide as COLUMNS, else its terminal, says, and 80 at most, as in a file:
 * longer lines are hard to read. */
int nxc_screen_columns(FILE *out);

/* In at most `most` bytes: a path keeps its end. */
const char *nxc_screen_shortened(nxc_arena *arena, const char *text, size_t most);
/* `label`, then the words of `text`, in lines that the screen has room for, where no word is longer; lines
 * behind the first begin at column `indent`. */
void nxc_print_paragraph(FILE *out, int indent, const char *label, const char *text);
/* The same, filled where `out` is a screen; elsewhere one line as it is, for programs. `n_unseen` bytes of
 * the label are colours, and `end` what ends them. */
void nxc_print_filled(FILE *out, int indent, const char *label, size_t n_unseen, const char *text,
                      const char *end);
/* A help text: its prose is filled, and so is what an option means, in the column
 * where it begins. */
void nxc_print_usage(FILE *out, const char *text);
/* Decimals that give a number three digits, or all that it has before the point: 1.10, 14.0, 1234. */
int nxc_decimals(double number);
/* So many columns wide, filled by this share (0 to 1): blocks where the locale has UTF-8, else # and dots. */
void nxc_print_bar(FILE *out, int columns, double share);

#endif
