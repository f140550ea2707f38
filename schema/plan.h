/* SPDX-License-Identifier: Apache-2.0 */
/* The plan: everything that nxrun needs to know, in one file.
 *
 * Layout: header (128 bytes), section table (64 bytes a section), sections in ascending type order.
 * Little-endian, no pointers, offsets from the start of the file, sections aligned to 64 bytes with zero
 * padding, the last byte of the last section (padding included) is the last byte of the file. Each section is
 * an array of one record type below (NX_SECTION_STRINGS: bytes). Records hold no padding that is not named,
 * and unused fields are 0.
 *
 *   header  magic, version, file size, section count, plan_id, root
 *     plan_id  SHA-256 over (type, size, sha256) of the sections flagged NX_SECTION_MEANING, in file order:
 *     what the training is, wherever its configuration came from. Checkpoints record it.
 *     root     SHA-256 over the header with `root` zeroed, and the section table
 *     file_sha256  SHA-256 of the whole file; ranks compare it. It is not in the file.
 *
 * A string is a u32 offset into NX_SECTION_STRINGS, NUL-terminated; offset 0 is "". What is no part of the
 * meaning (settings, provenance, names of the run) has its strings in NX_SECTION_PROVENANCE_TEXT instead,
 * called a text. Cross references are u32 indices into other sections, NX_NONE where there is none.
 *
 * A plan holds no number that depends on a rank. Where an operator needs one it names a *constant*: base + a
 * term for each set of mesh atoms that matters, evaluated once per rank and chunk (nx_constant_value). So a
 * plan is one file whatever the number of ranks.
 *
 * Programs are lists of operators; an operator's `when` says in which micro-batches of a step it runs (first,
 * middle, last); the schedule says which program runs when. Values are typed boxes of an arena; a view shares
 * the bytes of the value that it is a view of. Values of arena `slot` exist once per slot.
 *
 * A pipeline's stages hold the model's layers in chunks, in model order; neighbouring chunks pass values
 * through their ports. Programs, values and ranges may serve several chunks: a chunk says where its part of
 * each arena lies. */
#ifndef NX_PLAN_H
#define NX_PLAN_H

#include "schema/optimizers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NX_NONE UINT32_MAX
#define NX_PLAN_MAGIC "\x89NXP\r\n\x1a\n"

enum {
  NX_PLAN_MAJOR = 4,
  NX_PLAN_MINOR = 0,
  NX_PLAN_ALIGNMENT = 64,
  NX_MAX_ATOMS = 16,
  NX_MAX_RANKS = 1 << 24,
  NX_MAX_THREADS = 1024, /* of a rank */
  NX_MAX_DATASETS = 1024,
  NX_MAX_SOURCES = 32767, /* of all datasets */
  NX_MAX_ALPHA = 16,
  NX_MAX_BATCHES = 1 << 30, /* of an evaluation */
  NX_VALUE_ALIGNMENT = 64,
  NX_BLOCK_BYTES = 64 /* a ZeRO shard of a range is a multiple of this */
};
static const uint64_t NX_PLAN_MAX_BYTES = UINT64_C(1) << 30;

typedef struct nx_header {
  uint8_t magic[8];
  uint16_t major, minor;
  uint32_t header_bytes; /* 128 */
  uint32_t endian;       /* 0x01020304 */
  uint32_t n_sections;
  uint64_t file_bytes;
  uint64_t section_table_offset; /* 128 */
  uint8_t reserved[24];
  uint8_t plan_id[32];
  uint8_t root[32];
} nx_header;
_Static_assert(sizeof(nx_header) == 128, "plan header");

typedef enum nx_section_type {
  NX_SECTION_STRINGS = 1,
  NX_SECTION_RUN,
  NX_SECTION_ATOMS,
  NX_SECTION_GROUPS,
  NX_SECTION_CONSTANTS,
  NX_SECTION_TERMS,
  NX_SECTION_TABLE, /* int64 entries of table terms */
  NX_SECTION_ARENAS,
  NX_SECTION_VALUES,
  NX_SECTION_PIECES,
  NX_SECTION_RANGES,
  NX_SECTION_OPERATORS,
  NX_SECTION_ARGUMENTS, /* u32 value indices */
  NX_SECTION_ATTRIBUTES,
  NX_SECTION_PROGRAMS,
  NX_SECTION_CHUNKS,
  NX_SECTION_ITEMS,
  NX_SECTION_SETTINGS,
  NX_SECTION_DATASETS,
  NX_SECTION_PROVENANCES,     /* provenance, not part of the meaning */
  NX_SECTION_PROVENANCE_TEXT,
  NX_SECTION_RUN_NAMES, /* nx_run_names: names and intervals that change no number of the training */
  NX_SECTION_PARAMETER_GROUPS,
  NX_SECTION_SOURCES, /* of the datasets */
  NX_SECTION_SCHEDULES,
  NX_SECTION_EVALUATIONS, /* they change no number of the training; their names are texts */
  NX_SECTION_EXTRA_SAVES, /* u64 steps, ascending: as nx_run_names.save_every */
  NX_SECTION_RECIPES, /* of those sources whose files nxdata makes */
  NX_SECTION_END
} nx_section_type;

