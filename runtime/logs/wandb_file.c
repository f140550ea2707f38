/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/logs/wandb_file.h"

#include "runtime/files/fault.h"
#include "runtime/logs/wandb.pb-c.h"
#include "schema/regular.h"

#include <errno.h>
#include <isa-l/crc.h>
#include <jansson.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 32768, PIECE_HEADER = 7, ID_BYTES = 9, PATH_BYTES = 4096 };
enum { WHOLE = 1, FIRST, MIDDLE, LAST };

/* ---- records ---- */

static bool write_bytes(nxr_wandb_file *wandb, const void *bytes, size_t n_bytes) {
  wandb->n_bytes += n_bytes;
  return fwrite(bytes, 1, n_bytes, wandb->file) == n_bytes;
}

static bool write_piece(nxr_wandb_file *wandb, uint8_t type, const uint8_t *bytes, size_t n_bytes) {
  uint32_t crc = crc32_gzip_refl(crc32_gzip_refl(0, &type, 1), bytes, n_bytes);
  uint8_t header[PIECE_HEADER];
  memcpy(header, &crc, 4);
  memcpy(header + 4, &(uint16_t){(uint16_t)n_bytes}, 2);
  header[6] = type;
  return write_bytes(wandb, header, sizeof header) && write_bytes(wandb, bytes, n_bytes);
}

static bool write_pieces(nxr_wandb_file *wandb, const uint8_t *bytes, size_t n_bytes) {
  static const uint8_t zeros[PIECE_HEADER];
  bool begins = true; /* its first piece has no bytes where just the header has room */
  for (size_t at = 0; at < n_bytes;) {
    size_t room = BLOCK - wandb->n_bytes % BLOCK;
    if (room < PIECE_HEADER) {
      if (!write_bytes(wandb, zeros, room)) return false;
      continue;
    }
    size_t n = n_bytes - at < room - PIECE_HEADER ? n_bytes - at : room - PIECE_HEADER;
    bool ends = at + n == n_bytes;
    uint8_t type = begins && ends ? WHOLE : begins ? FIRST : ends ? LAST : MIDDLE;
    if (!write_piece(wandb, type, bytes + at, n)) return false;
    at += n;
    begins = false;
  }
  return true;
}

/* What follows half a record could not be found: it is taken back, and the file ends. */
static void end_early(nxr_wandb_file *wandb, uint64_t n_bytes) {
  nxr_print(stderr, "nxrun: cannot write %s: %s; the training goes on without\n", wandb->path,
          strerror(errno ? errno : ENOMEM));
  wandb->failed = true;
  __fpurge(wandb->file);
  if (ftruncate(fileno(wandb->file), (off_t)n_bytes) != 0) return; /* nothing more can be done for it */
}

static void write_record(nxr_wandb_file *wandb, NxrWb__Record *record) {
  if (wandb->failed) return;
  uint64_t n_before = wandb->n_bytes;
  record->num = ++wandb->n_records;
  size_t n_bytes = nxr_wb__record__get_packed_size(record);
  uint8_t *bytes = malloc(n_bytes);
  errno = 0;
  bool good = bytes != NULL && nxr_wb__record__pack(record, bytes) == n_bytes &&
              write_pieces(wandb, bytes, n_bytes) && fflush(wandb->file) == 0;
  if (!good) end_early(wandb, n_before);
  free(bytes);
}

/* ---- what stands at the beginning ---- */

static void write_header(nxr_wandb_file *wandb) {
  static char producer[] = "nxrun " NX_VERSION, min_consumer[] = "0.13.0";
  NxrWb__VersionInfo version = NXR_WB__VERSION_INFO__INIT;
  version.producer = producer;
  version.min_consumer = min_consumer;
  NxrWb__Header header = NXR_WB__HEADER__INIT;
  header.version_info = &version;
  NxrWb__Record record = NXR_WB__RECORD__INIT;
  record.record_case = NXR_WB__RECORD__RECORD_HEADER;
  record.header = &header;
  write_record(wandb, &record);
}

/* The plan's settings: those of a section in a map under its name. */
static json_t *make_config(const nx_plan *plan) {
  json_t *config = json_object();
  for (uint32_t i = 0; i < plan->n[NX_SECTION_SETTINGS]; i++) {
    const char *path = nx_plan_text(plan, plan->settings[i].path);
    const char *text = nx_plan_text(plan, plan->settings[i].value);
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL), *section = config;
    const char *dot = strchr(path, '.');
    if (dot) {
      char name[128];
      snprintf(name, sizeof name, "%.*s", (int)(dot - path), path);
      section = json_object_get(config, name);
      if (section == NULL) json_object_set_new(config, name, section = json_object());
    }
    json_object_set_new(section, dot ? dot + 1 : path, value ? value : json_string(text));
  }
  return config;
}

