/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/logs/plot.h"

#include "runtime/files/fault.h"
#include "runtime/files/replace.h"
#include "runtime/logs/metrics_file.h"
#include "schema/regular.h"

#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
  WIDTH = 900,
  HEIGHT = 480,
  LEFT = 70,
  RIGHT = 20,
  TOP = 30,
  BOTTOM = 45,
  MOST_RUNS = 32,
  MOST_POINTS = 1000
};
enum { N_TICKS = 5, LEGEND_LINE = 16 };
#define BEGINNING "<svg"
static const char USAGE[] =
    "usage: nxrun plot [-o FILE] [--metric NAME] [--set NAME] DIR...\n"
    "Draws a metric of runs over their steps, as SVG on standard output or in FILE; DIR is a run's folder, "
    "or a file of\n"
    "metrics. NAME is a field of metrics.jsonl (loss); --set takes it from the evaluations of a set.\n";
static const char *const COLOURS[] = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd",
                                      "#ff7f0e", "#17becf", "#8c564b", "#e377c2"};
enum { N_COLOURS = sizeof COLOURS / sizeof *COLOURS };

typedef struct curve {
  const char *name;
  double (*points)[2];
  size_t n;
} curve;

typedef struct plot {
  const char *output, *metric, *set;
  curve curves[MOST_RUNS];
  size_t n;
  double least[2], most[2];
} plot;

/* ---- reading ---- */

static bool add_point(curve *to, double step, double value) {
  if ((to->n & (to->n - 1)) == 0) { /* a power of two, or none: there is room for no more */
    void *longer = realloc(to->points, (to->n ? 2 * to->n : 1) * sizeof *to->points);
    if (longer == NULL) return false;
    to->points = longer;
  }
  to->points[to->n][0] = step, to->points[to->n++][1] = value;
  return true;
}

/* Lines that are no row of the metric are passed over, as half a line at the end is. */
static bool read_row(const plot *of, const char *line, curve *to) {
  json_t *row = json_loads(line, 0, NULL);
  const json_t *value = json_object_get(row, of->metric), *step = json_object_get(row, "step");
  const char *set = json_string_value(json_object_get(row, "set"));
  bool same_set = of->set ? set && strcmp(set, of->set) == 0 : set == NULL;
  bool good = !same_set || !json_is_number(value) || !json_is_number(step) ||
              add_point(to, json_number_value(step), json_number_value(value));
  json_decref(row);
  return good;
}

static bool read_curve(const plot *of, const char *path, curve *to) {
  char name[4096], line[NXR_METRICS_LINE_BYTES];
  snprintf(name, sizeof name, "%s/metrics.jsonl", path);
  FILE *file = nx_regular_open(name);
  bool folder = file == NULL && errno != ENOTDIR && access(path, F_OK) == 0; /* with none, or that is shut */
  if (file == NULL && !folder) file = nx_regular_open(path);
  *to = (curve){.name = path};
  bool good = file != NULL;
  while (good && fgets(line, sizeof line, file)) good = read_row(of, line, to);
  if (!good) nxr_print(stderr, "nxrun: cannot read %s: %s\n", folder ? name : path, strerror(errno));
  else if (to->n == 0)
    nxr_print(stderr, "nxrun: %s has no %s%s%s\n", path, of->metric, of->set ? " of the set " : "",
            of->set ? of->set : "");
  if (file) fclose(file);
  return good && to->n > 0;
}

static void find_range(plot *of) {
  for (int axis = 0; axis < 2; axis++) {
    of->least[axis] = INFINITY, of->most[axis] = -INFINITY;
    for (size_t i = 0; i < of->n; i++)
      for (size_t j = 0; j < of->curves[i].n; j++) {
        of->least[axis] = fmin(of->least[axis], of->curves[i].points[j][axis]);
        of->most[axis] = fmax(of->most[axis], of->curves[i].points[j][axis]);
      }
    if (of->most[axis] > of->least[axis]) continue;
    of->least[axis] -= 0.5, of->most[axis] += 0.5;
  }
}

/* ---- drawing ---- */

static double place_x(const plot *of, double x) {
  return LEFT + (x - of->least[0]) / (of->most[0] - of->least[0]) * (WIDTH - LEFT - RIGHT);
}

