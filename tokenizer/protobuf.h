/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of protocol buffers, field by field; nothing of them is believed. */
#ifndef NXT_PROTOBUF_H
#define NXT_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct nxt_message {
  const char *at, *end;
  bool broken;
} nxt_message;

typedef struct nxt_field {
  uint32_t number;
  uint64_t value;    /* of a number: as many bits as it has */
  const char *bytes; /* of a text or a message; NULL: it is a number */
  size_t n_bytes;
} nxt_field;

/* False at the end, and where the message is broken. */
bool nxt_message_next(nxt_message *message, nxt_field *field);

#endif
