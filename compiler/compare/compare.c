/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/document/redaction.h"
#include "compiler/compare/compare.h"
#include "schema/scheduled.h"

#include <stdlib.h>
#include <string.h>

typedef struct comparing {
  nxc_arena *arena;
  const nxc_side *sides[2];
  nxc_comparison found;
} comparing;

/* -- sides ----------------------------------------------------------------------------------------------- */

void nxc_side_add(nxc_arena *arena, nxc_side *s, const nxc_compared_value *value) {
  nxc_setting_id id = nxc_setting_find(value->path);
  if (id < NX_N_SETTINGS) {
    s->settings[id] = *value;
    return;
  }
  s->foreign = nxc_arena_grow(arena, s->foreign, s->n_foreign, sizeof *s->foreign);
  s->foreign[s->n_foreign++] = *value;
}

void nxc_side_fill(nxc_arena *arena, nxc_side *s, const nxc_compiled *compiled) {
  const nxc_settings *settings = compiled->settings;
  s->compiled = compiled;
  for (nxc_setting_id id = 0; id < NX_N_SETTINGS; id++) {
    const nxc_value *value = nxc_settings_value(settings, id);
    if (value == NULL) continue;
    const nxc_value shown = nxc_settings_from(settings, id)->redacted ? nxc_redacted(arena, value) : *value;
    s->settings[id] = (nxc_compared_value){nxc_setting_path(id), nxc_value_json(arena, &shown),
                                           nxc_settings_show_origin(settings, id), NULL};
    if (nxc_settings_absent(settings, id)) s->settings[id].absent = nxc_settings_show(settings, id);
  }
  s->beyond = nxc_beyond_settings(arena, compiled, &s->n_beyond);
}

/* -- comparing ------------------------------------------------------------------------------------------- */

static bool same(const nxc_compared_value *a, const nxc_compared_value *b) {
  if (a->json == NULL || b->json == NULL) return a->json == b->json;
  return strcmp(a->json, b->json) == 0;
}

static void add_difference(comparing *c, nxc_difference one) {
  c->found.items = nxc_arena_grow(c->arena, c->found.items, c->found.n_items, sizeof one);
  c->found.items[c->found.n_items++] = one;
}

static void compare_one(comparing *c, const char *path, const nxc_compared_value *a,
                        const nxc_compared_value *b, nxc_changes changes) {
  if (!same(a, b)) add_difference(c, (nxc_difference){path, {*a, *b}, changes, true});
}

static const nxc_compared_value *find_foreign(const nxc_side *s, const char *path) {
  static const nxc_compared_value unknown = {0};
  for (size_t i = 0; i < s->n_foreign; i++)
    if (strcmp(s->foreign[i].path, path) == 0) return &s->foreign[i];
  return &unknown;
}

static void compare_settings(comparing *c) {
  const nxc_side *a = c->sides[0], *b = c->sides[1];
  for (size_t id = 0; id < NX_N_SETTINGS; id++)
    if (nxc_setting_rows[id].changes != NXC_CHANGES_ESTIMATE)
      compare_one(c, nxc_setting_path((nxc_setting_id)id), &a->settings[id], &b->settings[id],
                  nxc_setting_rows[id].changes);
  for (size_t i = 0; i < a->n_foreign; i++)
    compare_one(c, a->foreign[i].path, &a->foreign[i], find_foreign(b, a->foreign[i].path),
                NXC_CHANGES_CHECKPOINT);
  for (size_t i = 0; i < b->n_foreign; i++)
    if (find_foreign(a, b->foreign[i].path)->json == NULL)
      compare_one(c, b->foreign[i].path, find_foreign(a, b->foreign[i].path), &b->foreign[i],
                  NXC_CHANGES_CHECKPOINT);
}

/* Whether a setting that differs does so for this option's sake. */
static bool is_explained(const comparing *c, const char *option) {
  for (size_t i = 0; i < c->found.n_items; i++) {
    const nxc_difference *one = &c->found.items[i];
    nxc_setting_id id = one->is_setting ? nxc_setting_find(one->path) : NX_N_SETTINGS;
    for (int k = 0; k < 2 && id < NX_N_SETTINGS; k++)
      if (nxc_setting_follows(c->arena, c->sides[k]->compiled->settings, id, option)) return true;
  }
  return false;
}

