/* SPDX-License-Identifier: Apache-2.0 */
/* How many GPUs DeepSpeed's launcher would use: hostfile, num_nodes, num_gpus, include, exclude.
 *
 * A hostfile has a line `NAME slots=N` per host. include keeps, exclude removes, what a filter names:
 * NAME[:SLOT,SLOT...] joined by @. Without a hostfile there is the machine that starts the training, whose
 * GPUs nobody knows here: the number then comes from num_gpus, from global_num_gpus or from --world-size. */
#include "compiler/config/front/neox/front_neox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOSTFILE_BYTES_MAX = 1024 * 1024, SLOTS_MAX = 1024 };

typedef struct host {
  const char *name;
  size_t n_slots;
  bool *used; /* n_slots */
  bool named; /* by the filter */
} host;

typedef struct hosts {
  nxc_binding *binding;
  host *items;
  size_t n_items;
  bool ok;
} hosts;

static const char *text_of(const nxc_binding *binding, const char *option) {
  const nxc_bound *bound = nxc_binding_find(binding, option);
  bool text = bound != NULL && bound->given && bound->value != NULL && bound->value->kind == NXC_STRING;
  return text && *bound->value->text ? bound->value->text : NULL;
}

static int64_t int_of(const nxc_binding *binding, const char *option) {
  const nxc_bound *bound = nxc_binding_find(binding, option);
  const nxc_value *value = bound ? bound->value : NULL;
  return value != NULL && value->kind == NXC_INT && value->digits == NULL ? value->integer : -1;
}

static host *find_host(hosts *all, const char *name) {
  for (size_t i = 0; i < all->n_items; i++)
    if (strcmp(all->items[i].name, name) == 0) return &all->items[i];
  return NULL;
}

static void complain(hosts *all, nxc_span at, const char *format, const char *text) {
  const char *message = nxc_arena_printf(all->binding->arena, format, text);
  nxc_report(all->binding->sink, "NX6907", NXC_SEVERITY_ERROR, at,
             "correct the hostfile, or what include, exclude and num_nodes take of it", "%s", message);
  all->ok = false;
}

/* -- the file -------------------------------------------------------------------------------------------- */

static void read_line(hosts *all, const nxc_source *source, uint32_t line) {
  size_t n_bytes;
  nxc_arena *arena = all->binding->arena;
  const char *start = nxc_source_line(source, line, &n_bytes);
  char *text = nxc_arena_strndup(arena, start, n_bytes), *rest;
  nxc_span at = {source, line, 1, n_bytes ? (uint32_t)n_bytes : 1};
  char *name = strtok_r(text, " \t\r", &rest), *slots = name ? strtok_r(NULL, " \t\r", &rest) : NULL;
  if (name == NULL || *name == '#') return;
  char *end = NULL;
  long n_slots = slots && strncmp(slots, "slots=", 6) == 0 ? strtol(slots + 6, &end, 10) : 0;
  if (end == NULL || *end != '\0' || n_slots < 1 || n_slots > SLOTS_MAX) {
    complain(all, at, "a line of a hostfile is NAME slots=N, not %s",
             nxc_arena_strndup(arena, start, n_bytes));
    return;
  }
  if (find_host(all, name) != NULL) {
    complain(all, at, "the host %s stands twice in the hostfile", name);
    return;
  }
  all->items = nxc_arena_grow(arena, all->items, all->n_items, sizeof *all->items);
  host *fresh = &all->items[all->n_items++];
  *fresh = (host){.name = name, .n_slots = (size_t)n_slots};
  fresh->used = nxc_arena_array(arena, fresh->n_slots, sizeof *fresh->used);
  memset(fresh->used, true, fresh->n_slots * sizeof *fresh->used);
}

/* False: there is none that can be read, which the real launcher takes for a training on one machine. */
static bool read_hosts(hosts *all, const char *path) {
  const nxc_source *source = nxc_source_read_file(all->binding->arena, path, HOSTFILE_BYTES_MAX);
  if (source == NULL) return false;
  for (uint32_t line = 1; line <= source->n_lines; line++) read_line(all, source, line);
  if (all->ok && all->n_items == 0) complain(all, (nxc_span){source, 1, 1, 1}, "%s names no host", path);
  return true;
}

