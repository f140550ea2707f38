/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/diagnostics/allow.h"

#include <string.h>

enum { LINE_BYTES_MAX = 16384 };
enum { IDS_MAX = sizeof((nxc_allow *)NULL)->ids / sizeof(char *), NX_DIGITS = 4 };

static size_t count_of(const char *text, size_t n_bytes, char first, char last) {
  size_t n = 0;
  while (n < n_bytes && text[n] >= first && text[n] <= last) n++;
  return n;
}

bool nxc_allow_is_id(const char *text, size_t n_bytes) {
  size_t n_letters = count_of(text, n_bytes, 'A', 'Z');
  size_t n_digits = count_of(text + n_letters, n_bytes - n_letters, '0', '9');
  if (n_letters + n_digits != n_bytes || n_letters < 2) return false;
  bool own = n_letters == 2 && memcmp(text, "NX", 2) == 0;
  return own ? n_digits == NX_DIGITS : n_digits >= 3;
}

/* The bytes of a line behind `# nxcfg: allow `; NULL where there are none. *hash receives the comment's
 * start. */
static const char *find_comment(const char *text, size_t n_bytes, const char **hash) {
  const char *end = text + n_bytes;
  const char *mark = memmem(text, n_bytes, "nxcfg:", 6);
  *hash = mark;
  while (*hash && *hash > text && (*hash)[-1] == ' ') (*hash)--;
  if (mark == NULL || *hash == text || (*hash)[-1] != '#') return NULL;
  (*hash)--;
  const char *at = mark + 6;
  while (at < end && *at == ' ') at++;
  return end - at >= 6 && memcmp(at, "allow ", 6) == 0 ? at + 6 : NULL;
}

bool nxc_allow_stands_in(const nxc_source *source) {
  return memmem(source->text, source->n_bytes, "nxcfg:", 6) != NULL;
}

/* In a line longer than any that people write no comment is looked for: it may have very many findings. */
bool nxc_allow_read(nxc_arena *arena, const nxc_source *source, uint32_t line, nxc_allow *allow) {
  size_t n_bytes;
  if (line < 1 || line > source->n_lines) return false;
  const char *text = nxc_source_line(source, line, &n_bytes), *end = text + n_bytes, *hash;
  const char *at = n_bytes <= LINE_BYTES_MAX ? find_comment(text, n_bytes, &hash) : NULL;
  if (at == NULL) return false;
  uint32_t column = 1, length = 0;
  for (const char *byte = text; byte < end; byte++) {
    bool begins = ((unsigned char)*byte & 0xC0) != 0x80;
    if (byte < hash) column += begins;
    else length += begins;
  }
  *allow = (nxc_allow){.alone = strspn(text, " \t") >= (size_t)(hash - text),
                       .at = {source, line, column, length}};
  for (;;) {
    while (at < end && (*at == ' ' || *at == ',')) at++;
    const char *word = at;
    while (at < end && *at != ' ' && *at != ',') at++;
    if (allow->n_ids < IDS_MAX && nxc_allow_is_id(word, (size_t)(at - word))) {
      allow->ids[allow->n_ids++] = nxc_arena_strndup(arena, word, (size_t)(at - word));
      continue;
    }
    allow->reason = nxc_arena_strndup(arena, word, (size_t)(end - word));
    return true;
  }
}

static bool names(const nxc_allow *allow, const char *id) {
  for (size_t i = 0; i < allow->n_ids; i++)
    if (strcmp(allow->ids[i], id) == 0) return true;
  return false;
}

bool nxc_allow_find(nxc_arena *arena, const nxc_finding *finding, nxc_allow *allow) {
  const nxc_source *source = finding->at.source;
  if (source == NULL) return false;
  if (nxc_allow_read(arena, source, finding->at.line, allow) && names(allow, finding->id)) return true;
  return nxc_allow_read(arena, source, finding->at.line - 1, allow) && allow->alone &&
         names(allow, finding->id);
}
