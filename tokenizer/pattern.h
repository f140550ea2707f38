/* SPDX-License-Identifier: Apache-2.0 */
/* Regular expressions of tokenizers' files, by PCRE2.
 *
 * tokenizer.json's are Oniguruma's, tiktoken's are Rust's: what PCRE2 would read as something else is
 * rewritten
 * (\s, \w, \h, names of scripts, [A&&[^B]]), and what cannot be is refused. */
#ifndef NXT_PATTERN_H
#define NXT_PATTERN_H

#include "tokenizer/tokenizer.h"

typedef struct nxt_pattern nxt_pattern;

typedef enum nxt_flavour { NXT_ONIGURUMA, NXT_RUST } nxt_flavour;

/* NULL: the fault says what of it is not covered. */
nxt_pattern *nxt_pattern_open(const char *text, nxt_flavour flavour, nx_fault *fault);
void nxt_pattern_close(nxt_pattern *pattern);

/* What finding works in; each thread has its own. */
typedef struct nxt_matcher nxt_matcher;
nxt_matcher *nxt_matcher_open(void);
void nxt_matcher_close(nxt_matcher *matcher);

/* The next match at or after `from`. 1: there is one; 0: there is none; -1: it took too long (the fault says
 * so). An empty match where the last one ended does not count: `last_end` is where, or SIZE_MAX. */
int nxt_pattern_find(const nxt_pattern *pattern, nxt_matcher *matcher, const char *text, size_t n_bytes,
                     size_t from, size_t last_end, size_t match[2], nx_fault *fault);

#endif
