/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules that end, and schedules that were broken on purpose: each must be refused, and the fault must say
 * where. */
#include "compiler/show/plan_dump.h"
#include "tests/unit/program_case.h"

/* The items of a compiled plan, in room for more; `plan` is a view of them. */
typedef struct schedule {
  program_case compiled;
  nx_plan plan;
  nx_item *items;
  uint32_t n, from; /* items are looked for from there on, and belong to the last schedule */
  nx_schedule schedules[2];
  nx_fault fault;
} schedule;

static const char pipeline2[] = "mesh.world=2 mesh.pipeline=2 batch.micro=1 batch.global=4";
static const char interleaved2[] =
    "mesh.world=2 mesh.pipeline=2 mesh.virtual_pipeline=2 model.layers=4 batch.micro=1 batch.global=4";

static const char ahead5[] =
    "mesh.world=5 mesh.pipeline=5 model.layers=10 mesh.virtual_pipeline=2 batch.micro=1 "
    "batch.global=13 pipeline.receive_ahead=true";
static const char tied4[] =
    "mesh.world=8 mesh.pipeline=4 mesh.virtual_pipeline=2 model.layers=8 batch.micro=1 "
    "batch.global=8 model.tied_embeddings=true optimizer.zero_stage=1";

static schedule begin(const char *changes) {
  schedule s = {.compiled = program_good(changes)};
  s.plan = s.compiled.out.plan;
  s.n = s.plan.n[NX_SECTION_ITEMS];
  s.items = calloc(2 * s.n, sizeof *s.items);
  assert_non_null(s.items);
  memcpy(s.items, s.plan.items, s.n * sizeof *s.items);
  memcpy(s.schedules, s.plan.schedules, s.plan.n[NX_SECTION_SCHEDULES] * sizeof *s.schedules);
  return s;
}

/* The schedule of its evaluation is what is changed. */
static schedule begin_evaluation(const char *changes) {
  char text[512];
  snprintf(text, sizeof text, "%s data.split=[90,10] evaluate.batches=1", changes);
  schedule s = begin(text);
  assert_int_equal(s.plan.n[NX_SECTION_SCHEDULES], 2);
  s.from = s.schedules[1].first_item;
  return s;
}

static bool is_proved(schedule *s) {
  s->plan.items = s->items;
  s->plan.n[NX_SECTION_ITEMS] = s->n;
  s->plan.schedules = s->schedules;
  s->schedules[s->plan.n[NX_SECTION_SCHEDULES] - 1].n_items = s->n - s->from;
  memset(&s->fault, 0, sizeof s->fault);
  return nx_plan_prove(&s->plan, &s->fault);
}

static void end(schedule *s) {
  free(s->items);
  program_end(&s->compiled);
}

/* Refused, with both texts in the fault. */
static void expect(schedule *s, const char *what, const char *where) {
  if (is_proved(s)) fail_msg("it was accepted, and should be refused: %s", what);
  if (!strstr(s->fault.text, what) || !strstr(s->fault.text, where))
    fail_msg("the fault lacks \"%s\" or \"%s\": %s", what, where, s->fault.text);
  end(s);
}

static uint32_t find_port(const schedule *s, nx_item_kind kind, nx_port port, uint32_t chunk,
                          uint32_t micro_batch) {
  for (uint32_t i = s->from; i < s->n; i++) {
    const nx_item *at = &s->items[i];
    if (at->kind == kind && at->port == port && at->chunk == chunk && at->micro_batch == micro_batch)
      return i;
  }
  fail_msg("the schedule lacks an item");
  return 0;
}

static uint32_t find(const schedule *s, nx_item_kind kind, uint32_t chunk, uint32_t micro_batch) {
  return find_port(s, kind, 0, chunk, micro_batch);
}

/* The step of a chunk that has the phase. */
static uint32_t find_step(const schedule *s, uint32_t chunk, uint8_t phase) {
  uint32_t at = s->from;
  while (at < s->n &&
         !(s->items[at].kind == NX_ITEM_STEP && s->items[at].chunk == chunk && s->items[at].when & phase))
    at++;
  assert_true(at < s->n);
  return at;
}

static void drop(schedule *s, uint32_t at) {
  memmove(s->items + at, s->items + at + 1, (s->n - at - 1) * sizeof *s->items);
  s->n--;
}

