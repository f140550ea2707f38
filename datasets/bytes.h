/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a file or of standard input, as they are or decompressed: gzip and Zstandard are told by how a
 * file begins, whatever its name. */
#ifndef NXD_BYTES_H
#define NXD_BYTES_H

#include "datasets/buffer.h"
#include "runtime/files/fault.h"

#include <stdio.h>

enum { NXD_BYTES_ROOM = 1 << 16 };

typedef struct nxd_bytes nxd_bytes;

/* A form of compression. */
typedef struct nxd_codec {
  const char *name;
  bool (*is)(const uint8_t *bytes, size_t n); /* whether a file that begins so has it */
  bool (*start)(nxd_bytes *bytes);
  /* Fills `to`: how many bytes, 0 at the end, -1 with a fault. */
  long (*read)(nxd_bytes *bytes, void *to, size_t room, nxr_fault *fault);
  void (*stop)(nxd_bytes *bytes);
} nxd_codec;

struct nxd_bytes {
  const char *path; /* the caller's */
  FILE *file;
  const nxd_codec *codec; /* NULL: the bytes as they are */
  void *state;            /* the codec's */
  bool ended;             /* the codec's: a whole number of its frames has been read */
  uint64_t n_used;        /* of the file */
  size_t at, n;           /* read from the file, not used yet */
  uint8_t room[NXD_BYTES_ROOM];
};

extern const nxd_codec nxd_gzip, nxd_zstd;

/* "-": standard input. On failure nothing stays open. */
bool nxd_bytes_open(nxd_bytes *bytes, const char *path, nxr_fault *fault);
long nxd_bytes_read(nxd_bytes *bytes, void *to, size_t room, nxr_fault *fault);
/* To a place among the bytes that are read, from their start. */
bool nxd_bytes_skip(nxd_bytes *bytes, uint64_t n, nxr_fault *fault);
void nxd_bytes_close(nxd_bytes *bytes);

/* For codecs: more of the file behind what is not used yet; false at its end. */
bool nxd_bytes_fill(nxd_bytes *bytes);

#endif
