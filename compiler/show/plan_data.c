/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/show/plan_dump.h"

#include "compiler/diagnostics/characters.h"

static const char *const samplers[] = {[NX_SAMPLER_STREAM] = "one stream of all documents",
                                       [NX_SAMPLER_DOCUMENT] = "a document each",
                                       [NX_SAMPLER_PACKED] = "whole documents, packed",
                                       [NX_SAMPLER_PAIRS] = "pairs of documents"};
static const char *const blends[] = {[NX_BLEND_WEIGHTS] = "by weights",
                                     [NX_BLEND_SAMPLES] = "by their samples",
                                     [NX_BLEND_DOCUMENTS] = "by their documents",
                                     [NX_BLEND_EPOCHS] = "equally often, an epoch again and again"};
static const char *const orders[] = {[NX_ORDER_EPOCHS] = "shuffled",
                                     [NX_ORDER_MEGATRON] = "shuffled as Megatron does",
                                     [NX_ORDER_NEOX] = "shuffled as GPT-NeoX does"};
static const char *const splits[] = {[NX_SPLIT_SUMS] = "ends rounded",
                                     [NX_SPLIT_EACH] = "each part rounded",
                                     [NX_SPLIT_LAST] = "validation rounded up, the last"};

/* Which of its documents a source gives. */
static void print_documents(const nx_source *source, FILE *out) {
  double before = 0;
  for (uint32_t i = 0; i < source->part; i++) before += source->shares[i];
  double end = before + source->shares[source->part];
  if (source->n_last > 0 && source->part == 1) fprintf(out, "the last %u documents", source->n_last);
  else if (source->n_last > 0) fprintf(out, "all documents but the last %u", source->n_last);
  else if (before <= 0 && end >= 1) fputs("all documents", out);
  else fprintf(out, "documents from %.6g %% to %.6g %%, %s", 100 * before, 100 * end, splits[source->split]);
}

static void print_source(const nx_plan *plan, const nx_dataset *set, const nx_source *source, FILE *out) {
  if (set->n_sources > 1 && set->blend == NX_BLEND_WEIGHTS) fprintf(out, "  %8.6f  ", source->weight);
  else fputs("  ", out);
  if (source->prefix == 0) fputs("made-up tokens", out);
  else nxc_characters_print(nx_plan_string(plan, source->prefix), out);
  fputs(": ", out);
  print_documents(source, out);
  fputc('\n', out);
}

void nxc_dump_data(const nx_plan *plan, FILE *out) {
  for (uint32_t i = 0; i < plan->n[NX_SECTION_DATASETS]; i++) {
    const nx_dataset *set = &plan->datasets[i];
    nxc_characters_print(nx_plan_string(plan, set->name), out);
    fprintf(out, ": %s, %s", samplers[set->sampler], set->shuffle ? orders[set->order] : "in order");
    if (set->n_sources > 1) fprintf(out, ", %u sources %s", set->n_sources, blends[set->blend]);
    if (set->blend == NX_BLEND_DOCUMENTS) fprintf(out, " to the power of %g", set->blend_alpha);
    fputc('\n', out);
    for (uint32_t at = 0; at < set->n_sources; at++)
      print_source(plan, set, &plan->sources[set->first_source + at], out);
  }
}
