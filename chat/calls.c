/* SPDX-License-Identifier: Apache-2.0 */
#include "chat/calls.h"

#include "chat/run.h"

#include <string.h>

static const nxj_row *find_row(const nxj_row *rows, const char *name) {
  for (; rows->name != NULL; rows++)
    if (strcmp(rows->name, name) == 0) return rows;
  return NULL;
}

const nxj_row *nxj_find_filter(const char *name) {
  const nxj_row *row = find_row(nxj_filters, name);
  return row ? row : find_row(nxj_selecting_filters, name);
}

const nxj_row *nxj_find_test(const char *name) {
  return find_row(nxj_tests, name);
}

const nxj_row *nxj_find_function(const char *name) {
  return find_row(nxj_functions, name);
}

const nxj_row *nxj_find_method(nxj_kind kind, const char *name) {
  static const struct {
    nxj_kind kind;
    const nxj_row *rows;
  } tables[] = {{NXJ_STRING, nxj_text_methods}, {NXJ_LIST, nxj_list_methods}, {NXJ_TUPLE, nxj_list_methods},
                {NXJ_DICT, nxj_dict_methods},   {NXJ_LOOP, nxj_loop_methods}};
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
    if (kind != NXJ_ABSENT && kind != tables[i].kind) continue;
    const nxj_row *row = find_row(tables[i].rows, name);
    if (row) return row;
  }
  return NULL;
}

void nxj_not_covered(nxj_pool *pool, const char *what, const char *name) {
  nxj_fail(pool, "the %s '%s' is not covered", what, name);
}

bool nxj_is_given(nxj_value value) {
  return value.kind != NXJ_ABSENT && value.kind != NXJ_NONE;
}

/* The next of a row's parameters: its name, how long, and whether it must be given. */
typedef struct parameter {
  const char *name;
  size_t length;
  bool needed;
} parameter;

static bool next_parameter(const char **at, parameter *next) {
  if (**at == '\0') return false;
  next->name = *at;
  next->length = strcspn(*at, " !");
  *at += next->length;
  next->needed = **at == '!';
  *at += next->needed;
  *at += **at == ' ';
  return true;
}

static bool takes(const nxj_arguments *arguments, size_t argument, size_t position, const parameter *as) {
  const char *name = arguments->names[argument];
  if (name == NULL) return argument == position;
  return strlen(name) == as->length && strncmp(name, as->name, as->length) == 0;
}

/* Sorts `arguments` into `given`; what is missing, unknown or too much fails. */
static void bind(nxj_pool *pool, const nxj_row *row, nxj_arguments *arguments) {
  const char *at = row->parameters;
  parameter as;
  size_t n_bound = 0;
  for (size_t position = 0; next_parameter(&at, &as); position++) {
    arguments->given[position] = (nxj_value){.kind = NXJ_ABSENT};
    bool given = false;
    for (size_t i = 0; i < arguments->n && !given; i++) {
      given = takes(arguments, i, position, &as);
      if (given) arguments->given[position] = arguments->values[i];
    }
    n_bound += given;
    if (as.needed && !given)
      nxj_fail(pool, "'%s' needs an argument '%.*s'", row->name, (int)as.length, as.name);
  }
  if (n_bound < arguments->n) nxj_fail(pool, "'%s' has an argument that is not covered", row->name);
}

nxj_value nxj_call_row(nxj_run *run, const nxj_row *row, nxj_value self, nxj_arguments *arguments) {
  if (row->parameters) bind(run->pool, row, arguments);
  nxj_enter(run->pool);
  nxj_value result = row->call(run, self, arguments);
  nxj_leave(run->pool);
  return result;
}