enum { NX_SECTION_MEANING = 1 };

typedef struct nx_section {
  uint32_t type;
  uint32_t flags;
  uint64_t offset;
  uint64_t bytes; /* n_records x record_bytes; padding not counted */
  uint32_t record_bytes;
  uint32_t n_records;
  uint8_t sha256[32];
} nx_section;
_Static_assert(sizeof(nx_section) == 64, "plan section entry");

typedef enum nx_target { NX_TARGET_CPU_AVX2 = 1, NX_TARGET_CPU_AVX512, NX_TARGET_CPU_AMX } nx_target;

/* The run: one record. Value indices name what the host writes and reads. */
typedef struct nx_run {
  uint32_t n_ranks;
  uint32_t n_hosts; /* ranks are tiled in order: n_ranks / n_hosts on each */
  uint32_t n_threads;
  uint32_t target; /* nx_target */
  uint64_t workspace_bytes;
  uint64_t seed;
  uint64_t n_steps;
  uint32_t n_micro_batches; /* per step and data-parallel rank */
  uint32_t micro_batch;     /* B, sequences */
  uint32_t sequence;        /* S, tokens of the whole sequence */
  uint32_t global_batch;    /* sequences per step */
  uint64_t vocab;           /* before padding: token ids are below it */
  uint64_t tokens_per_step;
  double flops_per_step;   /* of the model, all ranks: the usual count, matrix products and attention, 3 x
                              forward */
  uint64_t n_parameters;   /* logical, each once */
  uint64_t n_trained;      /* of them, or beside them, in the adapters' tensors: what is not frozen */
  uint32_t data_rank;      /* constant: which share of every batch this rank takes */
  uint32_t data_size;      /* how many shares */
  uint32_t tokens, labels, positions,
      samples; /* values [B,s] i32 x3, [B] i64 in arena input; s = S / ring / ulysses */
  uint32_t step;                               /* value [1] i64 in arena input */
  uint32_t loss;       /* value [1] f64: this rank's sum over its tokens of the step */
  uint32_t loss_total; /* value [1] f64: the sum over all ranks (equals loss on one rank) */
  uint32_t grad_norm;                          /* value [1] f64 */
  uint32_t lr;                                 /* value [1] f64 */
  uint32_t init_from;                          /* string; "": weights are drawn */
  uint32_t n_slots;                            /* micro-batches in flight, of the chunk that has most */
  /* Of every sequence, ring rank r of R has the r-th of 2 R equal pieces from the front and the r-th from the
   * back, in order: S / R tokens, of which Ulysses rank u of U has the u-th of U equal parts. The ranks are
   * constants. */
  uint32_t ring_rank, ring_size, ulysses_rank, ulysses_size;
  uint32_t places; /* value [R,S/R] i32 in arena input: where the tokens of the t-th ring rank before this one
                    * stand in the sequence, or NX_NONE */
  uint32_t starts; /* value [B,S/R] i32: where the document of each of this ring rank's tokens starts, or
                      NX_NONE */
  uint32_t weights; /* value [B,s] f32: of each token's loss, 1 on average, or NX_NONE */
  uint32_t documents;       /* NX_DOCUMENTS_*: what their ends change */
  uint32_t end_of_document; /* the token that ends one in a stream; NX_NONE: none does */
  uint32_t model_config;    /* string: the config.json beside a checkpoint's weights; "": none */
  uint32_t save_base;       /* 0 or 1: checkpoints hold what adapters leave frozen too */
  double loss_scale_initial, loss_scale_least;
  uint32_t loss_scale_window;     /* good steps until a dynamic one doubles */
  uint32_t loss_scale_hysteresis; /* skipped steps until it halves */
  uint32_t loss_scale_rules;      /* NX_LOSS_SCALE_* */
  uint32_t loss_scale; /* value [1] f64 in arena input: the factor that gradients carry, or NX_NONE */
  uint32_t
      adapter_config; /* string: the adapter_config.json beside a checkpoint's adapters; "": there are none */
  uint32_t
      adapter_from; /* string: a folder in PEFT's format, from which adapters begin; "": they are drawn */
  uint32_t stochastic; /* 1: updates round to bf16 as schema/stochastic.h says; 0: to nearest */
  uint32_t loss_mean;  /* nx_loss_mean */
} nx_run;
_Static_assert(sizeof(nx_run) == 240, "plan run");

