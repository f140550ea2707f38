/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/machine/names.h"

#include "compiler/diagnostics/diagnostics.h"
#include "compiler/diagnostics/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* Letters and digits alone, in lower case. */
static const char *next(const char *at) {
  while (*at != '\0' && !isalnum((unsigned char)*at)) at++;
  return at;
}

/* Whether `name` is the first `n_bytes` of `word`. */
static bool same(const char *name, const char *word, size_t n_bytes) {
  const char *end = word + n_bytes;
  for (;;) {
    name = next(name);
    while (word < end && !isalnum((unsigned char)*word)) word++;
    if (*name == '\0' || word == end) return *name == '\0' && word == end;
    if (tolower((unsigned char)*name++) != tolower((unsigned char)*word++)) return false;
  }
}

/* also: [NAME, NAME] */
static bool is_also(const char *name, const char *text) {
  const char *at = strstr(text, "\nalso: [");
  if (at == NULL) return false;
  for (at += strlen("\nalso: ["); *at != ']' && *at != '\0';) {
    size_t n = strcspn(at, ",]");
    if (same(name, at, n)) return true;
    at += n + (at[n] == ',');
  }
  return false;
}

const nxc_machine_text *nxc_machine_named(const char *name) {
  for (size_t i = 0; i < nxc_machine_texts_n; i++) {
    const nxc_machine_text *known = &nxc_machine_texts[i];
    if (same(name, known->name, strlen(known->name)) || is_also(name, known->text)) return known;
  }
  return NULL;
}

const char *nxc_machine_nearest(const char *name) {
  const char *names[64];
  size_t n = 0;
  for (; n < nxc_machine_texts_n && n < sizeof names / sizeof *names; n++)
    names[n] = nxc_machine_texts[n].name;
  return nxc_nearest(name, names, n);
}
