/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/checkpoint_tensors.h"

#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b) {
  const nxr_tensor *x = a, *y = b;
  int order = strcmp(x->name, y->name);
  return order ? order : (x->piece > y->piece) - (x->piece < y->piece);
}

static int name_order(const void *name, const void *tensor) {
  return strcmp(name, ((const nxr_tensor *)tensor)->name);
}

uint32_t nxr_tensors_find(const nxr_tensors *tensors, const char *name) {
  const nxr_tensor *found = bsearch(name, tensors->items, tensors->n, sizeof *found, name_order);
  return found ? (uint32_t)(found - tensors->items) : NX_NONE;
}

/* Two pieces of one name must be boxes of the same thing. */
static bool check_same(const nxr_pieces *pieces, uint32_t one, uint32_t other, nxr_fault *fault) {
  const nx_piece *a = &pieces->plan->pieces[one], *b = &pieces->plan->pieces[other];
  bool same = a->logical_rows == b->logical_rows && a->logical_columns == b->logical_columns &&
              a->n_dims == b->n_dims && a->flags == b->flags && a->slices == b->slices &&
              a->form == b->form;
  for (nxr_kind kind = NXR_PARAM; same && kind < NXR_N_KINDS; kind++) {
    bool has = nxr_pieces_has(pieces, kind, one);
    same = has == nxr_pieces_has(pieces, kind, other) &&
           (!has || nxr_pieces_dtype(pieces, kind, one) == nxr_pieces_dtype(pieces, kind, other));
  }
  return same || nxr_fault_set(fault, "the plan's pieces of %s contradict each other",
                               nx_plan_string(pieces->plan, a->name));
}

static bool check_box(const nxr_pieces *pieces, uint32_t index, nxr_fault *fault) {
  const nx_piece *piece = &pieces->plan->pieces[index];
  bool good = nx_constant_value(pieces->plan, piece->row_start, pieces->rank, piece->chunk) >= 0 &&
              nx_constant_value(pieces->plan, piece->column_start, pieces->rank, piece->chunk) >= 0 &&
              (piece->n_dims == 2 || piece->logical_rows == 1);
  return good || nxr_fault_set(fault, "the plan's piece %u of %s is no box of it", index,
                               nx_plan_string(pieces->plan, piece->name));
}

/* Whether the rule keeps a state of this name; `index` is which. */
static bool keeps(const nx_optimizer_row *rule, const char *name, uint32_t *index) {
  for (*index = 0; *index < nx_optimizer_n_same(rule); (*index)++)
    if (strcmp(rule->states[*index].name, name) == 0) return true;
  return false;
}

/* What the training remembers beside what optimizers keep. */
static const nx_state_row memory = {.name = "memory", .file = "memory.safetensors"};

static bool has_memory(const nx_plan *plan) {
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PIECES]; i++)
    if (plan->pieces[i].flags & NX_PIECE_MEMORY) return true;
  return false;
}

static bool list_states(nxr_tensors *tensors, nxr_fault *fault) {
  const nx_plan *plan = tensors->pieces->plan;
  if (has_memory(plan)) tensors->states[tensors->n_states++] = &memory;
  for (uint32_t g = 0; g < plan->n[NX_SECTION_PARAMETER_GROUPS]; g++) {
    const nx_optimizer_row *rule = nx_optimizer_of(plan->parameter_groups[g].optimizer);
    for (uint32_t i = 0; i < nx_optimizer_n_same(rule); i++) {
      uint32_t at = 0;
      while (at < tensors->n_states && strcmp(tensors->states[at]->name, rule->states[i].name) != 0) at++;
      if (at == NXR_MAX_STATE_FILES)
        return nxr_fault_set(fault, "the plan's optimizers keep too many kinds of state");
      if (at == tensors->n_states) tensors->states[tensors->n_states++] = &rule->states[i];
    }
  }
  return true;
}

