/* SPDX-License-Identifier: Apache-2.0 */
/* Files that hold what data-path, or train-data-path and its companions, would: their words take the place of
 * the path in the option's value, a list for the one and a list of three for the other. A file that is not
 * here leaves the path. */
#include "compiler/config/binding/dialect.h"
#include "compiler/config/binding/model_config.h"
#include "compiler/config/front/megatron/checkpoint_args.h"
#include "compiler/config/front/megatron/front_megatron.h"
#include "compiler/document/scalar.h"

#include <jansson.h>
#include <string.h>

enum { BLEND_BYTES_MAX = 16 << 20, N_PARTS = 3 };

static void append(nxc_arena *arena, nxc_value *list, size_t *room, nxc_value item) {
  nxc_value *items = (nxc_value *)list->items;
  if (list->n_items == *room) {
    *room = *room ? 2 * *room : 16;
    items = nxc_arena_array(arena, *room, sizeof *items);
    if (list->n_items > 0) memcpy(items, list->items, list->n_items * sizeof *items);
  }
  items[list->n_items++] = item;
  list->items = items;
}

/* The words between blanks. */
static nxc_value split_words(nxc_arena *arena, const char *text, size_t n_bytes) {
  static const char blanks[] = " \t\r\n\v\f";
  nxc_value list = {.kind = NXC_LIST};
  size_t room = 0;
  char *rest, *copy = nxc_arena_strndup(arena, text, n_bytes);
  for (char *word = strtok_r(copy, blanks, &rest); word != NULL; word = strtok_r(NULL, blanks, &rest))
    append(arena, &list, &room, nxc_string_value(word, strlen(word)));
  return list;
}

/* A list of words, or a text of them; null where the part has none. False: anything else. */
static bool read_part(nxc_arena *arena, const json_t *json, nxc_value *part) {
  *part = (nxc_value){.kind = NXC_NULL};
  if (json == NULL || json_is_null(json)) return true;
  if (json_is_string(json)) {
    *part = split_words(arena, json_string_value(json), json_string_length(json));
    return true;
  }
  *part = nxc_value_of_json(arena, json);
  return part->kind == NXC_LIST;
}

static void complain(nxc_binding *binding, const nxc_bound *bound, const char *why) {
  nxc_report(binding->sink, "NX5923", NXC_SEVERITY_ERROR, bound->at,
             "name a file such as {\"train\": [\"data/text_document\"]}",
             "%s names %s, which is no JSON map of train, valid and test with a list of words each: %s",
             bound->row->name, bound->value->text, why);
}

static bool read_parts(nxc_binding *binding, const nxc_bound *bound, const nxc_source *source,
                       nxc_value *parts) {
  static const char *const names[N_PARTS] = {"train", "valid", "test"};
  json_error_t error;
  json_t *root = json_loadb(source->text, source->n_bytes, JSON_REJECT_DUPLICATES, &error);
  const char *why = root == NULL ? nxc_arena_strndup(binding->arena, error.text, strlen(error.text)) : NULL;
  for (int i = 0; why == NULL && i < N_PARTS; i++)
    if (!read_part(binding->arena, json_object_get(root, names[i]), &parts[i])) why = names[i];
  if (why == NULL && !json_is_object(root)) why = "it is none";
  json_decref(root);
  if (why != NULL) complain(binding, bound, why);
  return why == NULL;
}

/* The file that an option names; NULL where none is given, or none is here. */
static const nxc_source *file_of(nxc_binding *binding, const nxc_bound *bound) {
  bool text = bound != NULL && bound->given && bound->value != NULL && bound->value->kind == NXC_STRING;
  return text ? nxc_source_read_file(binding->arena, bound->value->text, BLEND_BYTES_MAX) : NULL;
}

static void give(nxc_binding *binding, const nxc_bound *bound, nxc_value value) {
  nxc_value *words = nxc_arena_alloc(binding->arena, sizeof *words);
  *words = value;
  binding->options[bound - binding->options].value = words;
}

void nxc_megatron_prepare(nxc_binding *binding) {
  nxc_megatron_take_args(binding);
  const nxc_bound *together = nxc_binding_find(binding, "data-args-path");
  const nxc_bound *apart = nxc_binding_find(binding, "per-split-data-args-path");
  const nxc_source *source = file_of(binding, together);
  if (source != NULL) give(binding, together, split_words(binding->arena, source->text, source->n_bytes));
  source = file_of(binding, apart);
  nxc_value *parts = nxc_arena_array(binding->arena, N_PARTS, sizeof *parts);
  if (source != NULL && read_parts(binding, apart, source, parts))
    give(binding, apart, (nxc_value){.kind = NXC_LIST, .items = parts, .n_items = N_PARTS});
}
