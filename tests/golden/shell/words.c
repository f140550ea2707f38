/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what a program that a shell text starts receives: each argument in <>, unknown ones in [], those
 * that may not be there in (). Usage: shell_words FILE */
#include "compiler/config/front/shell/script.h"

#include <stdio.h>

int main(int argc, char **argv) {
  nxc_arena *arena = nxc_arena_new();
  nxc_sink *sink = nxc_sink_new(arena);
  nxc_script script;
  const nxc_source *source = argc > 1 ? nxc_source_read(arena, argv[1], 1 << 20) : NULL;
  bool good = source != NULL && nxc_script_read(arena, source, sink, &script);
  for (size_t i = 0; good && i < script.n_launches; i++) {
    const nxc_launch_words *words = &script.launches[i].arguments;
    for (size_t k = 0; script.launches[i].program != NULL && k < words->n_items; k++) {
      const nxc_launch_word *word = &words->items[k];
      const char *around = word->maybe ? "()" : word->unset ? "[]" : "<>";
      printf("%c%s%c\n", around[0], word->text, around[1]);
    }
    puts(".");
  }
  if (!good) puts("unreadable");
  nxc_arena_free(arena);
  return 0;
}