bool nxr_tensors_open(const nxr_pieces *pieces, nxr_tensors *tensors, nxr_fault *fault) {
  const nx_plan *plan = pieces->plan;
  uint32_t n_pieces = plan->n[NX_SECTION_PIECES];
  *tensors = (nxr_tensors){.pieces = pieces};
  tensors->items = calloc((size_t)n_pieces + 1, sizeof *tensors->items);
  tensors->of_piece = calloc((size_t)n_pieces + 1, sizeof *tensors->of_piece);
  bool good = tensors->items && tensors->of_piece;
  if (!good) nxr_fault_set(fault, "out of memory");
  good = good && list_states(tensors, fault);
  for (uint32_t i = 0; i < n_pieces; i++)
    tensors->adapted = tensors->adapted || plan->pieces[i].flags & NX_PIECE_ADAPTER;
  for (uint32_t i = 0; good && i < n_pieces; i++)
    tensors->items[i] = (nxr_tensor){nx_plan_string(plan, plan->pieces[i].name), i};
  if (good) qsort(tensors->items, n_pieces, sizeof *tensors->items, by_name);
  for (uint32_t i = 0; good && i < n_pieces; i++) {
    nxr_tensor item = tensors->items[i];
    bool first = tensors->n == 0 || strcmp(tensors->items[tensors->n - 1].name, item.name) != 0;
    if (first) tensors->items[tensors->n++] = item;
    tensors->of_piece[item.piece] = tensors->n - 1;
    good = check_box(pieces, item.piece, fault) &&
           (first || check_same(pieces, tensors->items[tensors->n - 1].piece, item.piece, fault));
  }
  if (!good) nxr_tensors_close(tensors);
  return good;
}

void nxr_tensors_close(nxr_tensors *tensors) {
  free(tensors->items);
  free(tensors->of_piece);
  free(tensors->shares);
  free(tensors->shard_of);
  *tensors = (nxr_tensors){0};
}

bool nxr_tensors_is_memory(const nxr_tensors *tensors, nxr_content content) {
  return content >= NXR_STATES && tensors->states[content - NXR_STATES] == &memory;
}

/* Whether the file of a content has the piece, if it has such a content at all. */
static bool is_of_file(const nxr_tensors *tensors, nxr_content content, uint32_t piece) {
  uint32_t flags = tensors->pieces->plan->pieces[piece].flags;
  bool adapter = flags & NX_PIECE_ADAPTER;
  if (flags & NX_PIECE_MEMORY) return nxr_tensors_is_memory(tensors, content);
  if (content == NXR_WEIGHTS || content == NXR_MODEL) return !adapter;
  return adapter || (content != NXR_ADAPTERS && !tensors->adapted);
}

/* ---- the files of the model's weights ---- */

uint64_t nxr_tensors_bytes(const nxr_tensors *tensors, nxr_content content, uint32_t tensor) {
  nxr_safetensor as;
  uint32_t piece = tensors->items[tensor].piece;
  if (!nxr_pieces_has(tensors->pieces, nxr_tensors_kind(tensors, content, piece), piece)) return 0;
  nxr_tensors_describe_stored(tensors, content, tensor, &as);
  uint64_t n_bytes = nx_dtype_bits(as.dtype) / 8;
  for (uint32_t i = 0; i < as.n_dims; i++) n_bytes *= (uint64_t)as.dims[i];
  return n_bytes;
}

/* Tensors fill one file after another, by their names; returns how many files that are. */
static uint32_t fill_shards(nxr_tensors *tensors, uint64_t most) {
  nxr_content content = nxr_tensors_saved(tensors);
  uint64_t n_bytes = 0;
  uint32_t shard = 1;
  for (uint32_t i = 0; i < tensors->n; i++) {
    uint64_t one = nxr_tensors_bytes(tensors, content, i);
    if (n_bytes > 0 && one > 0 && most > 0 && n_bytes + one > most) shard++, n_bytes = 0;
    n_bytes += one;
    tensors->shard_of[i] = shard;
  }
  return shard;
}

static bool divide(nxr_tensors *tensors, nxr_fault *fault) {
  uint64_t most = tensors->pieces->plan->run_names->file_bytes;
  tensors->shard_of = calloc((size_t)tensors->n + 1, sizeof *tensors->shard_of);
  if (tensors->shard_of == NULL) return nxr_fault_set(fault, "out of memory");
  while ((tensors->n_shards = fill_shards(tensors, most)) > NXR_MAX_SHARDS) most *= 2;
  return true;
}

