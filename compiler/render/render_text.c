/* SPDX-License-Identifier: Apache-2.0 */
/* A finding as text for people:
 *
 *   error[NX2104]: context parallelism needs an attention that exchanges keys and values
 *     --> case.yaml:12:5
 *      |
 *   12 |     ring_attention: false
 *      |     ^^^^^^^^^^^^^^ must be true
 *      = note: mesh.context is 2 (case.yaml:30)
 *      = fix: set model.fusions.ring_attention to true
 *
 * A note without further notes of its own is one line. What stands behind a key that names a secret is not
 * shown. */
#include "compiler/diagnostics/characters.h"
#include "compiler/diagnostics/secret.h"
#include "compiler/render/render.h"
#include "compiler/render/screen.h"
#include "schema/characters.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHOWN_CHARACTERS = 100, ELLIPSIS = 3, CONTEXT_CHARACTERS = 30, LINE_BYTES_MAX = 65536 };

static const char *const colour_of[] = {[NXC_SEVERITY_NOTE] = "\033[1;36m",
                                        [NXC_SEVERITY_WARNING] = "\033[1;33m",
                                        [NXC_SEVERITY_ERROR] = "\033[1;31m"};
static const char bold[] = "\033[1m", plain[] = "\033[0m";

/* Characters of a line that are shown, behind a number of `width` digits: a screen's line is not broken. */
static size_t room_for(int width, FILE *out) {
  return isatty(fileno(out)) ? (size_t)(nxc_screen_columns(out) - width - (int)strlen(" | "))
                             : SHOWN_CHARACTERS;
}

/* Prints the characters [first, end) of a line. */
static void print_line(const char *line, size_t n_bytes, size_t first, size_t end, FILE *out) {
  size_t secret = nxc_secret_in_line(line, n_bytes);
  size_t character = 0;
  if (first > 0) fputs("...", out);
  for (size_t i = 0, n; i < n_bytes && character < end; i += n, character++) {
    bool shown;
    n = nx_character_next(line + i, n_bytes - i, &shown);
    if (i >= secret) {
      fputs(" (not shown)", out);
      return;
    }
    if (character < first) continue;
    if (shown) fwrite(line + i, 1, n, out);
    else fputc(line[i] == '\t' ? ' ' : '?', out);
  }
}

static size_t count_characters(const char *line, size_t n_bytes) {
  size_t n_characters = 0;
  bool shown;
  for (size_t i = 0; i < n_bytes; i += nx_character_next(line + i, n_bytes - i, &shown)) n_characters++;
  return n_characters;
}

/* None of a line so long that no editor shows it. */
static void print_excerpt(const nxc_finding *finding, int width, bool colour, FILE *out) {
  nxc_span at = finding->at;
  if (at.line < 1 || at.line > at.source->n_lines) return;
  size_t n_bytes;
  const char *line = nxc_source_line(at.source, at.line, &n_bytes);
  if (n_bytes > LINE_BYTES_MAX) return;
  size_t n_characters = count_characters(line, n_bytes);
  size_t room = room_for(width, out);
  bool fits = n_characters <= room || at.column + CONTEXT_CHARACTERS <= room;
  size_t first = fits ? 0 : at.column - CONTEXT_CHARACTERS, end = first + room - (first > 0 ? ELLIPSIS : 0);
  fprintf(out, "%*s |\n%*u | ", width, "", width, at.line);
  print_line(line, n_bytes, first, end, out);
  size_t before = at.column - 1 - first + (first > 0 ? ELLIPSIS : 0);
  size_t length = at.length > 0 ? at.length : 1;
  size_t left = n_characters + 1 > at.column ? n_characters + 1 - at.column : 1;
  if (length > left) length = left;
  if (length > end + 1 - at.column) length = end + 1 - at.column;
  fprintf(out, "\n%*s | %*s%s", width, "", (int)before, "", colour ? colour_of[finding->severity] : "");
  for (size_t i = 0; i < length; i++) fputc('^', out);
  if (finding->label != NULL) fprintf(out, " %s", finding->label);
  fprintf(out, "%s\n", colour ? plain : "");
}

static int digits_of(uint32_t number) {
  int n_digits = 1;
  for (; number >= 10; number /= 10) n_digits++;
  return n_digits;
}

/* A note that says all in its message takes one line. */
static void print_note(const nxc_finding *finding, bool colour, FILE *out) {
  char label[64], *text = NULL;
  size_t n_bytes;
  FILE *whole = open_memstream(&text, &n_bytes);
  if (whole == NULL) return;
  if (finding->at.source != NULL) {
    nxc_characters_print(finding->at.source->name, whole);
    fprintf(whole, ":%u:%u: ", finding->at.line, finding->at.column);
  }
  fputs(finding->message, whole);
  if (finding->fix != NULL) fprintf(whole, "; %s", finding->fix);
  if (fclose(whole) == 0) {
    size_t n_seen = strlen(finding->id) + strlen("note[] ");
    size_t n_label =
        (size_t)snprintf(label, sizeof label, "%snote[%s]%s ", colour ? colour_of[NXC_SEVERITY_NOTE] : "",
                         finding->id, colour ? plain : "");
    nxc_print_filled(out, 2, label, n_label - n_seen, text, "");
  }
  free(text);
}

/* The text with its place behind it, filled as one. */
static void print_remark(const nxc_remark *remark, int width, FILE *out) {
  char label[32], *text = NULL;
  size_t n_bytes;
  FILE *whole = open_memstream(&text, &n_bytes);
  if (whole == NULL) return;
  fputs(remark->text, whole);
  if (remark->at.source != NULL) {
    fputs(" (", whole);
    nxc_characters_print(remark->at.source->name, whole);
    fprintf(whole, ":%u)", remark->at.line);
  }
  if (fclose(whole) == 0) {
    snprintf(label, sizeof label, "%*s = note: ", width, "");
    nxc_print_filled(out, width + 3, label, 0, text, "");
  }
  free(text);
}

static void print_head(const nxc_finding *finding, bool colour, FILE *out) {
  char label[64];
  const char *severity = nxc_severity_name(finding->severity);
  size_t n_seen = strlen(severity) + strlen(finding->id) + 4;
  size_t n_label =
      (size_t)snprintf(label, sizeof label, "%s%s[%s]%s: ", colour ? colour_of[finding->severity] : "",
                       severity, finding->id, colour ? bold : "");
  nxc_print_filled(out, 2, label, n_label - n_seen, finding->message, colour ? plain : "");
}

void nxc_render_text(const nxc_finding *finding, bool colour, FILE *out) {
  if (finding->severity == NXC_SEVERITY_NOTE && finding->n_remarks == 0) {
    print_note(finding, colour, out);
    return;
  }
  print_head(finding, colour, out);
  int width = finding->at.source ? digits_of(finding->at.line) : 1;
  if (finding->at.source != NULL) {
    fprintf(out, "%*s--> ", width, "");
    nxc_characters_print(finding->at.source->name, out);
    fprintf(out, ":%u:%u\n", finding->at.line, finding->at.column);
    print_excerpt(finding, width, colour, out);
  }
  for (size_t i = 0; i < finding->n_remarks; i++)
    print_remark(&finding->remarks[i], width, out);
  if (finding->fix != NULL) {
    char label[32];
    snprintf(label, sizeof label, "%*s = fix: ", width, "");
    nxc_print_filled(out, width + 3, label, 0, finding->fix, "");
  }
  fputc('\n', out);
}
