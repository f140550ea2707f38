/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of schema/rules at work: deriving settings, and demanding what must hold.
 *
 * A run belongs to one settings record and, where there is a document, its binding. Deriving rules run to
 * a fixed point: one fills a setting that is unknown or stands at the catalogue's default; one that has a
 * message overrides what the user said and reports it. Then each demanding rule whose inputs are known is
 * judged once, and its finding shows every input with its value and where that came from. A rule whose
 * outcome depends on something unknown is skipped and listed. A rule's inputs are the free names of its
 * expressions. */
#ifndef NXC_CONFIG_RULES_H
#define NXC_CONFIG_RULES_H

#include "compiler/config/binding/dialect.h"
#include "compiler/settings/settings.h"

typedef struct nxc_skipped_rule {
  const nxc_rule_row *rule;
  const char *missing; /* names of the unknown inputs, in the user's words */
  const char *failure; /* it could not be judged: "division by zero"; NULL where inputs are unknown */
} nxc_skipped_rule;

typedef struct nxc_site_rules {
  const nxc_rule_row *rows;
  size_t n_rows;
} nxc_site_rules;

typedef struct nxc_rule_run {
  nxc_arena *arena;
  nxc_settings *settings;
  nxc_binding *binding; /* NULL: no dialect; rules of dialects then do not apply */
  bool structural;      /* structural rules alone, and nothing allows what they find */
  nxc_sink *sink;
  nxc_site_rules site; /* derive before the catalogue's, and demand after them */
  nxc_skipped_rule *skipped;
  size_t n_skipped;
  const nxc_rule_row **broken; /* rules that were violated */
  size_t n_broken;
} nxc_rule_run;

/* False when a derived value does not fit its setting (reported). */
bool nxc_rules_derive(nxc_rule_run *run);
/* False when a rule of severity error is violated. */
bool nxc_rules_check(nxc_rule_run *run);
/* The structural rules on settings alone, whatever was allowed before. False, with findings, where one is
 * violated or what it asks about is unknown: no program has a shape then. */
bool nxc_rules_check_structure(const nxc_settings *settings, nxc_sink *sink);

#endif