static nxc_compared_value word_of(const comparing *c, const nxc_beyond *beyond) {
  if (beyond == NULL) return (nxc_compared_value){NULL, NULL, "no such key"};
  const char *place = beyond->at.source == NULL
                          ? beyond->value ? "default" : "not given"
                          : nxc_arena_printf(c->arena, "%s:%u", beyond->at.source->name, beyond->at.line);
  return (nxc_compared_value){beyond->name, beyond->value, beyond->read ? place : "not read there"};
}

/* One or both sides; NULL where a side has no such key. */
static void compare_beyond(comparing *c, const nxc_beyond *a, const nxc_beyond *b) {
  const nxc_beyond *some = a ? a : b;
  const nxc_compared_value values[2] = {word_of(c, a), word_of(c, b)};
  if (same(&values[0], &values[1]) || ((!a || a->followed) && (!b || b->followed))) return;
  if ((!a || !a->read) && (!b || !b->read))
    c->found.unread =
        nxc_arena_printf(c->arena, "%s%s%s", c->found.unread, *c->found.unread ? ", " : "", some->name);
  else if (!is_explained(c, some->name))
    add_difference(c, (nxc_difference){some->name, {values[0], values[1]}, some->changes, false});
}

static void compare_same_dialect(comparing *c) {
  const nxc_side *a = c->sides[0], *b = c->sides[1];
  for (size_t i = 0, k = 0; i < a->n_beyond || k < b->n_beyond;) {
    int order = i == a->n_beyond ? 1 : k == b->n_beyond ? -1 : strcmp(a->beyond[i].name, b->beyond[k].name);
    compare_beyond(c, order <= 0 ? &a->beyond[i] : NULL, order >= 0 ? &b->beyond[k] : NULL);
    i += order <= 0;
    k += order >= 0;
  }
}

/* What one side says in its own words alone counts where the training may depend on it. */
static void compare_two_dialects(comparing *c) {
  for (int k = 0; k < 2; k++) {
    const nxc_side *s = c->sides[k];
    for (size_t i = 0; i < s->n_beyond; i++) {
      const nxc_beyond *own = &s->beyond[i];
      if (nxc_beyond_counts(own)) compare_beyond(c, k == 0 ? own : NULL, k == 0 ? NULL : own);
    }
  }
}

static double number_of(const nxc_side *side, nxc_setting_id id) {
  return side->settings[id].json ? strtod(side->settings[id].json, NULL) : 0;
}

static double decay_of(const nxc_side *side) {
  return number_of(side, NX_SETTING_SCHEDULE_MAX_STEPS) - number_of(side, NX_SETTING_SCHEDULE_CONSTANT_STEPS);
}

/* Such settings are safe to change, and yet have no effect, or none that the second side allows. */
static const char *tell_schedule(const comparing *c) {
  static const char *const words[][2] = {
      {"\"checkpoint\"",
       "a run that goes on keeps its checkpoint's learning rate and weight decay (checkpoint.schedule)"},
      {"\"same\"", "a run goes on with the same learning rate and weight decay only (checkpoint.schedule)"}};
  const char *kept = c->sides[1]->settings[NX_SETTING_CHECKPOINT_SCHEDULE].json;
  bool same_decay = decay_of(c->sides[0]) == decay_of(c->sides[1]), differs = false;
  for (size_t i = 0; i < c->found.n_items; i++)
    differs |= nx_is_scheduled(c->found.items[i].path, same_decay);
  for (size_t i = 0; differs && kept != NULL && i < sizeof words / sizeof *words; i++)
    if (strcmp(kept, words[i][0]) == 0) return words[i][1];
  return "";
}

nxc_comparison nxc_compare(nxc_arena *arena, const nxc_side *a, const nxc_side *b) {
  comparing c = {.arena = arena, .sides = {a, b}, .found = {.unread = "", .resumed = ""}};
  compare_settings(&c);
  bool one_system =
      a->compiled == NULL || b->compiled == NULL || a->compiled->dialect == b->compiled->dialect;
  if (one_system) c.found.resumed = tell_schedule(&c);
  if (a->compiled == NULL || b->compiled == NULL) return c.found;
  if (a->compiled->dialect == b->compiled->dialect) compare_same_dialect(&c);
  else compare_two_dialects(&c);
  return c.found;
}

nxc_changes nxc_comparison_worst(const nxc_comparison *comparison) {
  nxc_changes found = NXC_CHANGES_SETTINGS;
  for (size_t i = 0; i < comparison->n_items; i++)
    if (comparison->items[i].changes > found) found = comparison->items[i].changes;
  return found;
}
