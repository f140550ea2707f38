/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds any bytes, as a configuration of each dialect, through the whole way to settings, and prints what
 * comes out. */
#include "compiler/config/compile_settings.h"
#include "compiler/render/render_document.h"
#include "compiler/config/settings_json.h"
#include "tests/fuzz/replay.h"

#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static FILE *nowhere;

static void print_all(nxc_sink *sink) {
  for (nxc_format format = NXC_FORMAT_TEXT; format <= NXC_FORMAT_GITLAB; format++) {
    const nxc_document_format *row = nxc_document_format_of(format);
    json_t *document = row ? nxc_findings_begin(row) : NULL;
    if (row != NULL) nxc_findings_add(row, document, sink, "file");
    if (row != NULL) nxc_findings_end(document, nowhere);
    const nxc_render render = {.format = format, .notes = true, .colour = true};
    nxc_sink_print(sink, &render, nowhere);
  }
}

static void check_settings(nxc_arena *arena, const nxc_compiled *compiled) {
  json_t *settings = nxc_settings_to_json(arena, compiled->settings);
  json_t *sources = nxc_sources_to_json(compiled->settings);
  assert(json_object_size(sources) == NX_N_SETTINGS);
  for (size_t id = 0; id < NX_N_SETTINGS; id++) {
    const json_t *value = json_object_get(settings, nxc_setting_path((nxc_setting_id)id));
    assert(value != NULL &&
           (json_is_null(value) || nxc_settings_known(compiled->settings, (nxc_setting_id)id)));
  }
  json_decref(settings);
  json_decref(sources);
}

static void compile(const char *path, const char *dialect) {
  nxc_arena *arena = nxc_arena_new();
  nxc_sink *sink = nxc_sink_new(arena);
  const nxc_request request = {.file = path, .dialect = dialect, .for_nxrun = true};
  nxc_compiled compiled;
  bool good = nxc_compile_settings(arena, &request, sink, &compiled);
  assert(good == (nxc_sink_count(sink, NXC_SEVERITY_ERROR) == 0));
  if (compiled.settings != NULL) check_settings(arena, &compiled);
  print_all(sink);
  nxc_arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
  if (nowhere == NULL) nowhere = fopen("/dev/null", "w");
  int file = memfd_create("fuzz", MFD_CLOEXEC);
  assert(nowhere != NULL && file >= 0 && write(file, bytes, n_bytes) == (ssize_t)n_bytes);
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  static const char *const dialects[] = {"nxdt", "nx", "neox", "xorl", "xorl@later", NULL};
  for (size_t i = 0; i < sizeof dialects / sizeof *dialects; i++) compile(path, dialects[i]);
  close(file);
  return 0;
}
