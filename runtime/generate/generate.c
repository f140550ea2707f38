/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/generate/generate.h"

#include "runtime/checkpoint/checkpoint_beside.h"
#include "runtime/step/number.h"
#include "tokenizer/tokenizer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool nxr_can_generate(const nx_plan *plan, nxr_fault *fault) {
  if (nx_objective_find(plan->run->objective)->has_values)
    return nxr_fault_set(fault,
                         "--generate needs words, and a reward model has a head of values in their place");
  if (plan->n[NX_SECTION_CHUNKS] == 1 && plan->chunks[0].evaluate != NX_NONE) return true;
  return nxr_fault_set(fault,
                       "--generate needs a plan without a pipeline: compile the same file with "
                       "--set nx:mesh.pipeline=1 (and fewer ranks), and give that plan --checkpoint FOLDER");
}

/* ---- what is predicted ---- */

/* Where the logits are: the first operator of the program that reads them knows which columns this rank has.
 */
typedef struct prediction {
  nxr_machine *machine;
  nxr_watch watch;
  uint32_t value;
  int64_t first, n_valid; /* columns that are words */
  double soft_cap;
  uint32_t row;    /* that is wanted, in this rank's part; NX_NONE: another rank has it */
  void *room;      /* [columns], as the value has them */
  double *logits;  /* [vocab] */
  uint32_t *order; /* [vocab] */
} prediction;

static int64_t integer_of(const nxr_machine *machine, const nx_attribute *attribute) {
  return attribute->kind == NX_ATTRIBUTE_CONSTANT ? machine->constants[attribute->constant]
                                                  : attribute->integer;
}

static int64_t columns(const prediction *p) {
  const nx_value *value = &p->machine->plan->values[p->value];
  return value->dims[value->n_dims - 1];
}

/* Before the operator runs. */
static void take_logits(void *context, const nxk_frame *frame) {
  prediction *p = context;
  nxr_machine *machine = p->machine;
  const nx_value *value = &machine->plan->values[p->value];
  if (p->row == NX_NONE) return;
  uint64_t n_bytes = (uint64_t)columns(p) * nx_dtype_bits(value->dtype) / 8;
  nxk_synchronize(machine->backend, machine->device);
  const char *at = nxr_value_address(machine->plan, p->value, frame);
  machine->backend->copy_out(machine->device, p->room, at + p->row * n_bytes, n_bytes);
  for (int64_t i = 0; i < p->n_valid; i++) {
    double x = nxr_number_at(p->room, value->dtype, (uint64_t)i);
    p->logits[p->first + i] = p->soft_cap > 0 ? p->soft_cap * tanh(x / p->soft_cap) : x;
  }
}

static const nx_operator *find_reader(const nx_plan *plan) {
  const nx_program *program = &plan->programs[plan->chunks[0].evaluate];
  for (uint32_t i = 0; i < program->n_operators; i++) {
    const nx_operator *op = &plan->operators[program->first_operator + i];
    if (op->op == NX_OP_ce_stats) return op;
  }
  return NULL;
}

static bool prepare(prediction *p, nxr_machine *machine, nxr_fault *fault) {
  const nx_plan *plan = machine->plan;
  const nx_operator *op = find_reader(plan);
  if (op == NULL) return nxr_fault_set(fault, "the plan's evaluation predicts no token");
  const nx_attribute *attributes = plan->attributes + op->first_attribute;
  *p = (prediction){.machine = machine, .value = plan->arguments[op->first_argument],
                    .first = integer_of(machine, &attributes[NX_ce_stats_row_start]),
                    .n_valid = integer_of(machine, &attributes[NX_ce_stats_n_valid]),
                    .soft_cap = attributes[NX_ce_stats_soft_cap].real};
  p->watch = (nxr_watch){(uint32_t)(op - plan->operators), take_logits, p};
  p->room = calloc((size_t)columns(p), sizeof(double));
  p->logits = calloc(plan->run->vocab, sizeof *p->logits);
  p->order = calloc(plan->run->vocab, sizeof *p->order);
  return (p->room && p->logits && p->order) || nxr_fault_set(fault, "out of memory");
}

static void drop(prediction *p) {
  free(p->room);
  free(p->logits);
  free(p->order);
}

/* The token behind the first `n` of the text; the last ones of a longer text fill the sequence. */
static bool predict(nxr_exec *exec, prediction *p, const nxr_drawing *drawing, const int32_t *tokens,
                    uint64_t n, int32_t *next, nxr_fault *fault) {
  const nx_run *run = p->machine->plan->run;
  uint64_t n_read = n < run->sequence ? n : run->sequence;
  p->row = nxr_data_place(exec->data, (uint32_t)n_read - 1);
  memset(p->logits, 0, run->vocab * sizeof *p->logits);
  nxr_exec_forward(exec, tokens + (n - n_read), (uint32_t)n_read, &p->watch);
  nxr_world_sum(p->machine->world, p->logits, run->vocab);
  for (uint64_t i = 0; i < run->vocab; i++)
    if (isnan(p->logits[i])) return nxr_fault_set(fault, "the model predicts what is no number");
  *next = (int32_t)nxr_draw(drawing, p->logits, (uint32_t)run->vocab, n, p->order);
  return true;
}

/* ---- texts ---- */