static void insert(schedule *s, uint32_t at, nx_item item) {
  memmove(s->items + at + 1, s->items + at, (s->n - at) * sizeof *s->items);
  s->items[at] = item;
  s->n++;
}

static void swap(schedule *s, uint32_t a, uint32_t b) {
  nx_item kept = s->items[a];
  s->items[a] = s->items[b];
  s->items[b] = kept;
}

static void move(schedule *s, uint32_t from, uint32_t to) {
  nx_item kept = s->items[from];
  drop(s, from);
  insert(s, to, kept);
}

/* As textbooks write it: a send and a receive return when they are complete. */
static void make_blocking(schedule *s) {
  schedule old = *s;
  s->items = calloc(2 * old.n, sizeof *s->items);
  assert_non_null(s->items);
  s->n = 0;
  for (uint32_t i = 0; i < old.n; i++) {
    nx_item item = old.items[i], other = item;
    bool received = item.port == NX_PORT_INPUT || item.port == NX_PORT_OUTPUT_GRADIENT;
    if (item.kind == NX_ITEM_RECV || (item.kind == NX_ITEM_WAIT && !received)) continue;
    other.kind = item.kind == NX_ITEM_SEND ? NX_ITEM_WAIT : NX_ITEM_RECV;
    if (item.kind == NX_ITEM_WAIT) s->items[s->n++] = other;
    s->items[s->n++] = item;
    if (item.kind == NX_ITEM_SEND) s->items[s->n++] = other;
  }
  free(old.items);
}

/* ---- what ends ---- */

static void every_generated_schedule_is_proved(void **state) {
  (void)state;
  static const char *const cases[] = {
      pipeline2, interleaved2,
      "mesh.world=4 mesh.pipeline=4 model.layers=4 batch.micro=1 batch.global=2",
      "mesh.world=4 mesh.pipeline=4 model.layers=4 batch.micro=1 batch.global=16",
      "mesh.world=8 mesh.pipeline=8 model.layers=9 batch.micro=1 batch.global=11",
      "mesh.world=4 mesh.pipeline=4 model.layers=12 mesh.virtual_pipeline=3 batch.micro=1 batch.global=7",
      "mesh.world=4 mesh.pipeline=4 model.layers=8 mesh.virtual_pipeline=2 batch.micro=1 batch.global=3",
      "mesh.world=4 mesh.pipeline=4 model.layers=8 mesh.virtual_pipeline=2 batch.micro=1 batch.global=9 "
      "pipeline.schedule=gpipe",
      "mesh.world=3 mesh.pipeline=3 model.layers=3 batch.micro=1 batch.global=20 pipeline.schedule=gpipe",
      "mesh.world=3 mesh.pipeline=3 model.layers=3 batch.micro=1 batch.global=4 model.tied_embeddings=true",
      "mesh.world=8 mesh.pipeline=8 model.layers=24 mesh.virtual_pipeline=3 batch.micro=1 batch.global=22",
      ahead5,
      tied4,
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    schedule s = begin(cases[i]);
    if (!is_proved(&s)) fail_msg("%s: %s", cases[i], s.fault.text);
    end(&s);
    s = begin_evaluation(cases[i]);
    if (!is_proved(&s)) fail_msg("%s, evaluated: %s", cases[i], s.fault.text);
    end(&s);
  }
}

/* Passes a simulator that buffers, and hangs from 16 kB on. */
static void blocking_sends_stop_1f1b_and_not_gpipe(void **state) {
  (void)state;
  static const char *const sizes[] = {
      "mesh.world=2 mesh.pipeline=2 model.layers=2 batch.micro=1 batch.global=4",
      "mesh.world=4 mesh.pipeline=4 model.layers=4 batch.micro=1 batch.global=8",
      "mesh.world=8 mesh.pipeline=8 model.layers=8 batch.micro=1 batch.global=16"};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    char gpipe[256];
    snprintf(gpipe, sizeof gpipe, "%s pipeline.schedule=gpipe", sizes[i]);
    schedule s = begin(sizes[i]);
    make_blocking(&s);
    expect(&s, "can not end", "wait for the output of chunk 0");
    s = begin(gpipe);
    make_blocking(&s);
    if (!is_proved(&s)) fail_msg("%s: %s", gpipe, s.fault.text);
    end(&s);
  }
}

