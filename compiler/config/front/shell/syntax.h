/* SPDX-License-Identifier: Apache-2.0 */
/* A shell text as a tree: what its parser makes and its evaluator walks. */
#ifndef NXC_SHELL_SYNTAX_H
#define NXC_SHELL_SYNTAX_H

#include "compiler/config/front/shell/text.h"

typedef struct nxc_shell_command nxc_shell_command;
typedef struct nxc_shell_word nxc_shell_word;

/* ${NAME[subscript]OP first:second} */
typedef struct nxc_shell_parameter {
  const char *name;
  char all;                 /* '@' or '*' as the subscript; '\0': neither */
  nxc_shell_word *subscript; /* NULL: none */
  bool length, indirect;
  bool colon;  /* :- and its like: an empty value counts as none */
  char op;     /* - = + ? # % / : ^ , or '\0' */
  bool twice;  /* ## %% // ^^ ,, */
  char anchor; /* of / : # or % ; '\0': anywhere */
  nxc_shell_word *first, *second;
} nxc_shell_parameter;

typedef enum nxc_shell_part_kind {
  NXC_PART_TEXT,
  NXC_PART_PARAMETER,
  NXC_PART_COMMAND,    /* $(...) and `...` */
  NXC_PART_ARITHMETIC, /* $((...)) */
  NXC_PART_UNKNOWN     /* <(...) and what has no reading */
} nxc_shell_part_kind;

typedef struct nxc_shell_part {
  nxc_shell_part_kind kind;
  bool quoted;
  nxc_text text; /* of NXC_PART_TEXT the bytes; of all others how it is written */
  nxc_shell_parameter *parameter;
  nxc_shell_command *command;
  nxc_shell_word *sum;
} nxc_shell_part;

struct nxc_shell_word {
  nxc_shell_part *parts;
  size_t n_parts;
  size_t at; /* the byte of the source that it begins with */
};

typedef struct nxc_shell_assignment {
  const char *name;
  size_t at;
  nxc_shell_word *subscript; /* NAME[subscript]= */
  bool appends, array;
  nxc_shell_word value;   /* of a plain one */
  nxc_shell_word *items;  /* of an array, with their subscripts where they have one */
  nxc_shell_word **subscripts;
  size_t n_items;
} nxc_shell_assignment;

typedef struct nxc_shell_redirect {
  char kind;  /* < > h (here document) s (here string) */
  int stream; /* which it stands for; & is 3 */
  bool appends; /* >> */
  nxc_shell_word target;
} nxc_shell_redirect;

typedef enum nxc_shell_command_kind {
  NXC_COMMAND_SIMPLE,
  NXC_COMMAND_LIST,
  NXC_COMMAND_PIPE,
  NXC_COMMAND_AND,
  NXC_COMMAND_OR,
  NXC_COMMAND_IF,
  NXC_COMMAND_CASE,
  NXC_COMMAND_FOR,
  NXC_COMMAND_COUNT, /* for ((a; b; c)) */
  NXC_COMMAND_WHILE,
  NXC_COMMAND_GROUP,
  NXC_COMMAND_SUBSHELL,
  NXC_COMMAND_FUNCTION,
  NXC_COMMAND_SUM, /* ((...)) */
  NXC_COMMAND_TEST /* [[ ... ]] */
} nxc_shell_command_kind;

typedef struct nxc_shell_clause {
  nxc_shell_word *patterns;
  size_t n_patterns;
  nxc_shell_command *body;
  char goes_on; /* & of ;& , ; of ;;& */
} nxc_shell_clause;

struct nxc_shell_command {
  nxc_shell_command_kind kind;
  size_t at;
  bool negated, background;
  bool until;  /* of while */
  bool listed; /* of for: there is an `in` */
  const char *name; /* of for and a function */
  nxc_shell_assignment *assignments;
  size_t n_assignments;
  nxc_shell_word *words;
  size_t n_words;
  nxc_shell_assignment **declared; /* of each word, the assignment that stands in its place; NULL: none */
  nxc_shell_redirect **redirects; /* a here document is filled in later */
  size_t n_redirects;
  nxc_shell_command **children; /* if: condition, body, condition, body, ..., [else] */
  size_t n_children;
  nxc_shell_clause *clauses;
  size_t n_clauses;
};

#endif
