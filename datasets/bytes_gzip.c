/* SPDX-License-Identifier: Apache-2.0 */
/* gzip: any number of members, one after another, and zeros behind the last, as tapes have them. */
#include "datasets/bytes.h"

#include <stdlib.h>
#include <zlib.h>

enum { GZIP_ONLY = 16 };

static bool is(const uint8_t *bytes, size_t n) {
  return n >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

static bool start(nxd_bytes *bytes) {
  z_stream *stream = calloc(1, sizeof *stream);
  bool good = stream && inflateInit2(stream, MAX_WBITS + GZIP_ONLY) == Z_OK;
  if (!good) free(stream);
  bytes->state = good ? stream : NULL;
  return good;
}

static void stop(nxd_bytes *bytes) {
  inflateEnd(bytes->state);
  free(bytes->state);
}

static long damaged(const nxd_bytes *bytes, const z_stream *stream, nxr_fault *fault) {
  nxr_fault_set(fault, "%s is damaged: gzip finds %s", bytes->path,
                stream->msg ? stream->msg : "no sense in it");
  return -1;
}

static long read_some(nxd_bytes *bytes, void *to, size_t room, nxr_fault *fault) {
  z_stream *stream = bytes->state;
  stream->next_out = to, stream->avail_out = (uInt)(room < INT32_MAX ? room : INT32_MAX);
  const uInt n = stream->avail_out;
  while (stream->avail_out == n) {
    if (bytes->at == bytes->n && !nxd_bytes_fill(bytes)) {
      if (bytes->ended) return 0;
      nxr_fault_set(fault, "%s is cut short: its gzip data does not end", bytes->path);
      return -1;
    }
    while (bytes->ended && bytes->at < bytes->n && bytes->room[bytes->at] == 0) bytes->at++;
    if (bytes->at == bytes->n) continue;
    if (bytes->ended && inflateReset(stream) != Z_OK) return damaged(bytes, stream, fault);
    stream->next_in = bytes->room + bytes->at, stream->avail_in = (uInt)(bytes->n - bytes->at);
    int result = inflate(stream, Z_NO_FLUSH);
    bytes->at = bytes->n - stream->avail_in;
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
      return damaged(bytes, stream, fault);
    bytes->ended = result == Z_STREAM_END;
  }
  return (long)(n - stream->avail_out);
}

const nxd_codec nxd_gzip = {"gzip", is, start, read_some, stop};
