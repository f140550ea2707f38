/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/tally.h"

#include "compiler/edit/fixes.h"
#include "compiler/render/screen.h"
#include "compiler/settings/catalogue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void count(nxc_tally *tally, const nxc_finding *finding) {
  size_t n = 0;
  while (n < tally->n_kinds && (strcmp(tally->kinds[n].id, finding->id) != 0 ||
                                tally->kinds[n].severity != finding->severity))
    n++;
  if (n == tally->n_kinds) {
    tally->kinds = nxc_arena_grow(tally->arena, tally->kinds, tally->n_kinds, sizeof *tally->kinds);
    const char *id = nxc_arena_strdup(tally->arena, finding->id);
    tally->kinds[tally->n_kinds++] = (nxc_tally_kind){id, finding->severity, 0};
  }
  tally->kinds[n].n_findings++;
}

void nxc_tally_add(nxc_tally *tally, const nxc_judged *judged) {
  const nxc_sink *sink = judged->sink;
  if (judged->compiled.foreign) {
    tally->n_foreign++;
    return;
  }
  size_t n_errors = nxc_sink_count(sink, NXC_SEVERITY_ERROR);
  tally->n_files++;
  tally->n_wrong += n_errors > 0;
  tally->n_errors += n_errors;
  tally->n_warnings += nxc_sink_count(sink, NXC_SEVERITY_WARNING);
  nxc_fixes_count(sink, tally->notes, &tally->n_safe, &tally->n_unsafe);
  for (size_t i = 0; i < nxc_sink_n_findings(sink); i++) {
    const nxc_finding *finding = nxc_sink_finding(sink, i);
    if (tally->notes || finding->severity > NXC_SEVERITY_NOTE) count(tally, finding);
  }
}

static const char *plural(size_t n) {
  return n == 1 ? "" : "s";
}

void nxc_tally_print(const nxc_tally *tally) {
  if (tally->n_files > 1)
    printf("%zu files: %zu valid, %zu wrong; %zu error%s, %zu warning%s\n", tally->n_files,
           tally->n_files - tally->n_wrong, tally->n_wrong, tally->n_errors, plural(tally->n_errors),
           tally->n_warnings, plural(tally->n_warnings));
  if (tally->n_safe > 0) printf("%zu can be mended with --fix", tally->n_safe);
  if (tally->n_unsafe > 0)
    printf("%s%zu%s with --fix --unsafe", tally->n_safe ? ", " : "", tally->n_unsafe,
           tally->n_safe ? " more" : " can be mended");
  if (tally->n_safe + tally->n_unsafe > 0) puts(" (--diff shows how)");
}

static int compare_kinds(const void *left, const void *right) {
  const nxc_tally_kind *a = left, *b = right;
  if (a->n_findings != b->n_findings) return a->n_findings < b->n_findings ? 1 : -1;
  return strcmp(a->id, b->id);
}

void nxc_tally_print_statistics(const nxc_tally *tally) {
  if (tally->n_kinds > 0) qsort(tally->kinds, tally->n_kinds, sizeof *tally->kinds, compare_kinds);
  for (size_t i = 0; i < tally->n_kinds; i++) {
    const nxc_tally_kind *kind = &tally->kinds[i];
    const nxc_rule_row *rule = nxc_rule_find(kind->id);
    const nxc_diagnostic_row *diagnostic = nxc_diagnostic_find(kind->id);
    const char *title = diagnostic ? diagnostic->title
                        : rule     ? nxc_message_readable(tally->arena, rule->message)
                                   : "";
    const char *label = nxc_arena_printf(tally->arena, "%7zu  %-7s  %-7s  ", kind->n_findings, kind->id,
                                         nxc_severity_name(kind->severity));
    nxc_print_filled(stdout, 27, label, 0, title, "");
  }
}
