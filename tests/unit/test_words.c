/* SPDX-License-Identifier: Apache-2.0 */
/* Words of other systems: what each of all is told to be here takes such a value. */
#include "compiler/config/binding/dialect_words.h"
#include "tests/unit/cmocka_all.h"

#include <string.h>

static const nxc_domain *domain_of(const nxc_dialect *dialect, const char *name) {
  if (strcmp(dialect->name, "nx") != 0) return &nxc_option_find(dialect, name)->domain;
  for (size_t i = 0; i < NX_N_SETTINGS; i++)
    if (strcmp(nxc_setting_rows[i].path, name) == 0) return &nxc_setting_rows[i].domain;
  return NULL;
}

static bool is_number(nxc_type type) {
  return type == NXC_TYPE_INT || type == NXC_TYPE_FLOAT || type == NXC_TYPE_INT_OR_FLOAT;
}

/* Numbers are numbers and switches switches, unless the other may be anything. */
static bool may_stand_for(nxc_type a, nxc_type b) {
  if (a == NXC_TYPE_ANY || b == NXC_TYPE_ANY) return true;
  return is_number(a) == is_number(b) && (a == NXC_TYPE_BOOL) == (b == NXC_TYPE_BOOL) &&
         (a >= NXC_TYPE_LIST && a <= NXC_TYPE_LIST_STR) == (b >= NXC_TYPE_LIST && b <= NXC_TYPE_LIST_STR);
}

static size_t look_at(const nxc_dialect *from, const nxc_dialect *to) {
  size_t n_here = 0;
  for (size_t i = 0; i < from->n_options; i++) {
    const nxc_option_row *row = &from->options[i];
    nxc_foreign_word word = {0};
    if (nxc_option_find(to, row->name) || !nxc_foreign_word_find(to, NULL, row->name, false, &word)) continue;
    const nxc_option_row *meant = nxc_option_find(from, word.option);
    bool own = word.here && meant && strcmp(word.system, nxc_system_name(from->name)) == 0;
    if (!own) continue;
    n_here++;
    if (!may_stand_for(meant->domain.type, domain_of(to, word.here)->type))
      fail_msg("%s's %s is no %s of %s", from->name, row->name, word.here, to->name);
  }
  return n_here;
}

static void takes_such_a_value(void **state) {
  (void)state;
  size_t n_here = 0;
  for (size_t a = 0; a < nxc_n_dialects; a++)
    for (size_t b = 0; b < nxc_n_dialects; b++)
      if (a != b && nxc_system_name(nxc_dialects[a].name))
        n_here += look_at(&nxc_dialects[a], &nxc_dialects[b]);
  assert_true(n_here > 500);
}

static bool same(const char *a, const char *b) {
  return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static void means_the_same(void **state) {
  (void)state;
  static const struct {
    const char *dialect, *word, *here, *otherwise;
  } rows[] = {{"neox", "model_type", NULL, NULL},
              {"neox", "vocab_size", "padded_vocab_size", NULL},
              {"neox", "tie_word_embeddings", NULL, "no_weight_tying"}, /* the opposite */
              {"neox", "train_samples", NULL, "train_iters"},           /* samples are no steps */
              {"nx", "distributed-timeout-minutes", NULL, "run.deadline_s"},
              {"megatron", "num_key_value_heads", NULL, "group-query-attention"}, /* a number and a switch */
              {"megatron", "pipe_parallel_size", "pipeline-model-parallel-size", NULL},
              {"nxdt", "muon-momentum", "model.optim.momentum", NULL}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    nxc_foreign_word word = {0};
    assert_true(nxc_foreign_word_find(nxc_dialect_find(rows[i].dialect), NULL, rows[i].word, false, &word));
    if (!same(word.here, rows[i].here) || !same(word.otherwise, rows[i].otherwise))
      fail_msg("%s: %s is %s, otherwise %s", rows[i].dialect, rows[i].word, word.here ? word.here : "nothing",
               word.otherwise ? word.otherwise : "nothing");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(takes_such_a_value), cmocka_unit_test(means_the_same)};
  return cmocka_run_group_tests_name("words of other systems", tests, NULL, NULL);
}
