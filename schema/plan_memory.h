/* SPDX-License-Identifier: Apache-2.0 */
/* Records of where things lie: the mesh, numbers that depend on a rank, arenas, values, and what parameters
 * are pieces of. */
#ifndef NX_PLAN_MEMORY_H
#define NX_PLAN_MEMORY_H

#include "schema/optimizers.h"
#include "schema/plan_file.h"

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

/* What a value of arena input holds from the beginning to the end of the run: of 8 bytes each, i64 or f64,
 * the bits of which are entries of NX_SECTION_TABLE. */
typedef struct nx_fixed_value {
  uint32_t value;
  uint32_t table; /* first entry */
} nx_fixed_value;
_Static_assert(sizeof(nx_fixed_value) == 8, "plan fixed value");

/* Random ones have the deviation `init_std`; of orthogonal ones it is the length of the shorter of rows and
 * columns. */
typedef enum nx_init {
  NX_INIT_ZEROS = 0,
  NX_INIT_ONES,
  NX_INIT_NORMAL,
  NX_INIT_UNIFORM,
  NX_INIT_ORTHOGONAL,
  NX_N_INITS
} nx_init;
enum {
  NX_PIECE_TRANSPOSED = 1, /* the checkpoint's tensor is the transpose (GPT-2's Conv1D) */
  NX_PIECE_ADAPTER = 2,    /* of what is trained beside a frozen model: not in that model's checkpoints */
  NX_PIECE_ALIAS = 4,      /* another name of a box that an earlier piece is */
  NX_PIECE_MEMORY = 8      /* no weight, but what the training remembers: beside what optimizers keep */
};

/* How an entry of a value stands for elements of the tensor: for itself; for one in 8 bits or two in 4 bits
 * each (fp8.h, nf4.h, nvfp4.h, mxfp4.h); or for the elements of a block, as what scales them. Sizes and
 * places of pieces are counted in entries. */
typedef enum nx_form {
  NX_FORM_PLAIN = 0,
  NX_FORM_NF4,
  NX_FORM_NF4_ABSMAX,
  NX_FORM_NVFP4,
  NX_FORM_NVFP4_SCALE,
  NX_FORM_MXFP4,
  NX_FORM_MXFP4_SCALE,
  NX_FORM_FP8,
  NX_FORM_FP8_SCALE,
  NX_N_FORMS
} nx_form;

typedef struct nx_form_row {
  int64_t rows, elements; /* that an entry stands for: of so many rows so many elements */
  uint32_t dtype;         /* of an entry; 0: any real one */
  int64_t block;          /* entries that no rank may divide */
  bool scales;            /* what others are scaled by */
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

#endif
