/* SPDX-License-Identifier: Apache-2.0 */
/* Arrow streams and files: each row is a record. */
#include "datasets/arrow_row.h"
#include "datasets/input.h"

#include <stdlib.h>

typedef struct arrow_state {
  nxd_arrow arrow;
  nxd_arrow_path paths[NXD_MAX_FIELDS]; /* n is 0: there is no such column, and need not be */
  uint64_t row; /* of the batch at hand: the next */
} arrow_state;

static bool find_field(const nxd_input *input, arrow_state *state, uint32_t which, nxr_fault *fault) {
  const char *name = input->wanted->fields[which];
  nxd_arrow_path *path = &state->paths[which];
  char names[400];
  if (nxd_arrow_find(&state->arrow, name, path)) return true;
  *path = (nxd_arrow_path){.n = 0};
  if (input->wanted->optional >> which & 1) return true;
  nxd_arrow_names(&state->arrow, names, sizeof names);
  return nxr_fault_set(fault, "%s has no column %s; it has: %s", input->path, name, names);
}

static bool open_arrow(nxd_input *input, nxr_fault *fault) {
  arrow_state *state = calloc(1, sizeof *state);
  if (state == NULL) return nxr_fault_set(fault, "out of memory for %s", input->path);
  bool good = nxd_arrow_open(&state->arrow, input->path, fault);
  bool opened = good;
  for (uint32_t i = 0; good && i < input->wanted->n_fields; i++) good = find_field(input, state, i, fault);
  if (!good && opened) nxd_arrow_close(&state->arrow);
  if (!good) free(state);
  else input->state = state;
  return good;
}

static void close_arrow(nxd_input *input) {
  arrow_state *state = input->state;
  nxd_arrow_close(&state->arrow);
  free(state);
}

static uint64_t used_of_arrow(const nxd_input *input) {
  const arrow_state *state = input->state;
  return state->arrow.at;
}

/* Makes a batch of rows stand there, if there is one more. */
static nxd_given find_rows(arrow_state *state, nxr_fault *fault) {
  if (state->row < state->arrow.rows.n_rows) return NXD_GIVEN;
  state->row = 0;
  if (!nxd_arrow_next(&state->arrow, fault)) return NXD_FAILED;
  return state->arrow.rows.n_rows > 0 ? NXD_GIVEN : NXD_AT_END;
}

static nxd_given next_row(nxd_input *input, nxd_batch *batch, nxr_fault *fault) {
  arrow_state *state = input->state;
  nxd_given found = find_rows(state, fault);
  if (found != NXD_GIVEN) return found;
  nxd_record *record = nxd_batch_add(batch);
  if (record == NULL) {
    nxr_fault_set(fault, "out of memory for %s", input->path);
    return NXD_FAILED;
  }
  for (uint32_t i = 0; i < input->wanted->n_fields; i++)
    if (state->paths[i].n > 0 &&
        !nxd_arrow_row(&state->arrow, &state->paths[i], state->row, batch, record, i, fault))
      return NXD_FAILED;
  state->row++;
  record->line = ++input->line;
  input->offset++;
  return NXD_GIVEN;
}

/* To a row; those before it are passed over by whole batches. */
static bool seek_arrow(nxd_input *input, uint64_t offset, uint64_t line, nxr_fault *fault) {
  arrow_state *state = input->state;
  input->offset = offset, input->line = line;
  for (uint64_t n_left = offset; n_left > 0;) {
    nxd_given found = find_rows(state, fault);
    if (found == NXD_FAILED) return false;
    if (found == NXD_AT_END) return nxr_fault_set(fault, "%s is shorter than it was", input->path);
    uint64_t n = n_left < state->arrow.rows.n_rows ? n_left : state->arrow.rows.n_rows;
    state->row = n, n_left -= n;
  }
  return true;
}

const nxd_input_kind nxd_input_arrow = {"arrow",    ".arrow .feather", open_arrow, next_row,
                                        seek_arrow, used_of_arrow,     close_arrow};
