/* SPDX-License-Identifier: Apache-2.0 */
/* The evaluator of shell texts: variables and branches (state.c), words (expand.c, parameter.c,
 * surroundings.c, pattern.c), arithmetic (sum.c), tests (test.c), commands (run.c, redirect.c, flow.c,
 * builtins.c), other scripts (folders.c, follow.c), jobs
 * (job.c), and which commands are launches (launch.c).
 *
 * Nothing is run. Where a condition cannot be told both ways are followed, and what they leave different is
 * unknown afterwards. A path that exits ends; what follows is told by the others. A script that ends because
 * it is not called here as it is meant to be (no arguments, no environment) is followed as if it were. */
#ifndef NXC_SHELL_SHELL_H
#define NXC_SHELL_SHELL_H

#include "compiler/config/front/shell/script.h"
#include "compiler/config/front/shell/syntax.h"

enum {
  NXC_SHELL_BYTES_MAX = 4 * 1024 * 1024,
  NXC_SHELL_TURNS_MAX = 1000,    /* of a loop that can be told */
  NXC_SHELL_COMMANDS_MAX = 20000, /* each as often as it is followed */
  NXC_SHELL_DEPTH_MAX = 200,
  NXC_SHELL_FILE = 1 /* begins the name of a value that is a file's text: behind it stands its path */
};

/* Whether something holds, as far as it can be told. */
typedef enum nxc_truth { NXC_NO, NXC_YES, NXC_MAYBE } nxc_truth;

typedef enum nxc_shell_kind {
  NXC_SHELL_UNSET,
  NXC_SHELL_TEXT,
  NXC_SHELL_ARRAY,
  NXC_SHELL_TABLE
} nxc_shell_kind;

typedef struct nxc_shell_item {
  const char *key; /* of a table; of an array the index as text */
  nxc_text text;
} nxc_shell_item;

/* A value is never changed: an assignment makes another one. */
typedef struct nxc_shell_value {
  nxc_shell_kind kind;
  bool exported, integer;
  nxc_text text;
  nxc_shell_item *items; /* by index */
  size_t n_items;
  size_t at; /* where it was assigned */
} nxc_shell_value;

/* Everything that a command can change. */
typedef struct nxc_shell_state {
  const nxc_shell_value **values; /* by the number of the name; NULL: never assigned */
  size_t n_values;
  const nxc_text *arguments; /* $1 and on */
  size_t n_arguments;
  bool arguments_known;
  size_t n_shifted; /* of those that are not known: $1 is the first behind them */
  size_t option_at; /* of getopts: its next letter in a word that holds several; 0: the first */
  bool drops_patterns; /* nullglob: a pattern of paths that fits none is no word */
  nxc_text output; /* of the commands whose output is taken */
  nxc_text folder; /* that `cd` went to; empty: where the script was called */
  nxc_truth status;
} nxc_shell_state;

/* Ways that come together again. */
typedef struct nxc_shell_ways {
  bool any;
  nxc_shell_state state;
} nxc_shell_ways;

/* A loop, or the call of a function. */
typedef struct nxc_shell_frame {
  struct nxc_shell_frame *outer;
  bool loop;
  nxc_shell_ways leaves; /* break, return */
  nxc_shell_ways again;  /* continue */
  struct {
    size_t name;
    const nxc_shell_value *before;
  } *locals;
  size_t n_locals;
} nxc_shell_frame;

/* A text that is followed: the user's own, or one that it reads. */
typedef struct nxc_shell_source {
  const nxc_source *source;
  nxc_text text;
  size_t base; /* the number of its first byte among those of all texts */
  const char *folder;
  bool open; /* it is being followed */
} nxc_shell_source;

