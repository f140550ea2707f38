/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/settings/domain.h"

#include "compiler/diagnostics/nearest.h"
#include "compiler/settings/meant.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *nxc_misfit_id(nxc_misfit misfit) {
  static const char *const ids[] = {
      [NXC_FITS] = "",
      [NXC_WRONG_TYPE] = "NX1303",
      [NXC_UNQUOTED_BIT] = "NX1308",
      [NXC_NOT_A_WORD] = "NX1304",
      [NXC_OUT_OF_BOUNDS] = "NX1305",
      [NXC_NOT_NULLABLE] = "NX1306",
      [NXC_VALUE_MISSING] = "NX1309",
  };
  return ids[misfit];
}

const char *nxc_misfit_fix(const nxc_verdict *verdict) {
  static const char *const usual[] = {
      [NXC_FITS] = NULL,
      [NXC_WRONG_TYPE] = "write a value of that kind",
      [NXC_UNQUOTED_BIT] = "quote it",
      [NXC_NOT_A_WORD] = "write one of these words",
      [NXC_OUT_OF_BOUNDS] = "write a value within the bounds",
      [NXC_NOT_NULLABLE] = "give it a value, or leave it out",
      [NXC_VALUE_MISSING] = "give it a value",
  };
  return verdict->fix ? verdict->fix : usual[verdict->misfit];
}

static nxc_verdict fits(const nxc_value *value) {
  return (nxc_verdict){.misfit = NXC_FITS, .value = value};
}

static const nxc_value *keep(nxc_arena *arena, nxc_value value) {
  nxc_value *kept = nxc_arena_alloc(arena, sizeof *kept);
  *kept = value;
  return kept;
}

static const char *kind_words(const nxc_value *value) {
  switch (value->kind) {
  case NXC_BOOL: return "true or false";
  case NXC_INT: return "an integer";
  case NXC_FLOAT: return "a number with a fraction";
  case NXC_STRING: return "text";
  case NXC_LIST: return "a list";
  case NXC_MAP: return "a section";
  default: return nxc_kind_name(value->kind);
  }
}

static nxc_verdict wrong_type(nxc_arena *arena, const nxc_domain *domain, const nxc_value *value,
                              const char *fix) {
  const char *problem =
      nxc_arena_printf(arena, "needs %s, not %s", nxc_type_name(domain->type), kind_words(value));
  return (nxc_verdict){.misfit = NXC_WRONG_TYPE, .problem = problem, .fix = fix};
}

/* The same, where another text says what is meant. */
static nxc_verdict wrongly_written(nxc_arena *arena, const nxc_domain *domain, const nxc_value *value,
                                   const char *fix, const char *written) {
  nxc_verdict verdict = wrong_type(arena, domain, value, fix);
  verdict.written = written;
  verdict.certain = written != NULL;
  return verdict;
}

static nxc_verdict meant_instead(nxc_arena *arena, const nxc_domain *domain, const nxc_value *value,
                                 nxc_meant meant, const char *format) {
  const char *fix = meant.text ? nxc_arena_printf(arena, format, meant.text) : NULL;
  nxc_verdict verdict = wrongly_written(arena, domain, value, fix, meant.text);
  verdict.certain = meant.certain;
  return verdict;
}

/* A float that is whole, written as the integer that it should have been; NULL when there is none. */
static const char *whole(nxc_arena *arena, const nxc_value *value) {
  if (value->kind != NXC_FLOAT || value->number != floor(value->number) || fabs(value->number) > 1e15)
    return NULL;
  return nxc_arena_printf(arena, "%.0f", value->number);
}

static bool is_word(const nxc_value *value, const char *word) {
  return value->kind == NXC_STRING && strcasecmp(value->text, word) == 0;
}

/* A text that is a number to us: in quotes it is text to the original systems too, and 1e3 is no integer to
 * any. */
static nxc_verdict not_a_number(nxc_arena *arena, const nxc_domain *domain, const nxc_value *value,
                                bool integer) {
  const char *written = value->kind == NXC_FLOAT ? whole(arena, value) : NULL;
  if (domain->nullable && is_word(value, "none")) written = "null";
  bool like_a_number = value->kind == NXC_STRING && value->n_bytes > 0 &&
                       strspn(value->text, "0123456789.eE+-_") == value->n_bytes;
  if (written == NULL && like_a_number) {
    char *end;
    const nxc_value number = {.kind = NXC_FLOAT, .number = strtod(value->text, &end)};
    bool fraction = strpbrk(value->text, ".eE") != NULL;
    written = integer && *end == '\0' && fraction ? whole(arena, &number) : NULL;
    const char *exponent = strpbrk(value->text, "eE"); /* without a point and a sign it is text to some */
    bool plain = exponent == NULL || (strchr(value->text, '.') != NULL && strchr("+-", exponent[1]) != NULL);
    bool same = *end == '\0' && !(integer && fraction) && plain;
    if (written == NULL)
      return wrongly_written(arena, domain, value, "write the number without quotes",
                             same ? value->text : NULL);
  }
  nxc_meant meant = {written, true};
  if (written == NULL && value->kind == NXC_STRING) meant = nxc_number_meant(arena, domain, value->text);
  if (written == NULL && value->kind == NXC_FLOAT) meant = nxc_nearest_number(arena, domain, value->number);
  return meant_instead(arena, domain, value, meant, "write %s");
}

