/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan says of the run as a whole: sizes, what the host writes and reads, names, intervals,
 * evaluations. */
#ifndef NX_PLAN_RUN_H
#define NX_PLAN_RUN_H

#include "schema/objective.h"
#include "schema/plan_file.h"
#include "schema/targets.h"

enum {
  NX_PLATEAU_GREATER = 1,  /* a greater loss is a better one */
  NX_PLATEAU_ABSOLUTE = 2, /* `threshold` is a difference, not a share of the best */
  NX_PLATEAU_RULES = 3
};

/* A learning rate that is reduced while a loss gets no better. */
typedef struct nx_plateau {
  double factor, least;   /* of a reduction; below which none goes */
  double threshold;       /* what is no more better than this is no better */
  double least_change;    /* a reduction by no more than this is none */
  uint64_t every;         /* steps between two looks; 0: one at each new loss */
  uint32_t patience;      /* looks without a better loss that are passed over */
  uint32_t cooldown;      /* looks behind a reduction that count for nothing */
  uint32_t rules;         /* NX_PLATEAU_* */
  uint32_t evaluation;    /* whose loss that is, or NX_NONE: that of the step */
} nx_plateau;

/* The run: one record. Value indices name what the host writes and reads. */
typedef struct nx_run {
  uint32_t n_ranks;
  uint32_t n_hosts; /* ranks are tiled in order: n_ranks / n_hosts on each */
  uint32_t n_threads;
  uint32_t target; /* nx_target */
  uint64_t workspace_bytes;
  uint64_t seed;
  uint64_t n_steps;
  uint32_t n_micro_batches; /* per step and data-parallel rank, once the batch has grown */
  uint32_t micro_batch;     /* B, sequences */
  uint32_t sequence;        /* S, tokens of the whole sequence */
  uint32_t global_batch;    /* sequences per step, once it has grown */
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
  uint32_t seen;       /* value [1] i64 in arena input: sequences before the step, or NX_NONE */
  uint32_t gradient_factor; /* value [1] f64 in arena input: what gradients carry at the update, where this is
                             * not the loss scale alone: times the step's share of a full batch; or NX_NONE */
  /* Values [K,B,s] i32 and f32 in arena input, of the 1st to K-th token behind the label of each: what it is
   * (0 behind the end of the sequence), and what its loss weighs (there 0); the losses of each of the K are
   * `later_factor` / K of the sequences' mean. NX_NONE, both, where only labels are predicted. */
  uint32_t later_labels, later_weights;
  double later_factor;
  uint32_t objective; /* nx_objective; weights are scaled where it is that of tokens alone */
  uint32_t
      reference; /* value [B] f64 in arena input: what sequence_sums was before the training, or NX_NONE */
  uint32_t sequence_sums; /* value [B] f64 of the last chunk: of each sequence, the sum over its tokens of
                             weight x negative log-probability, or x the head's value; or NX_NONE */
  uint32_t metrics; /* value [NX_N_ANSWER_METRICS] f64: sums over the samples of the step; or NX_NONE */
  uint64_t epochs; /* of the training's dataset, behind which it ends if not before; 0: not counted */
  double merge_scale;    /* of what adapters add to frozen weights when they are merged */
  uint32_t merge_every;  /* steps between two such times; 0: never */
  uint32_t updates; /* value [1] i64 in arena input: updates before the step, since the optimizer began anew,
                     * with the adapters or with the weights of another run; or NX_NONE: as `step` */
  /* Atoms of the ranks that share a batch, where sums over them are to be the same however many they are:
   * they are made in pairs of neighbouring coordinates, then of pairs of these, ..., and whatever else the
   * group has is added to that in order; 0: all in coordinate order. */
  uint32_t pair_atoms;
  uint32_t tensor_parts; /* string: JSON, which parts of a model the tensors of checkpoints hold, where a
                          * run may begin with those of another system (runtime/foreign); "": it does not */
  uint32_t reductions; /* value [1] i64 in arena input: of the learning rate so far, or NX_NONE */
  uint32_t repeat_batches; /* first ones, that the training reads again and again; 0: it reads on */
  uint32_t rewards; /* value [B,2] f64 in arena input: of each answer, and its mean over the sequence, in
                       which padding has none; or NX_NONE */
  uint16_t
      counts_voters;   /* 0 or 1: gradient_factor is times the share of micro-batches that have a label too */
  uint16_t seen_late;  /* steps by which `seen` is late */
  nx_plateau plateau;  /* when they come */
} nx_run;
_Static_assert(sizeof(nx_run) == 384, "plan run");

