/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/data/data_order.h"

#include "schema/philox.h"

#include <stdlib.h>

enum { ORDER_OF_DOCUMENTS = 0x446f6373, ORDER_OF_SAMPLES = 0x53616d70 };

static uint64_t draw_below(uint64_t bound, uint64_t seed, uint32_t what, uint64_t epoch, uint64_t index) {
  nx_philox words = nx_philox_draw(seed, what, (uint32_t)index, (uint32_t)(index >> 32), (uint32_t)epoch,
                                   (uint32_t)(epoch >> 32));
  uint64_t random = (uint64_t)words.word[0] << 32 | words.word[1];
  return (uint64_t)((unsigned __int128)random * bound >> 64);
}

static void shuffle(uint64_t *items, uint64_t n, uint64_t seed, uint32_t what, uint64_t epoch) {
  for (uint64_t i = n; i > 1; i--) {
    uint64_t j = draw_below(i, seed, what, epoch, i), item = items[i - 1];
    items[i - 1] = items[j];
    items[j] = item;
  }
}

static void identity(uint64_t *items, uint64_t n) {
  for (uint64_t i = 0; i < n; i++) items[i] = i;
}

static void order_epoch(const nxr_orders *orders, nxr_order *order, uint64_t epoch) {
  const nxr_order_rule *rule = &orders->rule;
  uint64_t n_documents = orders->source->n_documents;
  identity(order->documents, n_documents);
  identity(order->samples, orders->n_samples);
  if (rule->shuffle) {
    shuffle(order->documents, n_documents, rule->seed, ORDER_OF_DOCUMENTS + rule->number, epoch);
    shuffle(order->samples, orders->n_samples, rule->seed, ORDER_OF_SAMPLES + rule->number, epoch);
  }
  order->firsts[0] = 0;
  for (uint64_t i = 0; i < n_documents; i++)
    order->firsts[i + 1] =
        order->firsts[i] + nxr_data_source_document_tokens(orders->source, order->documents[i]);
  order->epoch = epoch;
}

static bool allocate(nxr_orders *orders) {
  bool good = true;
  for (uint32_t i = 0; i < orders->n; i++) {
    nxr_order *order = &orders->kept[i];
    uint64_t n_documents = order->n_documents = orders->source->n_documents;
    order->epoch = UINT64_MAX;
    order->documents = calloc(n_documents, sizeof *order->documents);
    order->firsts = calloc(n_documents + 1, sizeof *order->firsts);
    order->samples = calloc(orders->n_samples, sizeof *order->samples);
    good = good && order->documents && order->firsts && order->samples;
  }
  return good;
}

static bool open_epochs(nxr_orders *orders, nxr_fault *fault) {
  const nxr_order_rule *rule = &orders->rule;
  orders->n_samples = orders->rule.n_samples;
  if (orders->n_samples == 0)
    orders->n_samples = (orders->source->n_tokens - 1) / orders->source->run->sequence;
  /* Without shuffling all epochs have the order of the first. */
  orders->n = rule->shuffle && rule->n_needed > orders->n_samples ? 2 : 1;
  if (!allocate(orders))
    return nxr_fault_set(fault, "out of memory for the order of %llu samples",
                         (unsigned long long)orders->n_samples);
  order_epoch(orders, &orders->kept[0], 0);
  return true;
}

bool nxr_orders_open(const nxr_data_source *source, const nxr_order_rule *rule, nxr_orders *orders,
                     nxr_fault *fault) {
  *orders = (nxr_orders){.source = source, .rule = *rule, .n = 1};
  orders->together = rule->shuffle && rule->order != NX_ORDER_EPOCHS;
  bool good = orders->together
                  ? nxr_order_megatron(source, rule, &orders->kept[0], &orders->n_samples, fault)
                  : open_epochs(orders, fault);
  if (!good) nxr_orders_close(orders);
  return good;
}

void nxr_orders_close(nxr_orders *orders) {
  for (uint32_t i = 0; i < orders->n; i++) {
    free(orders->kept[i].documents);
    free(orders->kept[i].firsts);
    free(orders->kept[i].samples);
  }
  *orders = (nxr_orders){0};
}

const nxr_order *nxr_orders_of(nxr_orders *orders, uint64_t epoch) {
  nxr_order *order = &orders->kept[epoch % orders->n];
  if (order->epoch != epoch && orders->rule.shuffle && !orders->together) order_epoch(orders, order, epoch);
  return order;
}

uint64_t nxr_orders_said(const nxr_orders *orders) {
  bool begins_again = orders->together && orders->rule.order == NX_ORDER_NEOX;
  return begins_again ? orders->n_samples - 1 : UINT64_MAX;
}