enum {
  NX_LOSS_SCALE_DYNAMIC = 1,
  NX_LOSS_SCALE_RENEWS = 2, /* any good step begins the hysteresis anew, not only one that doubles it */
  NX_LOSS_SCALE_ENDS = 4    /* where it would fall below its least the run ends */
};

/* Over what a loss is the mean of its tokens, where they do not weigh the same. */
typedef enum nx_loss_mean {
  NX_MEAN_MICRO_BATCH = 0, /* of a rank; micro-batches weigh the same */
  NX_MEAN_STEP             /* of all ranks: tokens weigh the same */
} nx_loss_mean;

/* A document of a stream ends with its token; samples of whole documents know where they end. Without any of
 * these a sequence is one document. */
enum {
  NX_DOCUMENTS_ATTENTION = 1, /* a token reads its own document alone */
  NX_DOCUMENTS_POSITIONS = 2, /* positions count from the start of the document */
  NX_DOCUMENTS_LOSS = 4       /* what follows the end of a document is not predicted */
};

typedef struct nx_run_names {
  uint32_t name;        /* text */
  uint32_t directory;   /* text */
  uint32_t log_every;   /* steps */
  uint32_t save_every;  /* steps; 0: at the end only */
  int32_t keep;         /* -1: all */
  uint32_t resume;      /* 0 or 1 */
  double deadline_s;
  uint32_t tensorboard;       /* text: folder of TensorBoard's event files; "": none */
  uint32_t tensorboard_every; /* steps */
  uint32_t tensorboard_shows; /* NX_SHOWS_* */
  int32_t best;             /* checkpoints that are kept for their loss, beside those; -1: all */
  uint32_t best_evaluation; /* whose loss that is, or NX_NONE: that of the step */
  uint32_t rules;           /* NX_RUN_* */
  uint32_t load;           /* text: another run's folder, or weights, to begin with; "": none */
  uint32_t stop_every;     /* the run ends, to be resumed, after each step that is a multiple of it; 0: never */
  uint64_t load_step;      /* 0: the newest */
  double stop_after_s;     /* and after so long; 0: never */
  uint8_t load_weights;    /* 1: of `load` weights alone, and the run begins at step 0 */
  uint8_t load_required;   /* 1: a run that finds no checkpoint fails */
  uint8_t save_optimizer;  /* 0: checkpoints hold weights alone */
  uint8_t reserved;
  uint32_t profile_ranks;  /* text: their numbers, with commas; "": all */
  uint64_t profile_first, profile_last; /* steps, from 1, that are recorded; 0: none */
} nx_run_names;
_Static_assert(sizeof(nx_run_names) == 104, "plan run names");

/* Of what not everyone wants in TensorBoard. */
enum {
  NX_SHOWS_MEMORY = 1,
  NX_SHOWS_LOSS_SCALE = 2,
  NX_SHOWS_PERPLEXITY = 4,
  NX_SHOWS_WORLD_SIZE = 8,
  NX_SHOWS_ALL = 15
};
enum {
  NX_RUN_BEST_IS_GREATEST = 1,
  NX_RUN_ONLY_EVALUATES = 2 /* nothing is trained */
};

typedef enum nx_dataset_role { NX_DATASET_TRAIN = 1, NX_DATASET_VALIDATION, NX_DATASET_TEST } nx_dataset_role;

/* How documents become samples. */
typedef enum nx_sampler {
  NX_SAMPLER_STREAM = 1, /* runs of sequence + 1 tokens of all documents, one after another */
  NX_SAMPLER_DOCUMENT,   /* a document each, and padding */
  NX_SAMPLER_PACKED,     /* whole documents, as many as fit */
  NX_SAMPLER_PAIRS       /* a document and the one behind it: chosen and rejected */
} nx_sampler;

/* Which row of whole documents a document is put into. */
typedef enum nx_packing {
  NX_PACKING_IN_ORDER = 1, /* the last; where it does not fit, a new one */
  NX_PACKING_FIRST_FIT,    /* the first that has room */
  NX_PACKING_DECREASING    /* the first that has room, from the longest document to the shortest */
} nx_packing;

/* How much a dataset takes of each of its sources. */
typedef enum nx_blend {
  NX_BLEND_WEIGHTS = 1, /* as the sources' weights say */
  NX_BLEND_SAMPLES,     /* in proportion to the samples that they have */
  NX_BLEND_DOCUMENTS    /* by the documents that they have, evened out by blend_alpha */
} nx_blend;

