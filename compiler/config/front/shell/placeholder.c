/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/front/shell/text.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static char byte_at(const nxc_text *text, size_t at) {
  if (at >= text->n_bytes) return '\0';
  return text->marks[at] & NXC_MARK_UNKNOWN ? '\1' : text->bytes[at];
}

/* Whether what ends here is a blank, or the number of a stream behind one. */
static bool ends_apart(const nxc_text *text, size_t end) {
  while (isdigit((unsigned char)byte_at(text, end - 1))) end--;
  return isblank((unsigned char)byte_at(text, end - 1));
}

/* No redirection: no > in bash stands right behind a name that began right behind <. */
size_t nxc_text_in_angles(const nxc_text *text, size_t at) {
  size_t n = 1;
  if (byte_at(text, at) != '<' || !isalpha((unsigned char)byte_at(text, at + 1))) return 0;
  while (byte_at(text, at + n) != '\0' && strchr("<>\n|;&", byte_at(text, at + n)) == NULL) n++;
  return byte_at(text, at + n) == '>' && !ends_apart(text, at + n) ? n + 1 : 0;
}

/* Behind the letters from here on, where those are a whole word; else `at`. */
static size_t behind_letters(const nxc_text *text, size_t at) {
  size_t end = at;
  while (isalpha((unsigned char)byte_at(text, end))) end++;
  char next = byte_at(text, end);
  return next == '\0' || isspace((unsigned char)next) ? end : at;
}

size_t nxc_text_placeholder(const nxc_text *text, size_t at) {
  static const char first[] = "your ";
  size_t end = at + strlen(first) - 1, n = nxc_text_in_angles(text, at);
  if (n > 0 || text->n_bytes - at <= strlen(first)) return n;
  if (strncasecmp(text->bytes + at, first, strlen(first)) != 0) return 0;
  while (byte_at(text, end) == ' ') {
    size_t behind = behind_letters(text, end + 1);
    if (behind == end + 1) break;
    end = behind;
  }
  return end - at >= strlen(first) ? end - at : 0;
}
