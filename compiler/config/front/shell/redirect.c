/* SPDX-License-Identifier: Apache-2.0 */
/* Where commands read from and write to: lines that stand in the script, and files that it writes. */
#include "compiler/config/front/shell/shell.h"
#include "compiler/document/names.h"

#include <string.h>

enum { FILE_BYTES_MAX = 4 * 1024 * 1024 };

void nxc_shell_redirect_input(nxc_shell *s, const nxc_shell_command *command) {
  for (size_t i = 0; i < command->n_redirects; i++) {
    const nxc_shell_redirect *r = command->redirects[i];
    if (r->kind == '>' && (r->stream == 1 || r->stream == 3)) s->captures = false;
    if (r->stream != 0 || r->kind == '>') continue;
    nxc_text *text = nxc_arena_alloc(s->arena, sizeof *text);
    if (r->kind == '<') {
      *text = nxc_text_from(s->arena, "$(<)", 4, command->at, NXC_MARK_UNKNOWN | NXC_MARK_MANY);
    } else {
      *text = nxc_shell_expand_one(s, &r->target);
      if (r->kind == 's') *text = nxc_text_copy(s->arena, text);
      if (r->kind == 's') nxc_text_put(s->arena, text, '\n', r->target.at, 0);
    }
    s->input = text;
  }
}

/* Scripts and JSON: by its name, or by what it holds. Where a part of the path is unknown, it is the same
 * where they are read. */
static bool is_kept(const nxc_text *path, const nxc_text *text) {
  bool json = path->n_bytes > 5 && memcmp(path->bytes + path->n_bytes - 5, ".json", 5) == 0;
  bool starts = text->n_bytes > 3 && memmem(text->bytes, text->n_bytes, ".py", 3) != NULL;
  return json || starts || nxc_shell_ends_in_sh(path);
}

const nxc_shell_redirect *nxc_shell_written(nxc_shell *s, const nxc_shell_command *command, nxc_text *path) {
  const nxc_shell_redirect *last = NULL;
  for (size_t i = 0; i < command->n_redirects; i++) {
    const nxc_shell_redirect *r = command->redirects[i];
    if (r->kind != '>' || r->stream != 1) continue;
    *path = nxc_shell_expand_one(s, &r->target);
    last = path->n_bytes > 0 && !nxc_text_is(path, "/dev/null") ? r : NULL;
  }
  return last;
}

/* The name of the value that is a file's text. */
static const char *value_of(nxc_shell *s, const char *path) {
  return nxc_arena_printf(s->arena, "%c%s", NXC_SHELL_FILE, path);
}

void nxc_shell_keep_written(nxc_shell *s, const nxc_text *path, const nxc_text *text, bool appends) {
  const char *name = value_of(s, nxc_text_string(s->arena, path));
  if (!is_kept(path, text)) return;
  const nxc_shell_value *before = appends ? nxc_shell_find(s, name) : NULL;
  nxc_text kept = before ? nxc_text_copy(s->arena, &before->text) : (nxc_text){0};
  if (nxc_shell_spend(s, kept.n_bytes + text->n_bytes, path->origins[0]))
    nxc_text_append(s->arena, &kept, text);
  nxc_shell_set_text(s, name, kept, path->origins[0]);
}

static const nxc_text *find_written(nxc_shell *s, const char *path) {
  const nxc_shell_value *value = nxc_shell_find(s, value_of(s, path));
  return value ? &value->text : NULL;
}

const nxc_text *nxc_shell_written_file(nxc_shell *s, const nxc_text *path) {
  return find_written(s, nxc_text_string(s->arena, path));
}

/* -- files that launches name ---------------------------------------------------------------------------- */

const nxc_source *nxc_script_file(nxc_script *script, const char *path) {
  nxc_shell *s = script->shell;
  if (s == NULL || *path == '\0') return NULL;
  const nxc_text *written = find_written(s, path);
  if (written != NULL)
    return nxc_source_new(s->arena, path, nxc_text_string(s->arena, written), written->n_bytes);
  const nxc_text *kept = nxc_names_find(s->paths, path, strlen(path));
  const nxc_text plain = nxc_text_from(s->arena, path, strlen(path), 0, 0);
  const char *found = nxc_shell_find_file(s, kept ? kept : &plain);
  return found ? nxc_source_read(s->arena, found, FILE_BYTES_MAX) : NULL;
}
