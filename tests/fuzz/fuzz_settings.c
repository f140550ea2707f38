/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds any bytes, as a configuration of each dialect, through the whole way to settings, and prints what
 * comes out. Defaults lists find own.yaml, which has the same bytes, part.yaml and group/part.yaml beside it.
 */
#include "compiler/config/compile_settings.h"
#include "compiler/render/render_document.h"
#include "compiler/config/settings_json.h"
#include "tests/fuzz/replay.h"

#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N_FORMATS = NXC_FORMAT_JUNIT - NXC_FORMAT_TEXT + 1 };

static FILE *nowhere;

static void print_all(nxc_sink *sink, const nxc_source *text) {
  for (nxc_format format = NXC_FORMAT_TEXT; format <= NXC_FORMAT_JUNIT; format++) {
    if (!is_chosen((const uint8_t *)text->text, text->n_bytes, 1, format - NXC_FORMAT_TEXT, N_FORMATS))
      continue;
    const nxc_document_format *row = nxc_document_format_of(format);
    json_t *document = row ? nxc_findings_begin(row) : NULL;
    if (row != NULL) nxc_findings_add(row, document, sink, "file");
    if (row != NULL) nxc_findings_end(row, document, nowhere);
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

/* -- the folder of the file ------------------------------------------------------------------------------ */

static char folder[] = "/tmp/nx_fuzz_settings.XXXXXX";

static void put_file(const char *name, const void *bytes, size_t n_bytes) {
  char path[sizeof folder + 32];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  if (file == NULL || fwrite(bytes, 1, n_bytes, file) != n_bytes || fclose(file) != 0) abort();
}

static void remove_folder(void) {
  static const char *const names[] = {"own.yaml", "part.yaml", "group/part.yaml", ".nxcfg.yaml", "group", ""};
  char path[sizeof folder + 32];
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    remove(path);
  }
}

/* A project file of its own, so that none above it has a say. */
static void make_folder(void) {
  static const char part[] = "# @package model\ndefaults: [/group/part, _self_]\nnum_layers: 2\n",
                    inner[] = "defaults: [own@_here_]\nhidden_size: 8\ntrainer: {devices: 8}\n";
  char path[sizeof folder + 32];
  if (mkdtemp(folder) == NULL) abort();
  atexit(remove_folder);
  snprintf(path, sizeof path, "%s/group", folder);
  if (mkdir(path, 0700) != 0) abort();
  put_file(".nxcfg.yaml", "{}\n", 3);
  put_file("part.yaml", part, strlen(part));
  put_file("group/part.yaml", inner, strlen(inner));
}

/* -- one configuration ----------------------------------------------------------------------------------- */

static void compile(const uint8_t *bytes, size_t n_bytes, const char *dialect) {
  nxc_arena *arena = nxc_arena_new();
  nxc_sink *sink = nxc_sink_new(arena);
  const char *file = nxc_arena_printf(arena, "%s/file", folder);
  const nxc_source *text = nxc_source_new(arena, file, (const char *)bytes, n_bytes);
  const nxc_request request = {.file = file, .text = text, .dialect = dialect, .for_nxrun = true};
  nxc_compiled compiled;
  bool good = nxc_compile_settings(arena, &request, sink, &compiled);
  assert(good == (nxc_sink_count(sink, NXC_SEVERITY_ERROR) == 0));
  bool shown = is_chosen(bytes, n_bytes, 2, 0, 4); /* it takes as long as compiling */
  if (shown && compiled.settings != NULL) check_settings(arena, &compiled);
  print_all(sink, text);
  nxc_arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
  static const char *const dialects[] = {"nxdt", "nx", "neox", "xorl", "xorl@later", NULL};
  enum { N_DIALECTS = sizeof dialects / sizeof *dialects };
  if (nowhere == NULL) {
    make_folder();
    nowhere = fopen("/dev/null", "w");
  }
  assert(nowhere != NULL);
  if (memmem(bytes, n_bytes, "defaults", strlen("defaults")) != NULL) put_file("own.yaml", bytes, n_bytes);
  for (size_t i = 0; i < N_DIALECTS; i++)
    if (is_chosen(bytes, n_bytes, 0, i, N_DIALECTS)) compile(bytes, n_bytes, dialects[i]);
  return 0;
}
