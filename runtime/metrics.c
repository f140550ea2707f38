/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/metrics.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LINE_BYTES = 512 };

bool nxr_metrics_open(nxr_metrics *metrics, const char *path, uint64_t n_steps, nxr_fault *fault) {
  metrics->terminal = metrics->log == NXR_LOG_TEXT && isatty(STDOUT_FILENO);
  metrics->memory = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  return path == NULL || nxr_metrics_file_open(&metrics->file, path, n_steps, fault);
}

void nxr_metrics_close(nxr_metrics *metrics) {
  nxr_metrics_end_line(metrics);
  nxr_metrics_file_close(&metrics->file);
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

/* The shortest of the usual forms that is read back exactly; JSON has no NaN and no infinity. */
static size_t print_number(char *text, size_t n_room, const char *name, double value) {
  char number[32] = "null";
  for (int digits = 6; isfinite(value) && digits <= 17; digits++) {
    snprintf(number, sizeof number, "%.*g", digits, value);
    if (strtod(number, NULL) == value) break;
  }
  return (size_t)snprintf(text, n_room, ",\"%s\":%s", name, number);
}

static size_t format_json(const nxr_metrics_row *row, char text[LINE_BYTES]) {
  size_t n = (size_t)snprintf(text, LINE_BYTES, "{\"step\":%" PRIu64, row->step);
  n += print_number(text + n, LINE_BYTES - n, "loss", row->loss);
  n += print_number(text + n, LINE_BYTES - n, "lr", row->lr);
  n += print_number(text + n, LINE_BYTES - n, "grad_norm", row->grad_norm);
  if (row->loss_scale > 0) {
    n += print_number(text + n, LINE_BYTES - n, "loss_scale", row->loss_scale);
    n += (size_t)snprintf(text + n, LINE_BYTES - n, ",\"skipped\":%" PRIu64, row->n_skipped);
  }
  n += print_number(text + n, LINE_BYTES - n, "tokens_per_s", row->tokens_per_s);
  return n +
         (size_t)snprintf(text + n, LINE_BYTES - n, ",\"memory_bytes\":%" PRIu64 "}\n", row->memory_bytes);
}

/* Speed is that of all steps since the line before. */
static void print_text(nxr_metrics *metrics, const nxr_metrics_row *row) {
  double left_s = metrics->train_s / (double)metrics->n_reported * (double)(metrics->n_steps - row->step);
  unsigned long long seconds = (unsigned long long)(left_s + 0.5);
  char scale[64] = "";
  if (row->loss_scale > 0)
    snprintf(scale, sizeof scale, "  loss scale %g, %" PRIu64 " skipped", row->loss_scale, row->n_skipped);
  printf("%sstep %" PRIu64 "/%" PRIu64 "  loss %.4f  lr %.3g  grad norm %.3f%s  %.0f tokens/s  %.0f MiB  "
         "%llu:%02llu:%02llu left%s",
         metrics->terminal ? "\r\x1b[K" : "", row->step, metrics->n_steps, row->loss, row->lr, row->grad_norm, scale,
         metrics->line_tokens / metrics->line_s, (double)row->memory_bytes / 1048576, seconds / 3600,
         seconds / 60 % 60, seconds % 60, metrics->terminal ? "" : "\n");
  metrics->line_s = metrics->line_tokens = 0;
}

void nxr_metrics_report(nxr_metrics *metrics, const nxr_metrics_row *row) {
  char line[LINE_BYTES];
  size_t n_bytes = format_json(row, line);
  metrics->train_s += row->seconds;
  metrics->n_reported++;
  metrics->line_s += row->seconds;
  metrics->line_tokens += row->seconds * row->tokens_per_s;
  nxr_metrics_file_write(&metrics->file, line, n_bytes);
  if (row->step % metrics->log_every != 0 && row->step != metrics->n_steps) return;
  if (metrics->log == NXR_LOG_JSON)
    fputs(line, stdout);
  else
    print_text(metrics, row);
  metrics->line_open = metrics->terminal;
  fflush(stdout);
}
