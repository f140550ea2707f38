/* SPDX-License-Identifier: Apache-2.0 */
/* What nxcfg lsp answers, over the protocol. In the texts of the cases `|` is the cursor; what is expected is
 * a part of the answer as JSON without blanks. Then texts are changed piece by piece, at random, and what is
 * found must be what is found of the same text opened afresh. TAP. Usage: lsp NXCFG CONF */
#include "tests/lsp/client.h"
#include "tests/tap.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char uri[] = "untitled:training.yaml";

static const char text[] = "model_source: hf\n"
                           "trainer:\n"
                           "  devices: 2\n"
                           "  gradient_clip_vall: 1.0 # caf\xC3\xA9 \xF0\x9F\x98\x80\n"
                           "  max_steps: ${data.global_batch_size}\n"
                           "distributed_strategy:\n"
                           "  tensor_model_parallel_size: 2\n"
                           "  pipeline_model_parallel_size: 1\n"
                           "  sequence_parallel: True\n"
                           "data:\n"
                           "  micro_batch_size: 4\n"
                           "  global_batch_size: ${multiply:${.micro_batch_size}, 2}\n"
                           "  seq_length: 128\n"
                           "model:\n"
                           "  encoder_seq_length: $<data.seq_length>\n"
                           "  num_layers: 4\n"
                           "precision:\n"
                           "  type: mixed_precison\n"
                           "gr\xC3\xB6\xC3\x9F"
                           "e: 4\n"
                           "name: \"${gr\xC3\xB6\xC3\x9F"
                           "e}\"\n";

static json_t *place(const char *in, const char *word, size_t behind) {
  const char *at = strstr(in, word);
  json_int_t line = 0, character = 0;
  for (const char *c = in; at != NULL && c < at + behind; c++) {
    character = *c == '\n' ? 0 : character + 1;
    line += *c == '\n';
  }
  return json_pack("{s:I, s:I}", "line", line, "character", character);
}

/* A word of the text with the cursor in it. */
static json_t *params_at(const char *in, const char *marked) {
  char word[256];
  size_t behind = strcspn(marked, "|");
  snprintf(word, sizeof word, "%.*s%s", (int)behind, marked, marked + behind + 1);
  return json_pack("{s:{s:s}, s:o, s:{s:b}, s:s}", "textDocument", "uri", uri, "position",
                   place(in, word, behind), "context", "includeDeclaration", 1, "newName", "renamed");
}

typedef struct question {
  const char *method, *at,
      *wanted; /* parts of the answer, between blanks; ! before one that it must not have */
} question;

static const question questions[] = {
    {"hover", "micro|_batch",
     "**data.micro_batch_size** at~least~1 batch.micro~is~4 untitled:training.yaml:11"},
    {"hover", "{.mic|ro", "**data.micro_batch_size**~is~`4`"},
    {"hover", "type: mixed|", "precision.type"},
    {"hover", "model_source: h|f", "model_source"},
    {"definition", "${data.global_b|atch", "\"line\":11,\"character\":2"},
    {"definition", "${da|ta.global", "\"line\":9,\"character\":0"},
    {"definition", "$<data.seq_l|ength", "\"line\":12,\"character\":2"},
    {"definition", "devices: |2", "\"result\":null"},
    {"references", "  global_b|atch_size: $", "\"line\":11,\"character\":2 \"line\":4,\"character\":20"},
    {"references", "dat|a:", "\"line\":9, \"line\":4, \"line\":14, !\"line\":11"},
    {"rename", "micro_b|atch_size: 4",
     "\"line\":10,\"character\":2 \"line\":11,\"character\":35 \"renamed\""},
    {"rename", "|gr\xC3\xB6",
     "\"start\":{\"line\":19,\"character\":9},\"end\":{\"line\":19,\"character\":14}"},
    {"rename", "devices: |2", "\"result\":null"},
    {"prepareRename", "dat|a:", "\"placeholder\":\"data\""},
    {"prepareRename", "devices: |2", "\"result\":null"},
    {"documentSymbol", "|trainer", "\"name\":\"trainer\" \"name\":\"max_steps\" \"kind\":19"},
    {"inlayHint", "|trainer", "\"label\":\"=~8\" \"label\":\"=~128\" !not~shown"},
    {"completion", "sequence_parallel: |True", "\"label\":\"true\" \"label\":\"false\""},
    {"completion", "type: m|ixed", "\"label\":\"mixed_precision\" !\"autocast\""},
    {"completion", "  max_s|teps", "\"label\":\"max_steps\" \"insertText\":\"max_steps:~\" documentation"},
    {"completion", "m|odel_source", "\"insertText\":\"model:\" \"a~section\""},
    {"completion", "{.m|icro", "\"insertText\":\".micro_batch_size}\""},
    {"completion", "${data.|glob", "\"data.global_batch_size\" \"insertText\":\"data.seq_length}\""},
    {"completion", "$<|data.seq", "\"insertText\":\"trainer.devices>\""},
};

