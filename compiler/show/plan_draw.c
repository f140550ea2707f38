/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule as a picture: a line for each stage, time from left to right, a box for each pass. A pass
 * takes as long as its operations are many, and transfers take no time: what is empty is the bubble. Of a
 * batch that grows it is the full one. */
#include "compiler/show/plan_dump.h"

#include <stdlib.h>
#include <string.h>

typedef struct timeline {
  const nx_plan *plan;
  uint32_t n_stages;
  double *seconds, *begin, *end; /* per item, in forward passes of the busiest chunk */
  double length;                 /* of all passes together, from the first to the last */
  double busy;                   /* of all stages */
} timeline;

static bool is_pass(const nx_item *item) {
  return item->kind == NX_ITEM_FORWARD || item->kind == NX_ITEM_BACKWARD;
}

/* Of the operators with one of these bits: those of a first micro-batch, once of what has two forms. */
static double operations(const nx_plan *plan, uint32_t program, uint8_t when) {
  double sum = 0;
  if (program == NX_NONE) return 0;
  for (uint32_t i = 0; i < plan->programs[program].n_operators; i++) {
    const nx_operator *op = &plan->operators[plan->programs[program].first_operator + i];
    if (op->when & when) sum += (double)op->flops;
  }
  return sum;
}

/* By kind_of, in operations. */
typedef struct pass_costs {
  double of[3];
} pass_costs;

static double cost_of(const pass_costs *costs, const nx_item *item) {
  bool now = item->kind == NX_ITEM_BACKWARD && nx_when_now(item->when) != 0,
       later = nx_when_now(item->when) != item->when;
  if (item->kind == NX_ITEM_FORWARD) return costs->of[0];
  return (now ? costs->of[1] : 0) + (later ? costs->of[2] : 0);
}

static void measure(timeline *t) {
  const nx_plan *plan = t->plan;
  double unit = 1;
  pass_costs *costs = calloc(plan->n[NX_SECTION_CHUNKS], sizeof *costs);
  for (uint32_t c = 0; costs && c < plan->n[NX_SECTION_CHUNKS]; c++) {
    const nx_chunk *chunk = &plan->chunks[c];
    costs[c] = (pass_costs){{operations(plan, chunk->forward, NX_WHEN_FIRST),
                             operations(plan, chunk->backward, NX_WHEN_FIRST),
                             operations(plan, chunk->backward, nx_when_later(NX_WHEN_FIRST))}};
    if (costs[c].of[0] > unit) unit = costs[c].of[0];
  }
  for (uint32_t i = 0; costs && i < plan->schedules[0].n_items; i++) {
    const nx_item *item = &plan->items[i];
    if (is_pass(item)) t->seconds[i] = cost_of(&costs[item->chunk], item) / unit;
    t->busy += t->seconds[i];
  }
  free(costs);
}

static void timeline_close(timeline *t) {
  free(t->seconds);
  free(t->begin);
  free(t->end);
}

static bool timeline_open(const nx_plan *plan, timeline *t) {
  nx_fault fault;
  size_t n = plan->schedules[0].n_items;
  *t = (timeline){.plan = plan, .n_stages = nx_plan_n_stages(plan)};
  t->seconds = calloc(n, sizeof *t->seconds);
  t->begin = calloc(n, sizeof *t->begin);
  t->end = calloc(n, sizeof *t->end);
  bool good = t->seconds && t->begin && t->end;
  if (good) measure(t);
  good = good && nx_schedule_walk(plan, nx_plan_schedule(plan, NX_SCHEDULE_TRAIN), t->seconds, t->begin,
                                  t->end, &fault);
  for (size_t i = 0; good && i < n; i++)
    if (is_pass(&plan->items[i]) && t->end[i] > t->length) t->length = t->end[i];
  if (!good) timeline_close(t);
  return good;
}

/* Of the time of all stages, the share in which they wait for others. */
static double bubble(const timeline *t) {
  return t->length > 0 ? 1 - t->busy / (t->length * t->n_stages) : 0;
}

/* Chunks of its stage that stand before it in the model. */
static uint32_t turn_of(const nx_plan *plan, uint32_t chunk) {
  uint32_t turn = 0;
  for (uint32_t c = 0; c < chunk; c++) turn += plan->chunks[c].stage == plan->chunks[chunk].stage;
  return turn;
}