/* ---- what does not ---- */

static void a_lost_send(void **state) {
  (void)state;
  schedule s = begin(pipeline2);
  drop(&s, find_port(&s, NX_ITEM_SEND, NX_PORT_OUTPUT, 0, 3));
  drop(&s, find_port(&s, NX_ITEM_WAIT, NX_PORT_OUTPUT, 0, 3));
  expect(&s, "can not end", "wait for the input of chunk 1, micro-batch 3");
}

static void a_lost_receive(void **state) {
  (void)state;
  schedule s = begin(pipeline2);
  drop(&s, find_port(&s, NX_ITEM_RECV, NX_PORT_INPUT, 1, 2));
  expect(&s, "nothing was started", "wait for the input of chunk 1, micro-batch 2");
}

static void a_lost_wait(void **state) {
  (void)state;
  schedule s = begin(pipeline2);
  drop(&s, find_port(&s, NX_ITEM_WAIT, NX_PORT_INPUT, 1, 1));
  expect(&s, "has not been received", "forward of chunk 1, micro-batch 1");
}

static void a_lost_wait_for_a_gradient(void **state) {
  (void)state;
  schedule s = begin(pipeline2);
  drop(&s, find_port(&s, NX_ITEM_WAIT, NX_PORT_OUTPUT_GRADIENT, 0, 0));
  expect(&s, "has not been received", "backward of chunk 0, micro-batch 0");
}

/* Megatron-LM #5100: what is exchanged is ordered differently at the two ends. */
static void ends_that_move_different_micro_batches(void **state) {
  (void)state;
  schedule s = begin("mesh.world=2 mesh.pipeline=2 batch.micro=1 batch.global=4 pipeline.schedule=gpipe");
  uint32_t one = find_port(&s, NX_ITEM_SEND, NX_PORT_OUTPUT, 0, 0);
  uint32_t other = find_port(&s, NX_ITEM_SEND, NX_PORT_OUTPUT, 0, 1);
  nx_item early = s.items[one];
  drop(&s, one);
  insert(&s, other, early); /* behind the other, which moved up by one */
  expect(&s, "moves another micro-batch", "chunk");
}

static void micro_batches_out_of_order(void **state) {
  (void)state;
  schedule s = begin(pipeline2);
  swap(&s, find(&s, NX_ITEM_FORWARD, 0, 0), find(&s, NX_ITEM_FORWARD, 0, 1));
  expect(&s, "out of order", "forward of chunk 0, micro-batch 1");
}

static void backward_before_forward(void **state) {
  (void)state;
  schedule s = begin(pipeline2);
  swap(&s, find(&s, NX_ITEM_FORWARD, 1, 0), find(&s, NX_ITEM_BACKWARD, 1, 0));
  expect(&s, "has not gone forward", "backward of chunk 1, micro-batch 0");
}

static void a_slot_used_twice(void **state) {
  (void)state;
  schedule s = begin(pipeline2);
  for (uint32_t i = 0; i < s.n; i++) s.items[i].slot = 0;
  expect(&s, "slot", "forward of chunk 0, micro-batch 1");
}

static void a_send_that_is_not_waited_for(void **state) {
  (void)state;
  schedule s = begin(pipeline2);
  drop(&s, find_port(&s, NX_ITEM_WAIT, NX_PORT_OUTPUT, 0, 0));
  expect(&s, "still holds", "chunk 0");
}

static void a_send_started_twice(void **state) {
  (void)state;
  schedule s = begin(pipeline2);
  uint32_t at = find_port(&s, NX_ITEM_SEND, NX_PORT_OUTPUT, 0, 0);
  insert(&s, at, s.items[at]);
  expect(&s, "a second time", "send of the output of chunk 0, micro-batch 0");
}

static void a_send_before_its_pass(void **state) {
  (void)state;
  schedule s = begin(pipeline2);
  swap(&s, find_port(&s, NX_ITEM_SEND, NX_PORT_INPUT_GRADIENT, 1, 0), find(&s, NX_ITEM_BACKWARD, 1, 0));
  expect(&s, "nothing to move yet", "stage 1");
}

static void a_step_too_early(void **state) {
  (void)state;
  schedule s = begin(pipeline2);
  move(&s, find(&s, NX_ITEM_STEP, 0, 0), find(&s, NX_ITEM_BACKWARD, 0, 3));
  expect(&s, "missing before it", "step of chunk 0");
}