static bool has(const char *answer, const char *part) {
  bool absent = *part == '!';
  char plain[256];
  snprintf(plain, sizeof plain, "%s", part + absent);
  for (char *c = plain; *c != '\0'; c++)
    if (*c == '~') *c = ' ';
  return (strstr(answer, plain) != NULL) != absent;
}

/* `~` stands for a blank. */
static bool has_words(const char *answer, const char *wanted) {
  char *words = strdup(wanted), *rest;
  bool all = true;
  for (char *word = strtok_r(words, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
    if (has(answer, word)) continue;
    tap_note("no %s", word);
    all = false;
  }
  free(words);
  return all;
}

static char *ask(client *c, const char *method, json_t *params) {
  char whole[64];
  snprintf(whole, sizeof whole, "textDocument/%s", method);
  json_t *answer = client_ask(c, whole, params);
  char *shown = answer ? json_dumps(answer, JSON_COMPACT) : strdup("nothing");
  json_decref(answer);
  return shown;
}

static void check_questions(client *c) {
  client_open(c, uri, text);
  for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
    const question *q = &questions[i];
    char *answer = ask(c, q->method, params_at(text, q->at));
    tap_report(has_words(answer, q->wanted), "%s at %s", q->method, q->at);
    free(answer);
  }
}

/* -- findings and repairs -------------------------------------------------------------------------------- */

static const json_t *find_diagnostic(const client *c, const char *code) {
  for (size_t i = 0; i < json_array_size(c->published); i++) {
    const json_t *found = json_array_get(c->published, i);
    if (strcmp(json_string_value(json_object_get(found, "code")), code) == 0) return found;
  }
  return NULL;
}

static void change(client *c, json_t *range, const char *with) {
  json_t *one = json_pack("{s:s}", "text", with);
  if (range != NULL) json_object_set_new(one, "range", range);
  client_tell(
      c, "textDocument/didChange",
      json_pack("{s:{s:s, s:i}, s:[o]}", "textDocument", "uri", uri, "version", 2, "contentChanges", one));
  json_decref(client_read(c));
}

static void check_repairs(client *c) {
  const json_t *found = find_diagnostic(c, "NX1301");
  tap_report(found != NULL, "a misspelt key is found");
  json_t *range = json_deep_copy(json_object_get(found, "range"));
  json_t *answer = client_ask(c, "textDocument/codeAction",
                              json_pack("{s:{s:s}, s:O, s:{s:[]}}", "textDocument", "uri", uri, "range",
                                        range, "context", "diagnostics"));
  const char *title, *new_text;
  json_t *changes;
  bool made = json_unpack(answer, "{s:[{s:s, s:{s:o}}]}", "result", "title", &title, "edit", "changes",
                          &changes) == 0 &&
              json_unpack(json_object_get(changes, uri), "[{s:s}]", "newText", &new_text) == 0;
  tap_report(made && strcmp(new_text, "gradient_clip_val") == 0, "its repair is offered");
  if (made) change(c, json_incref(range), new_text);
  tap_report(find_diagnostic(c, "NX1301") == NULL, "and mends it");
  json_decref(range);
  json_decref(answer);
  char *all = ask(c, "codeAction",
                  json_pack("{s:{s:s}, s:{s:o, s:o}, s:{s:[], s:[s]}}", "textDocument", "uri", uri, "range",
                            "start", place(text, "model", 0), "end", place(text, "model", 0), "context",
                            "diagnostics", "only", "source.fixAll"));
  tap_report(has_words(all, "source.fixAll.nxcfg \"mixed_precision\" !quickfix"), "all safe repairs at once");
  free(all);
}

