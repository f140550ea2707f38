/* SPDX-License-Identifier: Apache-2.0 */
/* Post-processors of tokenizer.json: what stands before a text's ids and after them. */
#include "tokenizer/memory.h"
#include "tokenizer/open_steps.h"

#include <stdlib.h>
#include <string.h>

/* Of a sequence the later step stands outside. */
static void put_before(nxt_ids *ids, const nxt_ids *more) {
  if (more->n == 0) return;
  nxt_ids_reserve(ids, more->n);
  if (ids->n > 0) memmove(ids->items + more->n, ids->items, ids->n * sizeof *ids->items);
  memcpy(ids->items, more->items, more->n * sizeof *ids->items);
  ids->n += more->n;
}

static bool take_id(nxt_reading *reading, const json_t *id, nxt_ids *ids) {
  if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) > NXT_MAX_ID)
    return nxt_refuse(reading, "a post_processor has an id that is no id");
  nxt_ids_add(ids, (uint32_t)json_integer_value(id));
  return true;
}

static bool read_byte_level(nxt_reading *reading, const json_t *step) {
  (void)reading, (void)step; /* it is about places in the text */
  return true;
}

/* Behind a template with tokens each of its parts is a text to the next step. */
static bool take_turn(nxt_reading *reading) {
  if (!reading->in_parts) return true;
  return nxt_refuse(reading, "a post_processor that adds tokens behind a TemplateProcessing is not covered");
}

/* ["[CLS]", 101] before, ["[SEP]", 102] after */
static bool read_bert(nxt_reading *reading, const json_t *step) {
  nxt_ids before = {0};
  if (!take_turn(reading)) return false;
  bool done = take_id(reading, json_array_get(json_object_get(step, "cls"), 1), &before) &&
              take_id(reading, json_array_get(json_object_get(step, "sep"), 1), &reading->tokenizer->after);
  put_before(&reading->tokenizer->before, &before);
  free(before.items);
  return done;
}

static bool take_special(nxt_reading *reading, const json_t *step, const char *name, nxt_ids *ids) {
  const json_t *token = json_object_get(json_object_get(step, "special_tokens"), name), *id;
  size_t i;
  if (token == NULL) return nxt_refuse(reading, "the template's token \"%.60s\" is not said", name);
  json_array_foreach(json_object_get(token, "ids"), i, id) if (!take_id(reading, id, ids)) return false;
  return true;
}

static bool read_template(nxt_reading *reading, const json_t *step) {
  nxt_ids before = {0};
  const json_t *piece;
  size_t i, n_texts = 0;
  bool done = take_turn(reading);
  json_array_foreach(json_object_get(step, "single"), i, piece) {
    const char *name = nxt_json_string(json_object_get(piece, "SpecialToken"), "id", NULL);
    if (name == NULL)
      n_texts++;
    else
      done = done && take_special(reading, step, name, n_texts == 0 ? &before : &reading->tokenizer->after);
  }
  put_before(&reading->tokenizer->before, &before);
  free(before.items);
  reading->in_parts = json_array_size(json_object_get(step, "single")) > 1;
  if (done && n_texts != 1)
    return nxt_refuse(reading, "a template with the text %zu times is not covered", n_texts);
  return done;
}

bool nxt_read_processors(nxt_reading *reading, const json_t *step) {
  static const nxt_step_kind kinds[] = {
      {"ByteLevel", read_byte_level},
      {"TemplateProcessing", read_template},
      {"BertProcessing", read_bert},
      {"RobertaProcessing", read_bert},
  };
  static const nxt_step_kinds all = {"post_processor", "processors", kinds, sizeof kinds / sizeof *kinds};
  return nxt_read_steps(reading, step, &all);
}
