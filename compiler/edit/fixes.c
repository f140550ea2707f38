/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/edit/fixes.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct nxc_earlier_text {
  const char *text;
  size_t n_bytes;
  const struct nxc_earlier_text *before;
};

struct nxc_fixes {
  nxc_arena *arena;
  bool unsafe;
  nxc_fixed_file **files;
  size_t n_files;
  nxc_fixed_id *ids;
  size_t n_ids, n_gathered;
  const nxc_source *last_source; /* whose file this is */
  nxc_fixed_file *last_file;
};

nxc_fixes *nxc_fixes_new(nxc_arena *arena, bool unsafe) {
  nxc_fixes *fixes = nxc_arena_alloc(arena, sizeof *fixes);
  fixes->arena = arena;
  fixes->unsafe = unsafe;
  return fixes;
}

/* -- files ----------------------------------------------------------------------------------------------- */

static const char *path_of(nxc_arena *arena, const nxc_source *source) {
  char absolute[PATH_MAX];
  if (strcmp(source->name, "<stdin>") == 0) return "-";
  return realpath(source->name, absolute) ? nxc_arena_strdup(arena, absolute) : NULL;
}

/* The source's bytes, and the mark before them. */
static const char *whole_text(nxc_arena *arena, const nxc_source *source, size_t *n_bytes) {
  *n_bytes = source->n_bytes + source->n_mark_bytes;
  return nxc_arena_strndup(arena, source->text - source->n_mark_bytes, *n_bytes);
}

/* The source outlives no pass, the file does. */
static nxc_fixed_file *find_file(nxc_fixes *fixes, const nxc_source *source) {
  nxc_arena *arena = fixes->arena;
  const char *path = path_of(arena, source);
  if (path == NULL) return NULL;
  size_t n_bytes;
  const char *text = whole_text(arena, source, &n_bytes);
  size_t n = 0;
  while (n < fixes->n_files && strcmp(fixes->files[n]->path, path) != 0) n++;
  if (n == fixes->n_files) {
    fixes->files = nxc_arena_grow(arena, fixes->files, fixes->n_files, sizeof *fixes->files);
    nxc_fixed_file *file = fixes->files[fixes->n_files++] = nxc_arena_alloc(arena, sizeof *file);
    *file = (nxc_fixed_file){.path = path,
                             .name = nxc_arena_strdup(arena, source->name),
                             .original = text,
                             .text = text,
                             .n_original = n_bytes,
                             .n_bytes = n_bytes};
  }
  nxc_fixed_file *file = fixes->files[n];
  bool same = file->n_bytes == n_bytes && memcmp(file->text, text, n_bytes) == 0;
  if (!same) return NULL; /* somebody else changes it now */
  if (file->source == NULL)
    file->source = nxc_source_new(arena, file->name, text + source->n_mark_bytes, source->n_bytes);
  return file;
}

static nxc_fixed_file *file_of(nxc_fixes *fixes, const nxc_source *source) {
  if (fixes->last_source != source) fixes->last_file = find_file(fixes, source);
  fixes->last_source = source;
  return fixes->last_file;
}

/* -- gathering ------------------------------------------------------------------------------------------- */

static void count(nxc_fixes *fixes, const char *id) {
  size_t n = 0;
  while (n < fixes->n_ids && strcmp(fixes->ids[n].id, id) != 0) n++;
  if (n == fixes->n_ids) {
    fixes->ids = nxc_arena_grow(fixes->arena, fixes->ids, fixes->n_ids, sizeof *fixes->ids);
    fixes->ids[fixes->n_ids++] = (nxc_fixed_id){nxc_arena_strdup(fixes->arena, id), 0};
  }
  fixes->ids[n].n_fixed++;
}

static bool is_there(const nxc_edit_list *list, const nxc_edit *edit) {
  for (size_t i = 0; i < list->n_items; i++) {
    const nxc_edit *other = &list->items[i];
    if (other->begin == edit->begin && other->end == edit->end && strcmp(other->text, edit->text) == 0)
      return true;
  }
  return false;
}

/* The whole repair, or nothing of it. All its edits are of one file; one that names two waits for a person.
 */
