/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that start a program, kept with what the variables are then. */
#include "compiler/diagnostics/nearest.h"
#include "compiler/document/names.h"
#include "compiler/config/front/shell/parse.h"
#include "compiler/config/front/shell/shell.h"
#include "compiler/settings/programs.h"

#include <string.h>

enum { LAUNCHES_MAX = 200 };

/* A path of a Python program: it has no blanks, whatever stands for what is unknown in it. */
static bool ends_in_py(const nxc_text *word) {
  for (size_t i = 0; i < word->n_bytes; i++)
    if (word->bytes[i] == ' ' && !(word->marks[i] & NXC_MARK_UNKNOWN)) return false;
  return word->n_bytes > 3 && memcmp(word->bytes + word->n_bytes - 3, ".py", 3) == 0;
}

static bool begins(const nxc_text *word, const char *text) {
  return word->n_bytes >= strlen(text) && memcmp(word->bytes, text, strlen(text)) == 0;
}

static bool contains(const nxc_text *word, const char *text) {
  return word->n_bytes > 0 && memmem(word->bytes, word->n_bytes, text, strlen(text)) != NULL;
}

/* Whether a command of this name may run what its arguments name: python and its like, a launcher, whatever
 * has a path of its own or is not known here. Editors and searchers of files do not. */
static bool may_run(const nxc_text *name) {
  static const char *const parts[] = {"python", "run",  "launch", "deepspeed", "exec",  "mpi", "bash", "env",
                                      "nohup",  "time", "nice",   "numactl",   "nsys",  "ncu", "/",    "uv",
                                      "conda",  "poetry", "accelerate", "docker", "singularity", "sudo"};
  if (name->n_bytes == 0 || nxc_text_any(name, NXC_MARK_UNKNOWN) || nxc_text_is(name, "ray")) return true;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (contains(name, parts[i])) return true;
  return false;
}

/* Whether a script among its words is one that it runs. */
static bool starts_script(const nxc_text *name) {
  static const char *const names[] = {"sh", "zsh", "sbatch", "salloc", "qsub", "bsub", "timeout", "setsid"};
  bool any = false;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) any = any || nxc_text_is(name, names[i]);
  return any || may_run(name);
}

/* The path of a module; a file, that of a program alike. */
static const char *path_of(nxc_arena *arena, const nxc_text *word) {
  if (ends_in_py(word)) return nxc_text_string(arena, word);
  char *path = nxc_arena_strdup(arena, nxc_text_string(arena, word));
  for (char *c = path; *c != '\0'; c++)
    if (*c == '.') *c = '/';
  return nxc_arena_printf(arena, "%s.py", path);
}

/* A module that is known to be a program; others are no more than tools. */
static bool is_module(nxc_arena *arena, const nxc_text *word) {
  if (word->n_bytes == 0 || ends_in_py(word) || begins(word, "-")) return false;
  return nxc_program_row_find(path_of(arena, word)) != NULL || contains(word, "pretrain");
}

/* The first word that names a Python program, a module behind -m, or behind torchrun one that nothing here
 * tells; n_words: none. */
static size_t find_program(nxc_arena *arena, const nxc_text *words, size_t n_words) {
  bool launcher = false;
  for (size_t i = 1; i < n_words; i++)
    if (nxc_text_is(&words[i - 1], "-m") && is_module(arena, &words[i])) return i;
  for (size_t i = 0; i < n_words; i++)
    if (ends_in_py(&words[i]) && !contains(&words[i], "*") && (i == 0 || may_run(&words[0]))) return i;
  for (size_t i = 0; i < n_words; i++) {
    bool unknown = nxc_text_all(&words[i], NXC_MARK_UNKNOWN) && !nxc_text_any(&words[i], NXC_MARK_MAYBE);
    bool behind = i > 0 && !(begins(&words[i - 1], "--") &&
                             memchr(words[i - 1].bytes, '=', words[i - 1].n_bytes) == NULL);
    bool options = i + 1 < n_words && begins(&words[i + 1], "--");
    if (launcher && unknown && behind && options) return i;
    launcher = launcher || contains(&words[i], "torchrun") || contains(&words[i], "torch.distributed");
  }
  return n_words;
}

/* -- what a launch has ----------------------------------------------------------------------------------- */

