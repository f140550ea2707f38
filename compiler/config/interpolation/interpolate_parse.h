/* SPDX-License-Identifier: Apache-2.0 */
/* The language of ${...} and $<...>: text into a postfix program.
 *
 * A formula's operations run on a stack of items and leave one. Grammar (OmegaConf's; `}` is `>` after `$<`):
 *   text      = ( plain | \${ | interpolation )*          a run of n backslashes before ${ stands for n/2,
 * odd escapes reference = "${" ws "."* (key | "[" key "]") ( "." key | "[" key "]" )* ws "}" call      = "${"
 * ws name ( "." name )* ws ":" ws [ args ] "}" args      = element? ( "," element? )*                an empty
 * element is "" element   = words | 'quoted text' | "[" args? "]" | "{" [ key ":" element ( "," ... )* ] "}"
 * One word is typed (null, true, 12, 1e-3), several are joined to a string. Keys and names may be
 * interpolations. */
#ifndef NXC_CONFIG_INTERPOLATE_PARSE_H
#define NXC_CONFIG_INTERPOLATE_PARSE_H

#include "compiler/config/interpolation/interpolate.h"

typedef enum nxc_op_code {
  NXC_OP_VALUE,     /* push `value` */
  NXC_OP_CONCAT,    /* n items -> their texts, joined */
  NXC_OP_KEY,       /* the top item must be a string that denotes a key */
  NXC_OP_NAME,      /* the same for a part of a resolver's name */
  NXC_OP_REFERENCE, /* a key string -> the node it names */
  NXC_OP_CALL,      /* a name string and n arguments -> the result */
  NXC_OP_LIST,      /* n items -> a list */
  NXC_OP_MAP        /* n pairs -> a map */
} nxc_op_code;

typedef struct nxc_op {
  nxc_op_code code;
  uint32_t n;
  uint32_t offset, length; /* of the interpolation in the text, in bytes */
  nxc_value value;
} nxc_op;

typedef struct nxc_formula {
  const nxc_op *ops;
  size_t n_ops;
  bool angle;          /* $<...> occurs */
  bool empty_argument; /* an empty element occurs, which newer loaders refuse */
} nxc_formula;

typedef struct nxc_syntax_problem {
  size_t offset; /* byte in the text */
  const char *message;
  const char *fix; /* may be NULL */
} nxc_syntax_problem;

/* What opens a reference: ${ or $< (ours). */
typedef struct nxc_marks {
  bool brace, angle;
} nxc_marks;

/* Whether the text holds anything to resolve (an escape too). */
bool nxc_formula_needed(const char *text, size_t n_bytes, nxc_marks marks);
/* Parses a scalar's text, or with `element` a single element, as oc.decode reads it. */
bool nxc_formula_parse(nxc_arena *arena, const char *text, size_t n_bytes, nxc_marks marks, bool element,
                       nxc_formula *formula, nxc_syntax_problem *problem);

/* The parser's cursor, shared with the lexer of words. */
typedef struct nxc_parser {
  nxc_arena *arena;
  const char *text, *at, *end;
  nxc_marks marks;
  size_t depth;
  nxc_op *ops;
  size_t n_ops, ops_capacity;
  nxc_formula *formula;
  nxc_syntax_problem *problem;
} nxc_parser;

typedef struct nxc_syntax_word {
  const char *text;
  size_t n_bytes; /* 0: no word starts here */
  nxc_value value;
  bool joins; /* keeps its text when several words stand together */
} nxc_syntax_word;

/* The next word of an unquoted element: name, number, keyword, blank, escape, colon or single character. */
bool nxc_parser_word(nxc_parser *parser, bool colon, nxc_syntax_word *word);
bool nxc_parser_fail(nxc_parser *parser, const char *at, const char *fix, const char *message);

#endif
