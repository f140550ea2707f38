/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/torch/pickle_objects.h"

#include <stdlib.h>
#include <string.h>

typedef struct nx_pickle_block {
  struct nx_pickle_block *before;
  size_t n_used, n_bytes;
  _Alignas(16) unsigned char bytes[];
} block;

static const size_t BLOCK_BYTES = (size_t)1 << 16;

static void *take(nx_pickle *pickle, size_t n_bytes) {
  n_bytes = (n_bytes + 15) / 16 * 16;
  block *last = pickle->blocks;
  if (last == NULL || last->n_bytes - last->n_used < n_bytes) {
    size_t n_block = n_bytes > BLOCK_BYTES ? n_bytes : BLOCK_BYTES;
    block *more = malloc(sizeof *more + n_block);
    if (more == NULL) return NULL;
    *more = (block){.before = last, .n_bytes = n_block};
    pickle->blocks = last = more;
  }
  void *taken = last->bytes + last->n_used;
  last->n_used += n_bytes;
  return taken;
}

void nx_pickle_close(nx_pickle *pickle) {
  for (block *last = pickle->blocks; last != NULL;) {
    block *before = last->before;
    free(last);
    last = before;
  }
  *pickle = (nx_pickle){0};
}

nx_object *nx_object_new(nx_pickle *pickle, nx_object_kind kind) {
  nx_object *object = take(pickle, sizeof *object);
  if (object != NULL) *object = (nx_object){.kind = kind};
  return object;
}

char *nx_object_text(nx_pickle *pickle, const char *first, size_t n_first, const char *second,
                     size_t n_second) {
  char *text = take(pickle, n_first + n_second + 1);
  if (text == NULL) return NULL;
  memcpy(text, first, n_first);
  if (n_second > 0) memcpy(text + n_first, second, n_second);
  text[n_first + n_second] = '\0';
  return text;
}

/* There is room up to the next power of two. */
bool nx_object_append(nx_pickle *pickle, nx_object *list, nx_object *item) {
  size_t n = list->n_items;
  if ((n & (n - 1)) == 0) {
    nx_object **longer = take(pickle, (n ? 2 * n : 1) * sizeof *longer);
    if (longer == NULL) return false;
    if (n > 0) memcpy(longer, list->items, n * sizeof *longer);
    list->items = longer;
  }
  list->items[list->n_items++] = item;
  return true;
}

/* ---- what is read of them ---- */

static const nx_object *look_up(const nx_object *object, const char *key) {
  for (size_t i = 0; i + 1 < object->n_items; i += 2)
    if (object->items[i]->kind == NX_OBJECT_TEXT && strcmp(object->items[i]->text, key) == 0)
      return object->items[i + 1];
  return NULL;
}

const nx_object *nx_object_get(const nx_object *object, const char *key) {
  if (object == NULL) return NULL;
  if (object->kind == NX_OBJECT_CALL && object->state && object->state->kind == NX_OBJECT_DICT)
    return look_up(object->state, key);
  return object->kind == NX_OBJECT_DICT || object->kind == NX_OBJECT_CALL ? look_up(object, key) : NULL;
}

const nx_object *nx_object_at(const nx_object *object, size_t index) {
  bool has = object && object->kind == NX_OBJECT_LIST && index < object->n_items;
  return has ? object->items[index] : NULL;
}

bool nx_object_names(const nx_object *object, const char *global) {
  if (object && object->kind == NX_OBJECT_CALL) object = object->callee;
  return object && object->kind == NX_OBJECT_GLOBAL && strcmp(object->text, global) == 0;
}

bool nx_object_size(const nx_object *object, uint64_t *size) {
  if (object == NULL || object->kind != NX_OBJECT_INT || object->integer < 0) return false;
  *size = (uint64_t)object->integer;
  return true;
}
