/* SPDX-License-Identifier: Apache-2.0 */
/* The template and the special tokens of a tokenizer's folder. */
#include "chat/dialogue.h"

#include "schema/regular.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

static bool path_in(const char *folder, const char *name, char path[PATH_BYTES]) {
  return snprintf(path, PATH_BYTES, "%s/%s", folder, name) < PATH_BYTES;
}

/* The folder of a file, or the folder itself. */
static bool find_folder(const char *given, char folder[PATH_BYTES], nxr_fault *fault) {
  struct stat status;
  if (snprintf(folder, PATH_BYTES, "%s", given) >= PATH_BYTES)
    return nxr_fault_set(fault, "the name of the tokenizer is too long");
  if (stat(given, &status) != 0) return nxr_fault_set(fault, "cannot open %s: %s", given, strerror(errno));
  if (S_ISDIR(status.st_mode)) return true;
  char *slash = strrchr(folder, '/');
  if (slash == folder) slash++;
  snprintf(slash ? slash : folder, slash ? (size_t)(folder + PATH_BYTES - slash) : PATH_BYTES, "%s",
           slash ? "" : ".");
  return true;
}

/* NULL: there is no such file, or it is no object. */
static json_t *load_object(const char *folder, const char *name) {
  char path[PATH_BYTES];
  json_error_t error;
  json_t *json = path_in(folder, name, path) ? nx_json_read(path, 0, &error) : NULL;
  if (json_is_object(json)) return json;
  json_decref(json);
  return NULL;
}

/* "name": "text" or {"content": "text"}, of every name that ends like a special token's. */
static void add_tokens(json_t *names, const json_t *object) {
  json_t *from = (json_t *)object; /* walking changes nothing */
  for (void *at = json_object_iter(from); at != NULL; at = json_object_iter_next(from, at)) {
    const char *name = json_object_iter_key(at);
    size_t n = strlen(name);
    json_t *value = json_object_iter_value(at);
    if (n < 6 || strcmp(name + n - 6, "_token") != 0) continue;
    if (json_is_object(value)) value = json_object_get(value, "content");
    if (json_is_string(value)) json_object_set(names, name, value);
  }
}

static bool open_text(nxj_style *style, const char *name, const char *text, size_t n_bytes,
                      nxr_fault *fault) {
  style->template = nxj_template_open(name, text, n_bytes, NXJ_LIMITS_USUAL, fault);
  return style->template != NULL;
}

static bool open_file(nxj_style *style, const char *path, nxr_fault *fault) {
  FILE *file = nx_regular_open(path);
  char *text = NULL;
  size_t n_bytes = 0;
  if (file == NULL)
    return nxr_fault_set(fault, "cannot open the chat template %s: %s", path, strerror(errno));
  bool good = getdelim(&text, &n_bytes, '\0', file) >= 0 && feof(file);
  if (!good) nxr_fault_set(fault, "the chat template %s is no text", path);
  good = good && open_text(style, path, text, strlen(text), fault);
  free(text);
  fclose(file);
  return good;
}

/* One template, or several with names, of which `default` is meant. */
static const json_t *template_of(const json_t *config) {
  const json_t *given = json_object_get(config, "chat_template");
  if (!json_is_array(given)) return given;
  for (size_t i = 0; i < json_array_size(given); i++) {
    const json_t *entry = json_array_get(given, i);
    const char *name = json_string_value(json_object_get(entry, "name"));
    if (name != NULL && strcmp(name, "default") == 0) return json_object_get(entry, "template");
  }
  return NULL;
}

static bool open_own(nxj_style *style, const char *folder, const json_t *config, nxr_fault *fault) {
  char path[PATH_BYTES];
  if (path_in(folder, "chat_template.jinja", path) && access(path, R_OK) == 0)
    return open_file(style, path, fault);
  const json_t *template = template_of(config);
  if (json_is_string(template))
    return open_text(style, "chat_template", json_string_value(template), json_string_length(template),
                     fault);
  return nxr_fault_set(fault,
                       "the tokenizer in %s has no chat template (chat_template.jinja, or chat_template in "
                       "tokenizer_config.json): name a file with one",
                       folder);
}

bool nxj_style_open(const char *given, const char *path, nxj_style *style, nxr_fault *fault) {
  char folder[PATH_BYTES];
  *style = (nxj_style){.names = json_object()};
  if (style->names == NULL) return nxr_fault_set(fault, "out of memory");
  json_t *config = NULL;
  bool good = find_folder(given, folder, fault);
  if (good) {
    json_t *map = load_object(folder, "special_tokens_map.json");
    config = load_object(folder, "tokenizer_config.json");
    add_tokens(style->names, map);
    add_tokens(style->names, config);
    json_decref(map);
  }
  bool named = path != NULL && path[0] != '\0';
  good = good && (named ? open_file(style, path, fault) : open_own(style, folder, config, fault));
  json_decref(config);
  if (!good) nxj_style_close(style);
  return good;
}

void nxj_style_close(nxj_style *style) {
  nxj_template_close(style->template);
  json_decref(style->names);
  *style = (nxj_style){0};
}
