/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Leaves the lines of steps up to `last` and cuts off the rest. */
static bool keep_steps(FILE *file, uint64_t last) {
  char line[512];
  long end = 0;
  rewind(file);
  while (fgets(line, sizeof line, file)) {
    const char *step = strstr(line, "\"step\":");
    if (!step || strchr(line, '\n') == NULL || strtoull(step + 7, NULL, 10) > last) break;
    end = ftell(file);
  }
  return fflush(file) == 0 && ftruncate(fileno(file), end) == 0 && fseek(file, end, SEEK_SET) == 0;
}

bool nxr_metrics_open(nxr_metrics *metrics, const char *path, uint64_t first_step, nxr_fault *fault) {
  metrics->terminal = metrics->log == NXR_LOG_TEXT && isatty(STDOUT_FILENO);
  metrics->memory = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (!path) return true;
  if (first_step > 0) metrics->file = fopen(path, "r+");
  if (!metrics->file) metrics->file = fopen(path, "w");
  if (metrics->file && (first_step == 0 || keep_steps(metrics->file, first_step))) return true;
  return nxr_fault_set(fault, "%s: %s", path, strerror(errno));
}

void nxr_metrics_close(nxr_metrics *metrics) {
  nxr_metrics_end_line(metrics);
  if (metrics->file) fclose(metrics->file);
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

/* JSON has no NaN and no infinity. */
static void print_number(FILE *file, const char *name, double value) {
  if (isfinite(value)) fprintf(file, ",\"%s\":%.17g", name, value);
  else fprintf(file, ",\"%s\":null", name);
}

static void print_json(FILE *file, const nxr_metrics_row *row) {
  fprintf(file, "{\"step\":%" PRIu64, row->step);
  print_number(file, "loss", row->loss);
  print_number(file, "lr", row->lr);
  print_number(file, "grad_norm", row->grad_norm);
  print_number(file, "tokens_per_s", row->tokens_per_s);
  fprintf(file, ",\"memory_bytes\":%" PRIu64 "}\n", row->memory_bytes);
}

static void print_text(const nxr_metrics *metrics, const nxr_metrics_row *row) {
  double left_s = metrics->train_s / (double)metrics->n_reported * (double)(metrics->n_steps - row->step);
  unsigned long long seconds = (unsigned long long)(left_s + 0.5);
  printf("%sstep %" PRIu64 "/%" PRIu64 "  loss %.4f  lr %.3g  grad norm %.3f  %.0f tokens/s  %.0f MiB  "
         "%llu:%02llu:%02llu left%s", metrics->terminal ? "\r\x1b[K" : "", row->step, metrics->n_steps, row->loss,
         row->lr, row->grad_norm, row->tokens_per_s, (double)row->memory_bytes / 1048576, seconds / 3600,
         seconds / 60 % 60, seconds % 60, metrics->terminal ? "" : "\n");
}

bool nxr_metrics_report(nxr_metrics *metrics, const nxr_metrics_row *row, nxr_fault *fault) {
  metrics->train_s += row->seconds;
  metrics->n_reported++;
  if (metrics->file) {
    print_json(metrics->file, row);
    if (fflush(metrics->file) != 0) return nxr_fault_set(fault, "metrics file: %s", strerror(errno));
  }
  if (row->step % metrics->log_every != 0 && row->step != metrics->n_steps) return true;
  if (metrics->log == NXR_LOG_JSON)
    print_json(stdout, row);
  else
    print_text(metrics, row);
  metrics->line_open = metrics->terminal;
  fflush(stdout);
  return true;
}
