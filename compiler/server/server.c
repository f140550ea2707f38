/* SPDX-License-Identifier: Apache-2.0 */
/* nxcfg lsp: a language server. What an editor opens is judged as `nxcfg validate` judges it, at every
 * change; its questions are answered from the last analysis. */
#include "compiler/commands/commands.h"
#include "compiler/server/answers.h"
#include "compiler/server/rpc.h"
#include "compiler/render/screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: nxcfg lsp\n"
    "A language server for editors, over standard input and output: findings while a text is\n"
    "typed, their repairs, hover, completion, definitions, references, renaming, outlines and\n"
    "hints. docs/editors.md says how editors start it.\n";

typedef struct server {
  nxc_texts_open *texts;
  nxc_analysis *last; /* of the text that was asked about last; NULL: none, or it has changed */
  FILE *out;
  bool initialized, stopping, ended;
} server;

static const struct {
  const char *method;
  nxc_answer *answer;
} requests[] = {
    {"textDocument/hover", nxc_answer_hover},
    {"textDocument/completion", nxc_answer_completion},
    {"textDocument/definition", nxc_answer_definition},
    {"textDocument/references", nxc_answer_references},
    {"textDocument/documentSymbol", nxc_answer_symbols},
    {"textDocument/codeAction", nxc_answer_actions},
    {"textDocument/inlayHint", nxc_answer_hints},
    {"textDocument/rename", nxc_answer_rename},
    {"textDocument/prepareRename", nxc_answer_prepare_rename},
};

static json_t *capabilities(void) {
  return json_pack(
      "{s:{s:s, s:{s:b, s:i}, s:b, s:{s:[s,s,s,s,s,s]}, s:b, s:b, s:b, s:{s:[s,s]}, s:b, s:{s:b}}, "
      "s:{s:s, s:s}}",
      "capabilities", "positionEncoding", "utf-16", "textDocumentSync", "openClose", 1, "change", 2,
      "hoverProvider", 1, "completionProvider", "triggerCharacters", ".", "{", "<", "-", ":", " ",
      "definitionProvider", 1, "referencesProvider", 1, "documentSymbolProvider", 1, "codeActionProvider",
      "codeActionKinds", "quickfix", "source.fixAll.nxcfg", "inlayHintProvider", 1, "renameProvider",
      "prepareProvider", 1, "serverInfo", "name", "nxcfg", "version", NX_VERSION);
}

static void forget(server *s) {
  nxc_analysis_free(s->last);
  s->last = NULL;
}

static const nxc_analysis *analysis_of(server *s, const nxc_open_text *open) {
  if (s->last != NULL && s->last->open == open) return s->last;
  forget(s);
  return s->last = nxc_analyse(s->texts, open);
}

static void publish(server *s, const nxc_open_text *open) {
  nxc_rpc_notify(s->out, "textDocument/publishDiagnostics", nxc_answer_diagnostics(analysis_of(s, open)));
}

static const char *uri_of(const json_t *params) {
  return json_string_value(json_object_get(json_object_get(params, "textDocument"), "uri"));
}

/* -- notifications --------------------------------------------------------------------------------------- */

static void did_open(server *s, const json_t *params) {
  const json_t *document = json_object_get(params, "textDocument");
  forget(s);
  const nxc_open_text *open =
      nxc_texts_open_put(s->texts, uri_of(params), json_string_value(json_object_get(document, "text")),
                         json_integer_value(json_object_get(document, "version")));
  if (open != NULL) publish(s, open);
}

static void did_change(server *s, const json_t *params) {
  nxc_open_text *open = nxc_texts_open_find(s->texts, uri_of(params));
  const json_t *changes = json_object_get(params, "contentChanges");
  if (open == NULL) return;
  forget(s);
  for (size_t i = 0; i < json_array_size(changes); i++)
    nxc_open_text_change(open, json_array_get(changes, i));
  open->version = json_integer_value(json_object_get(json_object_get(params, "textDocument"), "version"));
  publish(s, open);
}

/* What was found is not shown any more. */
static void did_close(server *s, const json_t *params) {
  const char *uri = uri_of(params);
  forget(s);
  if (nxc_texts_open_find(s->texts, uri) == NULL) return;
  nxc_rpc_notify(s->out, "textDocument/publishDiagnostics",
                 json_pack("{s:s, s:[]}", "uri", uri, "diagnostics"));
  nxc_texts_open_close(s->texts, uri);
}