/* By kind: forward, backward, and what is cut off it. */
static uint32_t kind_of(const nx_item *item) {
  return item->kind == NX_ITEM_FORWARD ? 0 : nx_when_now(item->when) ? 1 : 2;
}

/* "F3", with the chunk's letter where a stage has several. */
static int label(const timeline *t, const nx_item *item, char *text, size_t room) {
  uint32_t n_chunks = t->plan->n[NX_SECTION_CHUNKS];
  char letter[2] = {n_chunks > t->n_stages ? (char)('a' + turn_of(t->plan, item->chunk) % 26) : '\0', '\0'};
  return snprintf(text, room, "%c%u%s", "FBW"[kind_of(item)], item->micro_batch, letter);
}

enum { MOST_COLUMNS = 2000 };

/* A letter and the number of the micro-batch where a pass begins, dashes to its end, dots where the stage
 * waits. */
static void draw_stage(const timeline *t, uint32_t stage, double columns_per_unit, char *line,
                       size_t n_columns) {
  memset(line, '.', n_columns);
  line[n_columns] = '\0';
  for (uint32_t i = 0; i < t->plan->schedules[0].n_items; i++) {
    const nx_item *item = &t->plan->items[i];
    char text[24];
    if (item->stage != stage || !is_pass(item)) continue;
    size_t first = (size_t)(t->begin[i] * columns_per_unit + 0.5);
    size_t end = (size_t)(t->end[i] * columns_per_unit + 0.5);
    int n = label(t, item, text, sizeof text);
    for (size_t at = first; at < end && at < n_columns; at++)
      line[at] = at - first < (size_t)n ? text[at - first] : at + 1 == end ? ' ' : '-';
  }
}

static void draw_text(const timeline *t, FILE *out) {
  char text[24];
  const nx_item last = {.kind = NX_ITEM_FORWARD, .micro_batch = t->plan->run->n_micro_batches - 1};
  double columns_per_unit = label(t, &last, text, sizeof text) + 1;
  size_t n_columns = (size_t)(t->length * columns_per_unit + 1.5);
  bool is_cut = n_columns > MOST_COLUMNS;
  if (is_cut) n_columns = MOST_COLUMNS;
  char *line = malloc(n_columns + 1);
  for (uint32_t stage = 0; line && stage < t->n_stages; stage++) {
    draw_stage(t, stage, columns_per_unit, line, n_columns);
    fprintf(out, "stage %-4u %s%s\n", stage, line, is_cut ? " ..." : "");
  }
  free(line);
}

static void print_stages(const nx_plan *plan, FILE *out) {
  for (uint32_t c = 0; c < plan->n[NX_SECTION_CHUNKS]; c++) {
    const nx_chunk *chunk = &plan->chunks[c];
    fprintf(out, "chunk %-4u stage %u, layers %u to %u, %u slot%s\n", c, chunk->stage, chunk->first_layer,
            chunk->first_layer + chunk->n_layers - 1, chunk->n_slots, chunk->n_slots == 1 ? "" : "s");
  }
}

static bool is_cut(const nx_plan *plan) {
  bool cut = false;
  for (uint32_t c = 0; c < plan->n[NX_SECTION_CHUNKS]; c++) cut |= nx_chunk_is_cut(plan, &plan->chunks[c]);
  return cut;
}

void nxc_dump_schedule(const nx_plan *plan, FILE *out) {
  timeline t;
  fprintf(out, "F forward, B backward%s, each with its micro-batch; slots hold what a backward pass needs\n",
          is_cut(plan) ? ", W its weights' part" : "");
  print_stages(plan, out);
  if (!timeline_open(plan, &t)) return;
  draw_text(&t, out);
  fprintf(out,
          "bubble     %.1f %% of the stages' time: passes last as their operations are many, transfers no "
          "time\n",
          100 * bubble(&t));
  timeline_close(&t);
}

/* ---- the picture ---- */

enum { LEFT = 80, TOP = 64, ROW = 30, BOX = 24, WIDTH = 1200, AXIS = 44 };

/* By direction, then by the chunk's turn on its stage. */
static const char *const colours[3][4] = {{"#8ecae6", "#6fb3d6", "#b7ddf0", "#559bc2"},
                                          {"#ffb703", "#f79d00", "#ffd166", "#e08b00"},
                                          {"#c9b458", "#a8923a", "#ddcc7a", "#8f7b2c"}};

