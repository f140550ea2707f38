/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/packing.h"

#include <stdlib.h>
#include <string.h>

/* A group that is being packed. */
typedef struct group {
  const nx_packing_rule *packing;
  const uint32_t *lengths; /* of its documents */
  uint64_t n;
  uint64_t *order; /* [n] in which they are placed */
  uint64_t *row_of;
  uint32_t *room;  /* a tree over n_leaves rows, the root is 1: the greatest room below */
  uint64_t n_leaves;
  uint64_t first_row, n_rows;
} group;

/* -- order ----------------------------------------------------------------------------------------------- */

/* From the longest, those of one length as they stand: lengths are few, so they are counted. */
static bool order_by_length(group *of) {
  uint64_t longest = of->packing->row_tokens, *firsts = calloc(longest + 2, sizeof *firsts);
  if (firsts == NULL) return false;
  for (uint64_t i = 0; i < of->n; i++) firsts[longest - of->lengths[i] + 1]++;
  for (uint64_t i = 0; i <= longest; i++) firsts[i + 1] += firsts[i];
  for (uint64_t i = 0; i < of->n; i++) of->order[firsts[longest - of->lengths[i]]++] = i;
  free(firsts);
  return true;
}

static bool order_group(group *of) {
  if (of->packing->kind == NX_PACKING_DECREASING) return order_by_length(of);
  for (uint64_t i = 0; i < of->n; i++) of->order[i] = i;
  return true;
}

/* -- places ---------------------------------------------------------------------------------------------- */

/* The first row that has room; rows that nothing stands in have all. */
static uint64_t first_fit(const group *of, uint32_t length) {
  uint64_t node = 1;
  while (node < of->n_leaves) node = 2 * node + (of->room[2 * node] < length);
  return node - of->n_leaves;
}

static void take_room(group *of, uint64_t row, uint32_t length) {
  uint64_t node = of->n_leaves + row;
  of->room[node] -= length;
  while ((node /= 2) > 0) {
    uint32_t left = of->room[2 * node], right = of->room[2 * node + 1];
    of->room[node] = left > right ? left : right;
  }
}

static void place_first_fit(group *of) {
  for (of->n_leaves = 1; of->n_leaves < of->n; of->n_leaves *= 2) continue;
  for (uint64_t i = 0; i < 2 * of->n_leaves; i++) of->room[i] = (uint32_t)of->packing->row_tokens;
  for (uint64_t i = 0; i < of->n; i++) {
    uint64_t document = of->order[i], row = first_fit(of, of->lengths[document]);
    take_room(of, row, of->lengths[document]);
    of->row_of[document] = of->first_row + row;
    if (row >= of->n_rows) of->n_rows = row + 1;
  }
}

/* A row ends where the next document does not fit. */
static void place_in_order(group *of) {
  uint64_t room = 0;
  for (uint64_t i = 0; i < of->n; i++) {
    if (of->n_rows == 0 || of->lengths[i] > room) of->n_rows++, room = of->packing->row_tokens;
    room -= of->lengths[i];
    of->row_of[i] = of->first_row + of->n_rows - 1;
  }
}

static bool pack_group(group *of) {
  if (!order_group(of)) return false;
  if (of->packing->kind == NX_PACKING_IN_ORDER) place_in_order(of);
  else place_first_fit(of);
  return true;
}

/* -- all ------------------------------------------------------------------------------------------------- */

typedef struct work {
  uint64_t *order, *row_of;
  uint32_t *room;
  uint64_t group; /* documents of the largest */
} work;

static bool get_work(const nx_packing_rule *packing, uint64_t n_documents, work *room) {
  room->group = packing->group == 0 || packing->group > n_documents ? n_documents : packing->group;
  room->order = calloc(n_documents + 1, sizeof *room->order);
  room->row_of = calloc(n_documents + 1, sizeof *room->row_of);
  room->room = calloc(4 * room->group + 4, sizeof *room->room);
  return room->order && room->row_of && room->room;
}

static void free_work(work *room) {
  free(room->order);
  free(room->row_of);
  free(room->room);
}

/* Documents of each row, in the order in which they were placed. */
static void list_rows(const work *from, uint64_t n_documents, nx_rows *rows) {
  for (uint64_t i = 0; i < n_documents; i++) rows->firsts[from->row_of[i] + 1]++;
  for (uint64_t row = 0; row < rows->n; row++) rows->firsts[row + 1] += rows->firsts[row];
  for (uint64_t first = 0; first < n_documents; first += from->group)
    for (uint64_t i = first; i < first + from->group && i < n_documents; i++) {
      uint64_t document = first + from->order[i];
      rows->documents[rows->firsts[from->row_of[document]]++] = document;
    }
  for (uint64_t row = rows->n; row > 0; row--) rows->firsts[row] = rows->firsts[row - 1];
  rows->firsts[0] = 0;
}

static bool pack(const nx_packing_rule *packing, const uint32_t *lengths, uint64_t n_documents, work *room,
                 nx_rows *rows) {
  for (uint64_t first = 0; first < n_documents; first += room->group) {
    uint64_t n_left = n_documents - first;
    group of = {.packing = packing,
                .lengths = lengths + first,
                .n = n_left < room->group ? n_left : room->group,
                .order = room->order + first,
                .row_of = room->row_of + first,
                .room = room->room,
                .first_row = rows->n};
    if (!pack_group(&of)) return false;
    rows->n += of.n_rows;
  }
  rows->firsts = calloc(rows->n + 1, sizeof *rows->firsts);
  rows->documents = calloc(n_documents + 1, sizeof *rows->documents);
  if (rows->firsts == NULL || rows->documents == NULL) return false;
  list_rows(room, n_documents, rows);
  return true;
}

bool nx_rows_make(const nx_packing_rule *packing, const uint32_t *lengths, uint64_t n_documents,
                  nx_rows *rows) {
  work room = {0};
  *rows = (nx_rows){0};
  bool good = get_work(packing, n_documents, &room) && pack(packing, lengths, n_documents, &room, rows);
  free_work(&room);
  if (!good) nx_rows_free(rows);
  return good;
}

nx_packing nx_packing_named(const char *name) {
  return strcmp(name, "in_order") == 0    ? NX_PACKING_IN_ORDER
         : strcmp(name, "first_fit") == 0 ? NX_PACKING_FIRST_FIT
                                          : NX_PACKING_DECREASING;
}

void nx_rows_free(nx_rows *rows) {
  free(rows->firsts);
  free(rows->documents);
  *rows = (nx_rows){0};
}