static nxc_verdict not_a_boolean(nxc_arena *arena, const nxc_domain *domain, const nxc_value *value) {
  bool scalar = value->kind == NXC_STRING || value->kind == NXC_INT;
  const char *word = value->kind == NXC_STRING ? nxc_text_meant(arena, value->text) : NULL;
  if (scalar && word == NULL) word = nxc_value_show(arena, value);
  nxc_meant meant = scalar ? nxc_boolean_meant(word) : (nxc_meant){0};
  return meant_instead(arena, domain, value, meant, "write %s, without quotes");
}

static double number_of(const nxc_value *value) {
  return value->kind == NXC_INT ? (double)value->integer : value->number;
}

static nxc_verdict out_of_bounds(nxc_arena *arena, const nxc_domain *domain, double number,
                                 const char *relation, const nxc_value *bound) {
  const char *nearest = nxc_nearest_number(arena, domain, number).text;
  return (nxc_verdict){
      .misfit = NXC_OUT_OF_BOUNDS,
      .problem = nxc_arena_printf(arena, "must be %s %s", relation, nxc_value_show(arena, bound)),
      .fix = nearest ? nxc_arena_printf(arena, "write a value within the bounds, such as %s", nearest) : NULL,
      .written = nearest};
}

static nxc_verdict judge_bounds(nxc_arena *arena, const nxc_domain *domain, const nxc_value *value) {
  if (value->kind == NXC_INT && value->digits != NULL) {
    return (nxc_verdict){.misfit = NXC_OUT_OF_BOUNDS, .problem = "is too large for a 64-bit integer"};
  }
  double number = number_of(value);
  if (isnan(number)) return (nxc_verdict){.misfit = NXC_OUT_OF_BOUNDS, .problem = "is not a number"};
  if (domain->min && number < number_of(domain->min))
    return out_of_bounds(arena, domain, number, "at least", domain->min);
  if (domain->max && number > number_of(domain->max))
    return out_of_bounds(arena, domain, number, "at most", domain->max);
  if (domain->above && number <= number_of(domain->above))
    return out_of_bounds(arena, domain, number, "greater than", domain->above);
  return fits(value);
}

static nxc_verdict judge_number(nxc_arena *arena, const nxc_domain *domain, const nxc_value *value) {
  bool integer_wanted = domain->type == NXC_TYPE_INT || domain->type == NXC_TYPE_LIST_INT;
  if (value->kind != NXC_INT && (value->kind != NXC_FLOAT || integer_wanted))
    return not_a_number(arena, domain, value, integer_wanted);
  nxc_verdict verdict = judge_bounds(arena, domain, value);
  bool widen = domain->type == NXC_TYPE_FLOAT || domain->type == NXC_TYPE_LIST_FLOAT;
  if (verdict.misfit == NXC_FITS && widen && value->kind == NXC_INT) {
    verdict.value = keep(arena, (nxc_value){.kind = NXC_FLOAT, .number = (double)value->integer});
  }
  return verdict;
}

static nxc_verdict judge_bit(nxc_arena *arena, const nxc_domain *domain, const nxc_value *value) {
  bool bit = value->kind == NXC_STRING && value->n_bytes == 1 && (*value->text == '0' || *value->text == '1');
  if (bit) return fits(value);
  if (value->kind == NXC_INT && value->digits == NULL && (value->integer == 0 || value->integer == 1)) {
    return (nxc_verdict){.misfit = NXC_UNQUOTED_BIT,
                         .problem = "becomes an environment variable, which must be text: '0' or '1'",
                         .fix = nxc_arena_printf(arena, "quote it: '%d'", (int)value->integer),
                         .written = value->integer ? "'1'" : "'0'",
                         .certain = true};
  }
  const char *written = value->kind == NXC_BOOL ? (value->boolean ? "'1'" : "'0'") : NULL;
  const char *fix = written ? nxc_arena_printf(arena, "write %s", written) : NULL;
  return wrongly_written(arena, domain, value, fix, written);
}

/* The only word that begins with this text: CosineAnnealing for Cosine. */
static const char *only_beginning(const nxc_domain *domain, const char *text) {
  const char *found = NULL;
  for (size_t i = 0; i < domain->n_values; i++) {
    if (strncasecmp(domain->values[i], text, strlen(text)) != 0) continue;
    if (found != NULL) return NULL;
    found = domain->values[i];
  }
  return found;
}

