/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/front/lenient.h"
#include "compiler/document/repair.h"

#include <string.h>

bool nxc_take_bit(const nxc_misfit_value *misfit, nxc_value *taken) {
  const nxc_value *value = misfit->value;
  bool bit = value->kind == NXC_INT && (value->integer == 0 || value->integer == 1);
  if (!bit || misfit->bound->row->domain.type != NXC_TYPE_BOOL) return false;
  *taken = (nxc_value){.kind = NXC_BOOL, .boolean = value->integer == 1};
  return true;
}

/* The bound that a misfit is of; NULL: one of config.json, which no loader is lenient with. */
static nxc_bound *bound_of(nxc_binding *binding, const nxc_misfit_value *misfit) {
  for (size_t i = 0; i < binding->dialect->n_options; i++)
    if (&binding->options[i] == misfit->bound) return &binding->options[i];
  return NULL;
}

void nxc_take_misfits(nxc_binding *binding, nxc_taking *take) {
  size_t n_kept = 0;
  for (size_t i = 0; i < binding->n_misfits; i++) {
    nxc_misfit_value misfit = binding->misfits[i];
    nxc_bound *bound = bound_of(binding, &misfit);
    nxc_value taken;
    if (bound != NULL && take(binding->arena, &misfit, &taken)) {
      nxc_verdict verdict = nxc_domain_judge(binding->arena, &bound->row->domain, &taken, true);
      if (verdict.misfit == NXC_FITS) {
        nxc_value *kept = nxc_arena_alloc(binding->arena, sizeof *kept);
        *kept = *verdict.value;
        bound->value = kept;
        continue;
      }
    }
    binding->misfits[n_kept++] = misfit;
  }
  binding->n_misfits = n_kept;
}

bool nxc_is_quoted_null(const nxc_node *node) {
  static const char *const words[] = {"None", "none", "null", "Null", "NULL", "~"};
  if (node->kind != NXC_NODE_SCALAR || node->style == NXC_STYLE_PLAIN || node->value.kind != NXC_STRING)
    return false;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(node->value.text, words[i]) == 0) return true;
  return false;
}

static bool is_null_text(const nxc_bound *bound) {
  bool text = bound->row->domain.type == NXC_TYPE_STR || bound->row->domain.type == NXC_TYPE_PATH;
  if (!text || !bound->row->domain.nullable || bound->node == NULL) return false;
  const nxc_node *final = nxc_node_final(bound->node);
  return final != NULL && nxc_is_quoted_null(final);
}

void nxc_note_null_texts(nxc_binding *binding) {
  for (size_t i = 0; i < binding->dialect->n_options; i++) {
    const nxc_bound *bound = &binding->options[i];
    if (!is_null_text(bound)) continue;
    nxc_report_repair(binding->sink, "NX1102", NXC_SEVERITY_WARNING, bound->node->at,
                      "write null, without quotes",
                      nxc_repair_value(binding->arena, nxc_node_final(bound->node), "null", false),
               "\"%s\" in quotes is a text, not an empty value", bound->value->text);
  }
}