/* How a shuffled source's documents and samples are ordered. */
typedef enum nx_order {
  NX_ORDER_EPOCHS = 1, /* each epoch by itself, for ever */
  NX_ORDER_MEGATRON,   /* the epochs that are needed together, as Megatron's GPTDataset does for the same seed
                        */
  NX_ORDER_NEOX        /* the same, with the last epoch among them however little of it is needed */
} nx_order;

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
} nx_dataset;
_Static_assert(sizeof(nx_dataset) == 48, "plan dataset");

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
  double shares[NX_PARTS]; /* of its documents; 1 together */
} nx_source;
_Static_assert(sizeof(nx_source) == 48, "plan source");

typedef enum nx_recipe_kind {
  NX_RECIPE_TEXTS = 1, /* records have a text, which the tokenizer makes tokens of */
  NX_RECIPE_TOKENS,    /* records have token ids */
  NX_RECIPE_DIALOGUES,    /* records have messages, of which a chat template makes a text */
  NX_RECIPE_COMPLETIONS,  /* records have a prompt and what follows it */
  NX_RECIPE_COUNTING   /* made up: `records` documents of `tokens` tokens 1, 2, 3, ... and 0 at the end */
} nx_recipe_kind;

enum {
  NX_RECIPE_APPEND_EOD = 1, /* the tokenizer's end of a text stands behind each document */
  NX_RECIPE_CUT = 2,        /* a document of more tokens is cut, not left out */
  NX_RECIPE_ALL_TOKENS = 4  /* what was asked weighs in the loss as what was answered */
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
  uint32_t reserved;
  uint64_t tokens;    /* of a document, at most; 0: any number */
  uint64_t records;   /* that are read, at most; 0: all */
  uint64_t vocab;     /* token ids are below it */
} nx_recipe;
_Static_assert(sizeof(nx_recipe) == 64, "plan recipe");

enum { NX_ATOM_PIPELINE = 1 /* its coordinate is the stage; one atom at most */ };

/* A mesh atom. Rank = sum over atoms of coordinate x stride; atom 0 varies fastest. */
typedef struct nx_atom {
  uint32_t name; /* string, for messages: "kv_replica", "kv_group", "ring", "shard", "replicate", "pipeline",
                    ... */
  uint32_t size;
  uint32_t stride;
  uint32_t flags;
} nx_atom;

/* Ranks that differ only in the coordinates of these atoms. Members in ascending rank order. A group over the
 * pipeline may be of some stages alone; the ranks of the others are in none such. */
typedef struct nx_group {
  uint32_t name;  /* string: "tensor", "data", ... */
  uint32_t atoms; /* bit i: atom i */
  uint32_t size;
  uint32_t n_stages; /* that take part; 0: all */
  uint32_t stages;   /* their numbers, ascending: first entry in NX_SECTION_TABLE; 0 where n_stages is 0 */
  uint32_t reserved;
} nx_group;
_Static_assert(sizeof(nx_group) == 24, "plan group");

/* value(rank, chunk) = base, then its terms in order. */
typedef struct nx_constant {
  int64_t base;
  uint32_t first_term, n_terms;
} nx_constant;

typedef enum nx_term_kind {
  NX_TERM_STRIDE = 1, /* stride x coordinate is added */
  NX_TERM_ENTRY,      /* table[coordinate] is added */
  NX_TERM_CHOICE,     /* the value so far is kept where table[coordinate] is 1, and 0 where it is 0 */
  NX_TERM_FIRST       /* the value so far is kept at coordinate 0, and 0 elsewhere */
} nx_term_kind;

/* Of a rank's coordinate on a set of atoms, counted as in a group (or of the chunk number, atoms NX_NONE). */
typedef struct nx_term {
  uint32_t atoms; /* bit i: atom i */
  uint32_t table; /* first entry in NX_SECTION_TABLE; one entry per coordinate; 0 where the kind has none */
  int64_t stride; /* 0 but of NX_TERM_STRIDE */
  uint32_t kind;  /* nx_term_kind */
  uint32_t reserved;
} nx_term;
_Static_assert(sizeof(nx_term) == 24, "plan term");

enum { NX_ARENA_SHARED = 1 /* other ranks of the host read it: lies in the shared window */ };

typedef struct nx_arena_record {
  uint32_t kind; /* nx_arena_kind; each kind at most once */
  uint32_t flags;
  uint64_t bytes;      /* of the stage that needs most, all chunks and slots together; a multiple of
                          NX_VALUE_ALIGNMENT */
  uint64_t slot_bytes; /* arena slot: bytes of the largest; else 0 */
} nx_arena_record;

