/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of the catalogue's rows, each once: X(row, kind, member, key).
 *
 * `key` is the field's name in the yaml files of schema, `member` its name in C, and its kind says what
 * becomes of it. The rows as libcyaml reads them, the checks of the build, the tables that it writes, and
 * their types in catalogue.h are all made of these lists: a further field is a line here. `row` is handed
 * through.
 *
 *   TEXT        a text, in the table as it stands
 *   TEXTS       a list of texts; the table has n_member of them
 *   EXPRESSION  a text that is an expression; BEFORE, one in which the option has no value yet
 *   TEMPLATE    a text with {names} and {=expressions} in it
 *   FLAG        yes or no, in the table a bool
 *   OWN, OWNS   a text, a list of texts that the generator makes something else of (catalogue_gen.c) */
#ifndef NXC_FIELDS_H
#define NXC_FIELDS_H

#define NXC_SETTING_FIELDS(X, row)                                                                           \
  X(row, OWN, setting, "setting")                                                                            \
  X(row, OWN, type, "type")                                                                                  \
  X(row, OWNS, values, "values")                                                                             \
  X(row, OWN, values_of, "values_of")                                                                        \
  X(row, OWN, initial, "default")                                                                            \
  X(row, OWN, min, "min")                                                                                    \
  X(row, OWN, max, "max")                                                                                    \
  X(row, OWN, above, "above")                                                                                \
  X(row, TEXT, unit, "unit")                                                                                 \
  X(row, OWN, meaning, "meaning")                                                                            \
  X(row, FLAG, shorthand, "shorthand")      /* a name for other settings, which say what it means */         \
  X(row, EXPRESSION, read_when, "for")      /* elsewhere it means nothing; NULL: it always does */           \
  X(row, OWN, needed, "needed")                                                                              \
  X(row, OWN, changes, "changes")                                                                            \
  X(row, EXPRESSION, refused_when, "refused_when") /* nxrun cannot execute it, whatever the dialect */       \
  X(row, TEXT, why, "why")                                                                                   \
  X(row, TEXT, instead, "instead")                                                                           \
  X(row, TEXT, doc, "doc")                                                                                   \
  X(row, TEXT, runs, "runs")

#define NXC_OPTION_FIELDS(X, row)                                                                            \
  X(row, OWN, option, "option")                                                                              \
  X(row, OWN, type, "type")                                                                                  \
  X(row, OWNS, values, "values")                                                                             \
  X(row, OWN, nullable, "nullable")                                                                          \
  X(row, EXPRESSION, required, "required")                                                                   \
  X(row, OWN, initial, "default")                                                                            \
  X(row, OWN, min, "min")                                                                                    \
  X(row, OWN, max, "max")                                                                                    \
  X(row, OWN, above, "above")                                                                                \
  X(row, EXPRESSION, read_when, "for")                                                                       \
  X(row, OWNS, sets, "sets")                                                                                 \
  X(row, BEFORE, from, "from") /* the value that says the settings; NULL: found by trying (compose.h) */     \
  X(row, OWNS, exports, "exports")                                                                           \
  X(row, OWN, status, "status")                                                                              \
  X(row, OWN, changes, "changes")                                                                            \
  X(row, EXPRESSION, refused_when, "refused_when")                                                           \
  X(row, TEXT, why, "why")                                                                                   \
  X(row, TEXT, instead, "instead")                                                                           \
  X(row, TEXT, names, "names") /* what its value names: model, title, tokenizer, family, class */           \
  X(row, TEXT, alias_of, "alias_of")                                                                         \
  X(row, TEXT, became, "became")          /* how the versions without it say the same; NULL: not at all */   \
  X(row, TEXTS, nearest_to, "nearest_to") /* misspellings worth knowing */                                   \
  X(row, TEXTS, versions, "versions")     /* that have it, names or spans of days; none: all */              \
  X(row, OWNS, words_in, "words_in")                                                                         \
  X(row, OWNS, defaults_in, "defaults_in")                                                                   \
  X(row, TEXT, doc, "doc")                                                                                   \
  X(row, TEXT, source, "source")

#define NXC_FIXED_FIELDS(X, row)                                                                             \
  X(row, OWN, fixed, "fixed")                                                                                \
  X(row, OWNS, absent, "absent")                                                                             \
  X(row, OWNS, unknown, "unknown")                                                                           \
  X(row, EXPRESSION, value, "value") /* of what is absent NULL: the setting's default changes nothing */     \
  X(row, TEXT, why, "why")                                                                                   \
  X(row, TEXT, source, "source")

