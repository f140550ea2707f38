/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/render/screen.h"

#include "compiler/diagnostics/characters.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

int nxc_screen_columns(FILE *out) {
  enum { MOST = 80, LEAST = 40 };
  struct winsize size;
  const char *told = getenv("COLUMNS");
  long n = told ? strtol(told, NULL, 10) : 0;
  if (n <= 0 && ioctl(fileno(out), TIOCGWINSZ, &size) == 0) n = size.ws_col;
  return n <= 0 || n > MOST ? MOST : n < LEAST ? LEAST : (int)n;
}

/* Columns of UTF-8 text: bytes that begin a character. */
static int columns_of(const char *text, size_t n_bytes) {
  int n = 0;
  for (size_t i = 0; i < n_bytes; i++) n += ((unsigned char)text[i] & 0xc0) != 0x80;
  return n;
}

const char *nxc_screen_shortened(nxc_arena *arena, const char *text, size_t most) {
  text = nxc_characters_shown(arena, text); /* names of files may hold anything */
  size_t n = strlen(text);
  if (n <= most) return text;
  text += n - most + 3;
  while (((unsigned char)*text & 0xc0) == 0x80) text++; /* whole characters */
  return nxc_arena_printf(arena, "...%s", text);
}

/* Words behind what ends at `column` already. */
static void fill(FILE *out, int column, int indent, const char *text) {
  int columns = nxc_screen_columns(out);
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

void nxc_print_paragraph(FILE *out, int indent, const char *label, const char *text) {
  if (text == NULL || *text == '\0') return;
  fputs(label, out);
  fill(out, columns_of(label, strlen(label)), indent, text);
}

void nxc_print_filled(FILE *out, int indent, const char *label, size_t n_unseen, const char *text,
                      const char *end) {
  if (!isatty(fileno(out))) {
    fprintf(out, "%s%s%s\n", label, text, end);
    return;
  }
  fputs(label, out);
  fill(out, columns_of(label, strlen(label)) - (int)n_unseen, indent, text);
  fputs(end, out);
}

/* -- help ------------------------------------------------------------------------------------------------ */

/* Where the meaning of an option begins, behind two blanks; 0: the line is no option's. */
static size_t meaning_in(const char *line, size_t n_bytes) {
  size_t at = strspn(line, " ");
  if (at == 0) return 0;
  for (; at + 1 < n_bytes; at++)
    if (line[at] == ' ' && line[at + 1] == ' ') return at + strspn(line + at, " ");
  return 0;
}

/* Adds a line to what is gathered, with a blank between. */
static char *join(char *text, const char *more, size_t n_more) {
  size_t n_text = text ? strlen(text) : 0;
  char *joined = malloc(n_text + n_more + 2);
  if (joined != NULL) sprintf(joined, "%s%s%.*s", text ? text : "", n_text ? " " : "", (int)n_more, more);
  free(text);
  return joined;
}

typedef struct paragraph {
  char label[80];
  int indent;
  char *text; /* NULL: nothing is gathered */
} paragraph;

static void flush_paragraph(FILE *out, paragraph *p) {
  nxc_print_paragraph(out, p->indent, p->label, p->text);
  free(p->text);
  *p = (paragraph){0};
}

void nxc_print_usage(FILE *out, const char *text) {
  enum { DEEP = 10 };
  paragraph p = {0};
  for (size_t n; *text != '\0'; text += n + (text[n] == '\n')) {
    n = strcspn(text, "\n");
    size_t n_blank = strspn(text, " "), meaning = meaning_in(text, n);
    bool prose = n_blank == 0 && strncmp(text, "usage:", 6) != 0, goes_on = p.text && n_blank >= DEEP;
    if (p.text != NULL && !goes_on && !(prose && p.indent == 0)) flush_paragraph(out, &p);
    if (goes_on || prose) {
      p.text = join(p.text, text + n_blank, n - n_blank);
    } else if (meaning > 0 && meaning < n && meaning < sizeof p.label) {
      p.indent = snprintf(p.label, meaning + 1, "%.*s", (int)meaning, text) > 0 ? (int)meaning : 0;
      p.text = join(NULL, text + meaning, n - meaning);
    } else {
      fprintf(out, "%.*s\n", (int)n, text);
    }
  }
  if (p.text != NULL) flush_paragraph(out, &p);
}

int nxc_decimals(double number) {
  enum { MOST = 6 };
  int n = number >= 99.95 ? 0 : number >= 9.995 ? 1 : 2;
  for (; number > 0 && number < 0.9995 && n < MOST; n++) number *= 10;
  return n;
}

/* -- bars ------------------------------------------------------------------------------------------------ */

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
