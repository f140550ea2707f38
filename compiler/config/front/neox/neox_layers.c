/* SPDX-License-Identifier: Apache-2.0 */
/* What each layer of a GPT-NeoX model is: attention_config written out, and pipe_partition_method. */
#include "compiler/config/front/neox/front_neox.h"

#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

enum { LAYERS_MAX = 100000 };

/* A finding about an option's value; the option is unknown afterwards. */
static void reject(nxc_binding *binding, nxc_bound *bound, const char *id, const char *fix,
                   const char *message) {
  nxc_span at = bound->node ? bound->node->at : bound->at;
  nxc_report(binding->sink, id, NXC_SEVERITY_ERROR, at, fix, "%s", message);
  bound->value = NULL;
}

/* How often the kinds of an entry repeat: its number, or as often as fills all layers. */
static bool repeats_of(nxc_binding *binding, nxc_bound *bound, const nxc_value *entry, int64_t n_layers,
                       int64_t *n_repeats) {
  const nxc_value *kinds = &entry->items[0], *count = &entry->items[1];
  int64_t n_kinds = (int64_t)kinds->n_items;
  *n_repeats = count->kind == NXC_INT && count->digits == NULL ? count->integer : 0;
  if (count->kind == NXC_INT && *n_repeats > 0 && *n_repeats <= LAYERS_MAX / n_kinds) return true;
  if (count->kind != NXC_STRING || strcmp(count->text, "all") != 0) {
    reject(binding, bound, "NX6905", "write [[[\"global\"], 12]], or \"all\" in place of the number",
           "attention_config repeats each list of kinds a whole number of times, or \"all\"");
    return false;
  }
  *n_repeats = n_layers / n_kinds;
  if (n_layers % n_kinds == 0) return true;
  reject(binding, bound, "NX6905",
         "write how often they repeat in place of \"all\", or another list of kinds",
         nxc_arena_printf(binding->arena, "%lld layers cannot be filled with a pattern of %lld kinds",
                          (long long)n_layers, (long long)n_kinds));
  return false;
}

static bool is_entry(const nxc_value *entry) {
  bool pair = entry->kind == NXC_LIST && entry->n_items == 2 && entry->items[0].kind == NXC_LIST;
  if (!pair || entry->items[0].n_items == 0) return false;
  for (size_t i = 0; i < entry->items[0].n_items; i++)
    if (entry->items[0].items[i].kind != NXC_STRING) return false;
  return true;
}

/* [[["local", "global"], "all"]] becomes local, global, local, global, ... */
void nxc_neox_expand_attention(nxc_binding *binding) {
  nxc_bound *bound = nxc_binding_find(binding, "attention_config");
  const nxc_bound *layers = nxc_binding_find(binding, "num_layers");
  if (bound == NULL || !bound->given || bound->value == NULL || bound->value->kind != NXC_LIST) return;
  bool known = layers->value != NULL && layers->value->kind == NXC_INT && layers->value->digits == NULL &&
               layers->value->integer > 0 && layers->value->integer <= LAYERS_MAX;
  const nxc_value *config = bound->value;
  nxc_value *kinds = NULL;
  size_t n_kinds = 0;
  if (!known) bound->value = NULL;
  for (size_t i = 0; i < config->n_items && known; i++) {
    const nxc_value *entry = &config->items[i];
    int64_t n_repeats;
    if (!is_entry(entry)) {
      reject(binding, bound, "NX6905",
             "write [[[\"global\"], 12]]: kinds in a list, then how often they repeat",
             "attention_config is a list of pairs: a list of kinds, and a number or \"all\"");
      return;
    }
    if (!repeats_of(binding, bound, entry, layers->value->integer, &n_repeats)) return;
    for (int64_t k = 0; k < n_repeats * (int64_t)entry->items[0].n_items && n_kinds <= LAYERS_MAX; k++) {
      kinds = nxc_arena_grow(binding->arena, kinds, n_kinds, sizeof *kinds);
      kinds[n_kinds++] = entry->items[0].items[k % (int64_t)entry->items[0].n_items];
    }
  }
  if (!known) return;
  nxc_value *expanded = nxc_arena_alloc(binding->arena, sizeof *expanded);
  *expanded = (nxc_value){.kind = NXC_LIST, .items = kinds, .n_items = n_kinds};
  bound->value = expanded;
}

/* type:PATTERN must be a pattern, and match a layer; the real system finds neither out before the model is
 * cut into stages. */
void nxc_neox_check_partition(nxc_binding *binding) {
  static const char *const classes[] = {
      "EmbeddingPipe",      "ParallelTransformerLayerPipe", "NormPipe",
      "ParallelLinearPipe", "RWKVResidualLayerPipe",        "ParallelMambaResidualLayerPipe"};
  nxc_bound *bound = nxc_binding_find(binding, "pipe_partition_method");
  if (bound == NULL || !bound->given || bound->value == NULL || bound->value->kind != NXC_STRING) return;
  const char *method = bound->value->text;
  if (strcmp(method, "parameters") == 0 || strcmp(method, "uniform") == 0) return;
  if (strncmp(method, "type:", 5) != 0) {
    reject(binding, bound, "NX6906", "write parameters, uniform, or type: and a pattern",
           nxc_arena_printf(binding->arena, "pipe_partition_method knows no %s", method));
    return;
  }
  int code;
  size_t offset;
  pcre2_code *pattern =
      pcre2_compile((PCRE2_SPTR)(method + 5), PCRE2_ZERO_TERMINATED, PCRE2_CASELESS, &code, &offset, NULL);
  if (pattern == NULL) {
    PCRE2_UCHAR why[120];
    pcre2_get_error_message(code, why, sizeof why);
    reject(binding, bound, "NX6906", "correct the pattern, or write type:transformer",
           nxc_arena_printf(binding->arena, "%s is no pattern: %s at character %zu", method + 5,
                            (const char *)why, offset + 1));
    return;
  }
  bool found = false;
  pcre2_match_data *match = pcre2_match_data_create(1, NULL);
  for (size_t i = 0; i < sizeof classes / sizeof *classes && !found; i++) {
    PCRE2_SPTR name = (PCRE2_SPTR)classes[i];
    found = pcre2_match(pattern, name, PCRE2_ZERO_TERMINATED, 0, 0, match, NULL) >= 0;
  }
  pcre2_match_data_free(match);
  pcre2_code_free(pattern);
  if (found) return;
  reject(binding, bound, "NX6906", "write type:transformer",
         nxc_arena_printf(binding->arena, "%s matches the name of no layer, so that no layer would count",
                          method + 5));
}