typedef struct nxc_shell {
  nxc_script *script;
  nxc_shell_source *texts; /* the first is the user's own */
  size_t n_texts;
  nxc_sink *sink;
  nxc_arena *arena;
  nxc_shell_state state;
  bool ended;  /* this path goes no further */
  bool gave_up; /* the last that ended did so by an exit, before any launch or as a failure */
  bool assumes; /* that variables are not set, or that there are no arguments */
  bool failed; /* reported: nothing more is followed */
  bool captures; /* output is taken */
  bool plain;   /* {} are bytes like any other */
  bool sources; /* another file may have assigned */
  bool testing; /* what is not set counts as empty */
  const nxc_text *input; /* of the command, where it can be told */
  nxc_shell_frame *frame;
  struct nxc_names *names; /* of variables: their numbers, from 1 */
  const char **name_list;
  size_t n_names;
  struct nxc_names *functions;
  struct nxc_names *expected; /* that the script itself can do without */
  size_t n_expanded, n_steps, n_followed;
  unsigned depth;
  nxc_launch_words options; /* commands that begin with one */
  nxc_launch_words job;     /* what Slurm is told of the commands that are followed */
  struct nxc_shell_pending **pending; /* variables of launches that nothing sets */
  size_t n_pending;
  struct nxc_names *undefined;
  struct nxc_names *noted; /* places that have a note */
  struct nxc_names *paths;   /* words of launches that hold a folder of a text, as they are known */
  nxc_span placed;         /* the last place that was asked for */
  size_t placed_offset;    /* its byte */
} nxc_shell;

/* -- script.c */
nxc_span nxc_shell_place(nxc_shell *s, size_t offset, size_t n_bytes);
void nxc_shell_fail(nxc_shell *s, size_t at, const char *problem);
void nxc_shell_note(nxc_shell *s, size_t at, const char *text);
bool nxc_shell_enter(nxc_shell *s, size_t at);
/* Counts what is written; false (reported): too much. */
bool nxc_shell_spend(nxc_shell *s, size_t n_bytes, size_t at);
/* An argument of the script itself is asked for, and nobody told it; true. */
bool nxc_shell_ask(nxc_shell *s, size_t number);
nxc_launch_word nxc_shell_word_of(nxc_shell *s, const nxc_text *text, size_t at);
nxc_shell_command *nxc_shell_read_text(nxc_shell *s, const nxc_text *text, size_t at);

/* -- state.c */
size_t nxc_shell_number(nxc_shell *s, const char *name);
/* NULL: the script gives it none. */
const nxc_shell_value *nxc_shell_find(nxc_shell *s, const char *name);
void nxc_shell_set(nxc_shell *s, const char *name, nxc_shell_value value);
void nxc_shell_set_text(nxc_shell *s, const char *name, nxc_text text, size_t at);
void nxc_shell_set_unknown(nxc_shell *s, const char *name, size_t at);
void nxc_shell_set_local(nxc_shell *s, const char *name);
const nxc_shell_item *nxc_shell_item_of(const nxc_shell_value *value, const char *key);
void nxc_shell_put_item(nxc_shell *s, nxc_shell_value *value, const char *key, nxc_text text);
nxc_shell_state nxc_shell_snapshot(nxc_shell *s);
/* What a shell of its own leaves: the files that it wrote, its output and its status. */
void nxc_shell_come_back(nxc_shell *s, nxc_shell_state before);
void nxc_shell_join(nxc_shell *s, nxc_shell_ways *ways);
void nxc_shell_take(nxc_shell *s, const nxc_shell_ways *ways);
bool nxc_shell_same(const nxc_shell_state *a, const nxc_shell_state *b);
/* A text that stands there on one of the ways only. */
nxc_text nxc_shell_perhaps(nxc_shell *s, const nxc_text *text);
nxc_truth nxc_truth_not(nxc_truth a);
nxc_truth nxc_truth_and(nxc_truth a, nxc_truth b);
nxc_truth nxc_truth_or(nxc_truth a, nxc_truth b);

/* -- join.c */
/* Two texts of one name where ways meet; false: nothing of it can be told. */
bool nxc_shell_join_texts(nxc_shell *s, const char *name, const nxc_text *x, const nxc_text *y,
                          nxc_text *joined);

/* -- expand.c */
typedef struct nxc_shell_fields {
  nxc_text *items;
  size_t n_items;
  nxc_text draft;
  bool open; /* the draft is a word, even when it has no bytes */
} nxc_shell_fields;

