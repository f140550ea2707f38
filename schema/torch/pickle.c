/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/torch/pickle.h"

#include "schema/plan_check.h"
#include "schema/torch/pickle_machine.h"

#include <stdlib.h>
#include <string.h>

/* ---- constants ---- */

static bool push_number(nx_pickle_machine *m, nx_object_kind kind, int64_t integer, double number) {
  nx_object *object = nx_pickle_make(m, kind);
  if (object) object->integer = integer, object->number = number;
  return nx_pickle_push(m, object);
}

static bool do_none(nx_pickle_machine *m, const nx_pickle_argument *a) {
  (void)a;
  return nx_pickle_push(m, nx_pickle_make(m, NX_OBJECT_NONE));
}
static bool do_true(nx_pickle_machine *m, const nx_pickle_argument *a) {
  (void)a;
  return push_number(m, NX_OBJECT_BOOL, 1, 1);
}
static bool do_false(nx_pickle_machine *m, const nx_pickle_argument *a) {
  (void)a;
  return push_number(m, NX_OBJECT_BOOL, 0, 0);
}
static bool do_int(nx_pickle_machine *m, const nx_pickle_argument *a) {
  return push_number(m, NX_OBJECT_INT, (int64_t)a->number, (double)a->number);
}
static bool do_signed(nx_pickle_machine *m, const nx_pickle_argument *a) {
  int32_t value = (int32_t)(uint32_t)a->number;
  return push_number(m, NX_OBJECT_INT, value, value);
}

/* Two's complement of any length, the lowest byte first. */
static bool do_long(nx_pickle_machine *m, const nx_pickle_argument *a) {
  uint64_t value = 0;
  bool negative = a->n_bytes > 0 && (a->bytes[a->n_bytes - 1] & 0x80);
  if (a->n_bytes > 8) return push_number(m, NX_OBJECT_INT, INT64_MAX, 0);
  for (size_t i = 0; i < 8; i++)
    value |= (uint64_t)(i < a->n_bytes ? (uint8_t)a->bytes[i] : negative ? 0xff : 0) << (8 * i);
  return push_number(m, NX_OBJECT_INT, (int64_t)value, (double)(int64_t)value);
}

/* The highest byte first. */
static bool do_float(nx_pickle_machine *m, const nx_pickle_argument *a) {
  uint64_t bits = __builtin_bswap64(a->number);
  double number;
  memcpy(&number, &bits, sizeof number);
  return push_number(m, NX_OBJECT_FLOAT, 0, number);
}

static bool do_text(nx_pickle_machine *m, const nx_pickle_argument *a) {
  nx_object *object = nx_pickle_make(m, NX_OBJECT_TEXT);
  if (object) object->text = nx_object_text(m->pickle, a->bytes, a->n_bytes, "", 0);
  return nx_pickle_push(m, object && object->text ? object : NULL);
}

/* ---- names and calls, which stay what they are ---- */

static bool push_global(nx_pickle_machine *m, const char *module, size_t n_module, const char *name,
                        size_t n_name) {
  nx_object *object = nx_pickle_make(m, NX_OBJECT_GLOBAL);
  char *text = nx_object_text(m->pickle, module, n_module + 1, name, n_name);
  if (object == NULL || text == NULL) return nx_fault_set(m->fault, 0, "out of memory");
  text[n_module] = ' ';
  object->text = text;
  return nx_pickle_push(m, object);
}
static bool do_global(nx_pickle_machine *m, const nx_pickle_argument *a) {
  return push_global(m, a->bytes, a->n_bytes, a->second, a->n_second);
}
static bool do_stack_global(nx_pickle_machine *m, const nx_pickle_argument *a) {
  (void)a;
  const nx_object *name = nx_pickle_pop(m), *module = name ? nx_pickle_pop(m) : NULL;
  if (module == NULL) return false;
  if (name->kind != NX_OBJECT_TEXT || module->kind != NX_OBJECT_TEXT)
    return nx_pickle_damaged(m, "a name is no text");
  return push_global(m, module->text, strlen(module->text), name->text, strlen(name->text));
}

/* Dictionaries that keep an order, or have a default. */
static bool is_dict(const nx_object *callee) {
  return nx_object_names(callee, "collections OrderedDict") ||
         nx_object_names(callee, "collections defaultdict") || nx_object_names(callee, "builtins dict");
}

