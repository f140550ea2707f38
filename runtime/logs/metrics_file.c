/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/logs/metrics_file.h"

#include "runtime/files/fault.h"
#include "schema/regular.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char LINE_START[] = "{\"step\":";
enum { MOST_PATH_BYTES = 4096 };

typedef enum line_kind { OURS, HALF_OF_OURS, FOREIGN } line_kind;

/* `line` is what fgets read, into zeroed bytes. Half a line is at the end of the file, if anywhere. */
static line_kind judge_line(const char line[NXR_METRICS_LINE_BYTES], bool at_end) {
  size_t n = strlen(line), n_start = sizeof LINE_START - 1;
  if (n > n_start && strncmp(line, LINE_START, n_start) == 0 && strcmp(line + n - 2, "}\n") == 0) return OURS;
  bool begins = strncmp(line, LINE_START, n < n_start ? n : n_start) == 0;
  return at_end && begins && (n == 0 || line[n - 1] != '\n') ? HALF_OF_OURS : FOREIGN;
}

/* Where the lines of steps up to `last` end; below 0 where the file holds something else. */
static off_t find_end(FILE *file, uint64_t last) {
  char line[NXR_METRICS_LINE_BYTES] = "";
  off_t end = 0, start = 0;
  bool first = true, ended = false;
  for (; fgets(line, sizeof line, file); first = false, start = ftello(file)) {
    bool is_text = ftello(file) - start == (off_t)strlen(line); /* without a NUL */
    line_kind kind = is_text ? judge_line(line, feof(file)) : FOREIGN;
    if (kind == FOREIGN || (first && line[0] != LINE_START[0])) return -1;
    ended = ended || kind == HALF_OF_OURS || strtoull(line + sizeof LINE_START - 1, NULL, 10) > last;
    if (!ended) end = ftello(file);
  }
  return ferror(file) ? -1 : end;
}

/* Only a file whose every line is ours is ever changed. */
static bool measure(const char *path, uint64_t n_steps, off_t *end, nxr_fault *fault) {
  FILE *file = nx_regular_open(path);
  if (file == NULL) return nxr_fault_set(fault, "cannot read %s: %s", path, strerror(errno));
  *end = find_end(file, n_steps);
  fclose(file);
  return *end >= 0 ||
         nxr_fault_set(fault, "%s is no file of metrics: choose another with --metrics", path);
}

static bool cut_back(const char *path, off_t end, nxr_fault *fault) {
  return truncate(path, end) == 0 || nxr_fault_set(fault, "cannot write %s: %s", path, strerror(errno));
}

static bool set_aside(const char *path, nxr_fault *fault) {
  char aside[MOST_PATH_BYTES];
  for (int i = 1;; i++) {
    if (snprintf(aside, sizeof aside, "%s.%d", path, i) >= (int)sizeof aside)
      return nxr_fault_set(fault, "the name of the metrics file is too long");
    if (access(aside, F_OK) != 0) break;
  }
  return rename(path, aside) == 0 ||
         nxr_fault_set(fault, "cannot name %s %s: %s", path, aside, strerror(errno));
}

bool nxr_metrics_file_open(nxr_metrics_file *metrics, const char *path, uint64_t n_steps, nxr_fault *fault) {
  struct stat status = {0};
  bool is_there = stat(path, &status) == 0;
  *metrics = (nxr_metrics_file){.file = -1};
  off_t end = 0;
  if (is_there &&
      !S_ISREG(status.st_mode)) /* nothing can be taken back there, and a pipe may never be read */
    return nxr_fault_set(fault, "%s is no regular file: choose another with --metrics", path);
  if (is_there && status.st_size > 0 &&
      !(measure(path, n_steps, &end, fault) &&
        (n_steps > 0 ? cut_back(path, end, fault) : set_aside(path, fault))))
    return false;
  metrics->file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (metrics->file < 0) return nxr_fault_set(fault, "cannot write %s: %s", path, strerror(errno));
  metrics->path = strdup(path);
  if (metrics->path != NULL) return true;
  close(metrics->file);
  return nxr_fault_set(fault, "cannot write %s: %s", path, strerror(errno));
}

void nxr_metrics_file_close(nxr_metrics_file *metrics) {
  if (metrics->path) close(metrics->file);
  free(metrics->path);
  *metrics = (nxr_metrics_file){.file = -1};
}

/* What is written to a file that was removed, or that another has replaced, is lost. */
static void open_again(nxr_metrics_file *metrics) {
  struct stat status;
  if (fstat(metrics->file, &status) != 0 || status.st_nlink > 0) return;
  char *path = metrics->path;
  nxr_fault why = {""};
  close(metrics->file);
  if (nxr_metrics_file_open(metrics, path, UINT64_MAX, &why))
    nxr_print(stderr, "nxrun: %s was removed, and is made again for what follows\n", path);
  else nxr_print(stderr, "nxrun: %s; the training goes on without\n", why.text);
  free(path);
}

void nxr_metrics_file_write(nxr_metrics_file *metrics, const char *line, size_t n_bytes) {
  if (metrics->path != NULL) open_again(metrics);
  if (metrics->path == NULL) return;
  off_t end = lseek(metrics->file, 0, SEEK_END);
  ssize_t n = write(metrics->file, line, n_bytes);
  bool good = n == (ssize_t)n_bytes;
  int error = n < 0 ? errno : ENOSPC;
  if (!good && n > 0 && ftruncate(metrics->file, end) != 0) error = errno;
  if (!good && !metrics->failed)
    nxr_print(stderr, "nxrun: cannot write %s: %s; the training goes on without\n", metrics->path,
            strerror(error));
  metrics->failed = !good;
}