bool nxr_tensors_in_shard(const nxr_tensors *tensors, uint32_t tensor, uint32_t shard) {
  return shard == 0 || tensors->shard_of[tensor] == shard;
}

nxr_content nxr_tensors_saved(const nxr_tensors *tensors) {
  const nx_plan *plan = tensors->pieces->plan;
  if (!(plan->run_names->rules & NX_RUN_MODEL_WEIGHTS)) return NXR_WEIGHTS;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PIECES]; i++)
    if (is_of_file(tensors, NXR_MODEL, i) && nxr_pieces_has(tensors->pieces, NXR_MASTER, i)) return NXR_MODEL;
  return NXR_WEIGHTS;
}

bool nxr_tensors_share(nxr_tensors *tensors, nxr_fault *fault) {
  if (!divide(tensors, fault)) return false;
  tensors->shares = calloc((size_t)tensors->pieces->plan->n[NX_SECTION_PIECES] + 1, 1);
  if (tensors->shares == NULL) return nxr_fault_set(fault, "out of memory");
  return nxr_shares_find(tensors->pieces, tensors->shares, fault);
}

bool nxr_tensors_writes(const nxr_tensors *tensors, nxr_content content, uint32_t piece) {
  nxr_kind kind = nxr_tensors_kind(tensors, content, piece);
  return tensors->shares && nxr_pieces_has(tensors->pieces, kind, piece) &&
         nxr_shares_write(tensors->pieces, tensors->shares, kind, piece);
}

bool nxr_content_is_weights(nxr_content content) {
  return content == NXR_WEIGHTS || content == NXR_ADAPTERS;
}

nxr_kind nxr_tensors_kind(const nxr_tensors *tensors, nxr_content content, uint32_t piece) {
  if (!is_of_file(tensors, content, piece)) return NXR_N_KINDS;
  if (nxr_tensors_is_memory(tensors, content))
    return tensors->pieces->plan->pieces[piece].flags & NX_PIECE_MEMORY ? NXR_PARAM : NXR_N_KINDS;
  if (content >= NXR_STATES) {
    const nx_plan *plan = tensors->pieces->plan;
    const nx_optimizer_row *rule = nx_range_rule(plan, &plan->ranges[plan->pieces[piece].range]);
    uint32_t index;
    bool kept = keeps(rule, tensors->states[content - NXR_STATES]->name, &index);
    return kept ? (nxr_kind)(NXR_STATE + index) : NXR_N_KINDS;
  }
  if (content == NXR_GRADIENTS) return NXR_GRAD;
  if (content == NXR_MODEL) return NXR_PARAM;
  return nxr_pieces_has(tensors->pieces, NXR_MASTER, piece) ? NXR_MASTER : NXR_PARAM;
}

void nxr_tensors_describe(const nxr_tensors *tensors, nxr_content content, uint32_t tensor,
                          nxr_safetensor *as) {
  uint32_t piece = tensors->items[tensor].piece;
  const nx_piece *at = &tensors->pieces->plan->pieces[piece];
  *as = (nxr_safetensor){
      .name = tensors->items[tensor].name,
      .dtype = nxr_pieces_dtype(tensors->pieces, nxr_tensors_kind(tensors, content, piece), piece)};
  as->n_dims = nx_piece_shape(at, as->dims);
}

void nxr_tensors_describe_stored(const nxr_tensors *tensors, nxr_content content, uint32_t tensor,
                                 nxr_safetensor *as) {
  const nx_piece *at = &tensors->pieces->plan->pieces[tensors->items[tensor].piece];
  nxr_tensors_describe(tensors, content, tensor, as);
  if (at->form == NX_FORM_PLAIN) return;
  as->dims[as->n_dims - 1] /= nx_form_elements(at->form);
  as->dims[as->n_dims - 2] /= nx_form_find(at->form)->rows;
}