/* A typed box. Its bytes are [offset, offset + bytes) of its arena, row-major and dense. */
typedef struct nx_value {
  uint32_t name; /* string: where it comes from, as "layers.3.attention.qkv" */
  uint16_t dtype;
  uint8_t n_dims;
  uint8_t arena;
  int64_t dims[NX_MAX_DIMS]; /* unused: 1 */
  uint64_t offset;
  uint64_t bytes;
  uint32_t view_of;      /* the value whose bytes it shares, or NX_NONE */
  uint32_t offset_shift; /* constant, in bytes, added to offset (ZeRO shards), or NX_NONE */
} nx_value;
_Static_assert(sizeof(nx_value) == 64, "plan value");

/* Random ones have the deviation `init_std`. */
typedef enum nx_init { NX_INIT_ZEROS = 0, NX_INIT_ONES, NX_INIT_NORMAL, NX_INIT_UNIFORM, NX_N_INITS } nx_init;
enum {
  NX_PIECE_TRANSPOSED = 1, /* the checkpoint's tensor is the transpose (GPT-2's Conv1D) */
  NX_PIECE_ADAPTER = 2,    /* of what is trained beside a frozen model: not in that model's checkpoints */
  NX_PIECE_ALIAS = 4       /* another name of a box that an earlier piece is */
};

/* How an entry of a value stands for elements of the tensor: for itself; for two in 4 bits each (nf4.h,
 * nvfp4.h); or for the elements of a block, as what scales them. Sizes and places of pieces are counted in
 * entries. */
typedef enum nx_form {
  NX_FORM_PLAIN = 0,
  NX_FORM_NF4,
  NX_FORM_NF4_ABSMAX,
  NX_FORM_NVFP4,
  NX_FORM_NVFP4_SCALE,
  NX_N_FORMS
} nx_form;

typedef struct nx_form_row {
  int64_t elements; /* that an entry stands for */
  uint32_t dtype;   /* of an entry; 0: any real one */
  int64_t block;    /* entries that no rank may divide */
} nx_form_row;

/* What a parameter is made of: a box of a logical tensor, whole rows of one parameter value (so fused QKV is
 * three pieces). Logical shapes are [rows, columns] as the products read them, vectors are [1, n]; vocabulary
 * padding is in no piece. Row r of the box is row `row + r` of the value; it has `columns` entries; entries
 * (rows) of the local box that lie outside the logical tensor are padding. */
typedef struct nx_piece {
  uint32_t name;       /* string, Hugging Face style */
  uint32_t value;      /* the parameter, arena param */
  uint32_t range;      /* where its master weights, gradients and moments lie */
  uint32_t flags;
  int64_t logical_rows, logical_columns;
  int64_t rows, columns;         /* of the local box */
  uint32_t row_start, column_start; /* constants: where the box starts in the logical tensor */
  int64_t row;                   /* first row of the value that the box fills */
  uint64_t range_offset;         /* elements before the box in its range */
  uint32_t owner; /* constant: 1 on the one rank of each set of copies that writes it, else 0 */
  uint32_t init;                 /* nx_init */
  double init_std;
  uint32_t tensor_id;            /* constant: key of its random numbers, the same on every mesh */
  uint32_t n_dims;               /* 1 or 2 in the checkpoint */
  uint32_t chunk;                /* that holds it: only ranks of its stage have this box */
  uint32_t slices; /* equal parts of the checkpoint's rows that are its first dimension of three; 0: it has no
                      third */
  uint32_t form;                 /* nx_form */
  uint32_t reserved;
} nx_piece;
_Static_assert(sizeof(nx_piece) == 112, "plan piece");

/* Parameters that are updated alike. The updates of its ranges read its learning rate and weight decay, which
 * the step makes. */
typedef struct nx_parameter_group {
  uint32_t name;      /* string: what made it so, as "decayed" */
  uint32_t optimizer; /* number of the operator that updates them (optimizers.def) */
  uint32_t lr, decay; /* values [1] f64 in arena scalar */
  double lr_factor;    /* its greatest learning rate, of that of the run */
  double weight_decay; /* at the end of the training */
} nx_parameter_group;
_Static_assert(sizeof(nx_parameter_group) == 32, "plan parameter group");

/* Parameters that are reduced together over the same group and updated alike, or frozen together: one run of
 * elements, padded so that the shards are equal. Frozen ones have no gradient and no parameter group, and so
 * nothing that an optimizer keeps; where they are in shards the passes gather them like others. param and
 * grad are what outlives a step and a pass: whole [n_elements], or this rank's shard [n_shard] (ZeRO). Where
 * param is the shard, the passes gather it; between steps nothing else counts. */
