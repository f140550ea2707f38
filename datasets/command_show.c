/* SPDX-License-Identifier: Apache-2.0 */
/* nxdata show: documents as text or ids, and how long they are. */
#include "datasets/command.h"
#include "tokenizer/tokenizer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MANY_DOCUMENTS = 10, BAR = 40, N_BINS = 33 };

typedef struct show_options {
  const char *tokenizer, *merges, *pattern;
  nxd_texts special;
  uint32_t n_special;
  bool bytes, lengths, weights, pairs, text;
  uint64_t first, count;
} show_options;

typedef struct shown {
  const nxr_dataset *dataset;
  nxt_tokenizer *tokenizer;
  nxt_encoder *encoder;
  int32_t *tokens;
  float *weights;
  nxt_text text;
} shown;

/* -- lengths
 * -------------------------------------------------------------------------------------------------- */

/* 0, 1, 2 to 3, 4 to 7, ... */
static unsigned bin_of(uint64_t n_tokens) {
  unsigned bin = 0;
  for (; n_tokens > 0; n_tokens /= 2) bin++;
  return bin;
}

static void print_bin(unsigned bin, uint64_t n, uint64_t most) {
  uint64_t least = bin ? UINT64_C(1) << (bin - 1) : 0, greatest = bin ? 2 * least - 1 : 0;
  int length = (int)((n * BAR + most - 1) / most);
  printf("%10" PRIu64 " … %-10" PRIu64 " %12" PRIu64 "  %.*s\n", least, greatest, n, length,
         "########################################");
}

static void show_lengths(const nxr_dataset *dataset) {
  uint64_t bins[N_BINS] = {0}, most = 1;
  unsigned first = N_BINS, last = 0;
  for (uint64_t i = 0; i < dataset->n_documents; i++) {
    unsigned bin = bin_of(nxr_dataset_document_tokens(dataset, i));
    if (bin >= N_BINS) bin = N_BINS - 1;
    if (++bins[bin] > most) most = bins[bin];
    if (bin < first) first = bin;
    if (bin > last) last = bin;
  }
  printf("    tokens                  documents\n");
  for (unsigned bin = first; bin <= last; bin++) print_bin(bin, bins[bin], most);
}

/* -- documents
 * ------------------------------------------------------------------------------------------------ */

static void print_ids(const shown *s, uint64_t n) {
  for (uint64_t i = 0; i < n; i++) {
    printf("%s%" PRId32, i ? " " : "", s->tokens[i]);
    if (s->weights) printf(":%g", (double)s->weights[i]);
  }
}

static void print_bytes(const shown *s, uint64_t n) {
  for (uint64_t i = 0; i < n; i++)
    if (s->tokens[i] < 256) putchar(s->tokens[i]);
}

static void print_run(shown *s, uint64_t first, uint64_t n) {
  s->text.n = 0;
  nxt_decode(s->encoder, (const uint32_t *)s->tokens + first, n, 0, &s->text);
  fwrite(s->text.items, 1, s->text.n, stdout);
}

/* With weights, each run of one weight behind it. */
static void print_text(shown *s, uint64_t n) {
  for (uint64_t first = 0, end; first < n; first = end) {
    end = s->weights ? first + 1 : n;
    while (end < n && s->weights[end] == s->weights[first]) end++;
    if (s->weights) printf("%s[%g] ", first ? "\n" : "", (double)s->weights[first]);
    print_run(s, first, end - first);
  }
}