static bool push_call(nx_pickle_machine *m, const nx_object *callee, const nx_object *arguments) {
  nx_object *call = nx_pickle_make(m, is_dict(callee) ? NX_OBJECT_DICT : NX_OBJECT_CALL);
  if (call) call->callee = callee, call->arguments = arguments;
  return nx_pickle_push(m, call);
}
static bool do_reduce(nx_pickle_machine *m, const nx_pickle_argument *a) {
  (void)a;
  const nx_object *arguments = nx_pickle_pop(m), *callee = arguments ? nx_pickle_pop(m) : NULL;
  return callee && push_call(m, callee, arguments);
}
static bool do_new_keywords(nx_pickle_machine *m, const nx_pickle_argument *a) {
  (void)a;
  return nx_pickle_pop(m) != NULL && do_reduce(m, a);
}
static bool do_build(nx_pickle_machine *m, const nx_pickle_argument *a) {
  (void)a;
  const nx_object *state = nx_pickle_pop(m);
  nx_object *object = state ? nx_pickle_top(m) : NULL;
  if (object == NULL) return state ? nx_pickle_damaged(m, "something is taken that is not there") : false;
  object->state = state;
  return true;
}
static bool do_stored(nx_pickle_machine *m, const nx_pickle_argument *a) {
  (void)a;
  const nx_object *what = nx_pickle_pop(m);
  nx_object *object = what ? nx_pickle_make(m, NX_OBJECT_STORED) : NULL;
  if (object) object->arguments = what;
  return what != NULL && nx_pickle_push(m, object);
}

/* ---- the memo, and the rest ---- */

/* Numbers follow one another in what is written by any known program: what is far beyond is damage. */
static bool remember(nx_pickle_machine *m, uint64_t index) {
  nx_object *object = nx_pickle_top(m);
  if (object == NULL || index > m->n_memo) return nx_pickle_damaged(m, "an object has no right number");
  if (index == m->n_memo) {
    if ((index & (index - 1)) == 0) {
      nx_object **longer = realloc(m->memo, (index ? 2 * index : 1) * sizeof *longer);
      if (longer == NULL) return nx_fault_set(m->fault, 0, "out of memory");
      m->memo = longer;
    }
    m->n_memo++;
  }
  m->memo[index] = object;
  return true;
}
static bool do_put(nx_pickle_machine *m, const nx_pickle_argument *a) {
  return remember(m, a->number);
}
static bool do_memoize(nx_pickle_machine *m, const nx_pickle_argument *a) {
  (void)a;
  return remember(m, m->n_memo);
}
static bool do_get(nx_pickle_machine *m, const nx_pickle_argument *a) {
  if (a->number >= m->n_memo) return nx_pickle_damaged(m, "an object is named that is not there");
  return nx_pickle_push(m, m->memo[a->number]);
}
static bool do_pop(nx_pickle_machine *m, const nx_pickle_argument *a) {
  (void)a;
  if (m->n_stack == 0) return nx_pickle_damaged(m, "something is taken that is not there");
  m->n_stack--;
  return true;
}
static bool do_pop_mark(nx_pickle_machine *m, const nx_pickle_argument *a) {
  (void)a;
  size_t first = 0;
  if (!nx_pickle_pop_marked(m, &first)) return false;
  m->n_stack = first - 1;
  return true;
}
static bool do_duplicate(nx_pickle_machine *m, const nx_pickle_argument *a) {
  (void)a;
  return nx_pickle_top(m) ? nx_pickle_push(m, nx_pickle_top(m))
                          : nx_pickle_damaged(m, "something is taken that is not there");
}
static bool do_protocol(nx_pickle_machine *m, const nx_pickle_argument *a) {
  if (a->number <= 5) return true;
  return nx_fault_set(m->fault, 0, "%s has a pickle of protocol %u, and 5 is the newest known", m->path,
                      (unsigned)a->number);
}
static bool do_nothing(nx_pickle_machine *m, const nx_pickle_argument *a) {
  (void)m, (void)a;
  return true;
}
static bool do_stop(nx_pickle_machine *m, const nx_pickle_argument *a) {
  (void)a;
  m->ended = true;
  return nx_pickle_top(m) ? true : nx_pickle_damaged(m, "there is nothing");
}

/* ---- opcodes ---- */

typedef enum form {
  NOTHING,
  FIXED,   /* a number of `n` bytes, the lowest first */
  COUNTED, /* a number of `n` bytes, and so many bytes */
  LINES,   /* two lines */
  IMPLIED  /* the number `n` itself */
} form;

