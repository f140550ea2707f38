/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/epoch_rows.h"

#include "compiler/settings/recipes.h"
#include "schema/index_head.h"
#include "schema/packing.h"
#include "schema/regular.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Tokens of each document, from an index (runtime/data/dataset.h); NULL where there is none whose documents
 * are a sequence each. The caller frees it. */
static uint32_t *read_lengths(const char *path, uint64_t *n) {
  struct stat status;
  nx_index_head head;
  FILE *file = nx_regular_open(path);
  uint32_t *lengths = NULL;
  bool good = file && fstat(fileno(file), &status) == 0 && nx_index_head_read(file, &head);
  if (good) *n = head.n_sequences;
  good = good && *n > 0 && *n < (uint64_t)status.st_size / 4 && head.n_borders == *n + 1;
  if (good) lengths = malloc(*n * sizeof *lengths);
  if (lengths && fread(lengths, sizeof *lengths, *n, file) != *n) {
    free(lengths);
    lengths = NULL;
  }
  if (file) fclose(file);
  return lengths;
}

static int64_t count_rows(const nxc_settings *s, const uint32_t *lengths, uint64_t n) {
  bool packed = nxc_is(s, NX_SETTING_DATA_SAMPLER, "packed");
  const nx_packing_rule rule = {.kind = nx_packing_named(nxc_text(s, NX_SETTING_DATA_PACKING)),
                                .row_tokens = (uint64_t)nxc_int(s, NX_SETTING_MODEL_SEQUENCE),
                                .group = (uint64_t)nxc_int_or(s, NX_SETTING_DATA_PACKING_GROUP, 0)};
  nx_rows rows;
  for (uint64_t i = 0; i < n; i++)
    if (lengths[i] > rule.row_tokens + !packed) return -1;
  if (!packed) return (int64_t)n;
  if (!nx_rows_make(&rule, lengths, n, &rows)) return -1;
  int64_t count = (int64_t)rows.n;
  nx_rows_free(&rows);
  return count;
}

static bool is_asked(const nxc_settings *s) {
  static const nxc_setting_id needed[] = {NX_SETTING_SCHEDULE_EPOCHS, NX_SETTING_DATA_KIND,
                                          NX_SETTING_DATA_PATH,       NX_SETTING_DATA_SAMPLER,
                                          NX_SETTING_DATA_PACKING,    NX_SETTING_MODEL_SEQUENCE,
                                          NX_SETTING_DATA_PREPARED};
  for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
    if (!nxc_has(s, needed[i])) return false;
  bool documents =
      nxc_is(s, NX_SETTING_DATA_SAMPLER, "packed") || nxc_is(s, NX_SETTING_DATA_SAMPLER, "document");
  return documents && !nxc_has(s, NX_SETTING_DATA_SPLIT) &&
         !nxc_settings_known(s, NX_SETTING_SCHEDULE_MAX_STEPS) && !nxc_has(s, NX_SETTING_DATA_EPOCH_ROWS);
}

bool nxc_epoch_rows_count(nxc_settings *settings, nxc_sink *sink) {
  size_t n_paths = 0;
  const nxc_value *paths = is_asked(settings) ? nxc_list(settings, NX_SETTING_DATA_PATH, &n_paths) : NULL;
  const nxc_recipe *merged = n_paths > 0 ? nxc_recipe_merged(settings, paths, n_paths) : NULL;
  if (n_paths != 1 && merged == NULL) return false;
  const nxc_recipe *recipe = merged ? merged : nxc_recipe_read(settings, paths[0].text, 0);
  const char *prefix = recipe ? recipe->prefix : paths[0].text;
  const char *path = nxc_arena_printf(nxc_settings_arena(settings), "%s.idx", prefix);
  uint64_t n = 0;
  uint32_t *lengths = read_lengths(path, &n);
  int64_t rows = lengths ? count_rows(settings, lengths, n) : -1;
  free(lengths);
  if (rows < 0) return false;
  const nxc_value counted = {.kind = NXC_INT, .integer = rows};
  const nxc_value *value = nxc_value_copy(nxc_settings_arena(settings), &counted);
  const nxc_provenance from = {.kind = NXC_FROM_RULE, .origin = "the dataset's index"};
  return nxc_settings_set(settings, NX_SETTING_DATA_EPOCH_ROWS, value, &from, sink);
}
