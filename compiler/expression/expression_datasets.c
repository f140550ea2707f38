/* SPDX-License-Identifier: Apache-2.0 */
/* The length of an epoch, from the indexes of datasets (PREFIX.idx; runtime/data/dataset.h says what they
 * hold): what is read is how many tokens each sequence has. */
#include "compiler/expression/expression_datasets.h"

#include "schema/index_head.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

enum { SIZES_OF_A_READ = 4096 };

/* Sequences of the first share, as GPT-NeoX rounds: each share by itself, and what is too many at the end
 * taken from every border. */
static uint64_t first_share(uint64_t n, const nxc_value *split) {
  double sum = 0, borders = 0, first = 0;
  if (split->kind != NXC_LIST) return n;
  for (size_t i = 0; i < split->n_items; i++) sum += split->items[i].number;
  for (size_t i = 0; i < split->n_items; i++) {
    borders += nearbyint(split->items[i].number / sum * (double)n);
    if (i == 0) first = borders;
  }
  double end = first - (borders - (double)n);
  return end > 0 && end <= (double)n ? (uint64_t)end : 0;
}

/* Tokens of the first sequences that are left to count; below 0 where the file ends before. */
static int64_t count_tokens(FILE *file, uint64_t n) {
  int32_t sizes[SIZES_OF_A_READ];
  int64_t tokens = 0;
  while (n > 0) {
    size_t now = n < SIZES_OF_A_READ ? (size_t)n : SIZES_OF_A_READ;
    if (fread(sizes, sizeof *sizes, now, file) != now) return -1;
    for (size_t i = 0; i < now; i++) {
      if (sizes[i] < 0 || tokens > INT64_MAX - sizes[i]) return -1;
      tokens += sizes[i];
    }
    n -= now;
  }
  return tokens;
}

static FILE *open_index(nxc_arena *arena, const char *prefix) {
  const char *path = nxc_arena_printf(arena, "%s.idx", prefix);
  struct stat status;
  return stat(path, &status) == 0 && S_ISREG(status.st_mode) ? fopen(path, "rb") : NULL;
}

/* Tokens that the training reads of a dataset; below 0 where there is no index of that name. */
static int64_t tokens_of(nxc_evaluation *e, const char *prefix, const nxc_value *split) {
  nx_index_head head;
  FILE *file = open_index(e->arena, prefix);
  if (file == NULL) return -1;
  bool good = nx_index_head_read(file, &head) && head.version == 1;
  int64_t tokens = good ? count_tokens(file, first_share(head.n_sequences, split)) : -1;
  fclose(file);
  return tokens;
}

/* epoch_samples(prefixes, split, tokens of a sequence): the samples that GPT-NeoX takes from one pass over
 * the datasets; it leaves the last of each out. Unknown where an index is not there. */
const nxc_value *nxc_call_epoch_samples(nxc_evaluation *e, const nxc_value *const *args, size_t n_args) {
  const nxc_value *prefixes = args[0];
  int64_t samples = 0;
  if (n_args != 3 || args[2]->kind != NXC_INT || args[2]->integer <= 0)
    return nxc_evaluation_fail(e, "a sequence has a length above 0");
  if (prefixes->kind != NXC_LIST) return NULL;
  for (size_t i = 0; i < prefixes->n_items && samples >= 0; i++) {
    bool named = prefixes->items[i].kind == NXC_STRING;
    int64_t tokens = named ? tokens_of(e, prefixes->items[i].text, args[1]) : -1;
    int64_t own = tokens > 0 ? (tokens - 1) / args[2]->integer - 1 : 0;
    samples = tokens < 0 ? -1 : samples + (own > 0 ? own : 0);
  }
  return samples < 0 ? NULL : nxc_value_of_int(e, samples);
}
