/* SPDX-License-Identifier: Apache-2.0 */
/* Families of models as Hugging Face's transformers has them: how a checkpoint names and lays out the tensors
 * of each, and what the keys of its config.json mean (schema/families/NAME.yaml, made C by compiler/gen). */
#ifndef NXC_SETTINGS_FAMILY_H
#define NXC_SETTINGS_FAMILY_H

#include "compiler/settings/catalogue.h"

typedef enum nxc_part {
#define PART(id, name, kind) NXC_PART_##id,
#include "compiler/settings/parts.def"
#undef PART
  NXC_N_PARTS
} nxc_part;

/* How several parts stand in one tensor, one below the other. */
typedef enum nxc_tensor_layout {
  NXC_LAYOUT_BLOCKS, /* each part as a whole */
  NXC_LAYOUT_GROUPS, /* for each key head: its rows of every part */
  NXC_LAYOUT_TURNS   /* a row of each part in turn */
} nxc_tensor_layout;

/* A tensor of a checkpoint. */
typedef struct nxc_tensor_row {
  const char
      *stem; /* its name without ".weight" and ".bias"; the first %d is the layer, the second the expert */
  const nxc_part *parts; /* what it holds, in their order */
  size_t n_parts;
  nxc_tensor_layout layout;
  bool transposed; /* inputs stand in rows, as in GPT-2's Conv1D */
  bool bare;       /* the stem is its whole name; "_bias" behind it that of its bias */
  bool stacked;    /* all experts of a layer stand in it, one behind the other */
} nxc_tensor_row;

/* A key that the family calls otherwise, or that has another default there (as JSON). */
typedef struct nxc_family_key {
  const char *key, *as;
} nxc_family_key;

typedef struct nxc_family {
  const char *name;               /* as in model.checkpoint_names */
  const char *const *model_types; /* of config.json */
  size_t n_model_types;
  const nxc_family_key *keys; /* its own name, and that of hf_config.yaml */
  size_t n_keys;
  const nxc_family_key *defaults; /* a name of hf_config.yaml, and a JSON text */
  size_t n_defaults;
  const nxc_assignment *sets; /* what its code fixes: stronger than what single keys set */
  size_t n_sets;
  const char *architecture;     /* the class in transformers that loads its checkpoints; NULL: none does */
  const nxc_family_key
      *writes; /* keys of a config.json, and expressions over settings; the last of a key counts */
  size_t n_writes;
  const nxc_tensor_row *tensors[NXC_N_PARTS]; /* that holds the part; NULL: the family has no such part */
} nxc_family;

extern const nxc_family nxc_families[];
extern const size_t nxc_n_families;

/* NULL: there is none of this name. */
const nxc_family *nxc_family_find(const char *name);
/* NULL: none is for this model_type. */
const nxc_family *nxc_family_of_type(const char *model_type);
/* Whether checkpoints of both name and lay out their tensors alike. */
bool nxc_family_same_tensors(const nxc_family *a, const nxc_family *b);
/* Whether a family's code fixes this setting. */
bool nxc_families_set(nxc_setting_id id);
/* The name of a part in schema/families. */
const char *nxc_part_name(nxc_part part);

#endif
