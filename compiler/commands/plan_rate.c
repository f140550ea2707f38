/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/plan_rate.h"

#include "compiler/commands/output.h"
#include "compiler/program/records/training.h"
#include "compiler/render/screen.h"
#include "compiler/show/plan_dump.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_LINES = 40, BAR = 40, POINTS = 1000, WIDTH = 1000, HEIGHT = 300, LEFT = 80, TOP = 30, BELOW = 50 };

/* The step with which a segment begins to hold. */
static int64_t begins(const nxc_training *t, size_t segment) {
  int64_t first = t->rate.segments[segment].first;
  return t->rate.by_samples ? nxc_batch_step_behind(&t->batch, first) + t->rate.samples_late : first;
}

static double most(const nxc_training *t) {
  double top = 0, last = (double)(t->rate.max_steps - 1);
  for (int64_t i = 0; i <= POINTS; i++)
    top = fmax(top, nxc_training_rate_at(t, (int64_t)((double)i / POINTS * last)));
  for (size_t i = 0; i < t->rate.n_segments; i++)
    if (begins(t, i) < t->rate.max_steps) top = fmax(top, nxc_training_rate_at(t, begins(t, i)));
  return top;
}

/* The next one behind `step` that is shown. */
static int64_t next_shown(const nxc_training *t, int64_t step, int64_t every) {
  int64_t next = (step / every + 1) * every, last = t->rate.max_steps - 1;
  for (size_t i = 0; i < t->rate.n_segments; i++)
    if (begins(t, i) > step && begins(t, i) < next) next = begins(t, i);
  return next > last && step < last ? last : next;
}

static void print(const nxc_training *t, FILE *out) {
  int64_t n_steps = t->rate.max_steps, every = n_steps > N_LINES ? (n_steps + N_LINES - 1) / N_LINES : 1;
  double top = most(t);
  int room = nxc_screen_columns(out) - 24, bar = room < BAR ? room : BAR;
  fprintf(out, "%10s  learning rate\n", "step");
  for (int64_t step = 0; step < n_steps; step = next_shown(t, step, every)) {
    double value = nxc_training_rate_at(t, step);
    int n = top > 0 ? (int)(value / top * bar + 0.5) : 0;
    fprintf(out, "%10lld  %-12.6g%.*s\n", (long long)step + 1, value, n,
            "########################################");
  }
}

/* At round numbers, but not where the ends of the axes are told. */
static void draw_ticks(double top, double last, FILE *out) {
  static const char tick[] = "<path d=\"M%.1f %.1f h%d v%d\" stroke=\"#555555\"/>\n"
                             "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%.10g</text>\n";
  for (double rate = nxc_tick(top); rate < 0.95 * top; rate += nxc_tick(top)) {
    double y = TOP + (1 - rate / top) * HEIGHT;
    fprintf(out, tick, LEFT - 5.0, y, 5, 0, LEFT - 8.0, y + 4, "end", rate);
  }
  for (double step = nxc_tick(last); step < 0.9 * last; step += nxc_tick(last)) {
    double x = LEFT + (step - 1) / last * WIDTH;
    fprintf(out, tick, x, TOP + HEIGHT + 0.0, 0, 5, x, TOP + HEIGHT + 18.0, "middle", step);
  }
}

static bool draw_curve(const nxc_training *t, FILE *out) {
  double top = most(t), last = (double)(t->rate.max_steps - 1);
  fprintf(
      out,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
      "font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n"
      "<text x=\"10\" y=\"18\" font-size=\"13\">learning rate of %lld steps</text>\n"
      "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%g</text>\n<text x=\"%d\" y=\"%d\" "
      "text-anchor=\"end\">0</text>\n"
      "<text x=\"%d\" y=\"%d\">step 1</text>\n<text x=\"%d\" y=\"%d\" text-anchor=\"end\">step %lld</text>\n"
      "<path d=\"M%d %d V%d H%d\" fill=\"none\" stroke=\"#555555\"/>\n"
      "<polyline fill=\"none\" stroke=\"#559bc2\" stroke-width=\"1.5\" points=\"",
      LEFT + WIDTH + 20, TOP + HEIGHT + BELOW, (long long)t->rate.max_steps, LEFT - 8, TOP + 4, top, LEFT - 8,
      TOP + HEIGHT, LEFT, TOP + HEIGHT + 18, LEFT + WIDTH, TOP + HEIGHT + 18, (long long)t->rate.max_steps,
      LEFT, TOP, TOP + HEIGHT, LEFT + WIDTH);
  for (int i = 0; i <= POINTS; i++) {
    int64_t step = (int64_t)((double)i / POINTS * last + 0.5);
    double share = top > 0 ? nxc_training_rate_at(t, step) / top : 0;
    fprintf(out, "%.1f,%.2f ", LEFT + (last > 0 ? (double)step / last : 0) * WIDTH,
            TOP + (1 - share) * HEIGHT);
  }
  fputs("\"/>\n", out);
  if (top > 0 && last >= 10) draw_ticks(top, last, out);
  fputs("</svg>\n", out);
  return ferror(out) == 0;
}

static bool draw(nxc_arena *arena, const nxc_training *training, const char *file) {
  char *picture = NULL;
  size_t n_bytes = 0;
  FILE *out = open_memstream(&picture, &n_bytes);
  bool good = out != NULL && draw_curve(training, out);
  if (out != NULL && fclose(out) != 0) good = false;
  if (!good) fputs("nxcfg plan: out of memory\n", stderr);
  good = good && nxc_output_write(arena, "plan", file, picture, n_bytes);
  free(picture);
  return good;
}

/* One option may set several of them. */
static bool lacks(const nxc_settings *settings, const nxc_setting_id *ids, size_t n) {
  enum { NAMED = 4 };
  const char *last = "";
  size_t n_named = 0;
  fputs("nxcfg plan: the learning rate is not known: it needs ", stderr);
  for (size_t i = 0; i < n && n_named < NAMED; i++) {
    const char *name = nxc_setting_name_in_dialect(settings, ids[i]);
    if (strcmp(name, last) != 0) fprintf(stderr, "%s%s", n_named++ ? ", " : "", name);
    last = name;
  }
  fputs(n > NAMED ? " and others\n" : n > 0 ? "\n" : "a step at least\n", stderr);
  return false;
}

bool nxc_rate_show(nxc_arena *arena, const nxc_settings *settings, bool prints, const char *svg) {
  nxc_training training;
  nxc_setting_id missing[NX_N_SETTINGS];
  size_t n = nxc_training_read_rate(settings, &training, missing);
  bool known = n == 0 && training.rate.n_segments > 0 && training.rate.max_steps > 0;
  if (!known) return lacks(settings, missing, n);
  if (svg != NULL && !draw(arena, &training, svg)) return false;
  if (prints) print(&training, stdout);
  return true;
}
