/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lsp/client.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void client_start(client *c, const char *nxcfg) {
  int to[2], from[2];
  if (pipe(to) != 0 || pipe(from) != 0) exit(EXIT_FAILURE);
  *c = (client){.process = fork()};
  if (c->process == 0) {
    dup2(to[0], STDIN_FILENO);
    dup2(from[1], STDOUT_FILENO);
    close(to[1]);
    close(from[0]);
    execl(nxcfg, nxcfg, "lsp", (char *)NULL);
    _exit(127);
  }
  close(to[0]);
  close(from[1]);
  c->to = fdopen(to[1], "w");
  c->from = fdopen(from[0], "r");
  if (c->process < 0 || c->to == NULL || c->from == NULL) exit(EXIT_FAILURE);
}

void client_send_text(client *c, const char *body) {
  fprintf(c->to, "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
  fflush(c->to);
}

static void send_message(client *c, json_t *message) {
  json_object_set_new(message, "jsonrpc", json_string("2.0"));
  char *text = json_dumps(message, JSON_COMPACT);
  client_send_text(c, text);
  free(text);
  json_decref(message);
}

void client_tell(client *c, const char *method, json_t *params) {
  send_message(c, json_pack("{s:s, s:o}", "method", method, "params", params));
}

json_t *client_read(client *c) {
  char line[256];
  long n_bytes = -1;
  while (fgets(line, sizeof line, c->from) != NULL && strcmp(line, "\r\n") != 0)
    sscanf(line, "Content-Length: %ld", &n_bytes);
  char *body = n_bytes >= 0 ? calloc(1, (size_t)n_bytes + 1) : NULL;
  if (body == NULL || fread(body, 1, (size_t)n_bytes, c->from) != (size_t)n_bytes) return free(body), NULL;
  json_t *message = json_loads(body, 0, NULL);
  free(body);
  const char *method = json_string_value(json_object_get(message, "method"));
  if (method != NULL && strcmp(method, "textDocument/publishDiagnostics") == 0) {
    json_decref(c->published);
    c->published = json_incref(json_object_get(json_object_get(message, "params"), "diagnostics"));
  }
  return message;
}

json_t *client_ask(client *c, const char *method, json_t *params) {
  json_int_t id = ++c->n_asked;
  send_message(c, json_pack("{s:I, s:s, s:o}", "id", id, "method", method, "params", params));
  for (json_t *message; (message = client_read(c)) != NULL; json_decref(message)) {
    const json_t *of = json_object_get(message, "id");
    if (json_is_integer(of) && json_integer_value(of) == id) return message;
  }
  return NULL;
}

void client_open(client *c, const char *uri, const char *text) {
  client_tell(c, "textDocument/didOpen",
              json_pack("{s:{s:s, s:s, s:i, s:s}}", "textDocument", "uri", uri, "languageId", "yaml",
                        "version", 1, "text", text));
  json_decref(client_read(c));
}

int client_stop(client *c) {
  json_decref(client_ask(c, "shutdown", json_null()));
  client_tell(c, "exit", json_null());
  fclose(c->to);
  fclose(c->from);
  json_decref(c->published);
  int status = 0;
  waitpid(c->process, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
