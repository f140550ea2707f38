/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/foreign/pickle_objects.h"

#include <stdlib.h>
#include <string.h>

typedef struct nxr_pickle_block {
  struct nxr_pickle_block *before;
  size_t n_used, n_bytes;
  _Alignas(16) unsigned char bytes[];
} block;

static const size_t BLOCK_BYTES = (size_t)1 << 16;

static void *take(nxr_pickle *pickle, size_t n_bytes) {
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

void nxr_pickle_close(nxr_pickle *pickle) {
  for (block *last = pickle->blocks; last != NULL;) {
    block *before = last->before;
    free(last);
    last = before;
  }
  *pickle = (nxr_pickle){0};
}

nxr_object *nxr_object_new(nxr_pickle *pickle, nxr_object_kind kind) {
  nxr_object *object = take(pickle, sizeof *object);
  if (object != NULL) *object = (nxr_object){.kind = kind};
  return object;
}

char *nxr_object_text(nxr_pickle *pickle, const char *first, size_t n_first, const char *second,
                      size_t n_second) {
  char *text = take(pickle, n_first + n_second + 1);
  if (text == NULL) return NULL;
  memcpy(text, first, n_first);
  if (n_second > 0) memcpy(text + n_first, second, n_second);
  text[n_first + n_second] = '\0';
  return text;
}

/* There is room up to the next power of two. */
bool nxr_object_append(nxr_pickle *pickle, nxr_object *list, nxr_object *item) {
  size_t n = list->n_items;
  if ((n & (n - 1)) == 0) {
    nxr_object **longer = take(pickle, (n ? 2 * n : 1) * sizeof *longer);
    if (longer == NULL) return false;
    if (n > 0) memcpy(longer, list->items, n * sizeof *longer);
    list->items = longer;
  }
  list->items[list->n_items++] = item;
  return true;
}

/* ---- what is read of them ---- */

static const nxr_object *look_up(const nxr_object *object, const char *key) {
  for (size_t i = 0; i + 1 < object->n_items; i += 2)
    if (object->items[i]->kind == NXR_OBJECT_TEXT && strcmp(object->items[i]->text, key) == 0)
      return object->items[i + 1];
  return NULL;
}

const nxr_object *nxr_object_get(const nxr_object *object, const char *key) {
  if (object == NULL) return NULL;
  if (object->kind == NXR_OBJECT_CALL && object->state && object->state->kind == NXR_OBJECT_DICT)
    return look_up(object->state, key);
  return object->kind == NXR_OBJECT_DICT || object->kind == NXR_OBJECT_CALL ? look_up(object, key) : NULL;
}

const nxr_object *nxr_object_at(const nxr_object *object, size_t index) {
  bool has = object && object->kind == NXR_OBJECT_LIST && index < object->n_items;
  return has ? object->items[index] : NULL;
}

bool nxr_object_names(const nxr_object *object, const char *global) {
  if (object && object->kind == NXR_OBJECT_CALL) object = object->callee;
  return object && object->kind == NXR_OBJECT_GLOBAL && strcmp(object->text, global) == 0;
}

bool nxr_object_size(const nxr_object *object, uint64_t *size) {
  if (object == NULL || object->kind != NXR_OBJECT_INT || object->integer < 0) return false;
  *size = (uint64_t)object->integer;
  return true;
}