typedef struct nx_range {
  uint32_t name; /* string */
  uint32_t group;       /* gradients are summed over it; NX_NONE: no sum, or frozen */
  uint64_t n_elements;  /* padding included */
  uint64_t n_shard; /* elements that this rank updates: n_elements, or that over the size of shard_group */
  uint32_t shard_group; /* that the update, or what is frozen, is divided over; its atoms are of the group's
                           where there is a gradient; NX_NONE: not divided */
  uint32_t shard_start; /* constant: first element that it updates */
  uint32_t param, master, grad;   /* values; master is [n_shard], or NX_NONE where param is updated; grad is
                                     NX_NONE   where it is frozen */
  uint32_t states[NX_MAX_STATES]; /* values [n_shard] that the optimizer keeps; NX_NONE behind the last */
  uint32_t parameter_group;       /* NX_NONE: frozen */
} nx_range;
_Static_assert(sizeof(nx_range) == 64, "plan range");

enum { NX_WHEN_FIRST = 1, NX_WHEN_MIDDLE = 2, NX_WHEN_LAST = 4, NX_WHEN_ALWAYS = 7 };
/* Of a step's operators: the end of an evaluation's batch runs them, and nothing else of the step. */
enum { NX_WHEN_EVALUATED = 8, NX_WHEN_ANY = 15 };

typedef struct nx_operator {
  uint16_t op;
  uint8_t when;
  uint8_t n_in, n_out, n_attrs;
  uint16_t reserved;
  uint32_t first_argument; /* inputs, then outputs */
  uint32_t first_attribute;
  uint32_t group;  /* COMM operators but wait */
  uint32_t origin; /* string: what it came from, as "layers.3.attention" */
  uint64_t flops;
  uint64_t moved_bytes; /* read and written (COMPUTE), or received by this rank (COMM) */
} nx_operator;
_Static_assert(sizeof(nx_operator) == 40, "plan operator");

typedef enum nx_attribute_kind {
  NX_ATTRIBUTE_INT = 0,
  NX_ATTRIBUTE_REAL,
  NX_ATTRIBUTE_CONSTANT
} nx_attribute_kind;

typedef struct nx_attribute {
  uint32_t kind;
  uint32_t constant; /* NX_ATTRIBUTE_CONSTANT */
  union {
    int64_t integer;
    double real;
  };
} nx_attribute;

typedef enum nx_program_kind {
  NX_PROGRAM_FORWARD = 1,
  NX_PROGRAM_BACKWARD,
  NX_PROGRAM_EVALUATE,
  NX_PROGRAM_STEP
} nx_program_kind;

typedef struct nx_program {
  uint32_t name;
  uint32_t kind;
  uint32_t first_operator, n_operators;
} nx_program;

/* What a chunk passes to its neighbours: activations to the next chunk, their gradients to the one before. */
typedef enum nx_port {
  NX_PORT_INPUT,           /* received from the chunk before */
  NX_PORT_OUTPUT,          /* sent to the next chunk, which receives it as its input */
  NX_PORT_OUTPUT_GRADIENT, /* received from the next chunk */
  NX_PORT_INPUT_GRADIENT,  /* sent to the chunk before, which receives it as its output's gradient */
  NX_N_PORTS
} nx_port;

/* The part of the model that a stage runs at a time; chunk 0 is the first. Chunks of equal shape share
 * programs. */
typedef struct nx_chunk {
  uint32_t stage;
  uint32_t first_layer, n_layers;
  uint32_t forward, backward, evaluate, step; /* programs, or NX_NONE */
  uint32_t n_slots;                           /* micro-batches of this chunk in flight */
  uint32_t ports[NX_N_PORTS];                 /* values in arena slot, or NX_NONE */
  uint64_t arena_base[NX_N_ARENAS];           /* added to the offset of the chunk's values */
  uint64_t arena_bytes[NX_N_ARENAS];          /* that the chunk uses from there; arena slot: of one slot */
} nx_chunk;
_Static_assert(sizeof(nx_chunk) == 48 + 16 * NX_N_ARENAS, "plan chunk");

typedef enum nx_item_kind {
  NX_ITEM_FORWARD = 1,
  NX_ITEM_BACKWARD,
  NX_ITEM_EVALUATE,
  NX_ITEM_SEND, /* starts; complete after its wait, which may come when the receive has been started */
  NX_ITEM_RECV, /* starts */
  NX_ITEM_WAIT, /* for the send or receive of the port, chunk and slot */
  NX_ITEM_STEP
} nx_item_kind;

/* Transfers of one port of one chunk that may be under way at once. */
enum { NX_MAX_TRANSFERS = 8 };

/* One thing that a stage does. The items of a stage stand together in their schedule, in order. Of a step
 * `when` says which phases run; a stage of several chunks first reduces the gradients of each (first),
 * then makes what all share, once (middle), then updates each (last). Of a pass it follows from the
 * micro-batch. */
