/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/protobuf.h"

#include <string.h>

static bool take_varint(nxt_message *message, uint64_t *value) {
  *value = 0;
  for (unsigned shift = 0; shift < 64 && message->at < message->end; shift += 7) {
    uint8_t byte = (uint8_t)*message->at++;
    *value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

static bool take_bytes(nxt_message *message, uint64_t n, nxt_field *field) {
  if (n > (uint64_t)(message->end - message->at)) return false;
  field->bytes = message->at;
  field->n_bytes = n;
  message->at += n;
  return true;
}

static bool take_field(nxt_message *message, nxt_field *field) {
  enum { VARINT = 0, EIGHT_BYTES = 1, BYTES = 2, FOUR_BYTES = 5 };
  uint64_t tag, n;
  if (!take_varint(message, &tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX) return false;
  *field = (nxt_field){.number = (uint32_t)(tag >> 3)};
  switch (tag & 7) {
  case VARINT: return take_varint(message, &field->value);
  case BYTES: return take_varint(message, &n) && take_bytes(message, n, field);
  case EIGHT_BYTES: n = 8; break;
  case FOUR_BYTES: n = 4; break;
  default: return false;
  }
  if (!take_bytes(message, n, field)) return false;
  memcpy(&field->value, field->bytes, n);
  field->bytes = NULL;
  field->n_bytes = 0;
  return true;
}

bool nxt_message_next(nxt_message *message, nxt_field *field) {
  if (message->broken || message->at == message->end) return false;
  message->broken = !take_field(message, field);
  return !message->broken;
}