static void a_stage_without_its_step(void **state) {
  (void)state;
  schedule s = begin(pipeline2);
  drop(&s, find(&s, NX_ITEM_STEP, 1, 0));
  expect(&s, "can not end", "step of chunk 0");
}

static void a_missing_micro_batch(void **state) {
  (void)state;
  schedule s = begin("batch.global=8");
  drop(&s, find(&s, NX_ITEM_BACKWARD, 0, 3));
  expect(&s, "missing before it", "step of chunk 0");
}

/* Megatron-LM PR 5240: the interleaved schedule, with the turns of one stage's chunks exchanged. */
static void chunks_in_another_order_on_one_stage(void **state) {
  (void)state;
  schedule s = begin(interleaved2);
  for (uint32_t m = 0; m < 2; m++) /* the second turn's receives go before the first turn's sends */
    move(&s, find_port(&s, NX_ITEM_WAIT, NX_PORT_INPUT, 2, m), find(&s, NX_ITEM_FORWARD, 0, 0));
  expect(&s, "nothing was started", "stage 0");
}

static void waiting_for_the_other_stage_first(void **state) {
  (void)state;
  schedule s = begin(pipeline2);
  uint32_t gradient = find_port(&s, NX_ITEM_RECV, NX_PORT_OUTPUT_GRADIENT, 0, 0);
  uint32_t wait = find_port(&s, NX_ITEM_WAIT, NX_PORT_OUTPUT_GRADIENT, 0, 0);
  uint32_t to = find_port(&s, NX_ITEM_SEND, NX_PORT_OUTPUT, 0, 0);
  assert_true(to < gradient && gradient < wait);
  move(&s, wait, to);
  move(&s, gradient + 1, to);
  expect(&s, "can not end", "wait for the output gradient of chunk 0, micro-batch 0");
}

static void an_update_before_the_norm(void **state) {
  (void)state;
  schedule s = begin(interleaved2);
  swap(&s, find_step(&s, 0, NX_WHEN_MIDDLE), find_step(&s, 0, NX_WHEN_LAST));
  expect(&s, "before the norm is known", "step of chunk 0");
}

static void a_norm_before_all_gradients(void **state) {
  (void)state;
  schedule s = begin(interleaved2);
  swap(&s, find_step(&s, 2, NX_WHEN_FIRST), find_step(&s, 0, NX_WHEN_MIDDLE));
  expect(&s, "not reduced yet", "stage 0");
}

/* MPI returns success where two ranks sum different counts. */
static void stages_that_sum_different_things(void **state) {
  (void)state;
  schedule s = begin(pipeline2);
  const nx_program *program = &s.plan.programs[s.plan.chunks[1].step];
  uint32_t sums[2], n = 0;
  for (uint32_t i = 0; i < program->n_operators && n < 2; i++)
    if (s.plan.operators[program->first_operator + i].op == NX_OP_all_reduce)
      sums[n++] = program->first_operator + i;
  assert_int_equal(n, 2); /* of the loss, and of the squares */
  /* The arena's bytes: nobody else reads them. */
  nx_operator *operators = (nx_operator *)(uintptr_t)s.plan.operators;
  nx_operator kept = operators[sums[0]];
  operators[sums[0]] = operators[sums[1]];
  operators[sums[1]] = kept;
  expect(&s, "another stage comes to another collective", "sums over pipeline stages");
}

/* ---- sums of some stages ---- */

static const char tied3[] = "mesh.world=3 mesh.pipeline=3 model.layers=3 batch.micro=1 batch.global=4 "
                            "model.tied_embeddings=true";

/* The `index`-th sum over stages in the step of a chunk: of the tied matrix where there is one, of the loss,
 * of the squares. */
static nx_operator *sum_of(const schedule *s, uint32_t chunk, uint32_t index) {
  const nx_program *program = &s->plan.programs[s->plan.chunks[chunk].step];
  for (uint32_t i = 0; i < program->n_operators; i++) {
    const nx_operator *op = &s->plan.operators[program->first_operator + i];
    if (op->op == NX_OP_all_reduce && index-- == 0) return (nx_operator *)(uintptr_t)op;
  }
  fail_msg("the step lacks a sum");
  return NULL;
}

