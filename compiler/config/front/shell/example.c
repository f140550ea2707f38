/* SPDX-License-Identifier: Apache-2.0 */
/* Comments of a script that show how it is called: # bash run.sh 8 7B */
#include "compiler/config/front/shell/script.h"

#include <ctype.h>
#include <string.h>

typedef struct words {
  size_t n, n_names; /* those that stand for what is to be put there, as MODEL_SIZE */
} words;

static words count_words(const char *text, size_t n_bytes) {
  words found = {0};
  for (size_t i = 0; i < n_bytes;) {
    size_t n = 0, n_capitals = 0;
    for (; i + n < n_bytes && !isspace((unsigned char)text[i + n]); n++)
      n_capitals += isupper((unsigned char)text[i + n]) || text[i + n] == '_';
    found.n += n > 0;
    found.n_names += n > 2 && n_capitals == n;
    i += n + (n == 0);
  }
  return found;
}

/* Behind the name of the file in this comment; NULL: it is not called there. */
static const char *behind_name(const char *line, size_t n_bytes, const char *name) {
  size_t n_name = strlen(name);
  const char *end = line + n_bytes, *at = line;
  while (n_name > 0 && (at = memmem(at, (size_t)(end - at), name, n_name)) != NULL) {
    const char *behind = at + n_name;
    bool begins = strchr(" \t/#", at[-1]) != NULL;
    if (begins && behind < end && isblank((unsigned char)*behind)) return behind;
    at = behind;
  }
  return NULL;
}

const char *nxc_script_example(nxc_arena *arena, const nxc_source *source, size_t n_words) {
  static const char signs[] = "<>[]|$`;\\&("; /* of a form to be filled in, or of more than one command */
  const char *slash = strrchr(source->name, '/'), *name = slash ? slash + 1 : source->name;
  for (uint32_t i = 0; i < source->n_lines; i++) {
    const char *line = source->text + source->line_start[i];
    size_t n_bytes = source->line_start[i + 1] - source->line_start[i];
    if (n_bytes < 2 || line[0] != '#' || line[1] == '!') continue;
    const char *behind = behind_name(line + 1, n_bytes - 1, name);
    if (behind == NULL) continue;
    size_t n = (size_t)(line + n_bytes - behind);
    const char *comment = memmem(behind, n, " #", 2);
    if (comment != NULL) n = (size_t)(comment - behind);
    while (n > 0 && isspace((unsigned char)*behind)) behind++, n--;
    while (n > 0 && isspace((unsigned char)behind[n - 1])) n--;
    char *text = nxc_arena_strndup(arena, behind, n);
    words found = count_words(text, n);
    if (strpbrk(text, signs) == NULL && found.n >= n_words && 2 * found.n_names < found.n) return text;
  }
  return NULL;
}
