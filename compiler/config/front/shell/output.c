/* SPDX-License-Identifier: Apache-2.0 */
/* Commands whose output can be computed: echo, printf, seq, basename, dirname, pwd, expr, and those of
 * edit.c. */
#include "compiler/config/front/shell/shell.h"

#include <stdlib.h>
#include <string.h>

typedef struct call {
  const nxc_text *words;
  size_t n_words, at;
} call;

static void put(nxc_shell *s, nxc_text *to, const char *text, size_t n_bytes, size_t at) {
  for (size_t i = 0; i < n_bytes; i++) nxc_text_put(s->arena, to, text[i], at, 0);
}

/* \n, \t and their like; gives the bytes that were taken. */
static size_t put_escape(nxc_shell *s, nxc_text *to, const nxc_text *from, size_t i) {
  static const char letters[] = "nrtabfv\\\"'", values[] = "\n\r\t\a\b\f\v\\\"'";
  char next = i + 1 < from->n_bytes ? from->bytes[i + 1] : '\0';
  const char *letter = from->bytes[i] == '\\' && next ? strchr(letters, next) : NULL;
  nxc_text_put(s->arena, to, letter ? values[letter - letters] : from->bytes[i], from->origins[i],
               from->marks[i]);
  return letter ? 2 : 1;
}

static bool echo(nxc_shell *s, const call *c, nxc_text *output) {
  size_t i = 1;
  bool line = true, escapes = false;
  for (; i < c->n_words; i++) {
    const char *word = nxc_text_string(s->arena, &c->words[i]);
    if (word[0] != '-' || word[1] == '\0' || word[1 + strspn(word + 1, "neE")] != '\0') break;
    line = line && strchr(word, 'n') == NULL;
    escapes = escapes || strchr(word, 'e') != NULL;
  }
  for (size_t first = i; i < c->n_words; i++) {
    if (i > first) put(s, output, " ", 1, c->at);
    if (!nxc_shell_spend(s, c->words[i].n_bytes, c->at)) return false;
    for (size_t k = 0; k < c->words[i].n_bytes;) {
      if (escapes) {
        k += put_escape(s, output, &c->words[i], k);
      } else {
        nxc_text_put(s->arena, output, c->words[i].bytes[k], c->words[i].origins[k], c->words[i].marks[k]);
        k++;
      }
    }
  }
  if (line) put(s, output, "\n", 1, c->at);
  return true;
}

typedef struct conversion {
  bool left, zero;
  size_t width, n_bytes;
  char kind;
} conversion;

/* %[-0][width]kind */
static conversion read_conversion(const nxc_text *format, size_t at) {
  conversion found = {0};
  size_t i = at + 1;
  for (; i < format->n_bytes && strchr("-0", format->bytes[i]) && format->bytes[i]; i++) {
    found.left = found.left || format->bytes[i] == '-';
    found.zero = found.zero || format->bytes[i] == '0';
  }
  for (; i < format->n_bytes && format->bytes[i] >= '0' && format->bytes[i] <= '9' && found.width < 1000; i++)
    found.width = found.width * 10 + (size_t)(format->bytes[i] - '0');
  found.kind = i < format->n_bytes ? format->bytes[i] : '\0';
  found.n_bytes = i - at + 1;
  return found;
}

/* The text that a conversion makes of a value; false: it cannot be followed. */
static bool put_conversion(nxc_shell *s, nxc_text *output, const nxc_text *value, const conversion *how,
                           size_t at) {
  nxc_text shown = *value;
  if (!nxc_shell_spend(s, value->n_bytes + how->width, at)) return false;
  if (strchr("dixX", how->kind) != NULL) {
    char *end;
    long long number = strtoll(nxc_text_string(s->arena, value), &end, 0);
    if (*end != '\0' || nxc_text_any(value, NXC_MARK_UNKNOWN)) return false;
    const char *text = how->kind == 'x'   ? nxc_arena_printf(s->arena, "%llx", (unsigned long long)number)
                       : how->kind == 'X' ? nxc_arena_printf(s->arena, "%llX", (unsigned long long)number)
                                          : nxc_arena_printf(s->arena, "%lld", number);
    shown = nxc_text_from(s->arena, text, strlen(text), at, 0);
  } else if (how->kind != 's' || (how->width > 0 && nxc_text_any(value, NXC_MARK_UNKNOWN))) {
    return false;
  }
  bool zero = how->zero && how->kind != 's' && !how->left;
  size_t n_gap = how->width > shown.n_bytes ? how->width - shown.n_bytes : 0;
  if (zero && shown.n_bytes > 0 && shown.bytes[0] == '-') {
    put(s, output, "-", 1, at);
    shown = nxc_text_part(&shown, 1, shown.n_bytes - 1);
  }
  for (size_t i = 0; i < n_gap && !how->left; i++) put(s, output, zero ? "0" : " ", 1, at);
  nxc_text_append(s->arena, output, &shown);
  for (size_t i = 0; i < n_gap && how->left; i++) put(s, output, " ", 1, at);
  return true;
}