static double place_y(const plot *of, double y) {
  return HEIGHT - BOTTOM - (y - of->least[1]) / (of->most[1] - of->least[1]) * (HEIGHT - TOP - BOTTOM);
}

static void print_text(FILE *out, const char *text) {
  for (; *text; text++) {
    if (*text == '<') fputs("&lt;", out);
    else if (*text == '>') fputs("&gt;", out);
    else if (*text == '&') fputs("&amp;", out);
    else fputc(*text, out);
  }
}

static void draw_axes(const plot *of, FILE *out) {
  for (int i = 0; i <= N_TICKS; i++) {
    double x = of->least[0] + (of->most[0] - of->least[0]) * i / N_TICKS;
    double y = of->least[1] + (of->most[1] - of->least[1]) * i / N_TICKS;
    fprintf(out,
            "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/><text x=\"%d\" y=\"%.1f\" "
            "text-anchor=\"end\">%.4g</text>\n",
            LEFT, place_y(of, y), WIDTH - RIGHT, LEFT - 6, place_y(of, y) + 4, y);
    fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.6g</text>\n", place_x(of, x),
            HEIGHT - BOTTOM + 18, round(x));
  }
  fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">step</text>\n<text x=\"%d\" y=\"18\">",
          WIDTH / 2, HEIGHT - 8, LEFT);
  print_text(out, of->metric);
  fputs("</text>\n", out);
}

/* Of many points the mean of each few that follow one another. */
static void draw_curve(const plot *of, size_t index, FILE *out) {
  const curve *c = &of->curves[index];
  const char *colour = COLOURS[index % N_COLOURS];
  size_t few = (c->n + MOST_POINTS - 1) / MOST_POINTS;
  fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" points=\"", colour);
  for (size_t i = 0; i < c->n; i += few) {
    double x = 0, y = 0;
    size_t n = c->n - i < few ? c->n - i : few;
    for (size_t j = i; j < i + n; j++) x += c->points[j][0] / (double)n, y += c->points[j][1] / (double)n;
    fprintf(out, "%.1f,%.1f ", place_x(of, x), place_y(of, y));
  }
  fprintf(out, "\"/>\n<text x=\"%d\" y=\"%d\" text-anchor=\"end\" fill=\"%s\">", WIDTH - RIGHT - 4,
          TOP + (int)index * LEGEND_LINE, colour);
  print_text(out, c->name);
  fprintf(out, " (%.4g)</text>\n", c->points[c->n - 1][1]);
}

static void print_plot(const plot *of, FILE *out) {
  fprintf(out,
          BEGINNING " xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
          "font-size=\"12\">\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
          WIDTH, HEIGHT, WIDTH, HEIGHT);
  draw_axes(of, out);
  for (size_t i = 0; i < of->n; i++) draw_curve(of, i, out);
  fputs("</svg>\n", out);
}

static bool draw(const plot *of) {
  nxr_fault fault = {""};
  nxr_replacing to;
  bool good = nxr_replace_open(&to, of->output, BEGINNING, &fault);
  if (good) print_plot(of, to.file);
  good = good && nxr_replace_finish(&to, &fault);
  if (!good) nxr_print(stderr, "nxrun: %s\n", fault.text);
  nxr_replace_close(&to);
  return good;
}

int nxr_plot(int argc, char **argv) {
  plot of = {.metric = "loss"};
  static const struct option options[] = {
      {"metric", required_argument, NULL, 'm'}, {"set", required_argument, NULL, 's'}, {0}};
  int option;
  opterr = 0;
  while ((option = getopt_long(argc, argv, "o:", options, NULL)) != -1) {
    if (option == 'o') of.output = optarg;
    else if (option == 'm') of.metric = optarg;
    else if (option == 's') of.set = optarg;
    else break;
  }
  int at = optind;
  if (option != -1 || at >= argc || argc - at > MOST_RUNS) {
    fputs(USAGE, stderr);
    return 2;
  }
  bool good = true;
  for (; good && at < argc; at++) good = read_curve(&of, argv[at], &of.curves[of.n++]);
  if (good) find_range(&of);
  good = good && draw(&of);
  for (size_t i = 0; i < of.n; i++) free(of.curves[i].points);
  return good ? 0 : 1;
}
