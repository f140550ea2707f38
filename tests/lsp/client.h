/* SPDX-License-Identifier: Apache-2.0 */
/* The other end of `nxcfg lsp`: starts it, asks, and keeps what it was told. */
#ifndef TESTS_LSP_CLIENT_H
#define TESTS_LSP_CLIENT_H

#include <jansson.h>
#include <stdio.h>
#include <sys/types.h>

typedef struct client {
  pid_t process;
  FILE *to, *from;
  json_int_t n_asked;
  json_t *published; /* the diagnostics that came last, or NULL */
} client;

void client_start(client *c, const char *nxcfg);
/* Bytes as they are; for what no client sends. */
void client_send_text(client *c, const char *body);
void client_tell(client *c, const char *method, json_t *params);
/* The whole answer, with result or error; the caller releases it. NULL: the server has ended. */
json_t *client_ask(client *c, const char *method, json_t *params);
/* Waits for the next message, and gives it; diagnostics are kept. */
json_t *client_read(client *c);
void client_open(client *c, const char *uri, const char *text);
/* Ends the server as the protocol says; its exit status. */
int client_stop(client *c);

#endif
