/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/render/screen.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Columns of UTF-8 text: bytes that begin a character. */
static int columns_of(const char *text, size_t n_bytes) {
  int n = 0;
  for (size_t i = 0; i < n_bytes; i++) n += ((unsigned char)text[i] & 0xc0) != 0x80;
  return n;
}

void nxc_print_paragraph(FILE *out, int columns, int indent, const char *label, const char *text) {
  if (text == NULL || *text == '\0') return;
  fputs(label, out);
  int column = columns_of(label, strlen(label));
  for (bool first = true; *text != '\0'; first = false) {
    size_t n_bytes = strcspn(text, " ");
    int width = columns_of(text, n_bytes);
    bool wraps = !first && column + 1 + width > columns;
    if (wraps) column = fprintf(out, "\n%*s", indent, "") - 1;
    else if (!first) column += fprintf(out, " ");
    fwrite(text, 1, n_bytes, out);
    column += width;
    text += n_bytes + strspn(text + n_bytes, " ");
  }
  putc('\n', out);
}

/* The first of these variables that is set decides, as in the C library. */
static bool has_utf8(void) {
  static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *value = getenv(names[i]), *codeset = value ? strrchr(value, '.') : NULL;
    if (value == NULL || *value == '\0') continue;
    return codeset != NULL &&
           (strncasecmp(codeset, ".utf-8", 6) == 0 || strncasecmp(codeset, ".utf8", 5) == 0);
  }
  return false;
}

void nxc_print_bar(FILE *out, int columns, double share) {
  static const char *const eighths[] = {"",       "\u258f", "\u258e", "\u258d",
                                        "\u258c", "\u258b", "\u258a", "\u2589"};
  bool utf8 = has_utf8();
  int filled = (int)lround(8 * columns * fmin(1, fmax(0, share))), column = 0;
  if (!utf8) filled = (filled + 4) / 8 * 8;
  for (; column < filled / 8; column++) fputs(utf8 ? "\u2588" : "#", out);
  if (filled % 8 != 0) fputs(eighths[filled % 8], out), column++;
  for (; column < columns; column++) fputs(utf8 ? "\u2591" : ".", out);
}