/* Another file has changed, which open texts may read. */
static void did_save(server *s, const json_t *params) {
  (void)params;
  forget(s);
  for (size_t i = 0; i < nxc_texts_open_count(s->texts); i++) publish(s, nxc_texts_open_at(s->texts, i));
}

static void leave(server *s, const json_t *params) {
  (void)params;
  s->ended = true;
}

static const struct {
  const char *method;
  void (*take)(server *s, const json_t *params);
} notifications[] = {
    {"textDocument/didOpen", did_open},
    {"textDocument/didChange", did_change},
    {"textDocument/didClose", did_close},
    {"textDocument/didSave", did_save},
    {"workspace/didChangeWatchedFiles", did_save},
    {"exit", leave},
};

static void notify(server *s, const char *method, const json_t *params) {
  for (size_t i = 0; i < sizeof notifications / sizeof *notifications; i++)
    if (strcmp(notifications[i].method, method) == 0) notifications[i].take(s, params);
}

/* -- requests -------------------------------------------------------------------------------------------- */

static void ask(server *s, const json_t *id, const char *method, const json_t *params) {
  for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
    if (strcmp(requests[i].method, method) != 0) continue;
    const nxc_open_text *open = nxc_texts_open_find(s->texts, uri_of(params));
    if (open == NULL) nxc_rpc_fail(s->out, id, NXC_RPC_INVALID_PARAMS, "this document is not open");
    else nxc_rpc_answer(s->out, id, requests[i].answer(analysis_of(s, open), params));
    return;
  }
  nxc_rpc_fail(s->out, id, NXC_RPC_NO_METHOD, method);
}

static void request(server *s, const json_t *id, const char *method, const json_t *params) {
  if (strcmp(method, "initialize") == 0) {
    s->initialized = true;
    nxc_rpc_answer(s->out, id, capabilities());
  } else if (!s->initialized) {
    nxc_rpc_fail(s->out, id, NXC_RPC_NOT_INITIALIZED, "initialize comes first");
  } else if (strcmp(method, "shutdown") == 0) {
    s->stopping = true;
    nxc_rpc_answer(s->out, id, NULL);
  } else if (s->stopping) {
    nxc_rpc_fail(s->out, id, NXC_RPC_INVALID_REQUEST, "the server is shutting down");
  } else {
    ask(s, id, method, params);
  }
}

static void serve(server *s, const json_t *message) {
  const json_t *id = json_object_get(message, "id");
  const char *method = json_string_value(json_object_get(message, "method"));
  if (method == NULL) {
    if (!json_is_object(message)) nxc_rpc_fail(s->out, NULL, NXC_RPC_INVALID_REQUEST, "this is no request");
    return; /* else an answer, and nothing was asked */
  }
  const json_t *params = json_object_get(message, "params");
  if (id != NULL) request(s, id, method, params);
  else if (s->initialized || strcmp(method, "exit") == 0) notify(s, method, params);
}

int nxc_command_lsp(int argc, char **argv) {
  bool stdio = argc == 2 && strcmp(argv[1], "--stdio") == 0; /* many editors add it */
  if (argc > 1 && !stdio) {
    bool help = strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0;
    nxc_print_usage(help ? stdout : stderr, usage);
    return help ? NXC_EXIT_GOOD : NXC_EXIT_USAGE;
  }
  server s = {.texts = nxc_texts_open_new(), .out = stdout};
  nxc_rpc_state state = NXC_RPC_MESSAGE;
  while (s.texts != NULL && !s.ended) {
    json_t *message;
    state = nxc_rpc_read(stdin, &message);
    if (state == NXC_RPC_END) break;
    if (state == NXC_RPC_BROKEN) nxc_rpc_fail(s.out, NULL, NXC_RPC_PARSE_ERROR, "this is no JSON");
    else serve(&s, message);
    json_decref(message);
  }
  forget(&s);
  nxc_texts_open_free(s.texts);
  return s.ended && s.stopping ? NXC_EXIT_GOOD : NXC_EXIT_FOUND;
}