static char *text_of(const nx_plan *plan, uint32_t text) {
  return (char *)(uintptr_t)nx_plan_text(plan, text);
}

static void write_run(nxr_wandb_file *wandb, const nx_plan *plan, NxrWb__Run *run) {
  enum { MOST_SECTIONS = 64 };
  const nx_run_names *names = plan->run_names;
  char host[256] = "host", **tags = nx_plan_texts(plan, names->wandb_tags, &run->n_tags);
  gethostname(host, sizeof host - 1);
  NxrWb__Time start = NXR_WB__TIME__INIT;
  start.seconds = (int64_t)wandb->begun_s;
  start.nanos = (int32_t)(1e9 * (wandb->begun_s - (double)start.seconds));
  NxrWb__Items items = NXR_WB__ITEMS__INIT;
  NxrWb__Item rows[MOST_SECTIONS], *pointers[MOST_SECTIONS];
  json_t *config = make_config(plan), *section;
  const char *name;
  json_object_foreach(config, name, section) {
    if (items.n_update == MOST_SECTIONS) break;
    NxrWb__Item *row = pointers[items.n_update] = &rows[items.n_update];
    *row = (NxrWb__Item)NXR_WB__ITEM__INIT;
    row->key = (char *)(uintptr_t)name;
    row->value_json = json_dumps(section, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15));
    items.n_update++;
  }
  items.update = pointers;
  run->config = &items, run->host = host, run->start_time = &start;
  run->project = text_of(plan, names->wandb_project), run->entity = text_of(plan, names->wandb_entity);
  run->display_name = text_of(plan, names->wandb_name), run->run_group = text_of(plan, names->wandb_group);
  run->tags = tags;
  NxrWb__Record record = NXR_WB__RECORD__INIT;
  record.record_case = NXR_WB__RECORD__RECORD_RUN;
  record.run = run;
  write_record(wandb, &record);
  for (size_t i = 0; i < items.n_update; i++) free(rows[i].value_json);
  json_decref(config);
  free(tags);
}

/* ---- which run it is ---- */

static void draw_id(char id[ID_BYTES]) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz012345";
  uint8_t drawn[ID_BYTES - 1] = {0};
  if (getrandom(drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn) /* early in a boot */
    for (size_t i = 0; i < sizeof drawn; i++) drawn[i] = (uint8_t)(time(NULL) >> (3 * i)) ^ (uint8_t)getpid();
  for (size_t i = 0; i < sizeof drawn; i++) id[i] = letters[drawn[i] % (sizeof letters - 1)];
  id[ID_BYTES - 1] = '\0';
}

/* That the run has had so far; false where there is none. */
static bool read_id(const char *path, char id[ID_BYTES]) {
  json_t *kept = nx_json_read(path, 0, NULL);
  const char *text = json_string_value(json_object_get(kept, "run_id"));
  bool good = text && strlen(text) == ID_BYTES - 1 &&
              strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789") == ID_BYTES - 1;
  if (good) memcpy(id, text, ID_BYTES);
  json_decref(kept);
  return good;
}

static bool find_id(const char *directory, uint64_t n_steps, char id[ID_BYTES], bool *resumes,
                    nxr_fault *fault) {
  char path[PATH_BYTES];
  snprintf(path, sizeof path, "%s/wandb-resume.json", directory);
  *resumes = n_steps > 0 && read_id(path, id);
  if (*resumes) return true;
  draw_id(id);
  json_t *kept = json_pack("{s:s}", "run_id", id);
  int failed = json_dump_file(kept, path, 0);
  json_decref(kept);
  return failed == 0 || nxr_fault_set(fault, "cannot write %s: %s", path, strerror(errno));
}

static bool make_folder(const char *path, nxr_fault *fault) {
  return mkdir(path, 0777) == 0 || errno == EEXIST ||
         nxr_fault_set(fault, "cannot make %s, a folder for Weights & Biases: %s", path, strerror(errno));
}

/* The folder of a file of its own, named after the time; one that resumes in the same second takes the next.
 */
static bool make_run_folder(const char *folder, const char *id, time_t now, char path[PATH_BYTES],
                            nxr_fault *fault) {
  enum { MOST_SECONDS = 60 };
  char date[32];
  struct tm local;
  for (time_t end = now + MOST_SECONDS; now < end; now++) {
    strftime(date, sizeof date, "%Y%m%d_%H%M%S", localtime_r(&now, &local));
    snprintf(path, PATH_BYTES, "%s/wandb/offline-run-%s-%s", folder, date, id);
    if (mkdir(path, 0777) == 0) return true;
    if (errno != EEXIST) break;
  }
  return nxr_fault_set(fault, "cannot make %s, a folder for Weights & Biases: %s", path, strerror(errno));
}