static nxc_assigned assigned_of(nxc_shell *s, size_t number, const nxc_shell_value *value) {
  const char *name = s->name_list[number];
  nxc_assigned assigned = {.name = name, .exported = value->exported, .array = value->kind != NXC_SHELL_TEXT};
  assigned.at = nxc_shell_place(s, value->at, strlen(name));
  size_t n_items = value->kind == NXC_SHELL_TEXT ? 1 : value->n_items;
  assigned.words.items = nxc_arena_array(s->arena, n_items + 1, sizeof *assigned.words.items);
  assigned.words.n_items = n_items;
  for (size_t i = 0; i < n_items; i++) {
    const nxc_text *text = value->kind == NXC_SHELL_TEXT ? &value->text : &value->items[i].text;
    assigned.words.items[i] = nxc_shell_word_of(s, text, value->at);
  }
  return assigned;
}

/* A variable that is set, and no text that a file was given. */
static bool is_set(const nxc_shell *s, size_t i) {
  const nxc_shell_value *value = s->state.values[i];
  return value != NULL && value->kind != NXC_SHELL_UNSET && *s->name_list[i] != NXC_SHELL_FILE;
}

static void keep_variables(nxc_shell *s, nxc_launch *launch) {
  nxc_assigned *all = NULL;
  for (size_t i = 0; i < s->state.n_values; i++) {
    if (!is_set(s, i)) continue;
    all = nxc_arena_grow(s->arena, all, launch->n_assigned, sizeof *all);
    all[launch->n_assigned++] = assigned_of(s, i, s->state.values[i]);
  }
  launch->assigned = all;
}

static void add_word(nxc_shell *s, nxc_launch_words *words, nxc_launch_word word) {
  words->items = nxc_arena_grow(s->arena, words->items, words->n_items, sizeof *words->items);
  words->items[words->n_items++] = word;
}

static bool same_words(const nxc_launch_words *a, const nxc_launch_words *b) {
  bool same = a->n_items == b->n_items;
  for (size_t i = 0; same && i < a->n_items; i++) same = strcmp(a->items[i].text, b->items[i].text) == 0;
  return same;
}

static void add_launch(nxc_shell *s, const nxc_launch *launch) {
  nxc_script *script = s->script;
  for (size_t i = 0; i < script->n_launches; i++) {
    const nxc_launch *other = &script->launches[i];
    bool same = other->at.source == launch->at.source && other->at.line == launch->at.line &&
                same_words(&other->arguments, &launch->arguments) &&
                same_words(&other->launcher, &launch->launcher);
    if (same) return;
  }
  if (script->n_launches == LAUNCHES_MAX)
    nxc_report(s->sink, "NX5914", NXC_SEVERITY_WARNING, launch->at,
               "judge the others in scripts of their own",
               "this script starts more than %d programs: the rest is not judged", LAUNCHES_MAX);
  if (script->n_launches > LAUNCHES_MAX) return;
  script->launches =
      nxc_arena_grow(script->arena, script->launches, script->n_launches, sizeof *script->launches);
  script->launches[script->n_launches++] = *launch;
}

size_t nxc_shell_n_launches(const nxc_shell *s) {
  return s->script->n_launches;
}

void nxc_shell_forget_launches(nxc_shell *s, size_t n_launches) {
  s->script->n_launches = n_launches;
}

/* -- variables that nothing sets ------------------------------------------------------------------------- */

typedef struct nxc_shell_pending {
  const char *name;
  size_t at;
  bool array; /* of an array, which no environment gives */
} pending;

/* NAME of $NAME and ${NAME...} among the bytes of one word. */
static void note_undefined(nxc_shell *s, const nxc_text *word) {
  for (size_t i = 0; i < word->n_bytes; i++) {
    bool begins_here = word->bytes[i] == '$' && (word->marks[i] & NXC_MARK_UNDEFINED);
    if (!begins_here) continue;
    size_t from = i + 1 + (i + 1 < word->n_bytes && word->bytes[i + 1] == '{'), n = 0;
    while (from + n < word->n_bytes &&
           (word->bytes[from + n] == '_' || (word->bytes[from + n] >= '0' && word->bytes[from + n] <= '9') ||
            ((word->bytes[from + n] | 32) >= 'a' && (word->bytes[from + n] | 32) <= 'z')))
      n++;
    if (n == 0) continue;
    const char *name = nxc_arena_strndup(s->arena, word->bytes + from, n);
    void **known = nxc_names_slot(s->undefined, name, n);
    if (*known != NULL) continue;
    pending *kept = nxc_arena_alloc(s->arena, sizeof *kept);
    bool array = from + n < word->n_bytes && word->bytes[from + n] == '[';
    *kept = (pending){.name = name, .at = word->origins[i], .array = array};
    *known = kept;
    s->pending = nxc_arena_grow(s->arena, s->pending, s->n_pending, sizeof *s->pending);
    s->pending[s->n_pending++] = kept;
  }
}

