/* SPDX-License-Identifier: Apache-2.0 */
/* Records of what is read: datasets, their sources, and how nxdata makes those. */
#ifndef NX_PLAN_DATA_H
#define NX_PLAN_DATA_H

#include "schema/plan_file.h"

typedef enum nx_dataset_role { NX_DATASET_TRAIN = 1, NX_DATASET_VALIDATION, NX_DATASET_TEST } nx_dataset_role;

/* How documents become samples. */
typedef enum nx_sampler {
  NX_SAMPLER_STREAM = 1, /* runs of sequence + 1 tokens of all documents, one after another */
  NX_SAMPLER_DOCUMENT,   /* a document each, and padding */
  NX_SAMPLER_PACKED,     /* whole documents, as many as fit */
  NX_SAMPLER_PAIRS /* a document and padding, of pairs in which the chosen answer comes before the rejected
                      one */
} nx_sampler;

/* Which row of whole documents a document is put into. */
typedef enum nx_packing {
  NX_PACKING_IN_ORDER = 1, /* the last; where it does not fit, a new one */
  NX_PACKING_FIRST_FIT,    /* the first that has room */
  NX_PACKING_DECREASING    /* the first that has room, from the longest document to the shortest */
} nx_packing;

/* What becomes of samples with a document that has more tokens than a row. */
typedef enum nx_long_samples {
  NX_LONG_SAMPLES_FAIL = 1, /* the dataset is refused */
  NX_LONG_SAMPLES_CUT,      /* the document is read as far as there is room */
  NX_LONG_SAMPLES_DROP      /* they are not read */
} nx_long_samples;

/* How much a dataset takes of each of its sources. */
typedef enum nx_blend {
  NX_BLEND_WEIGHTS = 1, /* as the sources' weights say */
  NX_BLEND_SAMPLES,     /* in proportion to the samples that they have */
  NX_BLEND_DOCUMENTS,   /* by the documents that they have, evened out by blend_alpha */
  NX_BLEND_EPOCHS       /* equally often, from one epoch again and again (GPT-NeoX's train_epochs) */
} nx_blend;

/* How a shuffled source's documents and samples are ordered. */
typedef enum nx_order {
  NX_ORDER_EPOCHS = 1, /* each epoch by itself, for ever */
  NX_ORDER_MEGATRON,   /* the epochs that are needed together, as Megatron's GPTDataset does for the same seed
                        */
  NX_ORDER_NEOX        /* the same, with the last epoch among them however little of it is needed */
} nx_order;

/* In which order the samples of a dataset are read. What PyTorch permutes is torch.randperm of a generator.
 */
typedef enum nx_walk {
  NX_WALK_STRAIGHT = 0,
  NX_WALK_DISTRIBUTED,   /* each epoch permuted, by the seed and its number, and padded with its own beginning
                            to a  multiple of the ranks (PyTorch's DistributedSampler); it ends with its last
                            whole batch */
  NX_WALK_CYCLIC,        /* each epoch permuted by its number; it ends with the last micro-batch of all ranks
                            (Megatron's dataloader-type cyclic with no-data-sharding) */
  NX_WALK_CYCLIC_SHARDS, /* the same, and each rank has samples of its own, one permutation being that of all
                          */
  NX_WALK_AGAIN,         /* the whole batches of an epoch, in the order of the first, again and again; each
                            is dealt to the ranks one by one (PyTorch's DistributedSampler without shuffle) */
  NX_WALK_DEALT          /* whole batches, dealt so, of epochs that are permuted by their number */
} nx_walk;

/* What a schedule reads: a mixture of sources. Training reads the one that has its role. */
typedef struct nx_dataset {
  uint32_t name; /* string: in logs, as "train"; no two have the same */
  uint32_t role; /* nx_dataset_role; one dataset at most trains */
  uint32_t first_source, n_sources;
  uint32_t sampler; /* nx_sampler */
  uint32_t blend;   /* nx_blend */
  uint32_t shuffle; /* 0 or 1 */
  uint32_t order;   /* nx_order */
  double blend_alpha; /* exponent of the numbers of documents; 0 of other blends */
  uint32_t packing;       /* nx_packing; 0 of other samplers */
  uint32_t packing_group; /* documents that are packed together; 0: all of a source */
  uint32_t long_samples;  /* nx_long_samples, of pairs; of documents too, or 0: all are read; 0 of others */
  uint32_t walk;          /* nx_walk */
} nx_dataset;
_Static_assert(sizeof(nx_dataset) == 56, "plan dataset");

enum { NX_PARTS = 3 /* of the documents of a source: for training, validation and test, in this order */ };