/* UTF-16 units: an accented letter is one, a face two. */
static void check_characters(client *c) {
  change(c, NULL, text);
  json_t *line = json_pack("{s:{s:i, s:i}, s:{s:i, s:i}}", "start", "line", 3, "character", 33, "end", "line",
                           3, "character", 35);
  change(c, line, "\n  zzzz: 1 #");
  const json_t *found =
      find_diagnostic(c, "NX1302") ? find_diagnostic(c, "NX1302") : find_diagnostic(c, "NX1301");
  tap_report(found != NULL, "a change behind characters of several units");
  change(c, NULL,
         "trainer: {devices: 2, num_nodes: 1}\nmodel: {num_layers: 2}\nx: \"\xF0\x9F\x98\x80 ${nowhere}\"\n");
  int character = -1;
  found = find_diagnostic(c, "NX1202");
  json_unpack((json_t *)found, "{s:{s:{s:i}}}", "range", "start", "character", &character);
  tap_report(character == 7, "a place behind a character of two units");
}

/* A change with these characters is judged: if it were lost, all that follow would meet another text. */
static void check_escapes(client *c) {
  static const char *const odd[] = {"\\u0000",  "\\ud83d",   "\\uDE00",
                                    "\\ud83dx", "\\\\ud83d", "\\ud83d\\ude00"};
  for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
    char message[512];
    snprintf(message, sizeof message,
             "{\"jsonrpc\":\"2.0\",\"method\":\"textDocument/didChange\",\"params\":{\"textDocument\":"
             "{\"uri\":\"%s\",\"version\":9},\"contentChanges\":[{\"text\":\"x: a # %s\\n\"}]}}",
             uri, odd[i]);
    client_send_text(c, message);
    json_t *answer = client_read(c);
    tap_report(json_object_get(answer, "method") != NULL, "a change with %s is read", odd[i]);
    json_decref(answer);
  }
}

static void check_protocol(const char *nxcfg) {
  client c;
  client_start(&c, nxcfg);
  json_t *early = client_ask(&c, "textDocument/hover", json_object());
  int code = 0;
  json_unpack(early, "{s:{s:i}}", "error", "code", &code);
  tap_report(code == -32002, "nothing is answered before initialize");
  json_decref(early);
  json_decref(client_ask(&c, "initialize", json_object()));
  client_send_text(&c, "{no json");
  json_t *broken = client_read(&c);
  code = 0;
  json_unpack(broken, "{s:{s:i}}", "error", "code", &code);
  tap_report(code == -32700, "what is no JSON is refused, and the server goes on");
  json_decref(broken);
  json_t *unknown = client_ask(&c, "textDocument/nonsense", json_object());
  code = 0;
  json_unpack(unknown, "{s:{s:i}}", "error", "code", &code);
  tap_report(code == -32601, "a method that there is not");
  json_decref(unknown);
  char *closed = ask(&c, "hover", params_at(text, "mod|el"));
  tap_report(has_words(closed, "not~open"), "a document that is not open");
  free(closed);
  client_open(&c, "untitled:compose.yaml", "services: {web: {image: nginx}}\n");
  tap_report(json_array_size(c.published) == 0, "what is no training's is left alone");
  tap_report(client_stop(&c) == 0, "the server ends when it is told");
}