/* NAME and what is behind it, somewhere in the texts, on whatever way. */
static bool stands_somewhere(const nxc_shell *s, const char *name, const char *behind) {
  size_t n = strlen(name);
  for (size_t i = 0; i < s->n_texts; i++) {
    const char *begin = s->texts[i].source->text;
    for (const char *at = begin; (at = strstr(at, name)) != NULL; at += n)
      if (strncmp(at + n, behind, strlen(behind)) == 0 &&
          (at == begin || strchr(" \t\n;&|(", at[-1]) != NULL))
        return true;
  }
  return false;
}

/* Then it is no slip of the pen. */
static bool is_assigned_somewhere(const nxc_shell *s, const char *name) {
  return stands_somewhere(s, name, "=") || stands_somewhere(s, name, "+=");
}

/* Outside of its loop nobody means the variable of a loop. */
static bool is_of_loop(const nxc_shell *s, const char *name) {
  return stands_somewhere(s, name, " in ") && !is_assigned_somewhere(s, name);
}

static bool is_read_somewhere(const nxc_shell *s, const char *name) {
  size_t n = strlen(name);
  for (size_t i = 0; i < s->n_texts; i++)
    for (const char *at = s->texts[i].source->text; (at = strchr(at, '$')) != NULL;) {
      at += at[1] == '{' ? 2 : 1;
      if (strncmp(at, name, n) == 0 && !nxc_shell_is_name(at[n])) return true;
    }
  return false;
}

/* One that is read where it is meant is no slip for another that is two letters from it: MLA_ARGS and
 * MEM_ARGS. */
static bool is_slip(const nxc_shell *s, const char *name, const char *near) {
  return nxc_one_slip(name, near) || !is_read_somewhere(s, near);
}

/* A name that is near one that the script sets is misspelt; any other the environment may give. */
static void report_undefined(nxc_shell *s) {
  enum { SHORTEST = 5, SHORTEST_ARRAY = 3 };
  for (size_t i = 0; i < s->n_pending; i++) {
    const char *name = s->pending[i]->name;
    const nxc_shell_value *value = nxc_shell_find(s, name);
    bool expected = nxc_names_find(s->expected, name, strlen(name)) != NULL || s->sources;
    if (expected || value != NULL || is_assigned_somewhere(s, name)) continue;
    if (strlen(name) < (s->pending[i]->array ? SHORTEST_ARRAY : SHORTEST)) continue;
    const char **names = NULL;
    size_t n_names = 0;
    for (size_t k = 0; k < s->n_names && k < s->state.n_values; k++) {
      if (s->state.values[k] == NULL || *s->name_list[k] == NXC_SHELL_FILE) continue;
      if (is_of_loop(s, s->name_list[k])) continue;
      names = nxc_arena_grow(s->arena, names, n_names, sizeof *names);
      names[n_names++] = s->name_list[k];
    }
    nxc_near near = nxc_near_find(name, names, n_names);
    if (near.name == NULL) continue;
    bool slip = is_slip(s, name, near.name);
    s->script->misspelt = s->script->misspelt || (slip && s->pending[i]->array);
    nxc_span at = nxc_shell_place(s, s->pending[i]->at, strlen(name) + 1), inside = at;
    bool braces = at.source != NULL && at.source->text[nxc_span_offset(at, false) + 1] == '{';
    if (braces) inside.length++;
    nxc_report_repair(s->sink, "NX5918", slip ? NXC_SEVERITY_ERROR : NXC_SEVERITY_WARNING, at,
                      slip ? nxc_did_you_mean(s->arena, "", near.name) : "set it, or leave it out",
                      slip ? nxc_repair_misspelt(s->arena, inside, name, near) : (nxc_repair){0},
                      "nothing gives %s a value, and it stands in a launch", name);
  }
}

