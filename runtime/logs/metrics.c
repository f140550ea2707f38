/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/logs/metrics.h"

#include "runtime/files/fault.h"
#include "schema/plan.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* What a line for people says of a row, where the row has it. Speed stands among them by itself: it is that
 * of all steps since the line before. */
static const struct {
  const char *name, *format;
  double unit;
  bool spare; /* left out first where a screen is narrow */
} shown[] = {
    {"loss", "  loss %.4f", 1},
    {"perplexity", "  perplexity %.4g", 1},
    {"bits_per_byte", "  bits/byte %.4f", 1},
    {"nll", "  nll %.4f", 1, true},
    {"rewards_accuracy", "  accuracy %.3f", 1},
    {"rewards_margin", "  margin %.4g", 1},
    {"log_odds", "  log odds %.4g", 1, true},
    {"lr", "  lr %.3g", 1, true},
    {"grad_norm", "  grad norm %.3f", 1, true},
    {"parameter_norm", "  parameter norm %.5g", 1, true},
    {"zeros", "  %.0f zeros", 1, true},
    {"loss_scale", "  loss scale %g", 1, true},
    {"skipped", "  %.0f skipped", 1},
    {"batches", "  %.0f batches", 1},
    {"tokens_per_s", NULL, 1},
    {"mfu", "  MFU %.1f %%", 0.01, true},
    {"memory_bytes", "  %.0f MiB", 1048576, true},
};

/* What TensorBoard is given where the plan says so. */
static const struct {
  const char *name;
  uint32_t shows;
} switched[] = {{"memory_bytes", NX_SHOWS_MEMORY},
                {"loss_scale", NX_SHOWS_LOSS_SCALE},
                {"perplexity", NX_SHOWS_PERPLEXITY},
                {"grad_norm", NX_SHOWS_GRADIENT_NORM},
                {"world_size", NX_SHOWS_WORLD_SIZE}};
static const char SPEED[] = "tokens_per_s";
enum { N_SHOWN = sizeof shown / sizeof *shown };

bool nxr_metrics_open(nxr_metrics *metrics, const char *path, uint64_t n_steps, nxr_fault *fault) {
  metrics->terminal = metrics->log == NXR_LOG_TEXT && isatty(STDOUT_FILENO);
  metrics->memory = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  return path == NULL || nxr_metrics_file_open(&metrics->file, path, n_steps, fault);
}

void nxr_metrics_close(nxr_metrics *metrics, int status) {
  nxr_metrics_end_line(metrics);
  nxr_metrics_file_close(&metrics->file);
  nxr_events_close(&metrics->events);
  nxr_wandb_close(&metrics->wandb, status);
  if (metrics->memory > 0) close(metrics->memory);
}

/* Private pages, and this rank's own part of the window: pages of the window that others own are theirs. */
uint64_t nxr_metrics_memory(const nxr_metrics *metrics) {
  char text[128];
  unsigned long long size, resident, shared;
  ssize_t length = pread(metrics->memory, text, sizeof text - 1, 0);
  if (length <= 0) return 0;
  text[length] = '\0';
  if (sscanf(text, "%llu %llu %llu", &size, &resident, &shared) != 3) return 0;
  return (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE) + metrics->window_bytes;
}

void nxr_metrics_end_line(nxr_metrics *metrics) {
  if (metrics->line_open) putchar('\n');
  metrics->line_open = false;
  fflush(stdout);
}

/* ---- rows ---- */

void nxr_metrics_add(nxr_metrics_row *row, const char *name, double value) {
  assert(row->n < NXR_MOST_METRICS);
  row->items[row->n++] = (nxr_metric){name, isnan(value) ? fabs(value) : value}; /* whose sign says nothing */
}

static const nxr_metric *find(const nxr_metrics_row *row, const char *name) {
  for (uint32_t i = 0; i < row->n; i++)
    if (strcmp(row->items[i].name, name) == 0) return &row->items[i];
  return NULL;
}

/* 0 where the row has none of that name. */
static double value_of(const nxr_metrics_row *row, const char *name) {
  const nxr_metric *item = find(row, name);
  return item ? item->value : 0;
}

/* ---- JSON ---- */

/* JSON has no NaN and no infinity. */
static size_t print_number(char *text, size_t n_room, const char *name, double value) {
  char number[NXR_NUMBER_BYTES] = "null";
  if (isfinite(value)) nxr_number_print(number, value);
  return (size_t)snprintf(text, n_room, ",\"%s\":%s", name, number);
}

/* A text as JSON has it; what is longer than a set's name may be is cut, between characters. */
static size_t print_text_value(char *text, size_t n_room, const char *name, const char *value) {
  enum { MOST = 200 };
  char quoted[MOST + 8];
  size_t n = 0;
  for (; *value && n < MOST; value++) {
    bool begins = ((unsigned char)*value & 0xC0) != 0x80; /* a character of UTF-8 */
    if (begins && n > MOST - 8) break;
    if ((unsigned char)*value < 0x20) n += (size_t)snprintf(quoted + n, 7, "\\u%04x", (unsigned)*value);
    else if (*value == '"' || *value == '\\') quoted[n++] = '\\', quoted[n++] = *value;
    else quoted[n++] = *value;
  }
  return (size_t)snprintf(text, n_room, ",\"%s\":\"%.*s\"", name, (int)n, quoted);
}