/* How the numbers of documents of the parts are rounded. */
typedef enum nx_split {
  NX_SPLIT_SUMS = 1, /* where a part ends: its share and those before it together (Megatron Core) */
  NX_SPLIT_EACH,     /* each part, and what they have too many or too few the first has less or more
                      * (GPT-NeoX and NeMo) */
  NX_SPLIT_LAST      /* validation is rounded up, and training has what is left (datasets.train_test_split) */
} nx_split;

typedef struct nx_source {
  uint32_t prefix; /* string: of an indexed dataset's files */
  uint32_t part;   /* that is read of it */
  uint32_t split;  /* nx_split */
  uint32_t n_last; /* of NX_SPLIT_LAST: the documents of validation, where they are counted; else 0 */
  double weight;   /* of the dataset's samples; those of a dataset are 1 together. 0 of other blends than
                    * by weights */
  double shares[NX_PARTS]; /* of its documents, or pairs of them; 1 together */
  uint32_t rejected; /* string: the prefix of the answers that were rejected, each the document of the number
                        of the chosen one; "": they stand behind those. Of pairs alone */
  uint32_t labels, rejected_labels; /* strings: prefixes of datasets with a label for each token, below 0
                                       where its loss does not count; "": none */
  uint32_t rewards; /* string: the prefix of a dataset whose documents begin with the rewards of those of this
                       one; "": they stand beside its tokens */
} nx_source;
_Static_assert(sizeof(nx_source) == 64, "plan source");

typedef enum nx_recipe_kind {
  NX_RECIPE_TEXTS = 1, /* records have a text, which the tokenizer makes tokens of */
  NX_RECIPE_TOKENS,    /* records have token ids */
  NX_RECIPE_DIALOGUES,    /* records have messages, of which a chat template makes a text */
  NX_RECIPE_COMPLETIONS,  /* records have a prompt and what follows it */
  NX_RECIPE_COUNTING,  /* made up: `records` documents of `tokens` tokens 1, 2, 3, ... and 0 at the end */
  NX_RECIPE_PREFERENCES, /* records have a prompt, the answer that was chosen and the one that was rejected */
  NX_RECIPE_MERGE /* the datasets of other recipes are one, in an order of numpy's (schema/merge.h) */
} nx_recipe_kind;

enum {
  NX_RECIPE_APPEND_EOD = 1, /* the tokenizer's end of a text stands behind each document */
  NX_RECIPE_CUT = 2,        /* a document of more tokens is cut, not left out */
  NX_RECIPE_ALL_TOKENS = 4, /* what was asked weighs in the loss as what was answered */
  NX_RECIPE_KEEP_END = 8,   /* of a prompt that is cut the end stays, not the beginning */
  NX_RECIPE_LAST_COUNTS = 16, /* of an answer the last token alone, where its value is read; of preferences */
  NX_RECIPE_WHOLE = 32,       /* no record is left out: what does not count is left out where it is merged */
  NX_RECIPE_SHUFFLE_EACH = 64, /* of a merge: each of several datasets is shuffled by itself, */
  NX_RECIPE_SHUFFLE_ALL = 128  /* and then all together */
};

/* What nxdata prepare makes the indexed dataset of sources from, before the run. Ascending by prefix. */
typedef struct nx_recipe {
  uint32_t prefix;    /* string: of the sources that read it */
  uint32_t kind;      /* nx_recipe_kind */
  uint32_t input;     /* string: a file or folder; "" where data is made up */
  uint32_t field;     /* string: what of a record is meant */
  uint32_t labels;    /* string: the field of its labels, which become weights, or of completions; "": none */
  uint32_t part;      /* string: of a folder with several; "": train */
  uint32_t tokenizer; /* string: a file or folder; "": the bytes of a text are its tokens */
  uint32_t template;  /* string: a file; "": the tokenizer's own */
  uint32_t flags;     /* NX_RECIPE_* */
  uint32_t rejected;  /* string: the field of answers that were rejected; "": none */
  uint64_t tokens;    /* of a document, at most; 0: any number */
  uint64_t records;   /* that are read, at most; 0: all */
  uint64_t vocab;     /* token ids are below it */
  uint64_t
      prompt_tokens; /* that stay of a prompt where its answers do not fit behind all of it; of preferences */
  uint64_t seed;         /* of the shuffle of all records, which are cut into pieces then */
  uint32_t pieces, piece; /* of which this one is read; 0 pieces: all records are, in no other order */
  uint32_t reward; /* string: the field of an answer's reward; "": none. Of dialogues and completions */
  uint32_t reserved;
} nx_recipe;
_Static_assert(sizeof(nx_recipe) == 96, "plan recipe");

#endif
