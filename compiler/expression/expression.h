/* SPDX-License-Identifier: Apache-2.0 */
/* The one expression language of the catalogue: `sets`, `for`, `required`, `refused_when`, `when`,
 * `require`, `derive`.
 *
 * From weakest to strongest: c ? a : b; or; and; not; comparisons (== != < <= > >= in, not in, matches),
 * which may be chained; + -; * / // %; unary -; **; x[i]; calls. Literals are numbers, 'text', true,
 * false, null, unknown and [lists]. A bare dotted name is a setting, @name an option of the file's
 * dialect, @hf.name a key of HF config.json, and `value` the option that the expression belongs to. Every
 * input may be unknown. Unknown goes through operators and functions, except that `false and unknown` is
 * false and `true or unknown` is true. known(name) always answers; so do given(name) and lacking(name, ...),
 * a text of the names not given, unless the text is a part of a configuration (nxc_scope). kind(x) is the
 * kind of a value, texts(x) the texts among weights and numbers(x) the weights, blend(weights, paths) both in
 * turn, common(a, b) what two lists share, members(maps, key, otherwise) what each map of a list has under a
 * key, maps(keys, values, ...) such a list of lists of values, pieces(x) the parts of a pipeline's
 * layout, renamed(names, table) the names that a table has for them: its entries are pairs, or texts
 * that are the same on both sides; what it lacks is left out; matched(patterns, n, names) how many of the
 * names of n layers, which have a # for the layer's number, each pattern of * and ? matches; minutes(x) is a
 * time in a text DD:HH:MM:SS; epoch_samples(prefixes, split, length) reads datasets, and is unknown where
 * they are not there. `/` of two integers is an integer when it divides exactly. `matches` (PCRE2,
 * unanchored), lower, basename, int, float, str, first_number, last_number, starts and ends work item by item
 * on a list. Truth is Python's: null, 0, '' and [] are false. An expression is parsed once and never changed;
 * it knows its names, so a rule knows its inputs.
 */
#ifndef NXC_EXPRESSION_H
#define NXC_EXPRESSION_H

#include "compiler/arena.h"
#include "compiler/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum nxc_name_kind {
  NXC_NAME_SETTING,
  NXC_NAME_OPTION,
  NXC_NAME_MODEL_CONFIG,
  NXC_NAME_VALUE
} nxc_name_kind;

typedef struct nxc_name {
  nxc_name_kind kind;
  const char *path; /* without @ and @hf. ; "value" for the option itself */
  bool minded;      /* stands inside known() too: the expression minds its being unknown */
  bool only_asked;  /* stands only inside known(), given() or lacking(): its being unknown hides nothing */
} nxc_name;

typedef struct nxc_expression_node nxc_expression_node;

typedef struct nxc_expression {
  const char *text;
  const nxc_expression_node *root;
  const nxc_name *names; /* each once, in order of first use */
  size_t n_names;
} nxc_expression;

/* NULL when the text is no expression: *error then says why, *error_at is the byte it is about. */
const nxc_expression *nxc_expression_parse(nxc_arena *arena, const char *text, const char **error,
                                           size_t *error_at);
/* The same of a text that is known to be an expression, as those of the catalogue and of checked rules are;
 * NULL of NULL. Each text is parsed once and kept for all threads; where there is no more room for that, in
 * the arena. */
const nxc_expression *nxc_expression_of(nxc_arena *arena, const char *text);

/* What names mean. lookup returns NULL for unknown. */
typedef struct nxc_scope {
  const nxc_value *(*lookup)(void *context, const nxc_name *name);
  bool (*given)(void *context, const nxc_name *name);
  void *context;
  bool partial; /* what is not given may be given elsewhere: whether it is, and what lacks, is unknown */
} nxc_scope;

/* NULL when the result is unknown. A failure (division by zero, text where a number is needed) gives NULL
 * too, and sets *error; else *error is NULL. The value may be one that lookup returned. */
const nxc_value *nxc_expression_evaluate(nxc_arena *arena, const nxc_expression *expression,
                                         const nxc_scope *scope, const char **error);
/* What a call of the expression would have to be given for this result, where its function tells that
 * (renamed); NULL where none does. Whether the whole gives it then is not promised. */
const nxc_value *nxc_expression_invert(nxc_arena *arena, const nxc_expression *expression,
                                       const nxc_scope *scope, const nxc_value *result);
bool nxc_value_is_true(const nxc_value *value);

#endif
