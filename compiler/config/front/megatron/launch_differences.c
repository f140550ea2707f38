/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/front/megatron/launch_differences.h"

#include "compiler/diagnostics/secret.h"

#include <ctype.h>
#include <string.h>

enum { SHOWN = 4, MOST_BYTES = 60 };

static const char *text_of(const nxc_launch_word *word) {
  return word->text != NULL ? word->text : word->unset != NULL ? word->unset : "";
}

static bool is_option(const char *word) {
  return word[0] == '-' && (word[1] == '-' || isalpha((unsigned char)word[1]));
}

/* A shell that is started with a command as its text: the command's own words stand elsewhere. */
static size_t words_before_shell(const nxc_launch_words *words) {
  size_t n = 0;
  while (n < words->n_items && strcmp(text_of(&words->items[n]), "bash") != 0) n++;
  return n;
}

/* The option that begins at *at, with its values; *at comes to stand behind it. */
static const char *next_option(nxc_arena *arena, const nxc_launch_words *words, size_t n_words, size_t *at) {
  const char *name = text_of(&words->items[*at]), *text = name;
  bool hidden = nxc_key_is_secret(name);
  for ((*at)++; *at < n_words; (*at)++) {
    const char *value = text_of(&words->items[*at]);
    if (is_option(value)) break;
    text = nxc_arena_printf(arena, "%s %s", text, hidden ? "(hidden)" : value);
  }
  size_t n_bytes = strlen(text);
  return nxc_secret_in_line(text, n_bytes) < n_bytes ? name : text;
}

/* How many launches have an option; the last of them counts once. */
typedef struct holders {
  size_t n, last;
} holders;

static holders *holders_of(nxc_arena *arena, nxc_names *all, const char *option) {
  void **slot = nxc_names_slot(all, option, strlen(option));
  if (*slot == NULL) *slot = nxc_arena_array(arena, 1, sizeof(holders));
  return *slot;
}

/* The options of a launch: what the launcher is told, and the program. */
static const char **options_of(nxc_arena *arena, const nxc_launch *launch, size_t *n) {
  const nxc_launch_words *parts[] = {&launch->launcher, &launch->arguments};
  const char **options = nxc_arena_array(arena, parts[0]->n_items + parts[1]->n_items + 1, sizeof *options);
  *n = 0;
  for (int part = 0; part < 2; part++) {
    size_t n_words = words_before_shell(parts[part]);
    for (size_t at = 0; at < n_words;) options[(*n)++] = next_option(arena, parts[part], n_words, &at);
  }
  return options;
}

static void count(nxc_arena *arena, const nxc_script *script, nxc_names *all) {
  for (size_t i = 0; i < script->n_launches; i++) {
    size_t n;
    const char **options = options_of(arena, &script->launches[i], &n);
    for (size_t k = 0; k < n; k++) {
      holders *h = holders_of(arena, all, options[k]);
      if (h->last == i + 1) continue;
      h->n++;
      h->last = i + 1;
    }
  }
}

/* A value may be a page of JSON. */
static const char *shortened(nxc_arena *arena, const char *option) {
  if (strlen(option) <= MOST_BYTES) return option;
  size_t n = MOST_BYTES - 3;
  while ((option[n] & 0xc0) == 0x80) n--; /* no part of a character */
  return nxc_arena_printf(arena, "%.*s...", (int)n, option);
}

static const char *own_of(nxc_arena *arena, const nxc_script *script, nxc_names *all, size_t launch) {
  const char *text = "";
  size_t n = 0, n_options;
  const char **options = options_of(arena, &script->launches[launch], &n_options);
  for (size_t i = 0; i < n_options; i++) {
    if (holders_of(arena, all, options[i])->n == script->n_launches || n++ >= SHOWN) continue;
    text = nxc_arena_printf(arena, "%s%s%s", text, *text ? " " : "", shortened(arena, options[i]));
  }
  if (n > SHOWN) text = nxc_arena_printf(arena, "%s, and %zu more", text, n - SHOWN);
  return n > 0 ? text : "nothing that the others have not";
}

const char *const *nxc_launch_differences(nxc_arena *arena, const nxc_script *script) {
  const char **texts = nxc_arena_array(arena, script->n_launches, sizeof *texts);
  nxc_names *all = nxc_names_new(arena);
  count(arena, script, all);
  for (size_t i = 0; i < script->n_launches; i++) texts[i] = own_of(arena, script, all, i);
  return texts;
}
