/* SPDX-License-Identifier: Apache-2.0 */
/* An open text, judged as `nxcfg validate` judges the file: its findings, and what stands at a place of it.
 *
 * Each analysis is made afresh of the whole text, so it is what the command line says of the same text,
 * however the editor came to it. It reads what else is open in place of the files. */
#ifndef NXC_SERVER_ANALYSIS_H
#define NXC_SERVER_ANALYSIS_H

#include "compiler/commands/judged.h"
#include "compiler/server/texts.h"

typedef struct nxc_analysis {
  nxc_judged judged;         /* judged.arena holds all of it */
  const nxc_open_text *open; /* as it was analysed */
} nxc_analysis;

nxc_analysis *nxc_analyse(const nxc_texts_open *texts, const nxc_open_text *open);
void nxc_analysis_free(nxc_analysis *analysis);

/* Whether a span stands in the open text itself, and not in a file over it or in its project. */
bool nxc_analysis_has(const nxc_analysis *analysis, nxc_span at);
json_t *nxc_analysis_range(const nxc_analysis *analysis, nxc_span at);
/* The key, or the scalar value, at a byte; NULL: none. *on_key tells which. */
const nxc_node *nxc_analysis_node(const nxc_analysis *analysis, size_t offset, bool *on_key);
/* The option that a node gives; NULL: it gives none. */
const nxc_bound *nxc_analysis_option(const nxc_analysis *analysis, const nxc_node *node);

/* A step of a path within an interpolation, such as `data` in ${data.seq_length}: it names a node. */
typedef struct nxc_mention {
  const nxc_node *in; /* the scalar */
  nxc_span at;
  const nxc_node *named;
} nxc_mention;

/* Each of the text; *n_mentions receives how many. */
const nxc_mention *nxc_analysis_mentions(const nxc_analysis *analysis, size_t *n_mentions);
/* The one at a byte; NULL: none. */
const nxc_mention *nxc_analysis_mention(const nxc_analysis *analysis, size_t offset);
/* Whether two nodes are one: a copy that an alias makes stands where the original does. */
bool nxc_node_is_same(const nxc_node *a, const nxc_node *b);

#endif
