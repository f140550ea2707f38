/* SPDX-License-Identifier: Apache-2.0 */
/* Where a script lies, and which file a path in it means.
 *
 * A script is the same training wherever it is copied: what tells its folder ($0, pwd, dirname) is unknown in
 * every word. But its bytes are marked, so that whoever opens a file knows that they stand for the folder of
 * the text they were written in. */
#include "compiler/config/front/shell/shell.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOLDERS_ABOVE = 6 };

static size_t folder_bytes(const nxc_text *path) {
  size_t n = 0;
  while (n < path->n_bytes && (path->marks[n] & NXC_MARK_FOLDER)) n++;
  return n;
}

static void put_unknown(nxc_shell *s, nxc_text *to, const char *text, size_t at) {
  for (; *text != '\0'; text++) nxc_text_put(s->arena, to, *text, at, NXC_MARK_UNKNOWN);
}

nxc_text nxc_shell_own_folder(nxc_shell *s, const nxc_text *written) {
  nxc_text folder = nxc_text_copy(s->arena, written);
  for (size_t i = 0; i < folder.n_bytes; i++) folder.marks[i] = NXC_MARK_UNKNOWN | NXC_MARK_FOLDER;
  return folder;
}

nxc_text nxc_shell_own_path(nxc_shell *s, const nxc_text *written) {
  nxc_text path = nxc_shell_own_folder(s, written);
  put_unknown(s, &path, "/script", written->n_bytes ? written->origins[0] : 0);
  return path;
}

bool nxc_shell_parent(nxc_shell *s, nxc_text *path) {
  size_t n_folder = folder_bytes(path), n = path->n_bytes;
  if (n_folder == 0) return false;
  while (n > n_folder && path->bytes[n - 1] == '/') n--;
  nxc_text parent = nxc_text_part(path, 0, n);
  while (n > n_folder && path->bytes[n - 1] != '/') n--;
  if (n > n_folder) {
    parent = nxc_text_part(path, 0, n - 1);
  } else {
    parent = nxc_text_copy(s->arena, &parent);
    put_unknown(s, &parent, "/..", path->origins[0]);
  }
  *path = parent;
  return true;
}

void nxc_shell_change_folder(nxc_shell *s, const nxc_text *folder) {
  bool whole = folder->n_bytes > 0 && (folder->bytes[0] == '/' || (folder->marks[0] & NXC_MARK_UNKNOWN));
  if (whole || s->state.folder.n_bytes == 0) {
    s->state.folder = nxc_text_copy(s->arena, folder);
    return;
  }
  nxc_text joined = nxc_text_copy(s->arena, &s->state.folder);
  nxc_text_put(s->arena, &joined, '/', folder->n_bytes ? folder->origins[0] : 0, 0);
  if (nxc_shell_spend(s, joined.n_bytes + folder->n_bytes, joined.origins[0]))
    nxc_text_append(s->arena, &joined, folder);
  s->state.folder = joined;
}

/* -- files ----------------------------------------------------------------------------------------------- */

static bool is_file(const char *path) {
  struct stat facts;
  return stat(path, &facts) == 0 && S_ISREG(facts.st_mode);
}

static const char *join(nxc_shell *s, const char *folder, const char *path) {
  while (strncmp(path, "./", 2) == 0) path += 2;
  return strcmp(folder, ".") == 0 ? path : nxc_arena_printf(s->arena, "%s/%s", folder, path);
}

/* The folder above, by its name where it has one. */
static const char *above(nxc_shell *s, const char *folder) {
  const char *slash = strrchr(folder, '/'), *last = slash ? slash + 1 : folder;
  if (strcmp(folder, ".") == 0) return "..";
  if (strcmp(last, "..") == 0 || *last == '\0') return nxc_arena_printf(s->arena, "%s/..", folder);
  if (slash == NULL) return ".";
  return slash == folder ? "/" : nxc_arena_strndup(s->arena, folder, (size_t)(slash - folder));
}

/* What is known of a path, as one that can be opened; NULL: too little. */
static const char *known_path(nxc_shell *s, const nxc_text *path) {
  size_t n_folder = folder_bytes(path);
  nxc_text rest = nxc_text_part(path, n_folder, path->n_bytes);
  for (size_t i = 0; i < rest.n_bytes; i++) /* only dirname makes .. of its own */
    if ((rest.marks[i] & NXC_MARK_UNKNOWN) && strchr("/.", rest.bytes[i]) == NULL) return NULL;
  const char *text = nxc_text_string(s->arena, &rest);
  if (n_folder == 0) return *text == '/' || *text == '~' || *text == '\0' ? NULL : text;
  while (*text == '/') text++;
  const char *folder = nxc_shell_text_at(s, path->origins[0])->folder;
  return *text == '\0' ? folder : join(s, folder, text);
}

/* Scripts are called from their own folder, or from one above it. */
static const char *find_above(nxc_shell *s, const char *path) {
  const char *folder = s->texts[0].folder;
  for (int i = 0; i < FOLDERS_ABOVE; i++) {
    const char *found = join(s, folder, path);
    if (is_file(found)) return found;
    if (access(join(s, folder, ".git"), F_OK) == 0) return NULL;
    folder = above(s, folder);
  }
  return NULL;
}

const char *nxc_shell_find_file(nxc_shell *s, const nxc_text *path) {
  const char *known = known_path(s, path);
  if (known == NULL) return NULL;
  if (folder_bytes(path) > 0) return is_file(known) ? known : NULL;
  const char *folder = s->state.folder.n_bytes > 0 ? known_path(s, &s->state.folder) : NULL;
  if (folder != NULL && folder_bytes(&s->state.folder) == 0) folder = join(s, s->texts[0].folder, folder);
  const char *found = folder != NULL ? join(s, folder, known) : NULL;
  return found != NULL && is_file(found) ? found : find_above(s, known);
}
