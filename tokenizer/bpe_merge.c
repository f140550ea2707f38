/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/bpe_merge.h"

#include "tokenizer/memory.h"

#include <string.h>

/* Up to so many symbols looking at all of them is faster than a heap. */
enum { SHORT = 96 };

void nxt_symbols_reserve(nxt_encoder *encoder, size_t n) {
  if (encoder->symbol_room >= n) return;
  encoder->symbol_room = 2 * n;
  encoder->symbols = nxt_resize(encoder->symbols, encoder->symbol_room, sizeof *encoder->symbols);
}

static void look_up(const nxt_bpe *bpe, nxt_symbol *left, const nxt_symbol *right) {
  const nxt_pair *pair = nxt_pair_slot(bpe, left->id, right->id);
  left->rank = pair->rank; /* of a free slot NXT_NONE */
  left->merged = pair->id;
}

static size_t merge_short(const nxt_bpe *bpe, nxt_symbol *symbols, size_t n) {
  for (size_t i = 0; i + 1 < n; i++) look_up(bpe, &symbols[i], &symbols[i + 1]);
  while (n > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < n; i++)
      if (symbols[i].rank < symbols[best].rank) best = i;
    if (symbols[best].rank == NXT_NONE) break;
    symbols[best].id = symbols[best].merged;
    n--;
    memmove(&symbols[best + 1], &symbols[best + 2], (n - best - 1) * sizeof *symbols);
    if (best + 1 < n) look_up(bpe, &symbols[best], &symbols[best + 1]);
    if (best > 0) look_up(bpe, &symbols[best - 1], &symbols[best]);
  }
  return n;
}

static bool is_before(nxt_waiting a, nxt_waiting b) {
  return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
}

static size_t push(nxt_waiting *heap, size_t n, nxt_waiting item) {
  size_t at = n;
  for (; at > 0 && is_before(item, heap[(at - 1) / 2]); at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
  heap[at] = item;
  return n + 1;
}

/* Takes the first away. */
static size_t pop(nxt_waiting *heap, size_t n) {
  nxt_waiting item = heap[--n];
  size_t at = 0;
  for (size_t child; (child = 2 * at + 1) < n; at = child) {
    if (child + 1 < n && is_before(heap[child + 1], heap[child])) child++;
    if (!is_before(heap[child], item)) break;
    heap[at] = heap[child];
  }
  heap[at] = item;
  return n;
}

static size_t push_pair(nxt_encoder *encoder, size_t n, uint32_t at) {
  nxt_symbol *symbol = &encoder->symbols[at];
  look_up(&encoder->tokenizer->bpe, symbol, &encoder->symbols[symbol->next]);
  if (symbol->rank == NXT_NONE) return n;
  return push(encoder->heap, n, (nxt_waiting){symbol->rank, at, symbol->merged});
}

/* Links the symbols, and fills the heap with the pairs that merge. Each merge pushes two and takes one away.
 */
static size_t begin_long(nxt_encoder *encoder, size_t n) {
  size_t n_heap = 0;
  if (encoder->heap_room < 3 * n) {
    encoder->heap_room = 3 * n;
    encoder->heap = nxt_resize(encoder->heap, encoder->heap_room, sizeof *encoder->heap);
  }
  for (uint32_t i = 0; i < n; i++) {
    encoder->symbols[i].previous = i == 0 ? NXT_NONE : i - 1;
    encoder->symbols[i].next = i + 1 < n ? i + 1 : NXT_NONE;
  }
  for (uint32_t i = 0; i + 1 < n; i++) n_heap = push_pair(encoder, n_heap, i);
  return n_heap;
}

/* Whether the pair still stands as it was pushed: neither of its symbols has merged otherwise. */
static bool still_stands(const nxt_symbol *symbols, nxt_waiting pair) {
  const nxt_symbol *symbol = &symbols[pair.at];
  return symbol->id != NXT_NONE && symbol->next != NXT_NONE && symbol->rank == pair.rank &&
         symbol->merged == pair.merged;
}

static size_t merge_long(nxt_encoder *encoder, size_t n) {
  nxt_symbol *symbols = encoder->symbols;
  for (size_t n_heap = begin_long(encoder, n); n_heap > 0;) {
    nxt_waiting pair = encoder->heap[0];
    n_heap = pop(encoder->heap, n_heap);
    if (!still_stands(symbols, pair)) continue;
    nxt_symbol *symbol = &symbols[pair.at], *right = &symbols[symbol->next];
    symbol->id = pair.merged;
    symbol->next = right->next;
    symbol->rank = NXT_NONE;
    right->id = NXT_NONE;
    if (symbol->next != NXT_NONE) {
      symbols[symbol->next].previous = pair.at;
      n_heap = push_pair(encoder, n_heap, pair.at);
    }
    if (symbol->previous != NXT_NONE) n_heap = push_pair(encoder, n_heap, symbol->previous);
  }
  size_t kept = 0;
  for (size_t i = 0; i < n; i++)
    if (symbols[i].id != NXT_NONE) symbols[kept++].id = symbols[i].id;
  return kept;
}

void nxt_merge(nxt_encoder *encoder, size_t n, nxt_ids *ids) {
  n = n <= SHORT ? merge_short(&encoder->tokenizer->bpe, encoder->symbols, n) : merge_long(encoder, n);
  uint32_t *to = nxt_ids_reserve(ids, n);
  for (size_t i = 0; i < n; i++) to[i] = encoder->symbols[i].id;
  ids->n += n;
}
