/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds any bytes as a site's rules, and as a project file: what is accepted is then applied to a
 * configuration, and may find whatever it likes, but not end nxcfg. */
#include "compiler/config/compile_settings.h"
#include "tests/fuzz/replay.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char configuration[] = "mesh: {world: 4, tensor: 2}\n"
                                    "batch: {micro: 1, global: 4}\n"
                                    "model: {layers: 1, hidden: 16, heads: 4, sequence: 8, vocab: 25}\n"
                                    "run: {name: '${oc.env:PATH}'}\n"
                                    "mine: 1\n";

static void write_file(const char *path, const void *bytes, size_t n_bytes) {
  FILE *file = fopen(path, "wb");
  assert(file != NULL && fwrite(bytes, 1, n_bytes, file) == n_bytes);
  fclose(file);
}

static void compile(const char *file, const char *const *rules, size_t n_rules) {
  nxc_arena *arena = nxc_arena_new();
  nxc_sink *sink = nxc_sink_new(arena);
  const nxc_request request = {.file = file, .dialect = "nx", .rules = rules, .n_rules = n_rules};
  nxc_compiled compiled;
  nxc_compile_settings(arena, &request, sink, &compiled);
  for (size_t i = 0; i < nxc_sink_n_findings(sink); i++) assert(nxc_sink_finding(sink, i)->message != NULL);
  nxc_arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
  char folder[] = "/tmp/nxcfg-fuzz-XXXXXX"; /* its own, so that no project file above it has a say */
  char file[128], rules[128], project[128];
  assert(mkdtemp(folder) != NULL);
  snprintf(file, sizeof file, "%s/run.yaml", folder);
  snprintf(rules, sizeof rules, "%s/rules.yaml", folder);
  snprintf(project, sizeof project, "%s/.nxcfg.yaml", folder);
  write_file(file, configuration, sizeof configuration - 1);
  write_file(rules, bytes, n_bytes);
  compile(file, (const char *const[]){rules}, 1);
  write_file(project, bytes, n_bytes);
  compile(file, NULL, 0);
  assert(unlink(project) == 0 && unlink(rules) == 0 && unlink(file) == 0 && rmdir(folder) == 0);
  return 0;
}
