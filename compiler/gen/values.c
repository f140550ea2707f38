/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/gen/values.h"

#include <stdlib.h>
#include <string.h>

void gen_names_add(nxc_arena *arena, gen_names *to, const char *name) {
  to->names = nxc_arena_grow(arena, to->names, to->n, sizeof *to->names);
  to->names[to->n++] = nxc_arena_strdup(arena, name);
}

static gen_names schedule_names(nxc_arena *arena) {
  gen_names list = {0};
#define SCHEDULE(name, rise, kind, clock, target, end, exponent, meaning) gen_names_add(arena, &list, #name);
#include "schema/schedules.def"
  return list;
}

static bool is_among(const char *name, const char *const *names, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(names[i], name) == 0) return true;
  return false;
}

/* Each once, but for those that another name means where there is momentum. */
static gen_names optimizer_names(nxc_arena *arena) {
  static const char *const with_momentum[] = {
#define VARIANT(rule, setting, value, other) #other,
#include "schema/optimizers.def"
  };
  static const char *const all[] = {
#define OPTIMIZER(number, name, kind, n_states, meaning) #name,
#define FOREIGN(name, n_numbers) #name,
#include "schema/optimizers.def"
  };
  gen_names list = {0};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    bool meant = is_among(all[i], with_momentum, sizeof with_momentum / sizeof *with_momentum);
    if (!meant && !is_among(all[i], all, i)) gen_names_add(arena, &list, all[i]);
  }
  return list;
}

/* As libcyaml gives its texts: the row owns them. */
static void give_values(gen_setting *row, gen_names list) {
  row->values = calloc(list.n, sizeof *row->values);
  row->values_count = row->values == NULL ? 0 : list.n;
  for (unsigned i = 0; i < row->values_count; i++) row->values[i] = strdup(list.names[i]);
}

void gen_take_values(gen_catalogue *catalogue, gen_names families) {
  const struct {
    const char *table;
    gen_names list;
  } tables[] = {{"schedules.def", schedule_names(catalogue->arena)},
                {"optimizers.def", optimizer_names(catalogue->arena)},
                {"families", families}};
  const gen_file *file = &catalogue->files[GEN_SETTINGS][0];
  for (unsigned i = 0; i < file->n_rows; i++) {
    gen_setting *row = (gen_setting *)file->rows + i;
    for (size_t k = 0; row->values_of != NULL && k < sizeof tables / sizeof *tables; k++)
      if (strcmp(row->values_of, tables[k].table) == 0) give_values(row, tables[k].list);
    if (row->values_of != NULL && row->values_count == 0)
      gen_complain(catalogue, file, row->setting, "values_of: there is no table %s", row->values_of);
  }
}