static void a_stage_that_stays_away(void **state) {
  (void)state;
  schedule s = begin(tied3);
  sum_of(&s, 2, 0)->group = sum_of(&s, 2, 1)->group;
  expect(&s, "can not end", "stage 0 stands");
}

static void a_stage_that_is_not_in_the_group(void **state) {
  (void)state;
  schedule s = begin(tied3);
  int64_t *stages = (int64_t *)(uintptr_t)&s.plan.table[s.plan.groups[sum_of(&s, 0, 0)->group].stages];
  assert_int_equal(stages[1], 2);
  stages[1] = 1;
  expect(&s, "can not end", "stage 0 stands");
}

static void a_stage_that_comes_uninvited(void **state) {
  (void)state;
  schedule s = begin(tied3);
  sum_of(&s, 1, 0)->group = sum_of(&s, 0, 0)->group; /* the middle one sums its loss with nobody */
  expect(&s, "can not end", "stage 0 stands");
}

static void stages_that_sum_in_another_order(void **state) {
  (void)state;
  schedule s = begin(tied3);
  nx_operator *tied = sum_of(&s, 2, 0), *loss = sum_of(&s, 2, 1), kept = *tied;
  *tied = *loss;
  *loss = kept;
  expect(&s, "can not end", "stage 2 stands");
}

static void stages_that_sum_different_parts(void **state) {
  (void)state;
  schedule s = begin(tied3);
  const nx_operator *tied = sum_of(&s, 2, 0);
  for (uint32_t i = 0; i < 2; i++)
    ((nx_value *)(uintptr_t)&s.plan.values[s.plan.arguments[tied->first_argument + i]])->dims[0] -= 16;
  expect(&s, "another stage comes to another collective", "sums over pipeline stages");
}

/* ---- the picture ---- */

/* Gathers and reductions that overlap the passes: without any one of them, or of their waits, a plan is
 * refused. */
static void every_collective_and_every_wait_is_needed(void **state) {
  (void)state;
  static const char *const layouts[] = {
      "mesh.world=2 optimizer.zero_stage=3 reduce.overlap=true gather.overlap=true batch.micro=1",
      "mesh.world=4 optimizer.zero_stage=2 mesh.replicate=2 reduce.overlap=true gather.overlap=true "
      "batch.micro=1",
      "mesh.world=2 optimizer.zero_stage=1 reduce.overlap=true gather.overlap=true "
      "reduce.bucket_elements=3000",
      "mesh.world=2 reduce.overlap=true batch.micro=1",
      ("mesh.world=4 mesh.pipeline=2 mesh.virtual_pipeline=2 model.layers=4 optimizer.zero_stage=3 "
       "optimizer.reshard_after_forward=false reduce.overlap=true batch.micro=1"),
  };
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
    schedule s = begin(layouts[i]);
    uint32_t n = s.plan.n[NX_SECTION_OPERATORS], n_dropped = 0;
    nx_operator *operators = calloc(n, sizeof *operators);
    memcpy(operators, s.plan.operators, n * sizeof *operators);
    s.plan.operators = operators;
    assert_true(is_proved(&s));
    for (uint32_t op = 0; op < n; op++) {
      const nx_value *operand = &s.plan.values[s.plan.arguments[operators[op].first_argument]];
      if (!nx_op_is_collective(nx_op_find(operators[op].op)) || operand->arena == NX_ARENA_scalar) continue;
      uint8_t when = operators[op].when;
      operators[op].when = 0;
      if (is_proved(&s))
        fail_msg("%s: proved without %s of %s (operator %u)", layouts[i], nx_op_find(operators[op].op)->name,
                 nx_plan_string(&s.plan, operators[op].origin), op);
      operators[op].when = when;
      n_dropped++;
    }
    assert_true(n_dropped > 8);
    free(operators);
    end(&s);
  }
}

