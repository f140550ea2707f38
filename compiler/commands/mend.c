/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/mend.h"

#include "compiler/commands/commands.h"
#include "compiler/commands/output.h"
#include "compiler/diagnostics/characters.h"
#include "compiler/document/document.h"
#include "compiler/edit/unified.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* The text of standard input, where it is mended; the files' overlays take its place once there are repairs.
 */
static const nxc_source *standard_input;

bool nxc_mend_read_stdin(nxc_arena *arena) {
  standard_input = nxc_source_read(arena, "-", NXC_DOCUMENT_BYTES_MAX);
  if (standard_input == NULL) {
    fprintf(stderr, "nxcfg validate: cannot read standard input: %s\n", strerror(errno));
    return false;
  }
  nxc_overlay *overlays = nxc_arena_array(arena, 2, sizeof *overlays);
  overlays[0] = (nxc_overlay){"-", standard_input->text - standard_input->n_mark_bytes,
                              standard_input->n_bytes + standard_input->n_mark_bytes};
  nxc_source_lay_over(overlays);
  return true;
}

static bool has_changed(const nxc_fixed_file *file) {
  return file->n_bytes != file->n_original || memcmp(file->text, file->original, file->n_bytes) != 0;
}

/* What somebody has saved since it was read would be lost. */
static bool is_as_read(nxc_arena *arena, const nxc_fixed_file *file) {
  char *now = nxc_arena_alloc(arena, file->n_original + 2);
  FILE *stream = fopen(file->path, "rb");
  size_t n_bytes = stream ? fread(now, 1, file->n_original + 1, stream) : 0;
  if (stream != NULL) fclose(stream);
  return n_bytes == file->n_original && memcmp(now, file->original, n_bytes) == 0;
}

static bool write_one(nxc_arena *arena, const nxc_fixed_file *file) {
  if (strcmp(file->path, "-") == 0) return fwrite(file->text, 1, file->n_bytes, stdout) == file->n_bytes;
  const char *why = access(file->path, W_OK) != 0 ? strerror(errno)
                    : !is_as_read(arena, file)    ? "it has changed since it was read"
                                                  : NULL;
  if (why != NULL) {
    fprintf(stderr, "nxcfg validate: cannot write %s: %s\n", nxc_characters_shown(arena, file->path), why);
    return false;
  }
  return nxc_output_write(arena, "validate", file->path, file->text, file->n_bytes);
}

/* What came in goes out, mended or not. */
static void pass_on(const nxc_fixes *fixes) {
  for (size_t i = 0; i < nxc_fixes_n_files(fixes); i++)
    if (strcmp(nxc_fixes_file(fixes, i)->path, "-") == 0) return;
  const nxc_source *source = standard_input;
  fwrite(source->text - source->n_mark_bytes, 1, source->n_bytes + source->n_mark_bytes, stdout);
}

bool nxc_mend_finish(nxc_arena *arena, const nxc_fixes *fixes) {
  bool good = true;
  for (size_t i = 0; i < nxc_fixes_n_files(fixes); i++) {
    const nxc_fixed_file *file = nxc_fixes_file(fixes, i);
    if (has_changed(file)) good &= write_one(arena, file);
  }
  if (standard_input != NULL) pass_on(fixes);
  nxc_source_lay_over(NULL);
  return good;
}

int nxc_mend_show(nxc_arena *arena, const nxc_fixes *fixes, bool colour, int status) {
  bool differs = false;
  for (size_t i = 0; i < nxc_fixes_n_files(fixes); i++) {
    const nxc_fixed_file *file = nxc_fixes_file(fixes, i);
    differs |= nxc_unified_print(arena, file->name, file->original, file->n_original, file->text,
                                 file->n_bytes, colour, stdout);
  }
  nxc_source_lay_over(NULL);
  if (status > NXC_EXIT_FOUND) return status;
  return differs ? NXC_EXIT_FOUND : NXC_EXIT_GOOD;
}