/* -- commands -------------------------------------------------------------------------------------------- */

/* Whether the word stands behind bash -c, or another shell's -lc. */
static bool is_text_of_shell(const nxc_text *words, size_t i) {
  static const char *const shells[] = {"bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/usr/bin/bash"};
  const nxc_text *flag = i > 0 ? &words[i - 1] : NULL;
  bool takes = flag != NULL && flag->n_bytes > 1 && flag->n_bytes < 5 && flag->bytes[0] == '-' &&
               flag->bytes[flag->n_bytes - 1] == 'c';
  for (size_t k = 0; takes && k + 1 < i; k++)
    for (size_t j = 0; j < sizeof shells / sizeof *shells; j++)
      if (nxc_text_is(&words[k], shells[j])) return !nxc_text_all(&words[i], NXC_MARK_UNKNOWN);
  return false;
}

/* bash -c "python ...": the command inside is one as well. */
static bool open_texts(nxc_shell *s, const nxc_text *words, size_t n_words, size_t at) {
  bool any = false;
  for (size_t i = 1; i < n_words && !s->failed; i++) {
    static const char *const signs[] = {".py ", ".py\n", " -m "};
    bool starts = false;
    for (size_t k = 0; k < sizeof signs / sizeof *signs; k++)
      starts = starts || contains(&words[i], signs[k]);
    if (!starts && is_text_of_shell(words, i)) any = nxc_shell_run_child(s, &words[i], at);
    if (!starts) continue;
    nxc_text text = nxc_text_copy(s->arena, &words[i]);
    for (size_t k = 0; k < text.n_bytes; k++) { /* its words are made anew */
      text.marks[k] &= (unsigned char)~NXC_MARK_QUOTED;
      if (text.marks[k] & NXC_MARK_UNKNOWN) text.marks[k] |= NXC_MARK_MANY;
    }
    if (nxc_shell_spend(s, text.n_bytes, at)) nxc_shell_run_text(s, &text, at, true);
    any = true;
  }
  return any;
}

/* What the words hold: a script, a text, or lines to read. False: a program, which is started here. */
static bool run_inside(nxc_shell *s, const nxc_shell_command *command, const nxc_text *words, size_t n_words,
                       size_t program) {
  size_t n_launches = nxc_shell_n_launches(s);
  bool script = starts_script(words) && nxc_shell_run_script(s, words, program, command->at);
  if (script && nxc_shell_n_launches(s) > n_launches) return true;
  if (program < n_words) return false;
  if (!open_texts(s, words, n_words, command->at)) nxc_shell_run_input(s, words, command->at);
  return true;
}

void nxc_shell_launch(nxc_shell *s, const nxc_shell_command *command, const nxc_text *words, size_t n_words) {
  size_t program = find_program(s->arena, words, n_words);
  nxc_launch_words job = nxc_shell_enter_job(s, words, program, command->at);
  bool inside = run_inside(s, command, words, n_words, program);
  s->job = job;
  if (inside) return;
  nxc_launch launch = {.program = path_of(s->arena, &words[program])};
  size_t at = words[program].n_bytes ? words[program].origins[0] : command->at;
  bool brought = at < command->at || nxc_shell_text_at(s, at) != nxc_shell_text_at(s, command->at);
  if (brought) at = command->at; /* by a variable */
  launch.at = nxc_shell_place(s, at, words[program].n_bytes);
  for (size_t i = 0; i < n_words; i++) {
    if (i != program)
      add_word(s, i < program ? &launch.launcher : &launch.arguments,
               nxc_shell_word_of(s, &words[i], command->at));
    note_undefined(s, &words[i]);
  }
  launch.n_in_front = launch.launcher.n_items;
  for (size_t i = 0; i < s->job.n_items; i++) add_word(s, &launch.launcher, s->job.items[i]);
  keep_variables(s, &launch);
  add_launch(s, &launch);
}

