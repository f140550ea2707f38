/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/logs/events_file.h"

#include "runtime/files/fault.h"
#include "runtime/logs/events.pb-c.h"

#include <errno.h>
#include <isa-l/crc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const uint32_t MASK = 0xa282ead8u;

/* ---- records ---- */

static uint32_t masked_crc(const void *bytes, size_t n_bytes) {
  uint32_t crc = ~crc32_iscsi((unsigned char *)(uintptr_t)bytes, (int)n_bytes, ~0u);
  return ((crc >> 15) | (crc << 17)) + MASK;
}

static bool write_record(FILE *file, const uint8_t *bytes, size_t n_bytes) {
  uint64_t length = n_bytes;
  uint32_t of_length = masked_crc(&length, sizeof length), of_bytes = masked_crc(bytes, n_bytes);
  return fwrite(&length, sizeof length, 1, file) == 1 && fwrite(&of_length, sizeof of_length, 1, file) == 1 &&
         fwrite(bytes, 1, n_bytes, file) == n_bytes && fwrite(&of_bytes, sizeof of_bytes, 1, file) == 1 &&
         fflush(file) == 0;
}

static void write_event(nxr_events_file *events, NxrTb__Event *event) {
  event->wall_time = nxr_wall_clock_s();
  size_t n_bytes = nxr_tb__event__get_packed_size(event);
  uint8_t *bytes = malloc(n_bytes);
  bool good = bytes != NULL;
  if (good) {
    nxr_tb__event__pack(event, bytes);
    errno = 0;
    good = write_record(events->file, bytes, n_bytes);
  }
  free(bytes);
  if (!good && !events->failed)
    nxr_print(stderr, "nxrun: cannot write %s: %s; the training goes on without\n", events->path,
            strerror(errno ? errno : ENOMEM));
  events->failed = !good;
}

/* ---- the file ---- */

static void write_beginning(nxr_events_file *events, uint64_t n_steps) {
  static char brain_event[] = "brain.Event:2";
  NxrTb__Event version = NXR_TB__EVENT__INIT;
  version.what_case = NXR_TB__EVENT__WHAT_FILE_VERSION;
  version.file_version = brain_event;
  write_event(events, &version);
  if (n_steps == 0) return;
  NxrTb__SessionLog log = NXR_TB__SESSION_LOG__INIT;
  log.status = NXR_TB__SESSION_LOG__STATUS__START;
  NxrTb__Event start = NXR_TB__EVENT__INIT;
  start.step = (int64_t)n_steps + 1;
  start.what_case = NXR_TB__EVENT__WHAT_SESSION_LOG;
  start.session_log = &log;
  write_event(events, &start);
}

bool nxr_events_open(nxr_events_file *events, const char *directory, uint64_t n_steps, nxr_fault *fault) {
  char path[NXR_EVENTS_PATH_BYTES], host[256] = "host";
  *events = (nxr_events_file){0};
  if (mkdir(directory, 0777) != 0 && errno != EEXIST)
    return nxr_fault_set(fault, "cannot make %s, the folder for TensorBoard: %s", directory, strerror(errno));
  gethostname(host, sizeof host - 1);
  snprintf(path, sizeof path, "%s/events.out.tfevents.%lld.%s.%d", directory, (long long)time(NULL), host,
           getpid());
  events->file = fopen(path, "wxe");
  if (events->file == NULL) return nxr_fault_set(fault, "cannot write %s: %s", path, strerror(errno));
  events->path = strdup(path);
  write_beginning(events, n_steps);
  return true;
}

void nxr_events_close(nxr_events_file *events) {
  if (events->file) fclose(events->file);
  free(events->path);
  *events = (nxr_events_file){0};
}

/* ---- scalars ---- */

void nxr_events_write(nxr_events_file *events, uint64_t step) {
  nxr_points *points = &events->points;
  NxrTb__Value values[NXR_MOST_POINTS], *pointers[NXR_MOST_POINTS];
  for (uint32_t i = 0; i < points->n; i++) {
    values[i] = (NxrTb__Value)NXR_TB__VALUE__INIT;
    values[i].tag = points->tags[i];
    values[i].simple_value = (float)points->values[i];
    pointers[i] = &values[i];
  }
  NxrTb__Summary summary = NXR_TB__SUMMARY__INIT;
  summary.n_value = points->n;
  summary.value = pointers;
  NxrTb__Event event = NXR_TB__EVENT__INIT;
  event.step = (int64_t)step;
  event.what_case = NXR_TB__EVENT__WHAT_SUMMARY;
  event.summary = &summary;
  write_event(events, &event);
  points->n = 0;
}
