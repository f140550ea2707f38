/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration given as text, compiled to settings; and what the sink then holds. */
#ifndef NX_TESTS_COMPILE_TEXT_H
#define NX_TESTS_COMPILE_TEXT_H

#include "compiler/config/compile_settings.h"
#include "tests/unit/cmocka_all.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct trial {
  nxc_arena *arena;
  nxc_sink *sink;
  nxc_request request; /* may be changed before trial_run */
  nxc_compiled out;
  bool ok;
  char path[64];
} trial;

static inline void trial_begin(trial *t, const char *text) {
  *t = (trial){.arena = nxc_arena_new(), .path = "/tmp/nx-trial-XXXXXX"};
  t->sink = nxc_sink_new(t->arena);
  int file = mkstemp(t->path);
  assert_true(file >= 0);
  assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
  close(file);
  t->request.file = t->path;
}

static inline void trial_run(trial *t) {
  t->ok = nxc_compile_settings(t->arena, &t->request, t->sink, &t->out);
  unlink(t->path);
}

static inline void trial_end(trial *t) {
  nxc_arena_free(t->arena);
}

/* The n-th finding of this id (0 is the first), or NULL. */
static inline const nxc_finding *trial_finding(const trial *t, const char *id, size_t n) {
  for (size_t i = 0; i < nxc_sink_n_findings(t->sink); i++) {
    const nxc_finding *finding = nxc_sink_finding(t->sink, i);
    if (strcmp(finding->id, id) == 0 && n-- == 0) return finding;
  }
  return NULL;
}

/* Demands a finding of this id whose message holds the text, and returns it. */
static inline const nxc_finding *trial_expect(const trial *t, const char *id, const char *text) {
  const nxc_finding *finding;
  for (size_t n = 0; (finding = trial_finding(t, id, n)) != NULL; n++) {
    if (strstr(finding->message, text) != NULL) return finding;
  }
  for (size_t i = 0; i < nxc_sink_n_findings(t->sink); i++) {
    fprintf(stderr, "# has %s: %s\n", nxc_sink_finding(t->sink, i)->id,
            nxc_sink_finding(t->sink, i)->message);
  }
  fail_msg("no finding %s with: %s", id, text);
  return NULL;
}

#endif