static nxc_verdict judge_word(nxc_arena *arena, const nxc_domain *domain, const nxc_value *value) {
  const char *word = value->kind == NXC_STRING ? value->text : nxc_value_show(arena, value);
  const char *words = "";
  for (size_t i = 0; i < domain->n_values; i++)
    if (strcmp(domain->values[i], word) == 0) return fits(value);
  for (size_t i = 0; i < domain->n_values; i++)
    words = nxc_arena_printf(arena, "%s%s%s", words, i ? ", " : "", domain->values[i]);
  const char *plain = nxc_text_meant(arena, word);
  nxc_near near = nxc_near_find(plain, domain->values, domain->n_values);
  if (near.name == NULL && *plain != '\0') near.name = only_beginning(domain, plain);
  return (nxc_verdict){.misfit = NXC_NOT_A_WORD,
                       .problem = nxc_arena_printf(arena, "must be one of %s", words),
                       .fix = nxc_did_you_mean(arena, "", near.name),
                       .written = near.name,
                       .certain = near.certain};
}

static nxc_verdict judge_text(nxc_arena *arena, const nxc_domain *domain, const nxc_value *value,
                              bool lenient) {
  if (value->kind == NXC_STRING) return fits(value);
  if (!lenient || value->kind == NXC_LIST || value->kind == NXC_MAP) {
    bool scalar = value->kind != NXC_LIST && value->kind != NXC_MAP;
    return wrong_type(arena, domain, value, scalar ? "put it in quotes" : NULL);
  }
  const char *text = nxc_value_show(arena, value);
  return fits(keep(arena, (nxc_value){.kind = NXC_STRING, .text = text, .n_bytes = strlen(text)}));
}

static nxc_verdict judge_list(nxc_arena *arena, const nxc_domain *domain, const nxc_value *value,
                              bool lenient) {
  nxc_value one = {.kind = NXC_LIST, .items = value, .n_items = 1};
  if (value->kind != NXC_LIST && !lenient)
    return wrong_type(arena, domain, value, "put it in brackets: [...]");
  if (value->kind != NXC_LIST) value = keep(arena, one);
  if (domain->type == NXC_TYPE_LIST) return fits(value);
  nxc_value *items = nxc_arena_array(arena, value->n_items + 1, sizeof *items);
  for (size_t i = 0; i < value->n_items; i++) {
    nxc_verdict item = domain->type != NXC_TYPE_LIST_STR ? judge_number(arena, domain, &value->items[i])
                       : domain->n_values > 0            ? judge_word(arena, domain, &value->items[i])
                                              : judge_text(arena, domain, &value->items[i], lenient);
    if (item.misfit != NXC_FITS) {
      item.problem = nxc_arena_printf(arena, "%s (item %zu of the list)", item.problem, i + 1);
      item.item = i + 1;
      return item;
    }
    items[i] = *item.value;
  }
  return fits(keep(arena, (nxc_value){.kind = NXC_LIST, .items = items, .n_items = value->n_items}));
}

/* A list of one where its item is asked. */
static nxc_verdict judge_brackets(nxc_arena *arena, const nxc_domain *domain, const nxc_value *list) {
  nxc_verdict verdict = wrong_type(arena, domain, list, NULL);
  verdict.unwraps = list->n_items == 1 && list->items[0].kind < NXC_LIST &&
                    nxc_domain_judge(arena, domain, &list->items[0], false).misfit == NXC_FITS;
  if (verdict.unwraps) verdict.fix = "leave the brackets out";
  verdict.certain = verdict.unwraps;
  return verdict;
}

static bool takes_lists(const nxc_domain *domain) {
  return domain->type >= NXC_TYPE_LIST && domain->type != NXC_TYPE_MAP;
}

nxc_verdict nxc_domain_judge(nxc_arena *arena, const nxc_domain *domain, const nxc_value *value,
                             bool lenient) {
  if (value->kind == NXC_LIST && !takes_lists(domain)) return judge_brackets(arena, domain, value);
  if (value->kind == NXC_MISSING) {
    return (nxc_verdict){.misfit = NXC_VALUE_MISSING, .problem = "is ???, which means that it must be given"};
  }
  if (value->kind == NXC_NULL && (domain->nullable || domain->type == NXC_TYPE_ANY)) return fits(value);
  if (value->kind == NXC_NULL) {
    const char *problem =
        nxc_arena_printf(arena, "needs %s and may not be null", nxc_type_name(domain->type));
    return (nxc_verdict){.misfit = NXC_NOT_NULLABLE, .problem = problem};
  }
  switch (domain->type) {
  case NXC_TYPE_INT:
  case NXC_TYPE_FLOAT:
  case NXC_TYPE_INT_OR_FLOAT: return judge_number(arena, domain, value);
  case NXC_TYPE_BOOL:
    return value->kind == NXC_BOOL ? fits(value) : not_a_boolean(arena, domain, value);
  case NXC_TYPE_BIT: return judge_bit(arena, domain, value);
  case NXC_TYPE_ENUM: return judge_word(arena, domain, value);
  case NXC_TYPE_STR:
  case NXC_TYPE_PATH: return judge_text(arena, domain, value, lenient);
  case NXC_TYPE_LIST:
  case NXC_TYPE_LIST_INT:
  case NXC_TYPE_LIST_FLOAT:
  case NXC_TYPE_LIST_STR: return judge_list(arena, domain, value, lenient);
  case NXC_TYPE_MAP: return value->kind == NXC_MAP ? fits(value) : wrong_type(arena, domain, value, NULL);
  case NXC_TYPE_ANY: break;
  }
  return fits(value);
}