/* Protocols 2 to 5 have these, but for extensions and buffers outside of the pickle. */
static const struct {
  nx_pickle_code *run;
  form form;
  uint32_t n;
} opcodes[256] = {
    ['('] = {nx_pickle_do_mark},
    ['.'] = {do_stop},
    ['0'] = {do_pop},
    ['1'] = {do_pop_mark},
    ['2'] = {do_duplicate},
    ['N'] = {do_none},
    [0x88] = {do_true},
    [0x89] = {do_false},
    ['K'] = {do_int, FIXED, 1},
    ['M'] = {do_int, FIXED, 2},
    ['J'] = {do_signed, FIXED, 4},
    [0x8a] = {do_long, COUNTED, 1},
    [0x8b] = {do_long, COUNTED, 4},
    ['G'] = {do_float, FIXED, 8},
    ['X'] = {do_text, COUNTED, 4},
    [0x8c] = {do_text, COUNTED, 1},
    [0x8d] = {do_text, COUNTED, 8},
    ['T'] = {do_text, COUNTED, 4},
    ['U'] = {do_text, COUNTED, 1},
    ['B'] = {do_text, COUNTED, 4},
    ['C'] = {do_text, COUNTED, 1},
    [0x8e] = {do_text, COUNTED, 8},
    [0x96] = {do_text, COUNTED, 8},
    ['}'] = {nx_pickle_do_empty_dict},
    [']'] = {nx_pickle_do_empty_list},
    [0x8f] = {nx_pickle_do_empty_list},
    ['d'] = {nx_pickle_do_dict},
    ['l'] = {nx_pickle_do_list},
    ['t'] = {nx_pickle_do_list},
    [0x91] = {nx_pickle_do_list},
    [')'] = {nx_pickle_do_tuple, IMPLIED, 0},
    [0x85] = {nx_pickle_do_tuple, IMPLIED, 1},
    [0x86] = {nx_pickle_do_tuple, IMPLIED, 2},
    [0x87] = {nx_pickle_do_tuple, IMPLIED, 3},
    ['a'] = {nx_pickle_do_append},
    ['e'] = {nx_pickle_do_appends},
    [0x90] = {nx_pickle_do_appends},
    ['s'] = {nx_pickle_do_set_item},
    ['u'] = {nx_pickle_do_set_items},
    ['c'] = {do_global, LINES},
    [0x93] = {do_stack_global},
    ['R'] = {do_reduce},
    [0x81] = {do_reduce},
    [0x92] = {do_new_keywords},
    ['b'] = {do_build},
    ['Q'] = {do_stored},
    ['q'] = {do_put, FIXED, 1},
    ['r'] = {do_put, FIXED, 4},
    [0x94] = {do_memoize},
    ['h'] = {do_get, FIXED, 1},
    ['j'] = {do_get, FIXED, 4},
    [0x80] = {do_protocol, FIXED, 1},
    [0x95] = {do_nothing, FIXED, 8},
};

static bool take_number(nx_pickle_machine *m, uint32_t n, uint64_t *number) {
  *number = 0;
  if ((uint64_t)(m->end - m->at) < n) return nx_pickle_damaged(m, "the end is missing");
  for (uint32_t i = 0; i < n; i++) *number |= (uint64_t)*m->at++ << (8 * i);
  return true;
}

static bool take_bytes(nx_pickle_machine *m, uint64_t n, const char **bytes, size_t *n_bytes) {
  if ((uint64_t)(m->end - m->at) < n) return nx_pickle_damaged(m, "the end is missing");
  *bytes = (const char *)m->at;
  *n_bytes = (size_t)n;
  m->at += n;
  return true;
}

static bool take_line(nx_pickle_machine *m, const char **bytes, size_t *n_bytes) {
  const uint8_t *end = memchr(m->at, '\n', (size_t)(m->end - m->at));
  if (end == NULL) return nx_pickle_damaged(m, "the end is missing");
  if (!take_bytes(m, (uint64_t)(end - m->at), bytes, n_bytes)) return false;
  m->at++;
  return true;
}

static bool take_argument(nx_pickle_machine *m, form how, uint32_t n, nx_pickle_argument *a) {
  switch (how) {
  case NOTHING: return true;
  case FIXED: return take_number(m, n, &a->number);
  case COUNTED: return take_number(m, n, &a->number) && take_bytes(m, a->number, &a->bytes, &a->n_bytes);
  case LINES: return take_line(m, &a->bytes, &a->n_bytes) && take_line(m, &a->second, &a->n_second);
  case IMPLIED: a->number = n; return true;
  }
  return false;
}

static bool run(nx_pickle_machine *m) {
  while (!m->ended) {
    nx_pickle_argument a = {.bytes = ""};
    if (m->at == m->end) return nx_pickle_damaged(m, "the end is missing");
    uint8_t code = *m->at++;
    if (opcodes[code].run == NULL)
      return nx_fault_set(m->fault, 0, "%s: its pickle has opcode 0x%02x, which is not read here", m->path,
                          code);
    if (!take_argument(m, opcodes[code].form, opcodes[code].n, &a) || !opcodes[code].run(m, &a)) return false;
  }
  return true;
}

bool nx_pickle_read(const char *path, const uint8_t *bytes, uint64_t n_bytes, nx_pickle *pickle,
                    nx_fault *fault) {
  *pickle = (nx_pickle){0};
  nx_pickle_machine m = {.pickle = pickle, .path = path, .at = bytes, .end = bytes + n_bytes, .fault = fault};
  bool good = run(&m);
  if (good) pickle->root = nx_pickle_top(&m);
  free(m.stack);
  free(m.memo);
  if (!good) nx_pickle_close(pickle);
  return good;
}