/* The run's file in folders as the client makes them. */
static bool open_file(nxr_wandb_file *wandb, const char *folder, const char *id, nxr_fault *fault) {
  char path[PATH_BYTES], of_run[PATH_BYTES];
  if (!make_folder(folder, fault)) return false;
  snprintf(path, sizeof path, "%s/wandb", folder);
  if (!make_folder(path, fault) || !make_run_folder(folder, id, (time_t)wandb->begun_s, of_run, fault))
    return false;
  if (snprintf(path, sizeof path, "%s/run-%s.wandb", of_run, id) >= (int)sizeof path)
    return nxr_fault_set(fault, "%s is too long a name", folder);
  wandb->file = fopen(path, "wxe");
  if (wandb->file == NULL) return nxr_fault_set(fault, "cannot write %s: %s", path, strerror(errno));
  wandb->path = strdup(path);
  return true;
}

bool nxr_wandb_open(nxr_wandb_file *wandb, const nx_plan *plan, const char *directory, uint64_t n_steps,
                    nxr_fault *fault) {
  static const uint8_t beginning[] = {':', 'W', '&', 'B', 0xe1, 0xbe, 0};
  const char *folder = nx_plan_text(plan, plan->run_names->wandb);
  char id[ID_BYTES];
  NxrWb__Run run = NXR_WB__RUN__INIT;
  bool resumes = false;
  *wandb = (nxr_wandb_file){.begun_s = nxr_wall_clock_s()};
  if (folder[0] == '\0') return true;
  if (!find_id(directory, n_steps, id, &resumes, fault)) return false;
  if (!open_file(wandb, folder, id, fault)) return false;
  write_bytes(wandb, beginning, sizeof beginning);
  write_header(wandb);
  run.run_id = id, run.resume = resumes;
  write_run(wandb, plan, &run);
  return true;
}

/* ---- steps ---- */

enum { N_BESIDE = 3 }; /* what the client adds to each step */

/* The numbers of the step as items, with the texts of their values. */
static size_t make_items(const nxr_wandb_file *wandb, NxrWb__Item *items, NxrWb__Item **pointers,
                         char (*texts)[NXR_NUMBER_BYTES]) {
  static const char *const beside[N_BESIDE] = {"_step", "_timestamp", "_runtime"};
  double now_s = nxr_wall_clock_s();
  const double values[N_BESIDE] = {(double)wandb->step, now_s, now_s - wandb->begun_s};
  const nxr_points *points = &wandb->points;
  size_t n = points->n + N_BESIDE;
  for (size_t i = 0; i < n; i++) {
    bool given = i < points->n;
    items[i] = (NxrWb__Item)NXR_WB__ITEM__INIT;
    items[i].key = (char *)(uintptr_t)(given ? points->tags[i] : beside[i - points->n]);
    nxr_number_print(texts[i], given ? points->values[i] : values[i - points->n]);
    items[i].value_json = texts[i];
    pointers[i] = &items[i];
  }
  return n;
}

static void write_step(nxr_wandb_file *wandb) {
  enum { MOST = NXR_MOST_POINTS + N_BESIDE };
  NxrWb__Item items[MOST], *pointers[MOST];
  char texts[MOST][NXR_NUMBER_BYTES];
  NxrWb__Items summary = NXR_WB__ITEMS__INIT;
  NxrWb__Step number = NXR_WB__STEP__INIT;
  NxrWb__History history = NXR_WB__HISTORY__INIT;
  NxrWb__Record record = NXR_WB__RECORD__INIT;
  number.num = (int64_t)wandb->step;
  history.step = &number;
  history.n_item = summary.n_update = make_items(wandb, items, pointers, texts);
  history.item = summary.update = pointers;
  record.record_case = NXR_WB__RECORD__RECORD_HISTORY;
  record.history = &history;
  write_record(wandb, &record);
  record.record_case = NXR_WB__RECORD__RECORD_SUMMARY;
  record.summary = &summary;
  write_record(wandb, &record);
  wandb->points.n = 0;
}

void nxr_wandb_step(nxr_wandb_file *wandb, uint64_t step) {
  if (wandb->points.n > 0 && wandb->step != step) write_step(wandb);
  wandb->step = step;
}

void nxr_wandb_close(nxr_wandb_file *wandb, int status) {
  if (wandb->path) {
    if (wandb->points.n > 0) write_step(wandb);
    NxrWb__Exit exit = NXR_WB__EXIT__INIT;
    exit.exit_code = status;
    exit.runtime = (int32_t)(nxr_wall_clock_s() - wandb->begun_s);
    NxrWb__Record record = NXR_WB__RECORD__INIT;
    record.record_case = NXR_WB__RECORD__RECORD_EXIT;
    record.exit = &exit;
    write_record(wandb, &record);
    fclose(wandb->file);
  }
  free(wandb->path);
  *wandb = (nxr_wandb_file){0};
}