/* A terminal obeys control characters, and a line break makes one text look like two. */
static void strings_are_shown_without_control_characters(void **state) {
  (void)state;
  static nxc_plan_dump *const dumps[] = {nxc_dump_summary, nxc_dump_settings, nxc_dump_ops, nxc_dump_memory,
                                         nxc_dump_tensors};
  schedule s = begin(pipeline2);
  char *strings = malloc(s.plan.n[NX_SECTION_STRINGS]), *texts = malloc(s.plan.n[NX_SECTION_PROVENANCE_TEXT]);
  for (uint32_t i = 0; i < s.plan.n[NX_SECTION_STRINGS]; i++) strings[i] = s.plan.strings[i] ? '\033' : '\0';
  for (uint32_t i = 0; i < s.plan.n[NX_SECTION_PROVENANCE_TEXT]; i++)
    texts[i] = s.plan.provenance_text[i] ? '\r' : '\0';
  s.plan.strings = strings, s.plan.provenance_text = texts;
  for (size_t i = 0; i < sizeof dumps / sizeof *dumps; i++) {
    char *text = NULL;
    size_t n_bytes = 0;
    FILE *out = open_memstream(&text, &n_bytes);
    dumps[i](&s.plan, out);
    fclose(out);
    for (size_t at = 0; at < n_bytes; at++)
      if (text[at] == '\033' || text[at] == '\r') fail_msg("dump %zu prints a control character", i);
    free(text);
  }
  free(strings), free(texts);
  end(&s);
}

typedef struct drawing {
  char *text;
  size_t n_bytes;
} drawing;

static void draw(const nx_plan *plan, bool svg, drawing *to) {
  FILE *out = open_memstream(&to->text, &to->n_bytes);
  assert_non_null(out);
  if (svg)
    assert_true(nxc_draw_svg(plan, out));
  else
    nxc_dump_schedule(plan, out);
  fclose(out);
}

static void a_schedule_is_drawn(void **state) {
  (void)state;
  schedule s = begin("mesh.world=2 mesh.pipeline=2 batch.micro=1 batch.global=2 pipeline.schedule=gpipe");
  drawing lines = {0}, boxes = {0};
  draw(&s.plan, false, &lines);
  draw(&s.plan, true, &boxes);
  uint32_t n_boxes = 0;
  static const char *const parts[] = {"chunk 1    stage 1, layers 1 to 1, 2 slots\n", "\nstage 0    F0",
                                      "\nstage 1    ...", "\nbubble "};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (!strstr(lines.text, parts[i])) fail_msg("%s lacks %s", lines.text, parts[i]);
  double share = strtod(strstr(lines.text, "\nbubble ") + 8, NULL);
  /* (stages - 1) / (micro-batches + stages - 1), if all passes were equal */
  assert_true(share > 100.0 / 4 && share < 100.0 / 2);
  for (const char *at = boxes.text; (at = strstr(at, "stroke=\"#ffffff\"")) != NULL; at++) n_boxes++;
  static const char *const words[] = {">F forward pass<", ">B backward pass<", ">the stage waits<",
                                      ">stage 1<", ">time, in "};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) assert_non_null(strstr(boxes.text, words[i]));
  assert_int_equal(n_boxes, 8); /* 2 micro-batches forward and back on 2 stages */
  free(lines.text);
  free(boxes.text);
  end(&s);
}

/* ---- evaluations ---- */

static void an_evaluation_that_lacks_a_receive(void **state) {
  (void)state;
  schedule s = begin_evaluation(pipeline2);
  drop(&s, find_port(&s, NX_ITEM_RECV, NX_PORT_INPUT, 1, 2));
  expect(&s, "nothing was started", "wait for the input of chunk 1, micro-batch 2");
}

static void an_evaluation_in_a_slot_that_is_still_sent(void **state) {
  (void)state;
  schedule s = begin_evaluation(
      "mesh.world=2 mesh.pipeline=2 batch.micro=1 batch.global=8 pipeline.receive_ahead=false");
  drop(&s, find_port(&s, NX_ITEM_WAIT, NX_PORT_OUTPUT, 0, 0));
  expect(&s, "its slot still holds another micro-batch", "evaluation of chunk 0, micro-batch 2");
}

static void an_evaluation_without_the_sum_of_its_losses(void **state) {
  (void)state;
  schedule s = begin_evaluation("");
  drop(&s, find(&s, NX_ITEM_STEP, 0, 0));
  expect(&s, "does not end with the sum of the losses", "chunk 0");
}

static void an_evaluation_of_which_one_stage_sums(void **state) {
  (void)state;
  schedule s = begin_evaluation(pipeline2);
  drop(&s, find(&s, NX_ITEM_STEP, 1, 0));
  expect(&s, "can not end", "step of chunk 0");
}