enum {
  NX_MEASURE_ROOT = 1,     /* the square root is logged, */
  NX_MEASURE_OF_TOKENS = 2, /* or a mean over the tokens of the step */
  NX_MEASURE_FLAGS = 3
};
enum { NX_MAX_MEASURES = 256 };

/* A number of a step that is logged beside its loss: factor times what the step came to, and offset. */
typedef struct nx_measure {
  uint32_t name;    /* string: of a metric */
  uint32_t value;   /* of f64 in arena scalar, the same on all ranks */
  uint32_t element; /* of the value */
  uint32_t flags;   /* NX_MEASURE_* */
  double factor, offset;
} nx_measure;
_Static_assert(sizeof(nx_measure) == 32, "plan measure");

enum {
  NX_LOSS_SCALE_DYNAMIC = 1,
  NX_LOSS_SCALE_RENEWS = 2, /* any good step begins the hysteresis anew, not only one that doubles it */
  NX_LOSS_SCALE_ENDS = 4, /* where it would fall below its least, or is fixed and would fall, the run ends */
  NX_LOSS_SCALE_PLAIN = 8 /* falls with each overflow; windows begin behind the first good step */
};

/* Over what a loss is the mean of its tokens, where they do not weigh the same. */
typedef enum nx_loss_mean {
  NX_MEAN_MICRO_BATCH = 0, /* of a rank; micro-batches weigh the same */
  NX_MEAN_STEP             /* of all ranks: tokens weigh the same */
} nx_loss_mean;

/* A document of a stream ends with its token, or where the index says so; samples of whole documents know where they
 * end. Without any of the first three a sequence is one document. */
enum {
  NX_DOCUMENTS_ATTENTION = 1, /* a token reads its own document alone */
  NX_DOCUMENTS_POSITIONS = 2, /* positions count from the start of the document */
  NX_DOCUMENTS_LOSS = 4,      /* what follows the token that ends a document is not predicted */
  NX_DOCUMENTS_INDEX = 8      /* attention and positions of a stream go by the index */
};

/* What becomes of the schedule where a run goes on from a checkpoint that has another. */
typedef enum nx_schedule_rule {
  NX_SCHEDULE_OF_PLAN = 0,
  NX_SCHEDULE_SAME,         /* the run does not go on */
  NX_SCHEDULE_OF_CHECKPOINT /* it does not, and says what the plan is to be made with */
} nx_schedule_rule;

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
  uint32_t stop_every;     /* the run ends, to be resumed, after each multiple of so many steps; 0: never */
  uint64_t load_step;      /* 0: the newest */
  double stop_after_s;     /* and after so long; 0: never */
  uint8_t load_weights;    /* 1: of `load` weights alone, and the run begins at step 0 */
  uint8_t load_required;   /* 1: a run that finds no checkpoint fails */
  uint8_t save_optimizer;  /* 0: checkpoints hold weights alone */
  uint8_t strictness;      /* nx_strictness, of `load` */
  uint32_t profile_ranks;  /* text: their numbers, with commas; "": all */
  uint64_t profile_first, profile_last; /* steps, from 1, that are recorded; 0: none */
  uint64_t file_bytes; /* of a checkpoint's file of weights, at most; 0: any number */
  uint32_t
      tokenizer; /* text: a file or folder, beside checkpoints; "": what nxdata left beside the dataset */
  uint32_t schedule;   /* nx_schedule_rule */
  /* Checkpoints also come after so long, so many sequences and so many epochs since the one before; 0: not.
   */
  double save_after_s;
  uint64_t save_samples;
  double save_epochs;
  uint32_t retain_every; /* checkpoints of steps that it divides stay, whatever `keep` says; 0: none does */
  uint32_t temporary_every; /* steps between checkpoints of which only the newest stays; 0: there are none */
  uint32_t temporary;       /* text: the folder that they are in, below the run's where it is relative */
  uint32_t link_name; /* text: of links to checkpoints, with {step}, {samples}, {epoch}, {loss}; "": none */
  uint8_t timers;     /* how much of a step is timed: 0 nothing, 1 its phases, 2 also each kind of operator */
  uint8_t timers_over;      /* nx_timers_over, of the ranks' times */
  uint16_t stragglers;      /* fastest and slowest ranks that each line names; 0: none */
  uint32_t
      load_states;   /* 1: of `load` the optimizer's states too, unless weights alone; 0: they begin anew */
  double peak_flops; /* of all ranks' products a second, on the machine that the plan is for; 0: not known */
  uint32_t checkpoints; /* text: the folder that they are in; "": checkpoints in the run's */
  uint32_t keep_states; /* newest checkpoints that have the optimizer's states; 0: all */
  uint32_t wandb; /* text: folder in whose wandb/ there is an offline run for Weights & Biases; "": none */
  uint32_t wandb_every; /* steps */
  uint32_t wandb_project, wandb_entity, wandb_name, wandb_group; /* texts; "": not said */
  uint32_t wandb_tags;  /* text: with line feeds between them */
  /* What the tokenizer's own file does not say. */
  uint32_t tokenizer_merges;    /* text: a file; "": merges.txt beside the vocabulary */
  uint32_t tokenizer_pattern;   /* text: of words; "": that which is usual */
  uint32_t tokenizer_special;   /* text: special tokens, with line feeds between them; "": the usual ones */
  uint32_t tokenizer_n_special; /* ids of special tokens; 0: as many as is usual */
  uint32_t profile_directory;   /* text: where profiles are written; "": profile in the run's */
  uint32_t compare_every; /* steps after which ranks compare weights that they have copies of; 0: never */
  uint32_t reserved;
} nx_run_names;
_Static_assert(sizeof(nx_run_names) == 240, "plan run names");

