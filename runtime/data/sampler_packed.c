/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of whole documents: one each, or rows of several (packing.h), and padding behind them.
 *
 * A token weighs in the loss, at the token before it, what the dataset's weights say, or 1; padding weighs
 * nothing, and is a document of its own. */
#include "schema/packing.h"
#include "runtime/data/sampler.h"

#include <stdlib.h>

enum { PADDING = 0 /* a token of every model */ };

/* -- rows ------------------------------------------------------------------------------------------------ */

/* What stands in a row at `at`: a document, as far as there is room. Returns where it ends. */
static uint32_t put_document(const nxr_sampler *sampler, uint64_t document, uint32_t at, const nxr_row *row) {
  const nx_run *run = sampler->run;
  uint64_t n = nxr_data_source_document_tokens(sampler->source, document);
  if (n > run->sequence + 1 - at) n = run->sequence + 1 - at;
  nxr_data_source_read(sampler->source, document, 0, n, row->tokens + at);
  nxr_data_source_weights(sampler->source, document, 0, n, row->labels + at);
  bool is_predicted = at > 0 && !(run->documents & NX_DOCUMENTS_LOSS);
  if (n > 0 && !is_predicted) row->labels[at] = 0;
  for (uint32_t i = at; i < at + n && i < run->sequence; i++) row->starts[i] = (int32_t)at;
  return at + (uint32_t)n;
}

static void end_row(const nxr_sampler *sampler, uint32_t at, const nxr_row *row) {
  uint32_t sequence = sampler->run->sequence;
  for (uint32_t i = at; i <= sequence; i++) row->tokens[i] = PADDING, row->labels[i] = 0;
  for (uint32_t i = at; i < sequence; i++) row->starts[i] = (int32_t)at;
  for (uint32_t i = 0; i < sequence; i++) row->weights[i] = row->labels[i + 1];
}

static uint64_t ordered(nxr_sampler *sampler, uint64_t sample) {
  const nxr_order *order = nxr_orders_of(&sampler->orders, sample / sampler->n_samples);
  return order->samples[sample % sampler->n_samples];
}

void nxr_sampler_read_document(const nxr_sampler *sampler, uint64_t document, const nxr_row *row) {
  end_row(sampler, put_document(sampler, document, 0, row), row);
}

uint64_t nxr_sampler_row_document(nxr_sampler *sampler, uint64_t number) {
  uint32_t n_rows = sampler->kind->n_rows;
  uint64_t sample = ordered(sampler, number / n_rows);
  return n_rows * (sampler->kept ? sampler->kept[sample] : sample) + number % n_rows;
}

static void document_read(nxr_sampler *sampler, uint64_t sample, const nxr_row *row) {
  nxr_sampler_read_document(sampler, nxr_sampler_row_document(sampler, sample), row);
}

static void packed_read(nxr_sampler *sampler, uint64_t sample, const nxr_row *row) {
  uint64_t index = ordered(sampler, sample);
  uint32_t at = 0;
  for (uint64_t i = sampler->rows.firsts[index]; i < sampler->rows.firsts[index + 1]; i++)
    at = put_document(sampler, sampler->rows.documents[i], at, row);
  end_row(sampler, at, row);
}

/* -- opening --------------------------------------------------------------------------------------------- */

static bool check_lengths(const nxr_sampler *sampler, uint64_t most, nxr_fault *fault) {
  const nxr_data_source *source = sampler->source;
  if (source->n_documents == 0) return nxr_fault_set(fault, "dataset %s has no document", source->name);
  for (uint64_t i = 0; i < source->n_documents; i++) {
    uint64_t n = nxr_data_source_document_tokens(source, i);
    if (n > most)
      return nxr_fault_set(
          fault,
          "document %llu of dataset %s has %llu tokens, and a sample has room for %llu: prepare it "
          "with data.document_tokens, which leaves out or cuts what is longer",
          (unsigned long long)i, source->name, (unsigned long long)n, (unsigned long long)most);
  }
  return true;
}

bool nxr_sampler_open_orders(nxr_sampler *sampler, uint64_t n_samples, nxr_fault *fault) {
  sampler->n_samples = n_samples;
  const nxr_order_rule rule = {.seed = sampler->run->seed,
                               .number = sampler->source->number,
                               .shuffle = sampler->shuffle,
                               .order = NX_ORDER_EPOCHS,
                               .n_needed = sampler->n_needed,
                               .n_samples = n_samples};
  return nxr_orders_open(sampler->source, &rule, &sampler->orders, fault);
}

/* Without a rule for long documents all are read. */
static bool document_open(nxr_sampler *sampler, nxr_fault *fault) {
  uint64_t n = sampler->source->n_documents;
  bool good = sampler->long_samples ? nxr_sampler_keep(sampler, &n, fault)
                                    : check_lengths(sampler, (uint64_t)sampler->run->sequence + 1, fault);
  return good && nxr_sampler_open_orders(sampler, n, fault);
}

static bool packed_open(nxr_sampler *sampler, nxr_fault *fault) {
  const nxr_data_source *source = sampler->source;
  sampler->packing.row_tokens = sampler->run->sequence;
  if (!check_lengths(sampler, sampler->packing.row_tokens, fault)) return false;
  uint32_t *lengths = calloc(source->n_documents, sizeof *lengths);
  if (lengths == NULL) return nxr_fault_set(fault, "out of memory for the lengths of documents");
  for (uint64_t i = 0; i < source->n_documents; i++)
    lengths[i] = (uint32_t)nxr_data_source_document_tokens(source, i);
  bool good = nx_rows_make(&sampler->packing, lengths, source->n_documents, &sampler->rows);
  free(lengths);
  if (!good)
    return nxr_fault_set(fault, "out of memory to pack %llu documents",
                         (unsigned long long)source->n_documents);
  return nxr_sampler_open_orders(sampler, sampler->rows.n, fault);
}

const nxr_sampler_kind nxr_sampler_document = {document_open, document_read, 1},
                       nxr_sampler_packed = {packed_open, packed_read, 1};