/* The format is used again while values are left. */
static bool print_format(nxc_shell *s, const call *c, nxc_text *output) {
  size_t first = c->n_words > 1 && nxc_text_is(&c->words[1], "--") ? 2 : 1, next = first + 1;
  if (c->n_words <= first || nxc_text_is(&c->words[first], "-v") ||
      nxc_text_any(&c->words[first], NXC_MARK_UNKNOWN))
    return false;
  const nxc_text *format = &c->words[first], nothing = {0};
  for (size_t before = 0; before != next && !s->failed;) {
    before = next;
    for (size_t i = 0; i < format->n_bytes;) {
      if (format->bytes[i] != '%') {
        i += put_escape(s, output, format, i);
      } else if (i + 1 < format->n_bytes && format->bytes[i + 1] == '%') {
        put(s, output, "%", 1, c->at);
        i += 2;
      } else {
        const conversion how = read_conversion(format, i);
        const nxc_text *value = next < c->n_words ? &c->words[next++] : &nothing;
        if (how.kind == '\0' || !put_conversion(s, output, value, &how, c->at)) return false;
        i += how.n_bytes;
      }
    }
    if (next >= c->n_words) break;
  }
  return true;
}

/* printf -v NAME puts its text there. */
static bool print_formatted(nxc_shell *s, const call *c, nxc_text *output) {
  if (c->n_words < 4 || !nxc_text_is(&c->words[1], "-v")) return print_format(s, c, output);
  const call rest = {c->words + 2, c->n_words - 2, c->at};
  nxc_text text = {0};
  const char *name = nxc_text_string(s->arena, &c->words[2]);
  if (print_format(s, &rest, &text)) nxc_shell_set_text(s, name, text, c->at);
  else nxc_shell_set_unknown(s, name, c->at);
  return true;
}

static bool cat(nxc_shell *s, const call *c, nxc_text *output) {
  return nxc_shell_cat(s, c->words, c->n_words, c->at, output);
}

static bool copy(nxc_shell *s, const call *c, nxc_text *output) {
  return nxc_shell_copy(s, c->words, c->n_words, c->at, output);
}

static bool sed(nxc_shell *s, const call *c, nxc_text *output) {
  return nxc_shell_edit(s, c->words, c->n_words, c->at, output);
}

static bool integer(nxc_shell *s, const nxc_text *word, long long *value) {
  char *end;
  const char *text = nxc_text_string(s->arena, word);
  *value = strtoll(text, &end, 10);
  return *text != '\0' && *end == '\0' && !nxc_text_any(word, NXC_MARK_UNKNOWN) && llabs(*value) < 1000000000;
}

static bool seq(nxc_shell *s, const call *c, nxc_text *output) {
  long long first = 1, by = 1, last;
  if (c->n_words < 2 || c->n_words > 4 || !integer(s, &c->words[c->n_words - 1], &last)) return false;
  if (c->n_words > 2 && !integer(s, &c->words[1], &first)) return false;
  if (c->n_words > 3 && !integer(s, &c->words[2], &by)) return false;
  if (by == 0 || llabs(last - first) / llabs(by) > NXC_SHELL_TURNS_MAX) return false;
  for (long long i = first; by > 0 ? i <= last : i >= last; i += by) {
    const char *shown = nxc_arena_printf(s->arena, "%lld\n", i);
    put(s, output, shown, strlen(shown), c->at);
  }
  return true;
}