static void draw_key(double x, const char *colour, const char *text, FILE *out) {
  fprintf(out, "<rect x=\"%.0f\" y=\"36\" width=\"14\" height=\"14\" fill=\"%s\"/>\n"
               "<text x=\"%.0f\" y=\"47\">%s</text>\n", x, colour, x + 20, text);
}

static void draw_legend(const timeline *t, FILE *out) {
  draw_key(10, colours[0][0], "F forward pass", out);
  draw_key(140, colours[1][0], "B backward pass", out);
  draw_key(280, "#eeeeee", "the stage waits", out);
  fputs("<text x=\"410\" y=\"47\">a number is the micro-batch", out);
  if (t->plan->n[NX_SECTION_CHUNKS] > t->n_stages) fputs(", a letter the chunk of the stage", out);
  fputs("</text>\n", out);
  if (is_cut(t->plan)) draw_key(780, colours[2][0], "W its weights' part", out);
}

double nxc_tick(double length) {
  double power = 1;
  while (length / power > 10) power *= 10;
  while (length / power < 1) power /= 10;
  return length / power <= 2 ? power / 5 : length / power <= 5 ? power / 2 : power;
}

static void draw_axis(const timeline *t, FILE *out) {
  double bottom = TOP + ROW * (double)t->n_stages, step = nxc_tick(t->length);
  for (int i = 0; i * step <= t->length; i++) {
    double x = LEFT + i * step / t->length * WIDTH;
    fprintf(out, "<line x1=\"%.2f\" x2=\"%.2f\" y1=\"%.0f\" y2=\"%.0f\" stroke=\"#555555\"/>\n"
                 "<text x=\"%.2f\" y=\"%.0f\" text-anchor=\"middle\">%g</text>\n",
            x, x, bottom, bottom + 5, x, bottom + 18, i * step);
  }
  fprintf(out,
          "<text x=\"%d\" y=\"%.0f\" text-anchor=\"middle\">time, in forward passes of the chunk that has "
          "most to compute</text>\n",
          LEFT + WIDTH / 2, bottom + 36);
}

static void draw_box(const timeline *t, uint32_t index, FILE *out) {
  const nx_item *item = &t->plan->items[index];
  char text[24];
  double scale = WIDTH / t->length, x = LEFT + t->begin[index] * scale;
  double width = (t->end[index] - t->begin[index]) * scale;
  unsigned y = TOP + ROW * item->stage;
  const char *colour = colours[kind_of(item)][turn_of(t->plan, item->chunk) % 4];
  int n = label(t, item, text, sizeof text);
  fprintf(out, "<rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\" fill=\"%s\" stroke=\"#ffffff\" "
               "stroke-width=\"0.5\"/>\n", x, y, width, BOX, colour);
  if (width > 7.5 * n)
    fprintf(out, "<text x=\"%.2f\" y=\"%u\" text-anchor=\"middle\">%s</text>\n", x + width / 2, y + 16, text);
}

bool nxc_draw_svg(const nx_plan *plan, FILE *out) {
  timeline t;
  if (!timeline_open(plan, &t)) return false;
  unsigned height = TOP + ROW * t.n_stages + AXIS;
  fprintf(out,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" font-family=\"sans-serif\" "
          "font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
          LEFT + WIDTH + 20, height);
  fprintf(out,
          "<text x=\"10\" y=\"20\" font-size=\"13\">%u stage%s, %u micro-batches, bubble %.1f %%</text>\n",
          t.n_stages, t.n_stages == 1 ? "" : "s", plan->run->n_micro_batches, 100 * bubble(&t));
  for (uint32_t stage = 0; stage < t.n_stages; stage++)
    fprintf(out, "<text x=\"10\" y=\"%u\">stage %u</text>\n"
                 "<rect x=\"%d\" y=\"%u\" width=\"%d\" height=\"%d\" fill=\"#eeeeee\"/>\n",
            TOP + ROW * stage + 16, stage, LEFT, TOP + ROW * stage, WIDTH, BOX);
  for (uint32_t i = 0; i < plan->schedules[0].n_items; i++)
    if (is_pass(&plan->items[i])) draw_box(&t, i, out);
  draw_legend(&t, out);
  draw_axis(&t, out);
  fputs("</svg>\n", out);
  timeline_close(&t);
  return ferror(out) == 0;
}