/* -- changes at random ----------------------------------------------------------------------------------- */

static uint32_t drawn = 12345;

static uint32_t draw(uint32_t n) {
  drawn = drawn * 1664525u + 1013904223u;
  return (drawn >> 8) % n;
}

/* The same change in our copy, which has ASCII alone. */
static void change_at_random(client *c, char **whole) {
  static const char *const pieces[] = {
      "", "\n", "  ", ":", "x", "${data.", "}", "- ", "\"", "\n  devices: 3\n", "#"};
  size_t n_bytes = strlen(*whole), begin = draw((uint32_t)n_bytes + 1), end = begin + draw(12);
  if (end > n_bytes) end = n_bytes;
  const char *with = pieces[draw(sizeof pieces / sizeof *pieces)];
  char *after = malloc(n_bytes + strlen(with) + 1);
  sprintf(after, "%.*s%s%s", (int)begin, *whole, with, *whole + end);
  json_t *range =
      json_pack("{s:o, s:o}", "start", place(*whole, *whole, begin), "end", place(*whole, *whole, end));
  change(c, range, with);
  free(*whole);
  *whole = after;
}

static bool is_as_fresh(client *c, const char *whole) {
  json_t *changed = json_incref(c->published);
  client_tell(c, "textDocument/didClose", json_pack("{s:{s:s}}", "textDocument", "uri", uri));
  json_decref(client_read(c));
  client_open(c, uri, whole);
  bool same = json_equal(changed, c->published);
  json_decref(changed);
  return same;
}

static char *plain_text(void) {
  char *plain = strdup(text);
  for (char *at = plain; *at != '\0'; at++)
    if ((unsigned char)*at > 127) *at = 'x';
  return plain;
}

static void check_random(client *c) {
  enum { ROUNDS = 200, CHANGES = 6 };
  size_t n_same = 0;
  char *whole = plain_text();
  client_open(c, uri, whole);
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < CHANGES; i++) change_at_random(c, &whole);
    for (size_t q = 0; q < sizeof questions / sizeof *questions; q += 3) /* of a text that may be anything */
      free(ask(c, questions[q].method, params_at(whole, "|")));
    n_same += is_as_fresh(c, whole);
    if (strlen(whole) > 200) continue;
    free(whole);
    whole = plain_text();
    change(c, NULL, whole);
  }
  free(whole);
  tap_report(n_same == ROUNDS, "changed piece by piece is as opened afresh (%zu of %d)", n_same, ROUNDS);
}

/* -- speed ----------------------------------------------------------------------------------------------- */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A machine that is busy is slower: the best of several counts, and it may take five times 20 ms. */
static void check_speed(client *c) {
  size_t n_bytes = strlen(text);
  char *large = malloc(n_bytes + 1000 * 40), *to = stpcpy(large, text);
  to = stpcpy(to, "notes:\n");
  for (int i = 0; i < 980; i++) to += sprintf(to, "  key_%d: ${data.seq_length}\n", i);
  client_open(c, uri, large);
  double best = 1;
  for (int i = 0; i < 5; i++) {
    double before = now();
    change(c,
           json_pack("{s:{s:i, s:i}, s:{s:i, s:i}}", "start", "line", 2, "character", 11, "end", "line", 2,
                     "character", 12),
           i % 2 ? "2" : "4");
    double took = now() - before;
    if (took < best) best = took;
  }
  tap_note("%.1f ms", 1e3 * best);
  tap_report(best < 0.1, "1,000 lines are judged while they are typed");
  free(large);
}

int main(int argc, char **argv) {
  if (argc < 2) return EXIT_FAILURE;
  client c;
  client_start(&c, argv[1]);
  json_decref(client_ask(&c, "initialize", json_object()));
  check_questions(&c);
  check_repairs(&c);
  check_characters(&c);
  check_escapes(&c);
  check_random(&c);
  check_speed(&c);
  tap_report(client_stop(&c) == 0, "the server ends well");
  check_protocol(argv[1]);
  return tap_end();
}