/* The last part of a path, without a suffix; or all in front of it. */
static bool path_part(nxc_shell *s, const call *c, nxc_text *output) {
  bool folder = nxc_text_is(&c->words[0], "dirname");
  size_t last = c->n_words - 1;
  nxc_text own = c->words[last];
  if (folder && nxc_shell_parent(s, &own)) { /* with or without -- */
    nxc_text_append(s->arena, output, &own);
    return true;
  }
  if (c->n_words < 2 || c->n_words > (folder ? 2U : 3U) || nxc_text_any(&c->words[1], NXC_MARK_UNKNOWN))
    return false;
  nxc_text path = c->words[1];
  if (path.n_bytes == 0 || path.bytes[0] == '-') return false;
  while (path.n_bytes > 1 && path.bytes[path.n_bytes - 1] == '/') path.n_bytes--;
  size_t n_folder = path.n_bytes;
  while (n_folder > 0 && path.bytes[n_folder - 1] != '/') n_folder--;
  nxc_text name = path.n_bytes == 1 ? path : nxc_text_part(&path, n_folder, path.n_bytes - n_folder);
  while (n_folder > 1 && path.bytes[n_folder - 1] == '/') n_folder--;
  nxc_text front = nxc_text_part(&path, 0, n_folder);
  if (c->n_words == 3) {
    const nxc_text *suffix = &c->words[2];
    if (nxc_text_any(suffix, NXC_MARK_UNKNOWN)) return false;
    bool ends = name.n_bytes > suffix->n_bytes && suffix->n_bytes > 0 &&
                memcmp(name.bytes + name.n_bytes - suffix->n_bytes, suffix->bytes, suffix->n_bytes) == 0;
    if (ends) name.n_bytes -= suffix->n_bytes;
  }
  if (folder && n_folder == 0) put(s, output, ".", 1, c->at);
  nxc_text_append(s->arena, output, folder ? &front : &name);
  put(s, output, "\n", 1, c->at);
  return true;
}

static bool print_folder(nxc_shell *s, const call *c, nxc_text *output) {
  nxc_text written = nxc_text_from(s->arena, "$(pwd)", 6, c->at, 0), here = nxc_shell_own_folder(s, &written);
  nxc_text_append(s->arena, output, s->state.folder.n_bytes > 0 ? &s->state.folder : &here);
  return true;
}

/* realpath and readlink -f: the same file, for what opens it. */
static bool print_path(nxc_shell *s, const call *c, nxc_text *output) {
  const nxc_text *path = &c->words[c->n_words - 1];
  if (!nxc_text_any(path, NXC_MARK_FOLDER) && !nxc_text_any(path, NXC_MARK_ARGUMENT)) return false;
  nxc_text_append(s->arena, output, path);
  return true;
}

/* expr A + B */
static bool expr(nxc_shell *s, const call *c, nxc_text *output) {
  nxc_text sum = {0};
  int64_t value;
  for (size_t i = 1; i < c->n_words; i++) {
    put(s, &sum, " ", 1, c->at);
    nxc_text_append(s->arena, &sum, &c->words[i]);
  }
  for (size_t i = 0; i < sum.n_bytes; i++)
    if (strchr("0123456789+-*/%() ", sum.bytes[i]) == NULL) return false;
  if (c->n_words < 2 || !nxc_shell_sum(s, &sum, c->at, &value)) return false;
  const char *shown = nxc_arena_printf(s->arena, "%lld\n", (long long)value);
  put(s, output, shown, strlen(shown), c->at);
  return true;
}

static bool print_options(nxc_shell *s, const call *c, nxc_text *output) {
  return nxc_shell_order_options(s, c->words, c->n_words, c->at, output);
}

static const struct {
  const char *name;
  bool (*print)(nxc_shell *s, const call *c, nxc_text *output);
} printers[] = {{"echo", echo},
                {"printf", print_formatted},
                {"cat", cat},
                {"cp", copy},
                {"sed", sed},
                {"seq", seq},
                {"basename", path_part},
                {"dirname", path_part},
                {"expr", expr},
                {"pwd", print_folder},
                {"realpath", print_path},
                {"readlink", print_path},
                {"getopt", print_options}};

bool nxc_shell_prints(nxc_shell *s, const nxc_text *words, size_t n_words, size_t at) {
  const call c = {words, n_words, at};
  for (size_t i = 0; i < sizeof printers / sizeof *printers; i++) {
    nxc_text output = {0};
    if (!nxc_text_is(&words[0], printers[i].name)) continue;
    if (!printers[i].print(s, &c, &output))
      output = nxc_text_from(s->arena, "$(...)", 6, at, NXC_MARK_UNKNOWN | NXC_MARK_MANY);
    nxc_shell_print(s, &output);
    s->state.status = NXC_YES;
    return true;
  }
  return false;
}
