/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/estimate/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Layers of the stage whose activations are kept, and of which only the input is. */
typedef struct kept_layers {
  double whole, again;
} kept_layers;

static kept_layers layers_kept(const nxc_sizes *z) {
  if (!z->recomputes_all) return (kept_layers){z->stage_layers, 0};
  double of_chunk = nxc_sizes_chunk_layers(z);
  if (!z->recompute_block) return (kept_layers){0, z->chunks * ceil(of_chunk / fmax(1, z->recompute_layers))};
  double again = z->chunks * fmin(of_chunk, z->recompute_layers);
  return (kept_layers){z->stage_layers - again, again};
}

/* Micro-batches at the peak. Where experts' exchanges go on beneath another one's work, that has begun before
 * its chunk's turn; without stages its first layer stands beside the last one of the other. */
static double at_peak(const nxc_sizes *z) {
  if (z->overlap_experts == 0 || z->stage_layers == 0) return z->in_flight;
  return z->in_flight + 1 / (z->pipeline > 1 ? z->chunks : z->stage_layers);
}

/* How often a row of this kind stands in memory at the peak. */
static double times(nxc_keep keep, const nxc_sizes *z) {
  kept_layers layers = layers_kept(z);
  double mixtures = z->stage_layers > 0 ? z->stage_mixtures / z->stage_layers : 0;
  switch (keep) {
  case NXC_KEEP_LAYER: return layers.whole * at_peak(z);
  case NXC_KEEP_DENSE: return layers.whole * (1 - mixtures) * at_peak(z);
  case NXC_KEEP_MIXTURE: return layers.whole * mixtures * at_peak(z);
  case NXC_KEEP_INPUT: return layers.again * at_peak(z);
  case NXC_KEEP_BATCH: return at_peak(z);
  default: return 1;
  }
}

/* Of layers of both kinds the one that has more. */
static double of_largest(const nxc_sizes *z, double layer, double dense, double mixture) {
  if (z->stage_mixtures == 0) return layer + dense;
  return layer + fmax(mixture, z->stage_mixtures < z->stage_layers ? dense : 0);
}

/* The activations of the layers that are computed again together, for one micro-batch. */
static double working_set(const nxc_kept *kept, size_t n_kept, const nxc_sizes *z) {
  double layer = 0, dense = 0, mixture = 0;
  for (size_t i = 0; i < n_kept; i++) {
    if (kept[i].row->keep == NXC_KEEP_LAYER) layer += kept[i].bytes;
    if (kept[i].row->keep == NXC_KEEP_DENSE) dense += kept[i].bytes;
    if (kept[i].row->keep == NXC_KEEP_MIXTURE) mixture += kept[i].bytes;
  }
  if (!z->recomputes_all) return 0;
  double together = z->recompute_block ? 1 : fmin(nxc_sizes_chunk_layers(z), z->recompute_layers);
  return of_largest(z, layer, dense, mixture) * fmax(1, together);
}

/* ---- what is in the host's memory ---- */

static bool is_of_layers(nxc_keep keep) {
  return keep == NXC_KEEP_LAYER || keep == NXC_KEEP_DENSE || keep == NXC_KEEP_MIXTURE ||
         keep == NXC_KEEP_INPUT;
}

/* Without names everything that a layer keeps waits there. */
static bool waits(const nxc_system_row *row, const nxc_sizes *z) {
  for (size_t i = 0; i < z->n_offload_modules && row->input_of != NULL; i++)
    if (strcmp(z->offload_modules[i].text, row->input_of) == 0) return true;
  return z->offload_modules == NULL;
}

/* The share of a row that is not in the device's memory. */
static double share_away(const nxc_system_row *row, const nxc_sizes *z) {
  if (row->part == NXC_PART_OPTIMIZER) return z->offload_optimizer;
  if (row->part != NXC_PART_ACTIVATIONS || !is_of_layers(row->keep)) return 0;
  return waits(row, z) ? z->offload_activations : 0;
}

/* One layer is on its way while another is at work, or as much as the system lets be of what goes there. */
static double on_the_way(const nxc_kept *kept, size_t n_kept, const nxc_sizes *z, double at_most,
                         double away) {
  double of[NXC_N_KEEPS] = {0};
  if (at_most > 0) return fmin(at_most, away);
  for (size_t i = 0; i < n_kept; i++)
    if (is_of_layers(kept[i].row->keep)) of[kept[i].row->keep] += kept[i].bytes * share_away(kept[i].row, z);
  if (z->recomputes_all) return 2 * of[NXC_KEEP_INPUT];
  return 2 * of_largest(z, of[NXC_KEEP_LAYER], of[NXC_KEEP_DENSE], of[NXC_KEEP_MIXTURE]);
}

/* Of one micro-batch, of which some stays on the device first. */
static double sent_away(const nxc_kept *kept, size_t n_kept, const nxc_sizes *z) {
  double bytes = 0;
  for (size_t i = 0; i < n_kept; i++)
    if (is_of_layers(kept[i].row->keep))
      bytes += kept[i].bytes * share_away(kept[i].row, z) * times(kept[i].row->keep, z) / at_peak(z);
  return bytes;
}