static bool print_document(shown *s, uint64_t document, const show_options *o, nxr_fault *fault) {
  bool weights = o->weights;
  uint64_t n = nxr_dataset_document_tokens(s->dataset, document);
  int32_t *tokens = reallocarray(s->tokens, n + 1, sizeof *tokens);
  if (tokens) s->tokens = tokens;
  float *some = weights ? reallocarray(s->weights, n + 1, sizeof *some) : NULL;
  if (some) s->weights = some;
  if (tokens == NULL || (weights && some == NULL)) return nxr_fault_set(fault, "out of memory");
  nxr_dataset_read(s->dataset, document, 0, n, s->tokens);
  if (weights) nxr_dataset_weights(s->dataset, document, 0, n, s->weights);
  const char *role = document % 2 == 0 ? ", chosen" : ", rejected";
  printf("--- document %" PRIu64 "%s, %" PRIu64 " tokens\n", document, o->pairs ? role : "", n);
  if (s->encoder) print_text(s, n);
  else if (o->bytes) print_bytes(s, n);
  else print_ids(s, n);
  putchar('\n');
  return true;
}

static int show_documents(const nxr_dataset *dataset, const show_options *o) {
  shown s = {.dataset = dataset};
  nx_fault wrong = {.text = ""};
  nxr_fault fault = {""};
  uint64_t left = o->first < dataset->n_documents ? dataset->n_documents - o->first : 0;
  uint64_t count = o->count < left ? o->count : left;
  bool good = true;
  const nxt_unsaid unsaid = {o->merges, o->pattern, o->special.items, o->n_special, 0};
  if (o->tokenizer && (s.tokenizer = nxt_open_with(o->tokenizer, &unsaid, &wrong)) == NULL) {
    fprintf(stderr, "nxdata: %s\n", wrong.text);
    return STATUS_USAGE;
  }
  s.encoder = s.tokenizer ? nxt_encoder_open(s.tokenizer) : NULL;
  for (uint64_t i = 0; good && i < count; i++)
    good = print_document(&s, o->first + i, o, &fault);
  if (s.encoder) nxt_encoder_close(s.encoder);
  if (s.tokenizer) nxt_close(s.tokenizer);
  free(s.tokens);
  free(s.weights);
  free(s.text.items);
  return good ? STATUS_DONE : nxd_damaged(&fault);
}

static int show(int n, char **arguments, show_options *o) {
  char prefix[NXD_MAX_PREFIX], beside[NXD_MAX_PREFIX + sizeof NXR_TOKENIZER_FOLDER];
  nxr_dataset dataset;
  int status = nxd_open_only(n, arguments, prefix, &dataset);
  if (status != STATUS_DONE) return status;
  snprintf(beside, sizeof beside, "%s" NXR_TOKENIZER_FOLDER, prefix);
  if (o->text && o->tokenizer == NULL) o->tokenizer = beside;
  if (o->lengths) show_lengths(&dataset);
  else status = show_documents(&dataset, o);
  nxr_dataset_close(&dataset);
  return status;
}

int nxd_command_show(int n, char **arguments) {
  show_options o = {.count = MANY_DOCUMENTS};
  const nxd_option options[] = {{"--bytes", NXD_FLAG, &o.bytes},
                                {"--count", NXD_NUMBER, &o.count, "a number of documents"},
                                {"--first", NXD_NUMBER, &o.first, "the number of a document, from 0"},
                                {"--lengths", NXD_FLAG, &o.lengths},
                                {"--merges", NXD_TEXT, &o.merges, "a file of merges"},
                                {"--pairs", NXD_FLAG, &o.pairs},
                                {"--pattern", NXD_TEXT, &o.pattern, "a pattern of words"},
                                {"--special", NXD_TEXTS, &o.special, "the text of a token"},
                                {"--special-ids", NXD_COUNT, &o.n_special, "a number of token ids"},
                                {"--text", NXD_FLAG, &o.text},
                                {"--tokenizer", NXD_TEXT, &o.tokenizer, "a tokenizer's file or folder"},
                                {"--weights", NXD_FLAG, &o.weights}};
  bool good = nxd_options_read(&n, arguments, options, sizeof options / sizeof *options);
  int status = good ? show(n, arguments, &o) : STATUS_USAGE;
  free(o.special.items);
  return status;
}
