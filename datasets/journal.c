/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/journal.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct number {
  const char *name;
  size_t at;
} number;

static const number numbers[] = {
    {"tokens", offsetof(nxd_standing, n_tokens)},     {"sequences", offsetof(nxd_standing, n_sequences)},
    {"documents", offsetof(nxd_standing, n_documents)}, {"file", offsetof(nxd_standing, place.file)},
    {"offset", offsetof(nxd_standing, place.offset)}, {"line", offsetof(nxd_standing, place.line)},
    {"records", offsetof(nxd_standing, n_records)},   {"skipped", offsetof(nxd_standing, n_skipped)},
    {"empty", offsetof(nxd_standing, n_empty)},       {"long", offsetof(nxd_standing, n_long)},
    {"text_bytes", offsetof(nxd_standing, n_text_bytes)},
    {"text_tokens", offsetof(nxd_standing, n_text_tokens)}};
enum { N_NUMBERS = sizeof numbers / sizeof *numbers };

static uint64_t *number_of(nxd_standing *standing, size_t i) {
  return (uint64_t *)(void *)((char *)standing + numbers[i].at);
}

static bool read_standing(const json_t *journal, nxd_standing *standing) {
  for (size_t i = 0; i < N_NUMBERS; i++) {
    const json_t *value = json_object_get(journal, numbers[i].name);
    if (!json_is_integer(value) || json_integer_value(value) < 0) return false;
    *number_of(standing, i) = (uint64_t)json_integer_value(value);
  }
  const char *skipped = json_string_value(json_object_get(journal, "first_skipped"));
  snprintf(standing->first_skipped, sizeof standing->first_skipped, "%s", skipped ? skipped : "");
  standing->complete = json_is_true(json_object_get(journal, "complete"));
  return true;
}

nxd_journal_found nxd_journal_read(const char *folder, const char *key, nxd_standing *standing) {
  char path[NXD_PATH_BYTES + 16];
  snprintf(path, sizeof path, "%s/journal.json", folder);
  json_t *journal = json_load_file(path, 0, NULL);
  const char *its_key = json_string_value(json_object_get(journal, "key"));
  nxd_journal_found found = its_key == NULL ? NXD_JOURNAL_NONE : NXD_JOURNAL_OTHERS;
  *standing = (nxd_standing){0};
  if (its_key && key && strcmp(its_key, key) == 0)
    found = read_standing(journal, standing) ? NXD_JOURNAL_OURS : NXD_JOURNAL_NONE;
  json_decref(journal);
  return found;
}

static json_t *describe(const char *key, const nxd_standing *standing) {
  json_t *journal = json_pack("{s:s, s:s%, s:b}", "key", key, "first_skipped", standing->first_skipped,
                              strnlen(standing->first_skipped, sizeof standing->first_skipped), "complete",
                              (int)standing->complete);
  if (journal == NULL) journal = json_pack("{s:s, s:b}", "key", key, "complete", (int)standing->complete);
  nxd_standing copy = *standing;
  for (size_t i = 0; i < N_NUMBERS; i++)
    json_object_set_new(journal, numbers[i].name, json_integer((json_int_t)*number_of(&copy, i)));
  return journal;
}

bool nxd_journal_write(const char *folder, const char *key, const nxd_standing *standing, nxr_fault *fault) {
  char path[NXD_PATH_BYTES + 16], fresh[NXD_PATH_BYTES + 16];
  snprintf(path, sizeof path, "%s/journal.json", folder);
  snprintf(fresh, sizeof fresh, "%s/journal.new", folder);
  json_t *journal = describe(key, standing);
  FILE *file = fopen(fresh, "wb");
  bool good = file && journal && json_dumpf(journal, file, JSON_INDENT(1)) == 0 && fflush(file) == 0 &&
              fsync(fileno(file)) == 0;
  if (file && fclose(file) != 0) good = false;
  good = good && rename(fresh, path) == 0;
  json_decref(journal);
  return good || nxr_fault_set(fault, "cannot write %s: %s", path, strerror(errno));
}
