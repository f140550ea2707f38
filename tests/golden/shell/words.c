/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what a program that a shell text starts receives: each argument in <>, unknown ones in [], those
 * that may not be there in (). It goes into FILE.found. The script's own arguments stand in FILE.args, where
 * that is there. Usage: shell_words FILE... */
#include "compiler/config/front/shell/script.h"

#include <stdio.h>

static void print_launch(FILE *out, const nxc_launch *launch) {
  const nxc_launch_words *words = &launch->arguments;
  for (size_t k = 0; launch->program != NULL && k < words->n_items; k++) {
    const nxc_launch_word *word = &words->items[k];
    const char *around = word->maybe ? "()" : word->unset ? "[]" : "<>";
    fprintf(out, "%c%s%c\n", around[0], word->text, around[1]);
  }
  fputs(".\n", out);
}

static void follow(const char *path, FILE *out) {
  nxc_arena *arena = nxc_arena_new();
  nxc_script script;
  const nxc_source *source = nxc_source_read(arena, path, 1 << 20),
                   *given = nxc_source_read(arena, nxc_arena_printf(arena, "%s.args", path), 1 << 20);
  bool good = source != NULL && nxc_script_read(arena, source, given, nxc_sink_new(arena), &script);
  for (size_t i = 0; good && i < script.n_launches; i++) print_launch(out, &script.launches[i]);
  if (!good) fputs("unreadable\n", out);
  nxc_arena_free(arena);
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%s.found", argv[i]);
    FILE *out = fopen(path, "w");
    if (out == NULL) return 1;
    follow(argv[i], out);
    if (fclose(out) != 0) return 1;
  }
  return 0;
}
