/* SPDX-License-Identifier: Apache-2.0 */
/* Where the rows of a model's parts stand in a matrix that holds several, and the patterns of tensors' names.
 */
#ifndef NXR_FOREIGN_ROWS_H
#define NXR_FOREIGN_ROWS_H

#include <stdbool.h>
#include <stdint.h>

enum { NXR_MOST_PARTS = 4, NXR_PART_NAME = 512 };

typedef enum nxr_layout { BLOCKS, GROUPS, SHARDS, HEADS, TURNS } nxr_layout;
typedef enum nxr_join_kind { ROWS, COLUMNS, COPIES } nxr_join_kind;

/* The parts that stand in a tensor, with their rows. */
typedef struct nxr_stack {
  char names[NXR_MOST_PARTS][24];
  uint64_t rows[NXR_MOST_PARTS], total;
  uint32_t n;
  nxr_layout layout;
  uint64_t n_groups; /* of GROUPS and SHARDS; else 1 */
} nxr_stack;

/* Of a row of the whole: which part, and which row of it. */
uint32_t nxr_stack_split(const nxr_stack *s, uint64_t row, uint64_t *of_part);
/* And back. */
uint64_t nxr_stack_row(const nxr_stack *s, uint32_t part, uint64_t row);
/* Whether groups are whole ones. */
bool nxr_stack_divides(const nxr_stack *s);
const char *nxr_next_word(const char *list, char word[24]);
/* Whether a name is of the pattern: each "%d" is a number, of a layer and then of an expert in it, which `at`
 * gets, and a "*" the kind of parameter. */
bool nxr_name_fits(const char *pattern, const char *name, uint64_t at[2]);
/* "decoder.layers.%d.mlp.linear_fc1.*" of a layer; `kind` is what stands for the "*". */
void nxr_name_print(const char *pattern, const uint64_t at[2], const char *kind, char name[NXR_PART_NAME]);

#endif