typedef struct nx_item {
  uint32_t stage;
  uint8_t kind; /* nx_item_kind */
  uint8_t port; /* nx_port of a send, recv or wait; else 0 */
  uint8_t when; /* of an item that runs a program: its operators with one of these bits run; else 0 */
  uint8_t reserved;
  uint32_t slot;
  uint32_t chunk;
  uint32_t micro_batch; /* 0 of a step */
} nx_item;
_Static_assert(sizeof(nx_item) == 20, "plan item");

typedef enum nx_schedule_kind {
  NX_SCHEDULE_TRAIN = 1, /* every micro-batch forward and back, then the step */
  NX_SCHEDULE_EVALUATE   /* every micro-batch through the evaluation programs, then the sum of their losses */
} nx_schedule_kind;

/* What all stages do for one batch of run.n_micro_batches. The schedules' items stand one after another,
 * the training's first; a plan has one of each kind at most. */
typedef struct nx_schedule {
  uint32_t name; /* string */
  uint32_t kind; /* nx_schedule_kind */
  uint32_t first_item, n_items;
} nx_schedule;

enum {
  NX_EVALUATION_AT_END = 1,    /* once more when the training is over */
  NX_EVALUATION_CONTINUES = 2, /* begins where the one before it ended, not with the first sample */
  NX_EVALUATION_REPEATS = 4,   /* reads the set again where it has too few samples */
  NX_EVALUATION_FLAGS = 7
};

/* Batches of a dataset whose loss is measured now and then. */
typedef struct nx_evaluation {
  uint32_t name;    /* text */
  uint32_t dataset; /* index into NX_SECTION_DATASETS */
  uint64_t every;   /* steps; 0: see every_epochs */
  uint64_t first;   /* step before which there is none */
  uint64_t batches; /* of an evaluation; 0: see share */
  int64_t sanity_batches; /* before the first step; -1: a whole evaluation */
  double every_epochs;    /* of the training's dataset, in whole steps; 0: not while the training goes on */
  double share;           /* of the dataset's batches */
  uint32_t flags;         /* NX_EVALUATION_* */
  uint32_t reserved;
} nx_evaluation;
_Static_assert(sizeof(nx_evaluation) == 64, "plan evaluation");

typedef struct nx_setting_record {
  uint32_t path;  /* text */
  uint32_t value; /* text: the value as JSON */
  uint32_t bound; /* 1: a run goes on from a checkpoint of the same value only; 0: of any */
} nx_setting_record;

typedef struct nx_provenance {
  uint32_t setting; /* index into NX_SECTION_SETTINGS */
  uint32_t kind;    /* text: "file", "default", "preset", ... */
  uint32_t file, option; /* texts */
  uint32_t line, column;
} nx_provenance;

/* A verified plan. All pointers go into the bytes that were verified; indices need no further checks. */
typedef struct nx_plan {
  const uint8_t *bytes;
  uint64_t n_bytes;
  const nx_header *header;
  const char *strings;
  const nx_run *run;
  const nx_run_names *run_names;
  const nx_atom *atoms;
  const nx_group *groups;
  const nx_constant *constants;
  const nx_term *terms;
  const int64_t *table;
  const nx_arena_record *arenas;
  const nx_value *values;
  const nx_piece *pieces;
  const nx_parameter_group *parameter_groups;
  const nx_range *ranges;
  const nx_operator *operators;
  const uint32_t *arguments;
  const nx_attribute *attributes;
  const nx_program *programs;
  const nx_chunk *chunks;
  const nx_item *items;
  const nx_schedule *schedules;
  const nx_evaluation *evaluations;
  const uint64_t *extra_saves;
  const nx_setting_record *settings;
  const nx_dataset *datasets;
  const nx_source *sources;
  const nx_recipe *recipes;
  const nx_provenance *provenances;
  const char *provenance_text;
  uint32_t n[NX_SECTION_END]; /* records per section, by nx_section_type */
} nx_plan;

/* What is wrong with a plan: one sentence, and where in the file. */
typedef struct nx_fault {
  char text[1024];
  uint64_t offset;
} nx_fault;

/* Verifies everything in one pass: header, hashes, strings, every index, shape and bound of every record, and
 * that no two values that are alive at once overlap where the schema can tell. After it every accessor is
 * unchecked. */
bool nx_plan_check(const void *bytes, uint64_t n_bytes, nx_plan *plan, nx_fault *fault);
/* Proves that the schedule ends: every send meets its receive with zero buffering, every collective is met by
 * its whole group in the same order, every wait has its start, values are written before they are read. */
bool nx_plan_prove(const nx_plan *plan, nx_fault *fault);
/* The part of the proof that is about the stages' items: those of a schedule are walked together, a
 * transfer completes only when both of its ends have been started. Where `seconds` says how long each
 * item takes on its own, `begin` and `end` say when it runs; all three may be NULL, and are indexed as
 * all items are. Takes O(items). */
