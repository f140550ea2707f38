/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/server/texts.h"

#include "schema/characters.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct nxc_texts_open {
  nxc_open_text **items;
  size_t n_items;
};

/* -- places ---------------------------------------------------------------------------------------------- */

/* Bytes of the line break there; 0: none. */
static size_t break_bytes(const char *at, size_t n_left) {
  if (n_left == 0) return 0;
  if (*at == '\r') return n_left > 1 && at[1] == '\n' ? 2 : 1;
  return *at == '\n';
}

/* Bytes of the character there, and its UTF-16 units; a byte that is no character counts as one. */
static size_t step(const char *at, size_t n_left, json_int_t *n_units) {
  uint32_t code = 0;
  size_t n = nx_character_decode(at, n_left, &code);
  *n_units = n > 0 && code > 0xFFFF ? 2 : 1;
  return n > 0 ? n : 1;
}

static size_t offset_of(const char *text, size_t n_bytes, json_int_t line, json_int_t character) {
  size_t at = 0;
  for (; line > 0 && at < n_bytes; line--) {
    size_t n = 0;
    while (at < n_bytes && (n = break_bytes(text + at, n_bytes - at)) == 0) at++;
    at += n;
  }
  if (line > 0) return n_bytes;
  while (character > 0 && at < n_bytes && break_bytes(text + at, n_bytes - at) == 0) {
    json_int_t n_units;
    size_t n = step(text + at, n_bytes - at, &n_units);
    if (n_units > character) break;
    at += n;
    character -= n_units;
  }
  return at;
}

size_t nxc_text_offset_json(const char *text, size_t n_bytes, const json_t *position) {
  return offset_of(text, n_bytes, json_integer_value(json_object_get(position, "line")),
                         json_integer_value(json_object_get(position, "character")));
}

static json_t *position_of(const char *text, size_t n_bytes, size_t offset) {
  json_int_t line = 0, character = 0;
  for (size_t at = 0; at < offset && at < n_bytes;) {
    size_t n = break_bytes(text + at, n_bytes - at);
    json_int_t n_units = 0;
    if (n > 0 && at + n <= offset) line++, character = 0;
    else n = step(text + at, n_bytes - at, &n_units);
    character += n_units;
    at += n;
  }
  return json_pack("{s:I, s:I}", "line", line, "character", character);
}

json_t *nxc_text_range(const char *text, size_t n_bytes, size_t begin, size_t end) {
  return json_pack("{s:o, s:o}", "start", position_of(text, n_bytes, begin), "end",
                   position_of(text, n_bytes, end));
}

/* -- URIs ------------------------------------------------------------------------------------------------ */

static char *path_of_uri(const char *uri) {
  static const char scheme[] = "file://";
  const char *from = strncmp(uri, scheme, sizeof scheme - 1) == 0 ? uri + sizeof scheme - 1 : uri;
  char *path = malloc(strlen(from) + 1), *to = path;
  if (path == NULL) return NULL;
  if (from != uri && *from != '/') from += strcspn(from, "/"); /* file://localhost/... */
  for (; *from != '\0'; from++) {
    bool escaped =
        from != uri && *from == '%' && isxdigit((unsigned char)from[1]) && isxdigit((unsigned char)from[2]);
    char digits[3] = {from[0] ? from[1] : '\0', escaped ? from[2] : '\0', '\0'};
    *to++ = escaped ? (char)strtol(digits, NULL, 16) : *from;
    if (escaped) from += 2;
  }
  *to = '\0';
  return path;
}

char *nxc_uri_of_path(const char *path) {
  char *uri = malloc(3 * strlen(path) + sizeof "file://"), *to = uri;
  if (uri == NULL) return NULL;
  if (*path == '/') to = stpcpy(to, "file://");
  for (; *path != '\0'; path++) {
    if (isalnum((unsigned char)*path) || strchr("-._~/", *path)) *to++ = *path;
    else to += sprintf(to, "%%%02X", (unsigned)(unsigned char)*path);
  }
  *to = '\0';
  return uri;
}

/* -- open texts ------------------------------------------------------------------------------------------ */

nxc_texts_open *nxc_texts_open_new(void) {
  return calloc(1, sizeof(nxc_texts_open));
}

static void free_one(nxc_open_text *open) {
  free(open->uri);
  free(open->path);
  free(open->text);
  free(open);
}

void nxc_texts_open_free(nxc_texts_open *texts) {
  for (size_t i = 0; texts != NULL && i < texts->n_items; i++) free_one(texts->items[i]);
  if (texts != NULL) free(texts->items);
  free(texts);
}

size_t nxc_texts_open_count(const nxc_texts_open *texts) {
  return texts->n_items;
}

nxc_open_text *nxc_texts_open_at(const nxc_texts_open *texts, size_t index) {
  return texts->items[index];
}

nxc_open_text *nxc_texts_open_find(const nxc_texts_open *texts, const char *uri) {
  for (size_t i = 0; uri != NULL && i < texts->n_items; i++)
    if (strcmp(texts->items[i]->uri, uri) == 0) return texts->items[i];
  return NULL;
}

static nxc_open_text *add(nxc_texts_open *texts, const char *uri) {
  nxc_open_text **items = realloc(texts->items, (texts->n_items + 1) * sizeof *items);
  if (items == NULL) return NULL;
  texts->items = items;
  nxc_open_text *open = calloc(1, sizeof *open);
  if (open == NULL) return NULL;
  open->uri = strdup(uri);
  open->path = path_of_uri(uri);
  return texts->items[texts->n_items++] = open;
}

nxc_open_text *nxc_texts_open_put(nxc_texts_open *texts, const char *uri, const char *text,
                                  json_int_t version) {
  if (uri == NULL || *uri == '\0' || text == NULL) return NULL;
  nxc_open_text *open = nxc_texts_open_find(texts, uri);
  if (open == NULL) open = add(texts, uri);
  if (open == NULL) return NULL;
  free(open->text);
  open->text = strdup(text);
  open->n_bytes = strlen(text);
  open->version = version;
  return open;
}

void nxc_texts_open_close(nxc_texts_open *texts, const char *uri) {
  const nxc_open_text *open = nxc_texts_open_find(texts, uri);
  size_t kept = 0;
  for (size_t i = 0; i < texts->n_items; i++) {
    if (texts->items[i] == open) free_one(texts->items[i]);
    else texts->items[kept++] = texts->items[i];
  }
  texts->n_items = kept;
}

bool nxc_open_text_change(nxc_open_text *open, const json_t *change) {
  const char *text = json_string_value(json_object_get(change, "text"));
  const json_t *range = json_object_get(change, "range");
  if (text == NULL) return false;
  size_t begin = 0, end = open->n_bytes, n_text = strlen(text);
  if (json_is_object(range)) {
    begin = nxc_text_offset_json(open->text, open->n_bytes, json_object_get(range, "start"));
    end = nxc_text_offset_json(open->text, open->n_bytes, json_object_get(range, "end"));
  }
  if (end < begin) return false;
  char *whole = malloc(open->n_bytes - (end - begin) + n_text + 1);
  if (whole == NULL) return false;
  memcpy(whole, open->text, begin);
  memcpy(whole + begin, text, n_text);
  memcpy(whole + begin + n_text, open->text + end, open->n_bytes - end + 1);
  free(open->text);
  open->text = whole;
  open->n_bytes += n_text - (end - begin);
  return true;
}
