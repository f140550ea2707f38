/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/data/dataset.h"

#include <stddef.h>

/* Megatron's type codes; floating-point types hold no tokens. */
static const nxr_token_type token_types[] = {[1] = {"uint8", 1},  [2] = {"int8", 1},  [3] = {"int16", 2},
                                             [4] = {"int32", 4},  [5] = {"int64", 8}, [6] = {"float", 0},
                                             [7] = {"float", 0},  [8] = {"uint16", 2}};

const nxr_token_type *nxr_token_type_of(uint32_t code) {
  bool known = code < sizeof token_types / sizeof *token_types && token_types[code].name;
  return known ? &token_types[code] : NULL;
}
