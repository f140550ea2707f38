/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/server/rpc.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { HEADER_BYTES_MAX = 4096, MESSAGE_BYTES_MAX = 256 * 1024 * 1024 };

/* The length of the body; -1 at the end, or where no header says it. */
static long read_headers(FILE *in) {
  static const char name[] = "Content-Length:";
  char line[HEADER_BYTES_MAX];
  long n_bytes = -1;
  while (fgets(line, sizeof line, in) != NULL) {
    if (strncasecmp(line, name, sizeof name - 1) == 0) n_bytes = strtol(line + sizeof name - 1, NULL, 10);
    if (line[strspn(line, "\r\n")] == '\0')
      return n_bytes >= 0 && n_bytes <= MESSAGE_BYTES_MAX ? n_bytes : -1;
  }
  return -1;
}

/* The code unit of an escape \\uXXXX at this place; -1: there is none. */
static long unit_at(const char *text, const char *end) {
  char digits[5] = {0};
  if (end - text < 6 || text[0] != '\\' || text[1] != 'u') return -1;
  memcpy(digits, text + 2, 4);
  return strspn(digits, "0123456789abcdefABCDEF") == 4 ? strtol(digits, NULL, 16) : -1;
}

/* An editor may hold what no text of ours does, a NUL or half of a pair of surrogates, and its message must
 * be read all the same, or every later change would meet another text. Each becomes another unit of one
 * place. */
static void mend_escapes(char *body, size_t n_bytes) {
  const char *end = body + n_bytes;
  for (char *at = body; (at = memchr(at, '\\', (size_t)(end - at))) != NULL;) {
    long unit = unit_at(at, end), next = unit < 0 ? -1 : unit_at(at + 6, end);
    bool first = unit >= 0xd800 && unit < 0xdc00, second = unit >= 0xdc00 && unit < 0xe000;
    bool pair = first && next >= 0xdc00 && next < 0xe000;
    if (unit == 0) memcpy(at + 2, "0001", 4);
    else if (second || (first && !pair)) memcpy(at + 2, "fffd", 4);
    at += pair ? 12 : unit >= 0 ? 6 : end - at < 2 ? 1 : 2;
  }
}

nxc_rpc_state nxc_rpc_read(FILE *in, json_t **message) {
  *message = NULL;
  long n_bytes = read_headers(in);
  char *body = n_bytes >= 0 ? malloc((size_t)n_bytes + 1) : NULL;
  if (body == NULL) return NXC_RPC_END;
  bool whole = fread(body, 1, (size_t)n_bytes, in) == (size_t)n_bytes;
  if (whole) mend_escapes(body, (size_t)n_bytes);
  if (whole) *message = json_loadb(body, (size_t)n_bytes, 0, NULL);
  free(body);
  return !whole ? NXC_RPC_END : *message ? NXC_RPC_MESSAGE : NXC_RPC_BROKEN;
}

static void send_message(FILE *out, json_t *message) {
  json_object_set_new(message, "jsonrpc", json_string("2.0"));
  char *text = json_dumps(message, JSON_COMPACT);
  if (text != NULL) fprintf(out, "Content-Length: %zu\r\n\r\n%s", strlen(text), text);
  fflush(out);
  free(text);
  json_decref(message);
}

static json_t *copy_of(const json_t *id) {
  return id ? json_copy((json_t *)id) : json_null();
}

void nxc_rpc_answer(FILE *out, const json_t *id, json_t *result) {
  send_message(out, json_pack("{s:o, s:o}", "id", copy_of(id), "result", result ? result : json_null()));
}

void nxc_rpc_fail(FILE *out, const json_t *id, int code, const char *message) {
  send_message(
      out, json_pack("{s:o, s:{s:i, s:s}}", "id", copy_of(id), "error", "code", code, "message", message));
}

void nxc_rpc_notify(FILE *out, const char *method, json_t *params) {
  send_message(out, json_pack("{s:s, s:o}", "method", method, "params", params));
}
