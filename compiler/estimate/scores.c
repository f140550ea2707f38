/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/estimate/scores.h"


#include <math.h>
#include <string.h>

/* Keys that a query reads of those that a layout lets live, in whole blocks. */
static double keys_of_layout(const nxc_model *m, const nxc_attention_spec *attention, int64_t tokens) {
  nxc_arena *arena = nxc_arena_new();
  nxc_sparse_layout layout =
      nxc_sparse_layout_make(arena, &m->sparsity, attention->sparse, attention->heads, tokens);
  double live = 0;
  for (int64_t i = 0; i < layout.n_layouts * layout.n_blocks * layout.n_words; i++)
    live += __builtin_popcountll((unsigned long long)layout.bits[i]);
  nxc_arena_free(arena);
  return live / (double)(layout.n_layouts * layout.n_blocks) * (double)m->sparsity.block;
}

enum { MOST_BLOCKS = 1024 };

/* Layouts of long sequences are not made: keys go on as they grow up to there. */
static double sparse_keys(const nxc_model *m, const nxc_attention_spec *attention) {
  int64_t most = MOST_BLOCKS * m->sparsity.block;
  if (m->sequence <= most) return keys_of_layout(m, attention, m->sequence);
  double half = keys_of_layout(m, attention, most / 2), all = keys_of_layout(m, attention, most);
  return all + (all - half) / (double)(most / 2) * (double)(m->sequence - most);
}

static void read_sparse_keys(const nxc_model *m, nxc_sizes *z) {
  double n = 0, keys = 0;
  for (uint32_t i = 0; i < m->n_specs; i++) {
    const nxc_attention_spec *attention = &m->specs[i].attention;
    double layers = 0;
    for (int64_t layer = 0; layer < m->layers; layer++) layers += m->spec_of[layer] == i;
    if (attention->sparse == NXC_SPARSE_NONE || layers == 0) continue;
    n += layers;
    keys += layers * sparse_keys(m, attention);
  }
  z->sparse_keys = n > 0 ? keys / n : 0;
}

/* ---- layers ---- */

static bool is_flash(const nxc_sizes *z, int64_t layer) {
  if (z->n_flash_pattern == 0) return z->flash_all;
  return strcmp(z->flash_pattern[(size_t)layer % z->n_flash_pattern].text, "flash") == 0;
}

void nxc_scores_see(const nxc_model *m, const nxc_sizes *z, int64_t layer, nxc_scores *s) {
  bool sparse = nxc_model_layer(m, layer)->attention.sparse != NXC_SPARSE_NONE;
  bool flash = !sparse && is_flash(z, layer);
  double scores = sparse ? z->sparse_keys : flash ? 0 : z->sequence;
  s->layers++;
  s->sparse += sparse;
  s->flash += flash;
  s->stored += scores;
  s->group += scores;
  s->most = fmax(s->most, s->group / fmax(1, z->recompute_layers));
  if (++s->n_group >= z->recompute_layers) s->group = s->n_group = 0;
}

void nxc_scores_sum_up(const nxc_scores *s, nxc_sizes *z) {
  if (s->layers == 0) return;
  z->sparse = s->sparse / s->layers;
  z->flash = s->sparse < s->layers ? s->flash / (s->layers - s->sparse) : z->flash_all;
  z->scores = z->recomputes_all && !z->recompute_block ? s->most : s->stored / s->layers;
}

void nxc_scores_read(const nxc_training *t, const nxc_settings *settings, nxc_sizes *z) {
  nxc_scores s = {0};
  z->flash_all =
      nxc_has(settings, NX_SETTING_ATTENTION_FLASH) && nxc_flag(settings, NX_SETTING_ATTENTION_FLASH);
  if (nxc_has(settings, NX_SETTING_ATTENTION_FLASH_PATTERN))
    z->flash_pattern = nxc_list(settings, NX_SETTING_ATTENTION_FLASH_PATTERN, &z->n_flash_pattern);
  read_sparse_keys(&t->model, z);
  for (int64_t layer = 0; layer < t->model.layers; layer++) nxc_scores_see(&t->model, z, layer, &s);
  nxc_scores_sum_up(&s, z);
}