static bool take(nxc_fixes *fixes, const nxc_repair *repair) {
  const nxc_source *source = repair->edits->source;
  for (size_t i = 0; i < repair->n_edits; i++)
    if (repair->edits[i].source != source) return false;
  nxc_fixed_file *file = file_of(fixes, source);
  if (file == NULL || file->returns) return false;
  nxc_edit *edits = nxc_arena_array(fixes->arena, repair->n_edits, sizeof *edits);
  size_t n_there = 0;
  for (size_t i = 0; i < repair->n_edits; i++) {
    edits[i] = repair->edits[i];
    edits[i].source = file->source;
    edits[i].text = nxc_arena_strdup(fixes->arena, edits[i].text);
    n_there += is_there(&file->edits, &edits[i]);
  }
  const nxc_repair own = {edits, repair->n_edits, repair->safe};
  return n_there < repair->n_edits && nxc_edits_take(fixes->arena, &file->edits, file->source, &own);
}

static bool is_meant(const nxc_finding *finding, bool notes) {
  return finding->repair.n_edits > 0 && (notes || finding->severity > NXC_SEVERITY_NOTE);
}

void nxc_fixes_gather(nxc_fixes *fixes, const nxc_sink *sink, bool notes) {
  fixes->last_source = NULL; /* the last sink's may be gone */
  for (size_t i = 0; i < nxc_sink_n_findings(sink); i++) {
    const nxc_finding *finding = nxc_sink_finding(sink, i);
    bool wanted = is_meant(finding, notes) && (finding->repair.safe || fixes->unsafe);
    if (!wanted || !take(fixes, &finding->repair)) continue;
    fixes->n_gathered++;
    count(fixes, finding->id);
  }
}

void nxc_fixes_count(const nxc_sink *sink, bool notes, size_t *n_safe, size_t *n_unsafe) {
  for (size_t i = 0; i < nxc_sink_n_findings(sink); i++) {
    const nxc_finding *finding = nxc_sink_finding(sink, i);
    if (is_meant(finding, notes)) ++*(finding->repair.safe ? n_safe : n_unsafe);
  }
}

/* -- making ---------------------------------------------------------------------------------------------- */

/* Whether one repair undoes another: without this the last pass would decide. */
static bool was_there(const nxc_fixed_file *file) {
  const struct nxc_earlier_text *one = file->earlier;
  while (one != NULL && (one->n_bytes != file->n_bytes || memcmp(one->text, file->text, one->n_bytes) != 0))
    one = one->before;
  return one != NULL;
}

static void make(nxc_arena *arena, nxc_fixed_file *file) {
  if (file->edits.n_items > 0) {
    struct nxc_earlier_text *now = nxc_arena_alloc(arena, sizeof *now);
    *now = (struct nxc_earlier_text){file->text, file->n_bytes, file->earlier};
    file->earlier = now;
    size_t n_mark = file->n_bytes - file->source->n_bytes, n_text;
    const char *text = nxc_edits_apply(arena, file->source, &file->edits, &n_text);
    char *whole = nxc_arena_alloc(arena, n_mark + n_text + 1);
    memcpy(whole, file->text, n_mark);
    memcpy(whole + n_mark, text, n_text);
    file->text = whole;
    file->n_bytes = n_mark + n_text;
    file->returns = was_there(file);
  }
  file->edits = (nxc_edit_list){0};
  file->source = NULL;
}

bool nxc_fixes_apply(nxc_fixes *fixes) {
  if (fixes->n_gathered == 0) return false;
  fixes->n_gathered = 0;
  nxc_overlay *overlays = nxc_arena_array(fixes->arena, fixes->n_files + 1, sizeof *overlays);
  for (size_t i = 0; i < fixes->n_files; i++) {
    nxc_fixed_file *file = fixes->files[i];
    make(fixes->arena, file);
    overlays[i] = (nxc_overlay){file->path, file->text, file->n_bytes};
  }
  nxc_source_lay_over(overlays);
  return true;
}

size_t nxc_fixes_n_files(const nxc_fixes *fixes) {
  return fixes->n_files;
}

const nxc_fixed_file *nxc_fixes_file(const nxc_fixes *fixes, size_t index) {
  return fixes->files[index];
}

const char *nxc_fixes_show(const nxc_fixes *fixes) {
  const char *ids = "";
  size_t n_fixed = 0;
  for (size_t i = 0; i < fixes->n_ids; i++) {
    const nxc_fixed_id *id = &fixes->ids[i];
    const char *times = id->n_fixed > 1 ? nxc_arena_printf(fixes->arena, " %zu", id->n_fixed) : "";
    ids = nxc_arena_printf(fixes->arena, "%s%s%s%s", ids, i ? ", " : "", id->id, times);
    n_fixed += id->n_fixed;
  }
  return n_fixed ? nxc_arena_printf(fixes->arena, "%zu fixed (%s)", n_fixed, ids) : "";
}
