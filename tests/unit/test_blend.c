/* SPDX-License-Identifier: Apache-2.0 */
/* Parts, orders and blends against what Megatron Core, GPT-NeoX and datasets do
 * (tests/parity/record_data.py). */
#include "runtime/data/blend.h"
#include "runtime/data/data_order.h"
#include "runtime/data/dataset_split.h"
#include "schema/pairwise_sum.h"
#include "tests/unit/cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_SOURCES = 36, N_ALL = 100000 };

typedef struct line {
  char kind[16];
  const char *fields, *result; /* behind the kind, and behind " = " */
} line;

/* Calls `check` with every line of a kind; there are some. */
static void with_lines(const char *kind, void (*check)(const line *)) {
  char path[1024], text[4096];
  uint32_t n = 0;
  snprintf(path, sizeof path, "%s/tests/parity/recorded/data.txt", getenv("NX_SOURCE_ROOT"));
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  while (fgets(text, sizeof text, file)) {
    line at;
    char *equal = strstr(text, " = "), *space = strchr(text, ' ');
    assert_true(equal && space && space - text < (ptrdiff_t)sizeof at.kind);
    *equal = *space = '\0';
    strcpy(at.kind, text);
    at.fields = space + 1, at.result = equal + 3;
    if (strcmp(at.kind, kind) == 0) check(&at), n++;
  }
  fclose(file);
  assert_true(n > 5);
}

static uint32_t read_numbers(const char *text, double *numbers) {
  uint32_t n = 0;
  for (char *end; n < N_SOURCES; text = end, n++) {
    numbers[n] = strtod(text, &end);
    if (end == text) break;
  }
  return n;
}

