/* SPDX-License-Identifier: Apache-2.0 */
/* JSON-RPC 2.0 over a stream, as the Language Server Protocol frames it: headers, an empty line, so many
 * bytes. */
#ifndef NXC_SERVER_RPC_H
#define NXC_SERVER_RPC_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

typedef enum nxc_rpc_state { NXC_RPC_MESSAGE, NXC_RPC_BROKEN, NXC_RPC_END } nxc_rpc_state;

enum {
  NXC_RPC_PARSE_ERROR = -32700,
  NXC_RPC_INVALID_REQUEST = -32600,
  NXC_RPC_NO_METHOD = -32601,
  NXC_RPC_INVALID_PARAMS = -32602,
  NXC_RPC_NOT_INITIALIZED = -32002
};

/* Waits for the next message, which the caller releases. BROKEN: its bytes were no JSON, the stream goes on.
 */
nxc_rpc_state nxc_rpc_read(FILE *in, json_t **message);
/* Takes over the value. `id` may be NULL (null is sent). */
void nxc_rpc_answer(FILE *out, const json_t *id, json_t *result);
void nxc_rpc_fail(FILE *out, const json_t *id, int code, const char *message);
void nxc_rpc_notify(FILE *out, const char *method, json_t *params);

#endif
