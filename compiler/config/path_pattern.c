/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/path_pattern.h"

#include "compiler/diagnostics/source.h"

#include <fnmatch.h>
#include <string.h>
#include <unistd.h>

bool nxc_path_matches(nxc_arena *arena, const char *pattern, const char *path) {
  if (*path == '\0') return false;
  const char *slash = strrchr(path, '/'), *any;
  if (strchr(pattern, '/') == NULL) return fnmatch(pattern, slash ? slash + 1 : path, 0) == 0;
  if ((any = strstr(pattern, "**")) == NULL) return fnmatch(pattern, path, FNM_PATHNAME) == 0;
  if (fnmatch(pattern, path, 0) == 0) return true;
  if (any[2] != '/') return false;
  return nxc_path_matches(arena, nxc_arena_printf(arena, "%.*s%s", (int)(any - pattern), pattern, any + 3),
                          path);
}

/* -- .gitignore: https://git-scm.com/docs/gitignore ------------------------------------------------------ */

typedef struct entry {
  const char *pattern; /* without its marks */
  bool negated, folders_only, anchored;
} entry;

struct nxc_ignore {
  const nxc_ignore *above;
  const char *folder;
  entry *entries;
  size_t n_entries;
};

static bool read_entry(nxc_arena *arena, const char *line, size_t n_bytes, entry *to) {
  while (n_bytes > 0 && (line[n_bytes - 1] == ' ' || line[n_bytes - 1] == '\r')) n_bytes--;
  *to = (entry){.negated = n_bytes > 0 && *line == '!'};
  line += to->negated;
  n_bytes -= to->negated;
  if (n_bytes == 0 || *line == '#') return false;
  to->folders_only = line[n_bytes - 1] == '/';
  n_bytes -= to->folders_only;
  to->anchored = memchr(line, '/', n_bytes) != NULL;
  bool leading = n_bytes > 0 && *line == '/';
  to->pattern = nxc_arena_strndup(arena, line + leading, n_bytes - leading);
  return *to->pattern != '\0';
}

const nxc_ignore *nxc_ignore_read(nxc_arena *arena, const nxc_ignore *above, const char *folder) {
  enum { BYTES_MAX = 1024 * 1024 };
  const nxc_source *source =
      nxc_source_read_file(arena, nxc_arena_printf(arena, "%s.gitignore", folder), BYTES_MAX);
  if (source == NULL) return above;
  nxc_ignore *own = nxc_arena_alloc(arena, sizeof *own);
  *own = (nxc_ignore){.above = above, .folder = nxc_arena_strdup(arena, folder)};
  for (uint32_t line = 1; line <= source->n_lines; line++) {
    size_t n_bytes;
    const char *text = nxc_source_line(source, line, &n_bytes);
    entry read;
    if (!read_entry(arena, text, n_bytes, &read)) continue;
    own->entries = nxc_arena_grow(arena, own->entries, own->n_entries, sizeof *own->entries);
    own->entries[own->n_entries++] = read;
  }
  return own;
}

const nxc_ignore *nxc_ignore_above(nxc_arena *arena, const char *folder) {
  size_t n_bytes = strlen(folder);
  if (access(nxc_arena_printf(arena, "%s.git", folder), F_OK) == 0 || n_bytes <= 1)
    return n_bytes <= 1 ? NULL : nxc_ignore_read(arena, NULL, folder);
  size_t up = n_bytes - 1;
  while (up > 0 && folder[up - 1] != '/') up--;
  const nxc_ignore *above = nxc_ignore_above(arena, nxc_arena_strndup(arena, folder, up));
  return nxc_ignore_read(arena, above, folder);
}

bool nxc_ignore_has(nxc_arena *arena, const nxc_ignore *ignore, const char *path, bool is_folder) {
  for (; ignore != NULL; ignore = ignore->above) {
    size_t n_folder = strlen(ignore->folder);
    if (strncmp(path, ignore->folder, n_folder) != 0) continue;
    for (size_t i = ignore->n_entries; i-- > 0;) {
      const entry *at = &ignore->entries[i];
      if (at->folders_only && !is_folder) continue;
      const char *own = path + n_folder;
      bool here = at->anchored && strchr(at->pattern, '/') == NULL; /* `/name`: of this folder alone */
      bool matches =
          here ? fnmatch(at->pattern, own, FNM_PATHNAME) == 0 : nxc_path_matches(arena, at->pattern, own);
      if (matches) return !at->negated;
    }
  }
  return false;
}