/* -- filters --------------------------------------------------------------------------------------------- */

static void apply_node(hosts *all, nxc_span at, char *node, bool include) {
  char *rest, *slots = strchr(node, ':');
  if (slots != NULL) *slots++ = '\0';
  host *found = find_host(all, node);
  if (found == NULL) {
    complain(all, at, "the hostfile names no host %s", node);
    return;
  }
  if (!found->named && include) memset(found->used, false, found->n_slots * sizeof *found->used);
  found->named = true;
  if (slots == NULL) memset(found->used, include, found->n_slots * sizeof *found->used);
  for (char *slot = slots ? strtok_r(slots, ",", &rest) : NULL; slot; slot = strtok_r(NULL, ",", &rest)) {
    char *end;
    long number = strtol(slot, &end, 10);
    if (*end != '\0' || number < 0 || (size_t)number >= found->n_slots) {
      complain(all, at, "there is no slot %s", nxc_arena_printf(all->binding->arena, "%s on %s", slot, node));
      return;
    }
    found->used[number] = include;
  }
}

static void filter(hosts *all, const char *option, bool include) {
  const char *text = text_of(all->binding, option);
  if (text == NULL) return;
  nxc_span at = nxc_binding_find(all->binding, option)->at;
  char *rest, *copy = nxc_arena_strdup(all->binding->arena, text);
  for (char *node = strtok_r(copy, "@", &rest); node && all->ok; node = strtok_r(NULL, "@", &rest))
    apply_node(all, at, node, include);
  for (size_t i = 0; include && i < all->n_items; i++)
    if (!all->items[i].named) memset(all->items[i].used, false, all->items[i].n_slots * sizeof(bool));
}

/* -- the number ------------------------------------------------------------------------------------------ */

static int64_t count(hosts *all) {
  int64_t n_nodes = int_of(all->binding, "num_nodes"), n_gpus = int_of(all->binding, "num_gpus");
  int64_t total = 0, n_taken = 0;
  for (size_t i = 0; i < all->n_items; i++) {
    int64_t own = 0;
    for (size_t slot = 0; slot < all->items[i].n_slots; slot++) own += all->items[i].used[slot];
    if (own == 0 || (n_nodes > 0 && n_taken == n_nodes)) continue;
    n_taken++;
    total += n_gpus > 0 && n_gpus < own ? n_gpus : own;
  }
  return total;
}

static void give(nxc_binding *binding, const char *from, int64_t n_gpus) {
  nxc_bound *target = nxc_binding_find(binding, "global_num_gpus");
  const nxc_bound *source = nxc_binding_find(binding, from);
  nxc_value *value = nxc_arena_alloc(binding->arena, sizeof *value);
  *value = (nxc_value){.kind = NXC_INT, .integer = n_gpus};
  target->value = value;
  target->at = source->at;
  target->kind = source->kind;
}

void nxc_neox_count_gpus(nxc_binding *binding) {
  const nxc_bound *given = nxc_binding_find(binding, "global_num_gpus");
  if (given == NULL || (given->given && given->value != NULL && given->value->kind != NXC_NULL)) return;
  hosts all = {.binding = binding, .ok = true};
  const nxc_bound *include = nxc_binding_find(binding, "include");
  if (text_of(binding, "include") && text_of(binding, "exclude")) {
    complain(&all, include->at, "%s", "include and exclude are alternatives");
    return;
  }
  const char *path = text_of(binding, "hostfile");
  if (path == NULL || !read_hosts(&all, path)) {
    int64_t n_gpus = int_of(binding, "num_gpus");
    if (n_gpus > 0 && int_of(binding, "num_nodes") <= 1) give(binding, "num_gpus", n_gpus);
    return;
  }
  if (all.ok) filter(&all, "include", true);
  if (all.ok) filter(&all, "exclude", false);
  if (!all.ok) return;
  int64_t total = count(&all);
  nxc_span at = nxc_binding_find(binding, "hostfile")->at;
  if (total > 0) give(binding, "hostfile", total);
  else complain(&all, at, "%s", "the filters leave no GPU of the hostfile");
}
