/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/plan_rate.h"

enum { N_LINES = 40, BAR = 40, POINTS = 1000, WIDTH = 1000, HEIGHT = 300, LEFT = 80, TOP = 30, BELOW = 50 };

static double most(const nxc_learning_rate *rate) {
  double top = 0;
  for (int64_t i = 0; i <= POINTS; i++)
    top =
        fmax(top, nxc_learning_rate_at(rate, (int64_t)((double)i / POINTS * (double)(rate->max_steps - 1))));
  for (size_t i = 0; i < rate->n_segments; i++)
    if (rate->segments[i].first < rate->max_steps)
      top = fmax(top, nxc_learning_rate_at(rate, rate->segments[i].first));
  return top;
}

/* The next one behind `step` that is shown. */
static int64_t next_shown(const nxc_learning_rate *rate, int64_t step, int64_t every) {
  int64_t next = (step / every + 1) * every, last = rate->max_steps - 1;
  for (size_t i = 0; i < rate->n_segments; i++)
    if (rate->segments[i].first > step && rate->segments[i].first < next) next = rate->segments[i].first;
  return next > last && step < last ? last : next;
}

void nxc_rate_print(const nxc_learning_rate *rate, FILE *out) {
  int64_t every = rate->max_steps > N_LINES ? (rate->max_steps + N_LINES - 1) / N_LINES : 1;
  double top = most(rate);
  fprintf(out, "%10s  learning rate\n", "step");
  for (int64_t step = 0; step < rate->max_steps; step = next_shown(rate, step, every)) {
    double value = nxc_learning_rate_at(rate, step);
    int n = top > 0 ? (int)(value / top * BAR + 0.5) : 0;
    fprintf(out, "%10lld  %-12.6g%.*s\n", (long long)step + 1, value, n,
            "########################################");
  }
}

bool nxc_rate_draw(const nxc_learning_rate *rate, FILE *out) {
  double top = most(rate), last = (double)(rate->max_steps - 1);
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
      LEFT + WIDTH + 20, TOP + HEIGHT + BELOW, (long long)rate->max_steps, LEFT - 8, TOP + 4, top, LEFT - 8,
      TOP + HEIGHT, LEFT, TOP + HEIGHT + 18, LEFT + WIDTH, TOP + HEIGHT + 18, (long long)rate->max_steps,
      LEFT, TOP, TOP + HEIGHT, LEFT + WIDTH);
  for (int i = 0; i <= POINTS; i++) {
    int64_t step = (int64_t)((double)i / POINTS * last + 0.5);
    double share = top > 0 ? nxc_learning_rate_at(rate, step) / top : 0;
    fprintf(out, "%.1f,%.2f ", LEFT + (last > 0 ? (double)step / last : 0) * WIDTH,
            TOP + (1 - share) * HEIGHT);
  }
  fputs("\"/>\n</svg>\n", out);
  return ferror(out) == 0;
}
