/* SPDX-License-Identifier: Apache-2.0 */
/* All epochs that a run needs as one stream: documents of all of them are shuffled together, then the
 * samples. Where little of the last epoch is needed it is kept apart, so that what is left over is of that
 * epoch alone. */
#include "runtime/data/data_order.h"
#include "runtime/data/mt19937.h"

#include <stdlib.h>

static const uint64_t MOST_DOCUMENTS = UINT64_C(1) << 40; /* of all epochs */

typedef struct plan_of_epochs {
  uint64_t n_documents, n_tokens; /* of one */
  uint64_t n, n_samples;          /* of all together */
  uint64_t n_samples_before;      /* the last, where that is kept apart; else all */
  bool last_apart;
} plan_of_epochs;

/* As many as have the samples that are asked for; one where nobody says how many. */
static plan_of_epochs count_epochs(const nxr_data_source *source, const nxr_order_rule *rule) {
  uint64_t sequence = source->run->sequence, n_asked = rule->n_needed;
  plan_of_epochs epochs = {.n_documents = source->n_documents, .n_tokens = source->n_tokens, .n = 1};
  if (n_asked < UINT64_MAX / sequence - 1) {
    uint64_t wanted = n_asked * sequence + 1;
    epochs.n = wanted > 0 ? (wanted + epochs.n_tokens - 1) / epochs.n_tokens : 1;
  }
  epochs.n_samples = (epochs.n * epochs.n_tokens - 1) / sequence;
  epochs.n_samples_before = epochs.n_samples;
  if (epochs.n == 1 || rule->order == NX_ORDER_NEOX) return epochs;
  uint64_t before = ((epochs.n - 1) * epochs.n_tokens - 1) / sequence,
           of_one = (epochs.n_tokens - 1) / sequence;
  epochs.last_apart = n_asked - before < (uint64_t)(0.80 * (double)of_one);
  if (epochs.last_apart) epochs.n_samples_before = before;
  return epochs;
}

static void order_documents(const plan_of_epochs *epochs, nxr_mt19937 *random, uint64_t *documents) {
  uint64_t n = epochs->n * epochs->n_documents, n_first = epochs->last_apart ? n - epochs->n_documents : n;
  for (uint64_t i = 0; i < n; i++) documents[i] = i % epochs->n_documents;
  nxr_mt19937_shuffle(random, documents, n_first);
  nxr_mt19937_shuffle(random, documents + n_first, n - n_first);
}

static void order_samples(const plan_of_epochs *epochs, nxr_mt19937 *random, uint64_t *samples) {
  uint64_t n_first = epochs->n_samples_before;
  for (uint64_t i = 0; i < epochs->n_samples; i++) samples[i] = i;
  nxr_mt19937_shuffle(random, samples, n_first);
  nxr_mt19937_shuffle(random, samples + n_first, epochs->n_samples - n_first);
}

bool nxr_order_megatron(const nxr_data_source *source, const nxr_order_rule *rule, nxr_order *order,
                        uint64_t *n_samples, nxr_fault *fault) {
  nxr_mt19937 random;
  plan_of_epochs epochs = count_epochs(source, rule);
  if (epochs.n > MOST_DOCUMENTS / epochs.n_documents)
    return nxr_fault_set(fault, "the order of %llu epochs of %s is too long", (unsigned long long)epochs.n,
                         source->name);
  uint64_t n = epochs.n * epochs.n_documents;
  *order = (nxr_order){.n_documents = n,
                       .documents = calloc(n, sizeof *order->documents),
                       .firsts = calloc(n + 1, sizeof *order->firsts),
                       .samples = calloc(epochs.n_samples, sizeof *order->samples)};
  *n_samples = epochs.n_samples;
  if (!order->documents || !order->firsts || !order->samples)
    return nxr_fault_set(fault, "out of memory for the order of %llu samples",
                         (unsigned long long)epochs.n_samples);
  nxr_mt19937_seed(&random, (uint32_t)rule->seed);
  order_documents(&epochs, &random, order->documents);
  order_samples(&epochs, &random, order->samples);
  for (uint64_t i = 0; i < n; i++)
    order->firsts[i + 1] = order->firsts[i] + nxr_data_source_document_tokens(source, order->documents[i]);
  return true;
}