/* Without a command that starts a program: every variable that holds options, and every bare option. */
static void take_all(nxc_shell *s) {
  nxc_launch all = {.at = {.source = s->texts[0].source, .line = 1, .column = 1, .length = 1}};
  keep_variables(s, &all);
  for (size_t i = 0; i < s->state.n_values; i++) {
    const nxc_shell_value *value = s->state.values[i];
    const char *name = s->name_list[i];
    if (!is_set(s, i)) continue;
    bool launcher = strstr(name, "DISTRIBUTED") || strstr(name, "LAUNCH") || strstr(name, "TORCHRUN");
    nxc_shell_fields fields = {0};
    if (value->kind == NXC_SHELL_TEXT) nxc_shell_put_divided(s, &fields, &value->text, true);
    for (size_t k = 0; k < value->n_items; k++) {
      nxc_shell_put(s, &fields, &value->items[k].text, false);
      nxc_shell_finish(s, &fields);
    }
    nxc_shell_finish(s, &fields);
    if (fields.n_items == 0 || !begins(&fields.items[0], "--")) continue;
    for (size_t k = 0; k < fields.n_items; k++)
      add_word(s, launcher ? &all.launcher : &all.arguments,
               nxc_shell_word_of(s, &fields.items[k], value->at));
  }
  bool takes = true;
  for (size_t i = 0; i < s->options.n_items; i++) {
    const nxc_launch_word *word = &s->options.items[i];
    if (word->first) takes = !s->script->is_script || strncmp(word->text, "--", 2) == 0;
    if (takes) add_word(s, &all.arguments, *word);
  }
  add_launch(s, &all);
}

/* The line above goes on: its backslash is put, what stands behind it goes, and so does a comment, which
 * nobody reads then. */
static nxc_repair go_on_above(nxc_shell *s, const nxc_launch_word *word) {
  if (word->at.source == NULL || word->at.line < 2) return (nxc_repair){0};
  const nxc_source *source = word->at.source;
  size_t n_bytes;
  const char *line = nxc_source_line(source, word->at.line - 1, &n_bytes);
  const char *comment = memmem(line, n_bytes, " #", 2);
  size_t end = comment ? (size_t)(comment - line) : n_bytes, at = end;
  while (at > 0 && strchr(" \t\\", line[at - 1]) != NULL) at--;
  if (at == 0 || line[0] == '#' || memchr(line, '\'', n_bytes) || memchr(line, '"', n_bytes))
    return (nxc_repair){0}; /* another line is meant, or a quote hides what # and \ are */
  size_t begin = (size_t)(line - source->text);
  nxc_edit edit = {source, begin + at, begin + n_bytes, " \\"};
  return nxc_repair_copy(s->arena, &(nxc_repair){&edit, 1, comment == NULL});
}

/* The training that stands above a command of options alone was meant to have them. */
static nxc_launch *launch_above(nxc_shell *s, const nxc_launch_word *word) {
  nxc_launch *above = NULL;
  for (size_t i = 0; i < s->script->n_launches; i++) {
    nxc_launch *launch = &s->script->launches[i];
    if (launch->at.source == word->at.source && launch->at.line < word->at.line) above = launch;
  }
  return above;
}

static bool is_blank(const char *text) {
  return text[strspn(text, " ")] == '\0';
}

/* An option that begins a command of a script: the line above did not continue, so that the training never
 * gets it. The rest is judged as if it did. */
static void report_lost(nxc_shell *s) {
  nxc_launch *above = NULL;
  for (size_t i = 0; i < s->options.n_items; i++) {
    const nxc_launch_word *word = &s->options.items[i];
    bool lost = strncmp(word->text, "--", 2) == 0 && word->first;
    if (word->first) above = lost ? launch_above(s, word) : NULL;
    nxc_launch_words *arguments = above ? &above->arguments : NULL;
    if (lost && arguments != NULL && arguments->n_items > 0 &&
        is_blank(arguments->items[arguments->n_items - 1].text))
      arguments->n_items--; /* what the backslash stood before */
    if (arguments != NULL) add_word(s, arguments, *word);
    if (lost)
      nxc_report_repair(
          s->sink, "NX5915", NXC_SEVERITY_ERROR, word->at,
          "let the line above end with a backslash, and nothing behind it; no comment may stand between",
          go_on_above(s, word), "%s begins a command of its own here, and never reaches the training",
          word->text);
  }
}

void nxc_shell_end_launches(nxc_shell *s) {
  if (s->script->n_launches > 0) s->script->is_script = true;
  if (s->script->n_launches > 0) report_lost(s);
  else take_all(s);
  report_undefined(s);
}
