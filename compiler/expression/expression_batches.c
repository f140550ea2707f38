/* SPDX-License-Identifier: Apache-2.0 */
/* Megatron's step-batch-size-schedule: "0:768 250B:1536" has 768 sequences in a batch until so many tokens
 * are read, and 1536 then. */
#include "compiler/expression/expression_batches.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIZES_MAX = 65536 };

typedef struct size {
  double samples, batch; /* from so many sequences on */
} size;

typedef struct sizes {
  size *items;
  size_t n;
} sizes;

/* A number and its suffix, rounded down; NULL where there is none. */
static const char *read_number(const char *text, double *number) {
  static const char suffixes[] = "KMBT";
  char *end;
  if (!isdigit((unsigned char)*text) && *text != '.') return NULL;
  *number = strtod(text, &end);
  const char *suffix = *end ? strchr(suffixes, toupper((unsigned char)*end)) : NULL;
  if (suffix) *number *= pow(1000, (double)(suffix - suffixes + 1)), end++;
  *number = floor(*number);
  return *number <= 1e15 ? end : NULL;
}

static const char *skip_gaps(const char *text) {
  return text + strspn(text, ", \t\n");
}

static int by_samples(const void *left, const void *right) {
  const size *a = left, *b = right;
  return a->samples < b->samples ? -1 : a->samples > b->samples;
}

/* Sizes in order; none where the text is malformed, or does not begin at 0. */
static sizes read_sizes(nxc_evaluation *e, const nxc_value *text, double sequence) {
  sizes read = {nxc_arena_array(e->arena, text->n_bytes / 2 + 1, sizeof *read.items), 0};
  const char *at = text->kind == NXC_STRING ? skip_gaps(text->text) : "-";
  while (*at != '\0') {
    size *of = &read.items[read.n++];
    at = read_number(at, &of->samples);
    at = at && *at == ':' ? read_number(at + 1, &of->batch) : NULL;
    if (at == NULL || (*at != '\0' && skip_gaps(at) == at) || of->batch < 1) return (sizes){0};
    of->samples = floor(of->samples / sequence);
    at = skip_gaps(at);
  }
  if (read.n > 0) qsort(read.items, read.n, sizeof *read.items, by_samples);
  for (size_t i = 0; i < read.n; i++)
    if (i == 0 ? read.items[i].samples != 0 : read.items[i].samples == read.items[i - 1].samples)
      return (sizes){0};
  return read.n <= SIZES_MAX ? read : (sizes){0};
}

static bool is_length(const nxc_value *value) {
  return value->kind == NXC_INT && value->digits == NULL && value->integer > 0;
}

static const nxc_value *integer(nxc_evaluation *e, double number) {
  nxc_value *value = nxc_arena_alloc(e->arena, sizeof *value);
  *value = (nxc_value){.kind = NXC_INT, .integer = (int64_t)number};
  return value;
}

/* batch_sizes(text, tokens of a sequence): a list of BATCH@SAMPLES, empty where the text is malformed. */
const nxc_value *nxc_call_batch_sizes(nxc_evaluation *e, const nxc_value *const *args, size_t n_args) {
  if (n_args != 2 || !is_length(args[1])) return nxc_evaluation_fail(e, "a sequence has a length above 0");
  sizes read = read_sizes(e, args[0], (double)args[1]->integer);
  nxc_value *items = nxc_arena_array(e->arena, read.n + 1, sizeof *items);
  for (size_t i = 0; i < read.n; i++) {
    const char *text = nxc_arena_printf(e->arena, "%.0f@%.0f", read.items[i].batch, read.items[i].samples);
    items[i] = (nxc_value){.kind = NXC_STRING, .text = text, .n_bytes = strlen(text)};
  }
  nxc_value *list = nxc_arena_alloc(e->arena, sizeof *list);
  *list = (nxc_value){.kind = NXC_LIST, .items = items, .n_items = read.n};
  return list;
}

/* last_batch_size(text, tokens of a sequence) */
const nxc_value *nxc_call_last_batch_size(nxc_evaluation *e, const nxc_value *const *args, size_t n_args) {
  bool sized = n_args == 2 && is_length(args[1]);
  sizes read = sized ? read_sizes(e, args[0], (double)args[1]->integer) : (sizes){0};
  if (read.n == 0) return nxc_evaluation_fail(e, "this is no list of THRESHOLD:BATCH");
  return integer(e, read.items[read.n - 1].batch);
}

/* batch_steps(text, tokens of a sequence, samples): steps that read so many, the last perhaps more. */
const nxc_value *nxc_call_batch_steps(nxc_evaluation *e, const nxc_value *const *args, size_t n_args) {
  bool sized = n_args == 3 && is_length(args[1]) && is_length(args[2]);
  sizes read = sized ? read_sizes(e, args[0], (double)args[1]->integer) : (sizes){0};
  if (read.n == 0) return nxc_evaluation_fail(e, "this is no list of THRESHOLD:BATCH");
  double steps = 0, seen = 0, all = (double)args[2]->integer;
  for (size_t i = 0; i < read.n; i++) {
    double end = i + 1 < read.n ? fmin(all, read.items[i + 1].samples) : all;
    double n = end > seen ? ceil((end - seen) / read.items[i].batch) : 0;
    steps += n, seen += n * read.items[i].batch;
  }
  return integer(e, steps);
}