/* Types are fp32, bf16, fp16 or none. */
#define NXC_PRESET_FIELDS(X, row)                                                                            \
  X(row, OWN, preset, "preset")                                                                              \
  X(row, TEXT, dialect, "dialect")                                                                           \
  X(row, OWNS, spellings, "spellings")                                                                       \
  X(row, TEXT, param, "param")                                                                               \
  X(row, TEXT, compute, "compute")                                                                           \
  X(row, TEXT, master, "master")                                                                             \
  X(row, TEXT, gradient, "gradient")                                                                         \
  X(row, TEXT, optimizer_state, "optimizer_state")                                                           \
  X(row, TEXT, reduce, "reduce")                                                                             \
  X(row, FLAG, stochastic_rounding, "stochastic_rounding")                                                   \
  X(row, FLAG, refused, "refused")                                                                           \
  X(row, TEXT, doc, "doc")                                                                                   \
  X(row, TEXT, note, "note")                                                                                 \
  X(row, OWN, source, "source")

#define NXC_RULE_FIELDS(X, row)                                                                              \
  X(row, OWN, rule, "rule")                                                                                  \
  X(row, TEXT, dialect, "dialect") /* NULL: every dialect */                                                 \
  X(row, TEXT, except, "except")   /* of every dialect the one that it does not hold in; NULL: none */       \
  X(row, TEXTS, versions, "versions")                                                                        \
  X(row, OWN, severity, "severity")                                                                          \
  X(row, FLAG, structural, "structural") /* no program has a shape without it: judged again before one is */ \
                                         /* built, and never allowed */                                      \
  X(row, TEXT, after, "after") /* a rule with a smaller id: where that one is broken this says nothing */    \
  X(row, EXPRESSION, when, "when")       /* NULL: always */                                                  \
  X(row, EXPRESSION, require, "require") /* NULL where the rule derives */                                   \
  X(row, OWN, derive, "derive")                                                                              \
  X(row, EXPRESSION, at, "at") /* settings or @options: the first that stands somewhere */                   \
  X(row, TEMPLATE, message, "message")                                                                       \
  X(row, TEMPLATE, fix, "fix")                                                                               \
  X(row, TEXT, explain, "explain")                                                                           \
  X(row, TEXT, source, "source")

#define NXC_DIAGNOSTIC_FIELDS(X, row)                                                                        \
  X(row, OWN, diagnostic, "diagnostic")                                                                      \
  X(row, TEXT, title, "title")                                                                               \
  X(row, TEXT, explain, "explain")

/* -- of what a table has --------------------------------------------------------------------------------- */

#define NXC_FIELD(row, kind, member, key) NXC_FIELD_##kind(member)
#define NXC_FIELD_TEXT(member) const char *member;
#define NXC_FIELD_TEXTS(member) \
  const char *const *member;    \
  size_t n_##member;
#define NXC_FIELD_EXPRESSION(member) const char *member;
#define NXC_FIELD_BEFORE(member) const char *member;
#define NXC_FIELD_TEMPLATE(member) const char *member;
#define NXC_FIELD_FLAG(member) bool member;
#define NXC_FIELD_OWN(member)
#define NXC_FIELD_OWNS(member)

/* -- of what libcyaml reads: every field is text, NULL where it is absent -------------------------------- */

#define NXC_READ(row, kind, member, key) NXC_READ_##kind(member)
#define NXC_READ_TEXT(member) char *member;
#define NXC_READ_TEXTS(member) \
  char **member;               \
  unsigned member##_count;
#define NXC_READ_EXPRESSION(member) NXC_READ_TEXT(member)
#define NXC_READ_BEFORE(member) NXC_READ_TEXT(member)
#define NXC_READ_TEMPLATE(member) NXC_READ_TEXT(member)
#define NXC_READ_FLAG(member) NXC_READ_TEXT(member)
#define NXC_READ_OWN(member) NXC_READ_TEXT(member)
#define NXC_READ_OWNS(member) NXC_READ_TEXTS(member)

/* What tells libcyaml so; <cyaml/cyaml.h> and `text_item`, the schema of a text, are the user's. */
#define NXC_CYAML(row, kind, member, key) NXC_CYAML_##kind(row, member, key)
#define NXC_CYAML_TEXT(row, member, key)                                                                    \
  CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, row, member, 0, CYAML_UNLIMITED),
#define NXC_CYAML_TEXTS(row, member, key)                                                                   \
  CYAML_FIELD_SEQUENCE(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, row, member, &text_item, 0,           \
                       CYAML_UNLIMITED),
#define NXC_CYAML_EXPRESSION(row, member, key) NXC_CYAML_TEXT(row, member, key)
#define NXC_CYAML_BEFORE(row, member, key) NXC_CYAML_TEXT(row, member, key)
#define NXC_CYAML_TEMPLATE(row, member, key) NXC_CYAML_TEXT(row, member, key)
#define NXC_CYAML_FLAG(row, member, key) NXC_CYAML_TEXT(row, member, key)
#define NXC_CYAML_OWN(row, member, key) NXC_CYAML_TEXT(row, member, key)
#define NXC_CYAML_OWNS(row, member, key) NXC_CYAML_TEXTS(row, member, key)

#endif