static void an_evaluation_that_sums_too_early(void **state) {
  (void)state;
  schedule s = begin_evaluation("batch.micro=1 batch.global=4");
  move(&s, find(&s, NX_ITEM_STEP, 0, 0), find(&s, NX_ITEM_EVALUATE, 0, 3));
  expect(&s, "passes or transfers of a chunk are missing before it", "step of chunk 0");
}

static void an_evaluation_that_goes_back(void **state) {
  (void)state;
  schedule s = begin_evaluation(pipeline2);
  s.items[find(&s, NX_ITEM_EVALUATE, 0, 1)].kind = NX_ITEM_BACKWARD;
  expect(&s, "it is of another schedule", "backward of chunk 0, micro-batch 1");
}

static void an_evaluation_that_updates(void **state) {
  (void)state;
  schedule s = begin_evaluation("");
  s.items[find(&s, NX_ITEM_STEP, 0, 0)].when = NX_WHEN_ALWAYS;
  expect(&s, "it is of another schedule", "step of chunk 0");
}

/* An operator that writes where gradients are. */
static void an_evaluation_that_changes_gradients(void **state) {
  (void)state;
  schedule s = begin_evaluation("");
  const nx_operator *first = &s.plan.operators[s.plan.programs[s.plan.chunks[0].evaluate].first_operator];
  uint32_t n = s.plan.n[NX_SECTION_ARGUMENTS], *arguments = calloc(n, sizeof *arguments);
  assert_non_null(arguments);
  memcpy(arguments, s.plan.arguments, n * sizeof *arguments);
  arguments[first->first_argument + first->n_in] = s.plan.ranges[0].grad;
  s.plan.arguments = arguments;
  if (is_proved(&s)) fail_msg("it was accepted");
  assert_non_null(strstr(s.fault.text, "is of an evaluation and changes"));
  free(arguments);
  end(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_evaluation_that_lacks_a_receive),
      cmocka_unit_test(an_evaluation_in_a_slot_that_is_still_sent),
      cmocka_unit_test(an_evaluation_without_the_sum_of_its_losses),
      cmocka_unit_test(an_evaluation_that_sums_too_early),
      cmocka_unit_test(an_evaluation_that_goes_back),
      cmocka_unit_test(an_evaluation_that_updates),
      cmocka_unit_test(an_evaluation_that_changes_gradients),
      cmocka_unit_test(an_evaluation_of_which_one_stage_sums),
      cmocka_unit_test(every_generated_schedule_is_proved),
      cmocka_unit_test(blocking_sends_stop_1f1b_and_not_gpipe),
      cmocka_unit_test(a_lost_send),
      cmocka_unit_test(a_lost_receive),
      cmocka_unit_test(a_lost_wait),
      cmocka_unit_test(a_lost_wait_for_a_gradient),
      cmocka_unit_test(ends_that_move_different_micro_batches),
      cmocka_unit_test(micro_batches_out_of_order),
      cmocka_unit_test(backward_before_forward),
      cmocka_unit_test(a_slot_used_twice),
      cmocka_unit_test(a_send_that_is_not_waited_for),
      cmocka_unit_test(a_send_started_twice),
      cmocka_unit_test(a_send_before_its_pass),
      cmocka_unit_test(a_step_too_early),
      cmocka_unit_test(a_stage_without_its_step),
      cmocka_unit_test(a_missing_micro_batch),
      cmocka_unit_test(chunks_in_another_order_on_one_stage),
      cmocka_unit_test(waiting_for_the_other_stage_first),
      cmocka_unit_test(an_update_before_the_norm),
      cmocka_unit_test(a_norm_before_all_gradients),
      cmocka_unit_test(stages_that_sum_different_things),
      cmocka_unit_test(a_stage_that_stays_away),
      cmocka_unit_test(a_stage_that_is_not_in_the_group),
      cmocka_unit_test(a_stage_that_comes_uninvited),
      cmocka_unit_test(stages_that_sum_in_another_order),
      cmocka_unit_test(stages_that_sum_different_parts),
      cmocka_unit_test(every_collective_and_every_wait_is_needed),
      cmocka_unit_test(strings_are_shown_without_control_characters),
      cmocka_unit_test(a_schedule_is_drawn),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
