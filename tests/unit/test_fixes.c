/* SPDX-License-Identifier: Apache-2.0 */
/* Repairs over several passes: what is uncovered is repaired too, and what leads to and fro ends. */
#include "compiler/edit/fixes.h"
#include "tests/unit/cmocka_all.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct judged {
  nxc_arena *arena;
  char path[64];
  nxc_fixes *fixes;
} judged;

/* Each of `words` becomes the next one, wherever it stands. */
static bool pass(judged *j, const char *const *words, size_t n_words) {
  const nxc_source *source = nxc_source_read(j->arena, j->path, 1 << 20);
  nxc_sink *sink = nxc_sink_new(j->arena);
  for (size_t i = 0; i + 1 < n_words; i++) {
    const char *found = strstr(source->text, words[i]);
    if (found == NULL) continue;
    size_t begin = (size_t)(found - source->text);
    const nxc_edit edit = {source, begin, begin + strlen(words[i]), words[i + 1]};
    nxc_sink_report(sink, &(nxc_finding){.id = "NX1301",
                                         .severity = NXC_SEVERITY_ERROR,
                                         .message = "a word",
                                         .repair = nxc_repair_copy(j->arena, &(nxc_repair){&edit, 1, true})});
    break;
  }
  nxc_fixes_gather(j->fixes, sink, false);
  return nxc_fixes_apply(j->fixes);
}

static judged judge(const char *text) {
  judged j = {.arena = nxc_arena_new(), .path = "/tmp/nxcfg-fixes-XXXXXX"};
  int file = mkstemp(j.path);
  assert_true(file >= 0);
  assert_int_equal(write(file, text, strlen(text)), strlen(text));
  close(file);
  j.fixes = nxc_fixes_new(j.arena, false);
  return j;
}

static size_t count_passes(judged *j, const char *const *words, size_t n_words) {
  size_t n = 0;
  while (n < 50 && pass(j, words, n_words)) n++;
  return n;
}

static void leave(judged *j) {
  nxc_source_lay_over(NULL);
  unlink(j->path);
  nxc_arena_free(j->arena);
}

static void what_a_repair_uncovers_is_repaired(void **state) {
  (void)state;
  static const char *const words[] = {"one", "two", "three"};
  judged j = judge("it is one\n");
  assert_int_equal(count_passes(&j, words, 3), 2);
  assert_string_equal(nxc_fixes_file(j.fixes, 0)->text, "it is three\n");
  leave(&j);
}

static void repairs_to_and_fro_end(void **state) {
  (void)state;
  static const char *const words[] = {"odd", "even", "odd"};
  judged j = judge("it is odd\n");
  assert_int_equal(count_passes(&j, words, 3), 2);
  assert_string_equal(nxc_fixes_file(j.fixes, 0)->text, "it is odd\n");
  leave(&j);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_a_repair_uncovers_is_repaired),
      cmocka_unit_test(repairs_to_and_fro_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
