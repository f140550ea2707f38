/* SPDX-License-Identifier: Apache-2.0 */
/* getopts OPTIONS NAME [WORD...]: the next option of the words, or of the arguments, as POSIX has it. */
#include "compiler/config/front/shell/shell.h"

#include <string.h>

typedef struct options {
  nxc_shell *s;
  const char *letters;
  bool silent; /* the letters begin with a colon: what is wrong is told in OPTARG */
  const nxc_text *words;
  size_t n_words, next; /* the next word, counted from 0 */
  size_t at;
} options;

static void set_word(const options *o, const char *name, const char *value) {
  nxc_shell_set_text(o->s, name, nxc_text_from(o->s->arena, value, strlen(value), o->at, 0), o->at);
}

static void unset(const options *o, const char *name) {
  nxc_shell_set(o->s, name, (nxc_shell_value){.kind = NXC_SHELL_UNSET, .at = o->at});
}

/* What is wrong with an option: `why` is what NAME becomes where the script asks for no messages. */
static const char *complain(const options *o, const char *letter, const char *why) {
  if (o->silent) set_word(o, "OPTARG", letter);
  else unset(o, "OPTARG");
  return o->silent ? why : "?";
}

/* The value of an option is the rest of its word, or the next one. */
static const char *take_value(options *o, const nxc_text *word, const char *letter) {
  size_t from = o->s->state.option_at;
  nxc_text value;
  o->s->state.option_at = 0;
  if (from > 0) value = nxc_text_part(word, from, word->n_bytes - from);
  else if (o->next < o->n_words) value = o->words[o->next];
  else return complain(o, letter, ":");
  o->next += from == 0 ? 1 : 0;
  if (from > 0) o->next++;
  nxc_shell_set_text(o->s, "OPTARG", value, o->at);
  return letter;
}

/* What NAME becomes; NULL: there is no more option. */
static const char *take_letter(options *o) {
  const nxc_text *word = o->next < o->n_words ? &o->words[o->next] : NULL;
  if (word == NULL || word->n_bytes < 2 || word->bytes[0] != '-') return NULL;
  if (nxc_text_is(word, "--")) {
    o->next++;
    return NULL;
  }
  size_t at = o->s->state.option_at ? o->s->state.option_at : 1;
  if (at >= word->n_bytes) at = 1;
  const char *letter = nxc_arena_strndup(o->s->arena, word->bytes + at, 1);
  bool last = at + 1 == word->n_bytes;
  o->s->state.option_at = last ? 0 : at + 1;
  const char *found = *letter == ':' ? NULL : strchr(o->letters, *letter);
  bool valued = found != NULL && found[1] == ':';
  if (last) o->next++;
  if (found == NULL) return complain(o, letter, "?");
  if (valued) return take_value(o, word, letter);
  unset(o, "OPTARG");
  return letter;
}

/* Words that nothing here tells may be any option, or none. */
static void take_unknown(nxc_shell *s, const char *name, bool none, size_t at) {
  if (name != NULL) nxc_shell_set_unknown(s, name, at);
  nxc_shell_set_unknown(s, "OPTARG", at);
  s->state.status = none ? NXC_NO : NXC_MAYBE;
}

void nxc_shell_take_option(nxc_shell *s, const nxc_text *words, size_t n_words, size_t at) {
  options o = {.s = s, .words = s->state.arguments, .n_words = s->state.n_arguments, .at = at};
  const char *name = n_words > 2 ? nxc_text_string(s->arena, &words[2]) : NULL;
  bool told = n_words > 3 || s->state.arguments_known, plain = n_words > 2;
  if (n_words > 3) o.words = words + 3, o.n_words = n_words - 3;
  for (size_t i = 0; i < o.n_words; i++) plain = plain && !nxc_text_any(&o.words[i], NXC_MARK_UNKNOWN);
  int64_t index = 1;
  nxc_text before;
  const nxc_shell_value *from = nxc_shell_find(s, "OPTIND");
  if (from != NULL && from->kind == NXC_SHELL_TEXT)
    plain = nxc_shell_lookup(s, "OPTIND", at, &before) && nxc_shell_sum(s, &before, at, &index) && plain;
  if (!told || !plain || index < 1) {
    if (!told) s->assumes = nxc_shell_ask(s, 1);
    take_unknown(s, name, !told, at); /* a script is read without arguments */
    return;
  }
  o.next = (size_t)index - 1;
  o.letters = nxc_text_string(s->arena, &words[1]);
  o.silent = *o.letters == ':';
  const char *letter = take_letter(&o);
  set_word(&o, name, letter ? letter : "?");
  set_word(&o, "OPTIND", nxc_arena_printf(s->arena, "%zu", o.next + 1));
  s->state.status = letter ? NXC_YES : NXC_NO;
}
