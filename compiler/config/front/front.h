/* SPDX-License-Identifier: Apache-2.0 */
/* How a dialect's texts become the document that is bound to its options: what a row of the table (fronts.h)
 * says.
 *
 * A front takes everything that the user gave (a file, layers over it, assignments, arguments behind `--`)
 * and gives one tree, typed as the dialect's own loader would type it; what the dialect's ${...} means is its
 * front's matter too. Every node keeps the place that it was read at. Nothing outside the table asks which
 * dialect it has before it. A dialect has versions; options and rules may belong to some of them only. */
#ifndef NXC_CONFIG_FRONT_H
#define NXC_CONFIG_FRONT_H

#include "compiler/config/write/write.h"
#include "compiler/document/document.h"
#include "compiler/config/interpolation/interpolate.h"

struct nxc_binding;  /* dialect.h */
struct nxc_followed; /* shell/script.h */

/* Texts that one names and that are read with it. */
typedef struct nxc_front_parts {
  const nxc_source **items;
  size_t n_items;
} nxc_front_parts;

/* What the user gave, not yet read. */
typedef struct nxc_front_texts {
  nxc_arena *arena;
  nxc_sink *sink;
  const nxc_source *first; /* NULL: there are arguments alone */
  const nxc_source *const *layers;
  size_t n_layers;
  const char *const *sets; /* KEY=VALUE in the dialect's own keys */
  size_t n_sets;
  const nxc_source *arguments; /* behind `--`, as nxc_front_join writes them; NULL: none */
  const nxc_source *script_arguments; /* of the first, where that is a script: $1 and on; NULL: not told */
  size_t launch;               /* of a script, counted from 1; 0: the one with the most options */
  struct nxc_followed *followed; /* the first, where it is a script that was followed; NULL: nothing is kept */
  const char *version;         /* of the dialect; NULL where it has one only */
  bool omegaconf;              /* --compat omegaconf */
  nxc_front_parts *parts;      /* takes the parts of the first; NULL: nobody asks */
} nxc_front_texts;

typedef struct nxc_front {
  const char *dialect;
  const char *const
      *versions;        /* the newest first, NULL at the end (version.h chooses). NULL: one only */
  bool dated;           /* versions but the newest are named by their last days, and are no releases */
  bool takes_arguments; /* reads what stands behind `--` */
  bool takes_overrides; /* Hydra's KEY=VALUE, behind the file */
  /* Whether the text itself shows that it is of this dialect. NULL: its keys tell. */
  bool (*claims)(const nxc_source *text);
  bool keys_tell; /* its keys tell, too, where it claims only some texts */
  /* Never NULL; `complete` says whether everything could be read. */
  nxc_document *(*read)(const nxc_front_texts *texts);
  /* What ${...} means there. */
  nxc_resolution (*resolve)(nxc_document *document, const nxc_resolving *resolving, nxc_sink *sink);
  /* Completes values of options, between reading and judging them together. NULL: nothing to do. */
  void (*prepare)(struct nxc_binding *binding);
  nxc_writer *write;        /* the tree of a file as a text that `read` reads back */
  /* The sections whose unknown keys the system refuses, each with its dot; elsewhere it leaves them alone.
   * NULL: it refuses them everywhere. */
  const char *const *strict_sections;
  const char
      *model_option;    /* the option that names the config.json of the model; NULL: options say the model */
  const char *launcher; /* starts its processes and gives each its variables (exports.c); NULL: none */
  bool whole_sections;  /* no section of a file is completed by another file */
  bool one_family;      /* it takes every config.json for a Llama's */
  bool folds_dashes;    /* keys may be written with - or _ */
  bool checks_all;      /* a value that nothing reads is judged all the same */
} nxc_front;

/* Arguments as a text that shows each option on a line of its own, quoted as for a shell. */
const nxc_source *nxc_front_join(nxc_arena *arena, const char *const *arguments, size_t n_arguments);

/* ${...} stays text; $<...> is ours everywhere. */
nxc_resolution nxc_front_resolve_angles(nxc_document *document, const nxc_resolving *resolving,
                                        nxc_sink *sink);

/* The reading of nx and nxdt: YAML as OmegaConf reads it, layers merged, assignments on top. */
nxc_document *nxc_front_read_yaml(const nxc_front_texts *texts);

#endif