void nxc_shell_expand(nxc_shell *s, const nxc_shell_word *word, nxc_shell_fields *fields);
/* As one text: of an assignment, a test or between quotes. */
nxc_text nxc_shell_expand_one(nxc_shell *s, const nxc_shell_word *word);
/* Of a text in which quotes make bytes no signs of a pattern. */
void nxc_shell_finish(nxc_shell *s, nxc_shell_fields *fields);
void nxc_shell_put(nxc_shell *s, nxc_shell_fields *fields, const nxc_text *text, bool quoted);
/* Outside of quotes: divided at the signs of IFS. */
void nxc_shell_put_divided(nxc_shell *s, nxc_shell_fields *fields, const nxc_text *text, bool listed);
void nxc_shell_put_parts(nxc_shell *s, nxc_shell_fields *fields, const nxc_shell_word *word, bool quoted,
                         bool divides);
const char *nxc_shell_ifs(nxc_shell *s);

/* -- surroundings.c */
/* Whether a launcher, the machine or bash itself gives it. */
bool nxc_shell_is_given(const char *name);
/* A variable of the environment, noted once. NULL: not set. */
const char *nxc_shell_read_environment(nxc_shell *s, const char *name, size_t at, bool default_taken);

/* -- parameter.c */
void nxc_shell_put_parameter(nxc_shell *s, nxc_shell_fields *fields, const nxc_shell_part *part, bool quoted,
                             bool divides);
/* What a name stands for in arithmetic and tests; false: it cannot be told. */
bool nxc_shell_lookup(nxc_shell *s, const char *name, size_t at, nxc_text *text);
nxc_text nxc_shell_known_text(nxc_shell *s, const nxc_text *text); /* without what is not set */

/* -- braces.c */
/* {a,b} and {1..3}: the words that come of it; NULL: it has none. */
nxc_shell_word *nxc_shell_open_braces(nxc_shell *s, const nxc_shell_word *word, size_t *n_words);

/* -- pattern.c */
nxc_truth nxc_shell_fits(nxc_shell *s, const nxc_text *pattern, const nxc_text *text);
/* #, ##, %, %% ; false: it cannot be told. */
bool nxc_shell_cut(nxc_shell *s, nxc_text *text, const nxc_text *pattern, char op, bool longest);
bool nxc_shell_replace(nxc_shell *s, nxc_text *text, const nxc_text *pattern, const nxc_text *by, bool all,
                       char anchor);

/* -- sum.c */
/* False: a value in it is unknown, or it is no arithmetic. */
bool nxc_shell_sum(nxc_shell *s, const nxc_text *text, size_t at, int64_t *value);

/* -- test.c */
nxc_truth nxc_shell_test(nxc_shell *s, const nxc_text *words, size_t n_words, bool patterns);

/* -- run.c */
void nxc_shell_run(nxc_shell *s, const nxc_shell_command *command);
void nxc_shell_assign(nxc_shell *s, const nxc_shell_assignment *assignment, bool exported, bool local);
/* A command in a shell of its own, whose output is taken. */
nxc_text nxc_shell_run_taken(nxc_shell *s, const nxc_shell_command *command);
void nxc_shell_run_text(nxc_shell *s, const nxc_text *text, size_t at, bool apart);
void nxc_shell_run_words(nxc_shell *s, const nxc_shell_command *command, const nxc_text *words,
                         size_t n_words);

/* -- flow.c */
void nxc_shell_run_if(nxc_shell *s, const nxc_shell_command *command);
void nxc_shell_run_case(nxc_shell *s, const nxc_shell_command *command);
void nxc_shell_run_for(nxc_shell *s, const nxc_shell_command *command);
void nxc_shell_run_count(nxc_shell *s, const nxc_shell_command *command);
void nxc_shell_run_while(nxc_shell *s, const nxc_shell_command *command);
void nxc_shell_run_either(nxc_shell *s, const nxc_shell_command *command);
void nxc_shell_run_apart(nxc_shell *s, const nxc_shell_command *command);