double nxc_own_offloaded(const nxc_system *system, const nxc_sizes *z, const nxc_training *training,
                         nxc_arena *arena) {
  if (z->offload_activations == 0) return 0;
  size_t n_kept;
  nxc_kept *kept = nxc_system_keeps(system, z, training, arena, &n_kept);
  return fmax(0, sent_away(kept, n_kept, z) - z->kept_bytes);
}

/* ---- in all ---- */

/* Context and kernels, as a first tensor of PyTorch shows them (transformers, "Methods and tools for
 * efficient training on a single GPU"). */
static const double context_bytes = 1343 * 1048576.0;

double nxc_own_taken(const nxc_device *device, double tensors, double ranks) {
  double reserved = (double)device->reserved_bytes;
  return tensors * device->allocator + (ranks > 1 ? reserved : fmin(reserved, context_bytes));
}

static int compare_lines(const void *a, const void *b) {
  double left = ((const nxc_memory_line *)a)->bytes, right = ((const nxc_memory_line *)b)->bytes;
  return (left < right) - (left > right);
}

/* What grows replaces the activations layer by layer, so that most is needed before the pass back, or after
 * it. */
static void leave_out_grown(nxc_own_memory *m) {
  double going = 0;
  for (size_t i = 0; i < m->n_lines; i++)
    if (m->lines[i].row->part == NXC_PART_ACTIVATIONS) going += m->lines[i].bytes;
  for (size_t i = 0; i < m->n_lines; i++) {
    if (m->lines[i].row->keep != NXC_KEEP_GROWING) continue;
    double replaces = fmin(going, m->lines[i].bytes);
    m->lines[i].bytes -= replaces;
    going -= replaces;
  }
}

static nxc_own_memory of_stage(const nxc_system *system, const nxc_sizes *z, const nxc_training *training,
                               nxc_arena *arena) {
  static const nxc_system_row again = {
      .name = "layers that are computed again", .keep = NXC_KEEP_TRANSIENT, .part = NXC_PART_ACTIVATIONS};
  static const nxc_system_row moving = {
      .name = "layers on their way to the host and back", .keep = NXC_KEEP_STAGE, .part = NXC_PART_BUFFERS};
  static const nxc_system_row staying = {
      .name = "activations that stay before others go to the host", .keep = NXC_KEEP_STAGE,
      .part = NXC_PART_ACTIVATIONS};
  size_t n_kept;
  nxc_kept *kept = nxc_system_keeps(system, z, training, arena, &n_kept);
  nxc_own_memory m = {.lines = nxc_arena_array(arena, n_kept + 3, sizeof *m.lines)};
  nxc_memory_line largest = {&again, working_set(kept, n_kept, z)};
  for (size_t i = 0; i < n_kept; i++) {
    nxc_memory_line line = {kept[i].row, kept[i].bytes * times(kept[i].row->keep, z)};
    line.bytes *= 1 - share_away(line.row, z);
    if (line.row->keep != NXC_KEEP_TRANSIENT) m.lines[m.n_lines++] = line;
    else if (line.bytes > largest.bytes) largest = line;
  }
  if (largest.bytes > 0) m.lines[m.n_lines++] = largest;
  if (z->offload_activations > 0) {
    double away = sent_away(kept, n_kept, z), stays = fmin(z->kept_bytes, away);
    double at_most = nxc_system_traits(system, z, arena).moving_bytes;
    m.lines[m.n_lines++] = (nxc_memory_line){&moving, on_the_way(kept, n_kept, z, at_most, away - stays)};
    if (stays > 0) m.lines[m.n_lines++] = (nxc_memory_line){&staying, stays * z->in_flight};
  }
  if (z->micro_batches == 1) leave_out_grown(&m);
  for (size_t i = 0; i < m.n_lines; i++) {
    m.parts[m.lines[i].row->part] += m.lines[i].bytes;
    m.total += m.lines[i].bytes;
  }
  qsort(m.lines, m.n_lines, sizeof *m.lines, compare_lines);
  return m;
}

nxc_own_memory nxc_own_memory_of_stage(const nxc_system *system, const nxc_sizes *sizes,
                                       const nxc_training *training, uint32_t stage, nxc_arena *arena) {
  nxc_sizes z;
  nxc_sizes_of_stage(sizes, training, stage, &z);
  nxc_own_memory m = of_stage(system, &z, training, arena);
  m.stage = stage;
  return m;
}

nxc_own_memory nxc_own_memory_of(const nxc_system *system, const nxc_sizes *sizes,
                                 const nxc_training *training, nxc_arena *arena) {
  nxc_own_memory most = {.total = -1};
  nxc_stage_kind *kinds;
  size_t n_kinds = nxc_sizes_of_stages(sizes, training, arena, &kinds);
  for (size_t i = 0; i < n_kinds; i++) {
    nxc_own_memory m = nxc_own_memory_of_stage(system, sizes, training, kinds[i].stage, arena);
    if (m.total > most.total) most = m;
  }
  return most;
}