/* Of tensors that a folder of weights lacks, or has beyond the plan's: a mistake, or said, or passed over. */
typedef enum nx_strictness {
  NX_STRICT_RAISE = 0,
  NX_STRICT_LOG_UNEXPECTED, /* what is missing is a mistake */
  NX_STRICT_IGNORE_UNEXPECTED,
  NX_STRICT_LOG_ALL, /* what is missing begins as drawn */
  NX_STRICT_IGNORE_ALL,
  NX_STRICT_END
} nx_strictness;

typedef enum nx_timers_over {
  NX_TIMERS_MINMAX = 0,
  NX_TIMERS_MAX,
  NX_TIMERS_ALL,
  NX_TIMERS_END
} nx_timers_over;

/* Of what not everyone wants in TensorBoard. */
enum {
  NX_SHOWS_MEMORY = 1,
  NX_SHOWS_LOSS_SCALE = 2,
  NX_SHOWS_PERPLEXITY = 4,
  NX_SHOWS_WORLD_SIZE = 8,
  NX_SHOWS_TIMERS = 16,
  NX_SHOWS_GRADIENT_NORM = 32,
  NX_SHOWS_ALL = 63
};
enum {
  NX_RUN_BEST_IS_GREATEST = 1,
  NX_RUN_ONLY_EVALUATES = 2, /* nothing is trained */
  NX_RUN_MODEL_WEIGHTS =
      4, /* a checkpoint's weights are as the model computes, its master weights beside them */
  NX_RUN_BARE_WEIGHTS = 8,    /* and have nothing beside them that only other programs read */
  NX_RUN_SAVES_ASIDE = 16,    /* checkpoints are written while the training goes on */
  NX_RUN_SKIPS_SAVES = 32,    /* one that is due while another is being written is left out, not waited for */
  NX_RUN_SAVES_MAY_FAIL = 64, /* a checkpoint that cannot be written is said, and the training goes on */
  NX_RUN_KEEPS_PROGRESS = 128, /* progress.txt in the run's folder */
  NX_RUN_LOGS_FLOPS = 256,     /* operations a second, and their share of what the machine could do */
  NX_RUN_GOES_ON_AT_NAN = 512, /* a loss that is no number does not end the run */
  NX_RUN_NESTED_SCALES = 1024, /* scales of NF4 are quantized themselves as weights are read (nf4_nested.h) */
  NX_RUN_BEST_BY_STEP = 2048,  /* checkpoints are the best by their number, and not by a loss; */
  NX_RUN_BEST_BY_RATE = 4096,  /* or by the learning rate of their last step, */
  NX_RUN_BEST_BY_NORM = 8192,  /* or by the norm of its gradients */
  NX_RUN_LOGS_JSON = 16384,    /* lines of progress are JSON objects */
  NX_RUN_RULES = 32767
};

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

#endif
