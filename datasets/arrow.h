/* SPDX-License-Identifier: Apache-2.0 */
/* Arrow's streams and files (IPC), as Hugging Face datasets keeps its tables: a schema, and batches of rows.
 *
 *     message:  0xffffffff, i32 bytes of what describes it (a FlatBuffer; old streams lack the first word),
 * it, and its body; 0 bytes: the end. A file is a stream within "ARROW1" and a footer, which is not needed.
 *
 * Nothing of it is trusted: offsets are checked where they are followed, every row before it is read. Columns
 * stand in the order of a walk: a column, its first child and all below it, its next child. */
#ifndef NXD_ARROW_H
#define NXD_ARROW_H

#include "datasets/buffer.h"
#include "runtime/files/mapping.h"

enum { NXD_ARROW_MAX_COLUMNS = 4096 };

/* By Arrow's numbers. */
typedef enum nxd_arrow_type {
  NXD_ARROW_NULL = 1,
  NXD_ARROW_INT,
  NXD_ARROW_FLOAT,
  NXD_ARROW_BINARY,
  NXD_ARROW_UTF8,
  NXD_ARROW_BOOL,
  NXD_ARROW_LIST = 12,
  NXD_ARROW_STRUCT,
  NXD_ARROW_FIXED_LIST = 16,
  NXD_ARROW_MAP,
  NXD_ARROW_LARGE_BINARY = 19,
  NXD_ARROW_LARGE_UTF8,
  NXD_ARROW_LARGE_LIST,
  NXD_ARROW_BINARY_VIEW = 23,
  NXD_ARROW_UTF8_VIEW,
  NXD_ARROW_LIST_VIEW,
  NXD_ARROW_LARGE_LIST_VIEW,
  NXD_ARROW_N_TYPES
} nxd_arrow_type;

typedef struct nxd_arrow_bytes {
  const uint8_t *at;
  uint64_t n;
} nxd_arrow_bytes;

typedef struct nxd_arrow_column {
  const char *name; /* in the file, not terminated */
  uint32_t n_name;
  uint32_t n_below;     /* columns below it: the next one beside it follows them */
  nxd_arrow_type type;
  uint32_t bits;        /* of an int or a float */
  bool is_signed;
  bool is_json;         /* its texts are JSON (the extension arrow.json) */
  bool has_dictionary;  /* its rows, integers, are numbers of rows of a dictionary */
  uint32_t dictionary;  /* of the file's */
  uint64_t list_size;   /* of a fixed list */
  uint64_t n_rows, n_nulls; /* of the batch at hand */
  nxd_arrow_bytes valid, offsets, data; /* of a view of a list data has the lengths */
  const nxd_arrow_bytes *views; /* what the texts of a view are parts of */
  uint64_t n_views;
} nxd_arrow_column;

/* Columns, in a batch of rows. */
typedef struct nxd_arrow_rows {
  nxd_arrow_column *columns;
  uint32_t n_columns;
  uint64_t n_rows;
  nxd_buffer blocks; /* memory that the columns point into, a pointer to each: what was compressed, views */
} nxd_arrow_rows;

/* The values that a column's rows are numbers of. */
typedef struct nxd_arrow_dictionary {
  int64_t id;
  nxd_arrow_rows form; /* columns of no batch: the values', and those below them */
  nxd_buffer parts;    /* nxd_arrow_rows, which follow one another */
  nxd_buffer firsts;   /* uint64_t, the number of the first row of each */
  uint64_t n_rows;
} nxd_arrow_dictionary;

typedef struct nxd_arrow {
  const char *path;
  nxr_mapping file;
  uint64_t at, end; /* of the messages */
  nxd_arrow_rows rows;   /* the batch at hand */
  nxd_arrow_dictionary *dictionaries;
  uint32_t n_dictionaries;
} nxd_arrow;

/* Reads the schema. On failure nothing stays open. */
bool nxd_arrow_open(nxd_arrow *arrow, const char *path, nxr_fault *fault);
void nxd_arrow_close(nxd_arrow *arrow);
/* The next batch; n_rows 0 is the end. */
bool nxd_arrow_next(nxd_arrow *arrow, nxr_fault *fault);

enum { NXD_ARROW_MAX_DEPTH = 16 };

/* Columns from an outermost one on, each within the one before. */
typedef struct nxd_arrow_path {
  uint32_t columns[NXD_ARROW_MAX_DEPTH], n;
} nxd_arrow_path;

/* By a column's name, or by the names of the structs around it with . between them. */
bool nxd_arrow_find(const nxd_arrow *arrow, const char *name, nxd_arrow_path *path);
/* The names of the outermost columns. */
void nxd_arrow_names(const nxd_arrow *arrow, char *text, size_t room);
/* arrow_schema.c: makes the columns of what describes a schema. */
bool nxd_arrow_read_schema(nxd_arrow *arrow, const uint8_t *bytes, size_t n_bytes, nxr_fault *fault);
/* arrow_batch.c: points columns into a batch, which the message of these bytes has, or a dictionary in it. */
bool nxd_arrow_read_batch(const nxd_arrow *arrow, nxd_arrow_rows *rows, const uint8_t *bytes, size_t n_bytes,
                          nxd_arrow_bytes body, nxr_fault *fault);
void nxd_arrow_forget(nxd_arrow_rows *rows); /* what they point into, and n_rows */
/* arrow_dictionary.c: its values, or more of them. One that no column has is passed over. */
bool nxd_arrow_read_dictionary(nxd_arrow *arrow, const uint8_t *bytes, size_t n_bytes, nxd_arrow_bytes body,
                               nxr_fault *fault);
void nxd_arrow_close_dictionaries(nxd_arrow *arrow);
/* Where the values of a column are, if it has a dictionary: what *column and *row are then. */
bool nxd_arrow_look_up(const nxd_arrow *arrow, const nxd_arrow_column **column, uint64_t *row,
                       nxr_fault *fault);

#endif