/* -- builtins.c */
/* Whether the words are a command of the shell itself; then it is done. */
bool nxc_shell_builtin(nxc_shell *s, const nxc_shell_command *command, const nxc_text *words, size_t n_words);
void nxc_shell_print(nxc_shell *s, const nxc_text *text);
/* -- getopts.c: the next option among arguments; its words are those of the command */
void nxc_shell_take_option(nxc_shell *s, const nxc_text *words, size_t n_words, size_t at);
/* -- getopt.c: the arguments in order, as the program getopt prints them; false: it cannot be told */
bool nxc_shell_order_options(nxc_shell *s, const nxc_text *words, size_t n_words, size_t at,
                             nxc_text *output);
/* -- output.c: echo, printf, seq and their like */
bool nxc_shell_prints(nxc_shell *s, const nxc_text *words, size_t n_words, size_t at);
/* -- edit.c: cat, cp and sed; false: what it prints is not known */
bool nxc_shell_cat(nxc_shell *s, const nxc_text *words, size_t n_words, size_t at, nxc_text *output);
bool nxc_shell_copy(nxc_shell *s, const nxc_text *words, size_t n_words, size_t at, nxc_text *output);
bool nxc_shell_edit(nxc_shell *s, const nxc_text *words, size_t n_words, size_t at, nxc_text *output);

/* -- folders.c */
/* What is written for a folder, as text that stands for that of its own text; and a path of this text. */
nxc_text nxc_shell_own_folder(nxc_shell *s, const nxc_text *written);
nxc_text nxc_shell_own_path(nxc_shell *s, const nxc_text *written);
/* dirname of such a path; false: it is none. */
bool nxc_shell_parent(nxc_shell *s, nxc_text *path);
void nxc_shell_change_folder(nxc_shell *s, const nxc_text *folder);
/* A file that lies beside the script; NULL: none is known. */
const char *nxc_shell_find_file(nxc_shell *s, const nxc_text *path);

/* -- follow.c */
nxc_shell_source *nxc_shell_add_source(nxc_shell *s, const nxc_source *source);
/* Whether a path has the name of a script. */
bool nxc_shell_ends_in_sh(const nxc_text *word);
const nxc_shell_source *nxc_shell_text_at(const nxc_shell *s, size_t offset);
/* Each false: there is no such text, and nothing is done. */
bool nxc_shell_source_file(nxc_shell *s, const nxc_text *words, size_t n_words, size_t at);
bool nxc_shell_run_script(nxc_shell *s, const nxc_text *words, size_t n_words, size_t at);
/* The text behind bash -c, which has the exported variables alone; true. */
bool nxc_shell_run_child(nxc_shell *s, const nxc_text *text, size_t at);
bool nxc_shell_run_input(nxc_shell *s, const nxc_text *words, size_t at);

/* -- redirect.c */
/* Lines for the command to read, and whether its output goes elsewhere. */
void nxc_shell_redirect_input(nxc_shell *s, const nxc_shell_command *command);
/* Where a command writes a script, which may be run later; NULL: nowhere. */
const nxc_shell_redirect *nxc_shell_written(nxc_shell *s, const nxc_shell_command *command, nxc_text *path);
void nxc_shell_keep_written(nxc_shell *s, const nxc_text *path, const nxc_text *text, bool appends);
const nxc_text *nxc_shell_written_file(nxc_shell *s, const nxc_text *path);

/* -- job.c */
/* Words of srun or sbatch count for what they run; gives what counted before, to be put back. */
nxc_launch_words nxc_shell_enter_job(nxc_shell *s, const nxc_text *words, size_t n_words, size_t at);
/* #SBATCH lines of a text. */
void nxc_shell_read_job(nxc_shell *s, const nxc_text *text);
/* What Slurm gives a variable, as the job was told; false: that is not known. */
bool nxc_shell_job_value(nxc_shell *s, const char *variable, size_t at, nxc_text *value);

/* -- launch.c */
void nxc_shell_launch(nxc_shell *s, const nxc_shell_command *command, const nxc_text *words, size_t n_words);
size_t nxc_shell_n_launches(const nxc_shell *s);
void nxc_shell_forget_launches(nxc_shell *s, size_t n_launches);
/* At the end of the text: what is no launch, and what misses. */
void nxc_shell_end_launches(nxc_shell *s);

#endif
