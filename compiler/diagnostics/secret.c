/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/diagnostics/secret.h"

#include <ctype.h>
#include <string.h>

enum { KEY_MAX = 64, GIVEN_KEY_MIN = 16 };

/* -- keys ------------------------------------------------------------------------------------------------ */

typedef struct ending {
  const char *text;
  size_t n_bytes;
} ending;

static bool ends_in(const char *key, size_t n_key, const ending *wanted) {
  if (n_key < wanted->n_bytes) return false;
  const char *last = key + n_key - wanted->n_bytes;
  for (size_t i = 0; i < wanted->n_bytes; i++) {
    int letter = tolower((unsigned char)last[i]);
    if ((letter == '-' ? '_' : letter) != wanted->text[i]) return false;
  }
  return true;
}

#define ENDING(text)                                                                                         \
  { text, sizeof text - 1 } /* every key of a file is held against all of them */

bool nxc_key_is_secret(const char *key) {
  static const ending endings[] = {
      ENDING("token"),       ENDING("secret"),        ENDING("password"),   ENDING("passwd"),
      ENDING("pwd"),         ENDING("passphrase"),    ENDING("passcode"),   ENDING("auth"),
      ENDING("credential"),  ENDING("authorization"), ENDING("bearer"),     ENDING("credentials"),
      ENDING("api_key"),     ENDING("apikey"),        ENDING("secret_key"), ENDING("access_key"),
      ENDING("private_key"),
  };
  size_t n_key = strlen(key);
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
    if (ends_in(key, n_key, &endings[i])) return true;
  return false;
}

/* -- texts ----------------------------------------------------------------------------------------------- */

static bool is_word(char letter) {
  char lower = (char)(letter | 0x20);
  return (lower >= 'a' && lower <= 'z') || (letter >= '0' && letter <= '9') || letter == '_' || letter == '-';
}

/* A password before the host: ://user:password@ */
static size_t find_url_password(const char *text, size_t n_bytes) {
  const char *end = text + n_bytes;
  for (const char *from = text; (from = memchr(from, ':', (size_t)(end - from))) != NULL; from++) {
    size_t colon = 0;
    if (end - from < 3 || memcmp(from, "://", 3) != 0) continue;
    for (size_t at = (size_t)(from - text) + 3; at < n_bytes && strchr("/ \"'\t?#", text[at]) == NULL; at++) {
      if (text[at] == ':' && colon == 0) colon = at;
      if (text[at] == '@' && colon != 0 && at > colon + 1) return colon + 1;
    }
  }
  return n_bytes;
}

/* What gives access stands in the query of a URL by these names too: ://host/path?name=value&signature=value
 */
static bool is_secret_in_query(const char *name, size_t n_bytes) {
  static const ending names[] = {ENDING("sig"), ENDING("signature"), ENDING("key")};
  char key[KEY_MAX + 1];
  if (n_bytes > KEY_MAX) return false;
  memcpy(key, name, n_bytes);
  key[n_bytes] = '\0';
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (ends_in(key, n_bytes, &names[i])) return true;
  return nxc_key_is_secret(key);
}

static size_t find_in_query(const char *text, size_t n_bytes) {
  bool in_query = false;
  size_t name = 0;
  const char *url = n_bytes < 3 ? NULL : memmem(text, n_bytes, "://", 3);
  for (size_t at = url ? (size_t)(url - text) + 3 : n_bytes; at < n_bytes; at++) {
    if (strchr(" \"'\t\n", text[at]) != NULL) in_query = false;
    if (in_query && text[at] == '=' && at + 1 < n_bytes && is_secret_in_query(text + name, at - name))
      return at + 1;
    if (text[at] == '?') in_query = true;
    if (!is_word(text[at])) name = at + 1;
  }
  return n_bytes;
}

typedef struct given_key {
  const char *start;
  bool joined; /* with - and _ in it; of letters and digits alone otherwise, which no name of a model is */
} given_key;

/* Long enough, with a digit. */
static bool is_given_key(const given_key *key, const char *text, size_t n_bytes) {
  size_t n_key = 0, n_digits = 0;
  for (; n_key < n_bytes && is_word(text[n_key]) && (key->joined || isalnum((unsigned char)text[n_key]));
       n_key++)
    n_digits += isdigit((unsigned char)text[n_key]) != 0;
  return n_key >= GIVEN_KEY_MIN && n_digits > 0;
}

static bool begins_given_key(const char *text, size_t n_bytes) {
  static const given_key keys[] = {{"hf_", false},  {"ghp_", false}, {"gho_", false},      {"ghs_", false},
                                   {"AKIA", false}, {"ASIA", false}, {"sk-", true},        {"glpat-", true},
                                   {"xoxb-", true}, {"xoxp-", true}, {"github_pat_", true}};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    size_t n_start = strlen(keys[i].start);
    if (n_start < n_bytes && memcmp(text, keys[i].start, n_start) == 0 &&
        is_given_key(&keys[i], text + n_start, n_bytes - n_start))
      return true;
  }
  return false;
}

/* By how the keys of well-known services begin. Texts may be long: each letter is looked at once. */
static size_t find_given_key(const char *text, size_t n_bytes) {
  for (size_t at = 0; at < n_bytes; at++) {
    if (!is_word(text[at])) continue;
    if (begins_given_key(text + at, n_bytes - at)) return at;
    while (at < n_bytes && is_word(text[at])) at++;
  }
  return n_bytes;
}

static size_t find_in_text(const char *text, size_t n_bytes) {
  const size_t found[] = {find_url_password(text, n_bytes), find_in_query(text, n_bytes),
                          find_given_key(text, n_bytes)};
  size_t first = found[0];
  for (size_t i = 1; i < sizeof found / sizeof *found; i++)
    if (found[i] < first) first = found[i];
  return first;
}

bool nxc_text_is_secret(const char *text, size_t n_bytes) {
  return find_in_text(text, n_bytes) < n_bytes;
}

/* -- lines ----------------------------------------------------------------------------------------------- */

/* Whether the word that ends before `end` is a key that names a secret; with `dashes`, one that begins
 * with --. */
static bool is_secret_key(const char *line, size_t end, bool dashes) {
  size_t start = end;
  while (start > 0 && is_word(line[start - 1])) start--;
  char key[KEY_MAX + 1];
  if (start == end || end - start > KEY_MAX) return false;
  memcpy(key, line + start, end - start);
  key[end - start] = '\0';
  return nxc_key_is_secret(key) && (!dashes || strncmp(key, "--", 2) == 0);
}

size_t nxc_secret_in_line(const char *line, size_t n_bytes) {
  size_t in_text = find_in_text(line, n_bytes);
  for (size_t i = 0; i < in_text; i++) {
    bool assigns = line[i] == ':' || line[i] == '=';
    if (!assigns && line[i] != ' ') continue;
    size_t end = i;
    while (assigns && end > 0 && strchr(" \"'", line[end - 1]) != NULL) end--;
    if (is_secret_key(line, end, !assigns)) return i + 1;
  }
  return in_text;
}