static uint32_t digit_value(char digit) {
  return (uint32_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

static void check_blend(const line *at) {
  double weights[N_SOURCES], wanted[N_SOURCES];
  uint64_t counts[N_SOURCES] = {0};
  nxr_blend blend;
  nxr_fault fault = {""};
  uint32_t n = read_numbers(at->fields, weights);
  const char *picks = at->result, *end = strchr(picks, ' ');
  assert_int_equal(read_numbers(end, wanted), n);
  assert_true(nxr_blend_open(weights, n, &blend, &fault));
  for (uint64_t sample = 0; sample < N_ALL; sample++) {
    nxr_pick pick = nxr_blend_pick(&blend, sample);
    if (picks + sample < end) assert_int_equal(pick.source, digit_value(picks[sample]));
    assert_int_equal(pick.sample, counts[pick.source]++);
  }
  for (uint32_t i = 0; i < n; i++) assert_int_equal(counts[i], (uint64_t)wanted[i]);
  nxr_blend_close(&blend);
}

static void blends_as_megatron_does(void **state) {
  (void)state;
  with_lines("blend", check_blend);
}

/* Wherever reading begins, and however it goes back: what overlapping micro-batches and a resumed run do. */
static void picks_the_same_from_anywhere(void **state) {
  (void)state;
  static const double weights[] = {0.5, 0.3, 0.15, 0.05};
  static nxr_pick all[N_ALL];
  nxr_blend walked, other;
  nxr_fault fault = {""};
  assert_true(nxr_blend_open(weights, 4, &walked, &fault) && nxr_blend_open(weights, 4, &other, &fault));
  for (uint64_t i = 0; i < N_ALL; i++) all[i] = nxr_blend_pick(&walked, i);
  uint64_t at = 77777;
  for (int i = 0; i < 500; i++, at = (at * 48271 + 11) % N_ALL) {
    nxr_pick pick = nxr_blend_pick(&other, at);
    assert_true(pick.source == all[at].source && pick.sample == all[at].sample);
  }
  nxr_blend_close(&walked);
  nxr_blend_close(&other);
}

/* The borders of all parts. */
static void check_split(const line *at, nx_split split, uint32_t n_last) {
  nx_source source = {.split = split, .n_last = n_last};
  double wanted[N_SOURCES];
  char shares[64];
  uint64_t size, first, end;
  assert_int_equal(sscanf(at->fields, "%63s %lu", shares, &size), 2);
  assert_true(nxr_split_parse(shares, source.shares));
  assert_int_equal(read_numbers(at->result, wanted), NX_PARTS + 1);
  for (source.part = 0; source.part < NX_PARTS; source.part++) {
    nxr_split_part(&source, size, &first, &end);
    assert_int_equal(first, (uint64_t)wanted[source.part]);
    assert_int_equal(end, (uint64_t)wanted[source.part + 1]);
  }
}

static void check_sums(const line *at) {
  check_split(at, NX_SPLIT_SUMS, 0);
}
static void check_each(const line *at) {
  check_split(at, NX_SPLIT_EACH, 0);
}

static void check_last(const line *at) {
  double fields[N_SOURCES];
  uint64_t first, end;
  assert_int_equal(read_numbers(at->fields, fields), 2);
  bool counted = fields[0] >= 1;
  nx_source source = {.split = NX_SPLIT_LAST, .n_last = counted ? (uint32_t)fields[0] : 0,
                      .shares = {counted ? 1 : 1 - fields[0], counted ? 0 : fields[0]}};
  nxr_split_part(&source, (uint64_t)fields[1], &first, &end);
  assert_int_equal(first, 0);
  assert_int_equal(end, strtoull(at->result, NULL, 10));
  source.part = 1;
  nxr_split_part(&source, (uint64_t)fields[1], &first, &end);
  assert_int_equal(first, strtoull(at->result, NULL, 10));
  assert_int_equal(end, (uint64_t)fields[1]);
}

static void divides_as_each_system_does(void **state) {
  (void)state;
  with_lines("sums", check_sums);
  with_lines("each", check_each);
  with_lines("last", check_last);
}

/* Parts never overlap and never leave the documents, whatever the shares and counts. */
static void parts_never_overlap(void **state) {
  (void)state;
  static const double shares[][NX_PARTS] = {
      {0, 0.5, 0.5}, {0.4, 0.4, 0.2}, {1, 0, 0}, {0, 0, 1}, {0.34, 0.33, 0.33}};
  for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
    for (uint32_t split = NX_SPLIT_SUMS; split <= NX_SPLIT_LAST; split++)
      for (uint64_t size = 0; size < 40; size++) {
        nx_source source = {.split = split, .n_last = split == NX_SPLIT_LAST ? 7 : 0};
        uint64_t before = 0, first, end;
        memcpy(source.shares, shares[i], sizeof source.shares);
        for (source.part = 0; source.part < NX_PARTS; source.part++, before = end) {
          nxr_split_part(&source, size, &first, &end);
          assert_true(first == before && end >= first && end <= size);
        }
        assert_int_equal(before, size);
      }
}

static void check_documents(const line *at) {
  double fields[N_SOURCES], wanted[N_SOURCES], weights[N_SOURCES];
  uint64_t counts[N_SOURCES];
  uint32_t n = read_numbers(at->fields, fields) - 1;
  for (uint32_t i = 0; i < n; i++) counts[i] = (uint64_t)fields[i + 1];
  assert_int_equal(read_numbers(at->result, wanted), n);
  nxr_weigh_by_documents(counts, n, fields[0], weights);
  for (uint32_t i = 0; i < n; i++) assert_true(fabs(weights[i] - wanted[i]) < 1e-15);
}

static void weighs_by_documents_as_neox_does(void **state) {
  (void)state;
  with_lines("documents", check_documents);
}

/* The documents of record_data.py; token i of them all is i. */
static const uint64_t order_sizes[] = {40, 3, 29, 1, 20, 7};

static uint64_t document_tokens(const nxr_data_source *source, uint64_t document) {
  (void)source;
  return order_sizes[document];
}

static void check_order(const line *at, nx_order order_kind) {
  static const nxr_data_source_kind kind = {document_tokens, NULL};
  double fields[N_SOURCES];
  uint64_t starts[6] = {0, 40, 43, 72, 73, 93};
  nxr_orders orders;
  nxr_fault fault = {""};
  assert_int_equal(read_numbers(at->fields, fields), 3);
  const nx_run run = {.seed = (uint64_t)fields[0], .sequence = (uint32_t)fields[1]};
  const nxr_data_source source = {.kind = &kind, .run = &run, .n_documents = 6, .n_tokens = 100};
  const nxr_order_rule rule = {
      .seed = run.seed, .shuffle = true, .order = order_kind, .n_needed = (uint64_t)fields[2]};
  assert_true(nxr_orders_open(&source, &rule, &orders, &fault));
  assert_true(orders.n_samples >= rule.n_needed);
  const char *wanted = at->result;
  for (uint64_t sample = 0; sample < rule.n_needed; sample++) {
    char *end;
    const nxr_order *order = nxr_orders_of(&orders, sample / orders.n_samples);
    uint64_t first = order->samples[sample] * run.sequence, document = 0;
    while (order->firsts[document + 1] <= first) document++;
    uint64_t token = starts[order->documents[document]] + first - order->firsts[document];
    assert_int_equal(token, strtoull(wanted, &end, 10));
    assert_true(end > wanted);
    wanted = end;
  }
  nxr_orders_close(&orders);
}

static void check_megatron(const line *at) {
  check_order(at, NX_ORDER_MEGATRON);
}
static void check_neox(const line *at) {
  check_order(at, NX_ORDER_NEOX);
}

static void orders_as_each_system_does(void **state) {
  (void)state;
  with_lines("megatron", check_megatron);
  with_lines("neox", check_neox);
}

/* numpy.sum of 1 / (i + 3); one after another the last three have other last bits. */
static void adds_up_as_numpy_does(void **state) {
  (void)state;
  static const struct {
    uint32_t n;
    double sum;
  } known[] = {{7, 1.328968253968254}, {10, 1.6032106782106779}, {15, 1.9395525226407575},
               {130, 3.9638006836279933}, {300, 4.789297397713862}};
  double x[300];
  for (int i = 0; i < 300; i++) x[i] = 1.0 / (i + 3);
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    assert_true(nx_pairwise_sum(x, known[i].n) == known[i].sum);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(orders_as_each_system_does),
      cmocka_unit_test(blends_as_megatron_does),     cmocka_unit_test(picks_the_same_from_anywhere),
      cmocka_unit_test(divides_as_each_system_does), cmocka_unit_test(parts_never_overlap),
      cmocka_unit_test(weighs_by_documents_as_neox_does), cmocka_unit_test(adds_up_as_numpy_does),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
