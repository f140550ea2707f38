/* SPDX-License-Identifier: Apache-2.0 */
/* What a name that is asked about may mean: one setting or option, or a list of those that it is a part of.
 */
#ifndef NXC_COMMANDS_EXPLAIN_H
#define NXC_COMMANDS_EXPLAIN_H

#include "compiler/config/binding/dialect.h"
#include "compiler/config/rules/rules.h"

typedef struct nxc_explain_search {
  nxc_arena *arena;
  const char *only; /* the dialect asked for, or NULL */
  size_t n_found;
  nxc_site_rules site; /* of --rules */
} nxc_explain_search;

/* A paragraph of words behind its label, filled to the width of a screen. */
void nxc_explain_paragraph(const char *label, const char *text);
bool nxc_explain_searches(const nxc_explain_search *s, const nxc_dialect *dialect);
/* An empty line between what is found. */
void nxc_explain_separate(nxc_explain_search *s);
void nxc_explain_setting(nxc_arena *arena, nxc_setting_id id);
void nxc_explain_option(nxc_arena *arena, const nxc_dialect *dialect, const nxc_option_row *row);

/* Names that end so; one is explained, of several there is a list. */
void nxc_explain_ends(nxc_explain_search *s, const char *end);
/* The settings and options of a group. */
void nxc_explain_group(nxc_explain_search *s, const char *name);
/* The settings and options that take this word. */
void nxc_explain_values(nxc_explain_search *s, const char *word);
/* Names and first sentences that have all these words. */
void nxc_explain_words(nxc_explain_search *s, const char *words);
/* On stderr: that nothing is found, and what is near. */
void nxc_explain_nothing(const nxc_explain_search *s, const char *name);

#endif