static size_t format_json(const nxr_metrics_row *row, char text[NXR_METRICS_LINE_BYTES]) {
  size_t n = (size_t)snprintf(text, NXR_METRICS_LINE_BYTES, "{\"step\":%" PRIu64, row->step);
  if (row->set) n += print_text_value(text + n, NXR_METRICS_LINE_BYTES - n, "set", row->set);
  for (uint32_t i = 0; i < row->n; i++)
    n += print_number(text + n, NXR_METRICS_LINE_BYTES - n, row->items[i].name, row->items[i].value);
  return n + (size_t)snprintf(text + n, NXR_METRICS_LINE_BYTES - n, "}\n");
}

/* ---- lines for people ---- */

enum { PART_BYTES = 48, N_PARTS = N_SHOWN + 1 };

/* Of steps the speed is that of all since the line before. */
static void format_part(const nxr_metrics *metrics, const nxr_metrics_row *row, int i,
                        char text[PART_BYTES]) {
  const nxr_metric *item = find(row, shown[i].name);
  text[0] = '\0';
  if (item == NULL) return;
  double speed = row->set ? item->value : metrics->line_tokens / metrics->line_s;
  if (shown[i].format == NULL) snprintf(text, PART_BYTES, "  %.0f tokens/s", speed);
  else snprintf(text, PART_BYTES, shown[i].format, item->value / shown[i].unit);
}

static void format_left(const nxr_metrics *metrics, uint64_t step, char text[PART_BYTES]) {
  double left_s = metrics->train_s / (double)metrics->n_reported * (double)(metrics->n_steps - step);
  unsigned long long seconds = (unsigned long long)(left_s + 0.5);
  snprintf(text, PART_BYTES, "  %llu:%02llu:%02llu left", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

/* A line that is rewritten must not go on in the next row, which would stay: what is spare is left out, from
 * the end. */
static void fit(char parts[N_PARTS][PART_BYTES], size_t n_used) {
  struct winsize screen;
  size_t n_columns =
      ioctl(STDOUT_FILENO, TIOCGWINSZ, &screen) == 0 && screen.ws_col ? screen.ws_col : SIZE_MAX;
  for (int i = 0; i < N_PARTS; i++) n_used += strlen(parts[i]);
  for (int i = N_SHOWN - 1; i >= 0 && n_used > n_columns; i--) {
    if (!shown[i].spare) continue;
    n_used -= strlen(parts[i]);
    parts[i][0] = '\0';
  }
}

static void print_text(nxr_metrics *metrics, const nxr_metrics_row *row) {
  char parts[N_PARTS][PART_BYTES] = {""};
  bool stays = row->set || !metrics->terminal; /* a line that is not rewritten */
  if (metrics->terminal) fputs("\r\x1b[K", stdout);
  size_t n_used = (size_t)printf("step %" PRIu64 "/%" PRIu64, row->step, metrics->n_steps);
  if (row->set) nxr_print(stdout, "  %s", row->set);
  for (int i = 0; i < N_SHOWN; i++) format_part(metrics, row, i, parts[i]);
  if (!row->set) format_left(metrics, row->step, parts[N_SHOWN]);
  if (!stays) fit(parts, n_used);
  for (int i = 0; i < N_PARTS; i++) fputs(parts[i], stdout);
  if (stays) putchar('\n');
  metrics->line_open = !stays;
}

/* ---- reporting ---- */

static void count_step(nxr_metrics *metrics, const nxr_metrics_row *row) {
  metrics->train_s += row->seconds;
  metrics->n_reported++;
  metrics->line_s += row->seconds;
  metrics->line_tokens += row->seconds * value_of(row, SPEED);
}

static bool is_due(const nxr_metrics *metrics, const nxr_metrics_row *row, uint32_t every) {
  return row->set || row->step % every == 0 || row->step == metrics->n_steps;
}

static bool is_shown(const nxr_metrics *metrics, const char *name) {
  for (size_t i = 0; i < sizeof switched / sizeof *switched; i++)
    if (strcmp(switched[i].name, name) == 0) return (metrics->events_show & switched[i].shows) != 0;
  return true;
}

static void add_point(const nxr_metrics_row *row, const nxr_metric *item, nxr_points *points) {
  nxr_points_add(points, row->set ? row->set : "train", item->name, item->value);
}

static void write_events(nxr_metrics *metrics, const nxr_metrics_row *row) {
  for (uint32_t i = 0; i < row->n; i++)
    if (is_shown(metrics, row->items[i].name)) add_point(row, &row->items[i], &metrics->events.points);
  nxr_events_write(&metrics->events, row->step);
}

static void add_to_wandb(nxr_metrics *metrics, const nxr_metrics_row *row) {
  nxr_wandb_step(&metrics->wandb, row->step);
  for (uint32_t i = 0; i < row->n; i++) add_point(row, &row->items[i], &metrics->wandb.points);
}

void nxr_metrics_report(nxr_metrics *metrics, const nxr_metrics_row *row) {
  char line[NXR_METRICS_LINE_BYTES];
  size_t n_bytes = format_json(row, line);
  if (!row->set) count_step(metrics, row);
  nxr_metrics_file_write(&metrics->file, line, n_bytes);
  if (metrics->events.path && is_due(metrics, row, metrics->events_every)) write_events(metrics, row);
  if (metrics->wandb.path && is_due(metrics, row, metrics->wandb_every)) add_to_wandb(metrics, row);
  if (!is_due(metrics, row, metrics->log_every)) return;
  if (metrics->log == NXR_LOG_JSON) fputs(line, stdout);
  else print_text(metrics, row);
  if (!row->set) metrics->line_s = metrics->line_tokens = 0;
  fflush(stdout);
}