bool nx_schedule_walk(const nx_plan *plan, const nx_schedule *schedule, const double *seconds, double *begin,
                      double *end, nx_fault *fault);
/* NULL where the plan has none of the kind. */
const nx_schedule *nx_plan_schedule(const nx_plan *plan, nx_schedule_kind kind);
/* "backward of chunk 1, micro-batch 3", ... */
void nx_item_describe(const nx_plan *plan, const nx_item *item, char *text, size_t room);

const char *nx_plan_string(const nx_plan *plan, uint32_t string);
/* Of settings, provenance and names of the run. */
const char *nx_plan_text(const nx_plan *plan, uint32_t text);
/* The coordinate of a rank on an atom; on a set of them, the first varying fastest, and how many there are.
 */
uint32_t nx_plan_coordinate(const nx_plan *plan, uint32_t rank, uint32_t atom);
uint32_t nx_set_coordinate(const nx_plan *plan, uint32_t rank, uint32_t atoms);
uint64_t nx_set_size(const nx_plan *plan, uint32_t atoms);
/* How many coordinates a term tells apart. */
uint64_t nx_term_coordinates(const nx_plan *plan, const nx_term *term);
int64_t nx_constant_value(const nx_plan *plan, uint32_t constant, uint32_t rank, uint32_t chunk);
/* Bounds of it over all ranks and chunks; no number lies between the least and the greatest that it has and
 * these. */
void nx_constant_range(const nx_plan *plan, uint32_t constant, int64_t *least, int64_t *greatest);
/* The `index`-th member of the group that `rank` (or the rank of another stage with its coordinates) belongs
 * to, and the position of `rank` in it: NX_NONE where its stage takes no part. */
uint32_t nx_group_member(const nx_plan *plan, uint32_t group, uint32_t rank, uint32_t index);
uint32_t nx_group_position(const nx_plan *plan, uint32_t group, uint32_t rank);
/* Whether a collective over the group needs several stages, and a stage is among them. */
bool nx_group_crosses_stages(const nx_plan *plan, uint32_t group);
bool nx_group_has_stage(const nx_plan *plan, uint32_t group, uint32_t stage);
/* Whether it is a multiple of `unit` on every rank and chunk. */
bool nx_constant_is_multiple(const nx_plan *plan, uint32_t constant, uint64_t unit);
/* The dataset that is trained on; NULL where the plan has none. */
const nx_dataset *nx_plan_train_set(const nx_plan *plan);
/* How the dataset of a source is made; NULL: it is there already. */
const nx_recipe *nx_source_recipe(const nx_plan *plan, const nx_source *source);
const nx_form_row *nx_form_find(uint32_t form);
/* Elements that an entry stands for. */
int64_t nx_form_elements(uint32_t form);
/* Whether entries are scales of what other pieces have codes for. */
bool nx_form_is_scale(uint32_t form);
/* The rule that updates a range; NULL where it is frozen. */
const nx_optimizer_row *nx_range_rule(const nx_plan *plan, const nx_range *range);
const nx_arena_record *nx_plan_arena(const nx_plan *plan, uint32_t kind); /* NULL where the plan has none */
/* How many bytes of an arena the ranks of a stage have. */
uint64_t nx_plan_stage_bytes(const nx_plan *plan, uint32_t stage, uint32_t kind);
/* A size of an operator by its letter in the signature; 0 where no operand has it as a dimension of its own.
 */
int64_t nx_op_size(const nx_plan *plan, const nx_operator *op, char letter);
uint32_t nx_plan_n_stages(const nx_plan *plan);
/* The shape of a piece's tensor in a checkpoint; returns how many dimensions. */
uint32_t nx_piece_shape(const nx_piece *piece, int64_t dims[3]);
/* NX_NONE where the mesh has no pipeline. */
uint32_t nx_plan_pipeline_atom(const nx_plan *plan);
/* The stage of a rank. */
uint32_t nx_plan_stage(const nx_plan *plan, uint32_t rank);
/* Which operators the passes of a micro-batch run, as a mask of `when`. */
uint8_t nx_pass_when(uint32_t micro_batch, uint32_t n_micro_batches);
/* The program that an item runs, or NX_NONE. */
uint32_t nx_item_program(const nx_plan *plan, const nx_item *item);
/* The other end of a transfer: a chunk and its port. */
uint32_t nx_port_peer(uint32_t chunk, nx_port port);
nx_port nx_port_opposite(nx_port port);
const char *nx_port_name(nx_port port);
/* 32 bytes, or the SHA-256 of some, in lower-case hexadecimal: 64 characters and a NUL. */
void nx_hex(const uint8_t bytes[32], char hex[65]);
void nx_sha256_hex(const void *bytes, uint64_t n_bytes, char hex[65]);

#endif
