/* SPDX-License-Identifier: Apache-2.0 */
/* Where things stand in the user's texts.
 *
 * A source is one text that was read (a file, standard input, a command-line argument) and is kept,
 * unchanged, for as long as findings may point into it. A span is a run of characters on one line of it.
 * Lines and columns are 1-based; columns and lengths count Unicode characters, as editors do, not bytes. */
#ifndef NXC_SOURCE_H
#define NXC_SOURCE_H

#include "compiler/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct nxc_source {
  const char *name;           /* as the user gave it; "<stdin>", "--set", ... where there is no file */
  const char *text;           /* NUL-terminated, may hold further NULs */
  size_t n_bytes;
  const uint32_t *line_start; /* byte offset of each line; line_start[n_lines] == n_bytes */
  uint32_t n_lines;
  const uint32_t *block_characters; /* characters before each block of the text (source.c) */
  bool editable;    /* read from a file, or from standard input */
  size_t n_mark_bytes; /* of a byte-order mark, which stands before the text */
} nxc_source;

/* Texts that are read in place of files: what an editor has open, what repairs have made of a file. */
typedef struct nxc_overlay {
  const char *path; /* absolute, without links; "-": standard input */
  const char *text;
  size_t n_bytes;
} nxc_overlay;

typedef struct nxc_span {
  const nxc_source *source; /* NULL: stands in no text */
  uint32_t line;
  uint32_t column;
  uint32_t length; /* at least 1 where source is set */
} nxc_span;

/* A source over a copy of `text`. */
const nxc_source *nxc_source_new(nxc_arena *arena, const char *name, const char *text, size_t n_bytes);
/* Reads a whole file ("-" is standard input), at most `limit_bytes` of it. NULL with errno set when it cannot
 * be read (EFBIG: larger than the limit). A pipe's writer is waited for: somebody named it. */
const nxc_source *nxc_source_read(nxc_arena *arena, const char *path, size_t limit_bytes);
/* The same of what a configuration names, or what lies beside it: nothing but a file (EINVAL). */
const nxc_source *nxc_source_read_file(nxc_arena *arena, const char *path, size_t limit_bytes);
/* From now on files of these paths are read from memory, in any thread; NULL ends it. The list ends with a
 * row without a path. */
void nxc_source_lay_over(const nxc_overlay *overlays);
/* The text of a 1-based line without its line break; *n_bytes receives its length. */
const char *nxc_source_line(const nxc_source *source, uint32_t line, size_t *n_bytes);
/* The key that a line of a map in block style begins with; *n_bytes receives its length, 0: there is none. */
const char *nxc_source_line_key(const nxc_source *source, uint32_t line, size_t *n_bytes);
/* That key is one of a list that NULL ends. */
bool nxc_source_line_has_key(const nxc_source *source, uint32_t line, const char *const *keys);
/* Characters before a byte offset; those of its own line alone (`line` counts from 1); and the byte offset of
 * a place in a line, `column` characters behind its start and at most its end. None takes longer in a long
 * text, or a long line. */
size_t nxc_source_characters(const nxc_source *source, size_t offset);
size_t nxc_source_column(const nxc_source *source, uint32_t line, size_t offset);
size_t nxc_source_offset(const nxc_source *source, uint32_t line, size_t column);
/* The line and the column of a byte offset, both from 1. */
typedef struct nxc_place {
  uint32_t line, column;
} nxc_place;
nxc_place nxc_source_place(const nxc_source *source, size_t offset);
/* Byte offset in the source's text of where a span begins; of its end where `end`. */
size_t nxc_span_offset(nxc_span at, bool end);
/* Whether both are the same characters of one text. */
bool nxc_span_same(nxc_span a, nxc_span b);
/* Whether exactly this text stands at the span. */
bool nxc_span_reads(nxc_span at, const char *text);

#endif
