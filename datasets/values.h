/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a record, as values. */
#ifndef NXD_VALUES_H
#define NXD_VALUES_H

#include "datasets/input.h"

#include <jansson.h>

/* Of NXD_STRING the bytes, of NXD_IDS the ids, of NXD_VALUE the JSON. */
typedef struct nxd_value {
  nxd_form form;
  const char *text;
  const int64_t *ids;
  size_t n;
  const json_t *json;
} nxd_value;

typedef struct nxd_parser {
  json_t *parsed[NXD_MAX_FIELDS]; /* what the values of the last record lie in */
  nxd_buffer ids;
} nxd_parser;

/* Fills values[wanted->n_fields], which stay until the next call. A fault says what is wrong with the record.
 */
bool nxd_values_read(nxd_parser *parser, const nxd_batch *batch, const nxd_record *record,
                     const nxd_wanted *wanted, nxd_value *values, nxr_fault *fault);
void nxd_parser_free(nxd_parser *parser);

#endif