/* What rank 0 reads and writes texts with. */
typedef struct reader {
  nxt_tokenizer *tokenizer;
  nxt_encoder *encoder;
  nxt_ids ids;      /* of the prompt */
  size_t n_printed; /* bytes */
} reader;

static bool check_prompt(const nx_run *run, const reader *r, const char *path, nxr_fault *fault) {
  if (r->ids.n == 0) return nxr_fault_set(fault, "--generate: there is nothing to continue: give some text");
  if (r->ids.n > run->sequence)
    return nxr_fault_set(fault,
                         "--generate: the text has %zu tokens, and the plan's sequences have %u: shorten it",
                         r->ids.n, run->sequence);
  for (size_t i = 0; i < r->ids.n; i++)
    if (r->ids.items[i] >= run->vocab)
      return nxr_fault_set(fault,
                           "--generate: the tokenizer %s gives the token %u, and the model's are below %llu",
                           path, r->ids.items[i], (unsigned long long)run->vocab);
  return true;
}

static bool open_reader(reader *r, const nx_plan *plan, const char *prompt, const char *path,
                        nxr_fault *fault) {
  nx_fault wrong = {.text = ""};
  if (path[0] == '\0')
    return nxr_fault_set(
        fault, "--generate: no tokenizer stands beside the checkpoint or the dataset: name its file or "
               "folder in run.tokenizer, and compile the plan again");
  r->tokenizer = nxr_tokenizer_open(plan, path, &wrong);
  if (r->tokenizer == NULL) return nxr_fault_set(fault, "%s", wrong.text);
  r->encoder = nxt_encoder_open(r->tokenizer);
  if (!nxt_encode(r->encoder, prompt, strlen(prompt), 0, &r->ids, &wrong))
    return nxr_fault_set(fault, "--generate: %s", wrong.text);
  return check_prompt(plan->run, r, path, fault);
}

static void close_reader(reader *r) {
  if (r->encoder) nxt_encoder_close(r->encoder);
  if (r->tokenizer) nxt_close(r->tokenizer);
  free(r->ids.items);
}

static bool ends(const nx_run *run, int64_t end, int32_t token) {
  return token == end || (run->end_of_document != NX_NONE && (uint32_t)token == run->end_of_document);
}

/* Prompt and continuation as one text: a character may have bytes of both. While it grows, only the words
 * that are over: what stands behind the last blank may still become another text. */
static void print(reader *r, const int32_t *tokens, uint64_t n, bool whole) {
  nxt_text text = {0};
  nxt_decode(r->encoder, (const uint32_t *)(const void *)tokens, n, NXT_SKIP_SPECIAL, &text);
  size_t end = text.n;
  while (!whole && end > 0 && text.items[end - 1] != ' ' && text.items[end - 1] != '\n') end--;
  if (!whole && end > 0) end--;
  if (end > r->n_printed) {
    fwrite(text.items + r->n_printed, 1, end - r->n_printed, stdout);
    r->n_printed = end;
  }
  if (whole) putchar('\n');
  fflush(stdout);
  free(text.items);
}

/* Rank 0's prompt, for all. */
static int32_t *share_prompt(nxr_world *world, const reader *r, uint64_t n_more, uint64_t *n, int64_t *end) {
  uint32_t id;
  uint64_t header[2] = {r->ids.n, UINT64_MAX};
  if (world->rank == 0 && nxt_role_id(r->tokenizer, NXT_EOS, &id)) header[1] = id;
  nxr_world_broadcast(world, header, sizeof header);
  *n = header[0], *end = header[1] == UINT64_MAX ? -1 : (int64_t)header[1];
  int32_t *tokens = calloc(*n + n_more, sizeof *tokens);
  if (tokens == NULL) nxr_world_abort(1);
  if (world->rank == 0) memcpy(tokens, r->ids.items, *n * sizeof *tokens);
  nxr_world_broadcast(world, tokens, *n * sizeof *tokens);
  return tokens;
}

static bool continue_text(nxr_exec *exec, const nxr_generation *asked, reader *r, nxr_fault *fault) {
  nxr_world *world = exec->machine->world;
  prediction p = {0};
  uint64_t n;
  int64_t end;
  int32_t *tokens = share_prompt(world, r, asked->n_tokens, &n, &end), next = 0;
  prepare(&p, exec->machine, fault);
  bool good = nxr_world_agree(world, fault);
  for (uint64_t i = 0; good && i < asked->n_tokens; i++) {
    good = predict(exec, &p, &asked->drawing, tokens, n, &next, fault) && nxr_world_agree(world, fault);
    if (good && ends(exec->machine->plan->run, end, next)) break;
    if (good) tokens[n++] = next;
    if (good && world->rank == 0) print(r, tokens, n, false);
  }
  if (good && world->rank == 0) print(r, tokens, n, true);
  drop(&p);
  free(tokens);
  return good;
}

bool nxr_generate(nxr_exec *exec, const nxr_generation *asked, const char *path, nxr_fault *fault) {
  nxr_world *world = exec->machine->world;
  reader r = {0};
  if (world->rank == 0) open_reader(&r, exec->machine->plan, asked->prompt, path, fault);
  bool good = nxr_world_agree(world, fault) && continue_text(exec, asked, &r, fault);
  close_reader(&r);
  return good;
}
