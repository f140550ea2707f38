/* SPDX-License-Identifier: Apache-2.0 */
/* Zstandard: any number of frames, one after another. Some are to be passed over, as pzstd begins with one.
 */
#include "datasets/bytes.h"

#include <zstd.h>

static bool is(const uint8_t *bytes, size_t n) {
  bool frame = n >= 4 && bytes[0] == 0x28 && bytes[1] == 0xb5 && bytes[2] == 0x2f && bytes[3] == 0xfd;
  bool passed = n >= 4 && bytes[0] >> 4 == 5 && bytes[1] == 0x2a && bytes[2] == 0x4d && bytes[3] == 0x18;
  return frame || passed;
}

static bool start(nxd_bytes *bytes) {
  bytes->state = ZSTD_createDStream();
  return bytes->state != NULL;
}

static void stop(nxd_bytes *bytes) {
  ZSTD_freeDStream(bytes->state);
}

static long read_some(nxd_bytes *bytes, void *to, size_t room, nxr_fault *fault) {
  ZSTD_outBuffer out = {.dst = to, .size = room};
  while (out.pos == 0) {
    bool filled = bytes->at < bytes->n || nxd_bytes_fill(bytes);
    if (!filled && bytes->ended) return 0;
    ZSTD_inBuffer in = {.src = bytes->room, .size = bytes->n, .pos = bytes->at};
    size_t left = ZSTD_decompressStream(bytes->state, &out, &in);
    bytes->at = in.pos;
    if (ZSTD_isError(left)) {
      nxr_fault_set(fault, "%s is damaged: zstd finds %s", bytes->path, ZSTD_getErrorName(left));
      return -1;
    }
    bytes->ended = left == 0;
    if (!filled && out.pos == 0) {
      nxr_fault_set(fault, "%s is cut short: its zstd data does not end", bytes->path);
      return -1;
    }
  }
  return (long)out.pos;
}

const nxd_codec nxd_zstd = {"zstd", is, start, read_some, stop};
