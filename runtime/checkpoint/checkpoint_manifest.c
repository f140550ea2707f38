/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/checkpoint_manifest.h"

#include "runtime/checkpoint/checkpoint_beside.h"
#include "runtime/files/mapping.h"
#include "runtime/world/world.h"

#include <errno.h>
#include <math.h>
#include <fcntl.h>
#include <inttypes.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char FORMAT[] = "nxrun checkpoint";
enum { VERSION = 2, HEX_BYTES = 65 };

static bool parse_hex(const char *hex, uint8_t bytes[32]) {
  char again[HEX_BYTES];
  if (hex == NULL || strlen(hex) != HEX_BYTES - 1) return false;
  for (int i = 0; i < 32; i++) {
    const char pair[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
    bytes[i] = (uint8_t)strtoul(pair, NULL, 16);
  }
  nx_hex(bytes, again);
  return strcmp(again, hex) == 0;
}

static bool find_size(const char *folder, nxr_checkpoint_file *file, nxr_fault *fault) {
  char path[NXR_PATH_BYTES];
  struct stat status;
  snprintf(path, sizeof path, "%s/%s", folder, file->name);
  if (stat(path, &status) != 0) return nxr_fault_set(fault, "%s: %s", file->name, strerror(errno));
  file->n_bytes = (uint64_t)status.st_size;
  return true;
}

bool nxr_manifest_sizes(const char *folder, nxr_checkpoint_file *files, uint32_t n_files, nxr_fault *fault) {
  for (uint32_t i = 0; i < n_files; i++)
    if (!find_size(folder, &files[i], fault)) return false;
  return true;
}

static json_t *make_settings(const nx_plan *plan) {
  json_t *settings = json_object();
  for (uint32_t i = 0; i < plan->n[NX_SECTION_SETTINGS]; i++) {
    const char *text = nx_plan_text(plan, plan->settings[i].value);
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    json_object_set_new(settings, nx_plan_text(plan, plan->settings[i].path),
                        value ? value : json_string(text));
  }
  return settings;
}

/* NULL where it is not known. */
static json_t *make_dataset(const nxr_fingerprint *dataset) {
  char hex[HEX_BYTES];
  if (dataset == NULL) return NULL;
  nx_hex(dataset->sha256, hex);
  return json_pack("{s:I, s:I, s:s}", "documents", (json_int_t)dataset->n_documents, "tokens",
                   (json_int_t)dataset->n_tokens, "sha256", hex);
}

static json_t *make_scale(const nxr_manifest_run *run) {
  if (run->scale == NULL || !nxr_loss_scale_is_used(run->plan->run)) return NULL;
  return json_pack("{s:f, s:I, s:I, s:I}", "factor", run->scale->factor, "good",
                   (json_int_t)run->scale->n_good, "left", (json_int_t)run->scale->n_left, "skipped",
                   (json_int_t)run->scale->n_skipped);
}

/* One without it begins anew. */
static void read_scale(const json_t *manifest, nxr_loss_scale *scale) {
  double factor;
  json_int_t n_good, n_left, n_skipped;
  if (scale == NULL ||
      json_unpack((json_t *)(uintptr_t)json_object_get(manifest, "loss_scale"), "{s:F, s:I, s:I, s:I}",
                  "factor", &factor, "good", &n_good, "left", &n_left, "skipped", &n_skipped) != 0 ||
      !(factor > 0) || n_good < 0 || n_left < 0 || n_skipped < 0)
    return;
  *scale = (nxr_loss_scale){factor, (uint32_t)n_good, (uint32_t)n_left, (uint64_t)n_skipped};
}

static json_t *make_plateau(const nxr_manifest_run *run) {
  const nxr_plateau *plateau = run->plateau;
  if (plateau == NULL || !nxr_plateau_is_used(run->plan->run)) return NULL;
  return json_pack("{s:o*, s:o*, s:I, s:I, s:I}", "best",
                   isfinite(plateau->best) ? json_real(plateau->best) : NULL, "loss",
                   isfinite(plateau->loss) ? json_real(plateau->loss) : NULL, "bad",
                   (json_int_t)plateau->n_bad, "cooling", (json_int_t)plateau->n_cooling, "reductions",
                   (json_int_t)plateau->n_reductions);
}

/* As read_scale; losses that are not there are none yet. */
static void read_plateau(const json_t *manifest, nxr_plateau *plateau) {
  const json_t *from = json_object_get(manifest, "plateau");
  const json_t *best = json_object_get(from, "best"), *loss = json_object_get(from, "loss");
  json_int_t n_bad, n_cooling, n_reductions;
  if (plateau == NULL ||
      json_unpack((json_t *)(uintptr_t)from, "{s:I, s:I, s:I}", "bad", &n_bad, "cooling", &n_cooling,
                  "reductions", &n_reductions) != 0 ||
      n_bad < 0 || n_cooling < 0 || n_reductions < 0)
    return;
  *plateau = (nxr_plateau){json_is_number(best) ? json_number_value(best) : NAN,
                           json_is_number(loss) ? json_number_value(loss) : NAN, (uint64_t)n_bad,
                           (uint64_t)n_cooling, (uint64_t)n_reductions};
}

static json_t *make_began(const nxr_manifest_run *run) {
  bool counted = run->optimizer_began && run->plan->run->updates != NX_NONE;
  return counted ? json_integer((json_int_t)*run->optimizer_began) : NULL;
}

static void read_began(const json_t *manifest, uint64_t step, int64_t *began) {
  const json_t *from = json_object_get(manifest, "optimizer_began");
  json_int_t there = json_integer_value(from);
  if (began && json_is_integer(from) && there >= 0 && (uint64_t)there <= step) *began = (int64_t)there;
}

static json_t *make_score(const nxr_manifest_run *run) {
  if (run->score == NULL || (!run->score->known && run->plan->n[NX_SECTION_EVALUATIONS] == 0)) return NULL;
  bool known = run->score->known && isfinite(run->score->loss);
  return json_pack("{s:o*, s:I}", "loss", known ? json_real(run->score->loss) : NULL, "evaluated",
                   (json_int_t)run->score->evaluated);
}

bool nxr_manifest_score(const json_t *manifest, nxr_score *score) {
  const json_t *from = json_object_get(manifest, "score"), *loss = json_object_get(from, "loss");
  const json_t *evaluated = json_object_get(from, "evaluated");
  *score = (nxr_score){json_is_number(loss), json_number_value(loss),
                       json_is_integer(evaluated) ? (uint64_t)json_integer_value(evaluated) : UINT64_MAX};
  return score->known;
}

static json_t *make_manifest(const nxr_manifest_run *run, uint64_t step, const nxr_checkpoint_file *files,
                             uint32_t n_files) {
  char hex[HEX_BYTES], sum[NXR_SUM_TEXT_BYTES];
  json_t *entries = json_object();
  for (uint32_t i = 0; i < n_files; i++) {
    nxr_sum_text(&files[i].sum, sum);
    json_object_set_new(entries, files[i].name,
                        json_pack("{s:I, s:s}", "bytes", (json_int_t)files[i].n_bytes, "sum", sum));
  }
  nx_hex(run->plan->header->plan_id, hex);
  return json_pack("{s:s, s:i, s:s, s:I, s:o, s:o, s:o*, s:o*, s:o*, s:o*, s:o*}", "format", FORMAT,
                   "version", VERSION, "plan_id", hex, "step", (json_int_t)step, "files", entries, "settings",
                   make_settings(run->plan), "dataset", make_dataset(run->dataset), "loss_scale",
                   make_scale(run), "score", make_score(run), "optimizer_began", make_began(run),
                   "plateau", make_plateau(run));
}

bool nxr_manifest_has_base(const nx_plan *plan) {
  return plan->run->adapter_config == 0 || plan->run->save_base;
}

bool nxr_manifest_write(const char *folder, const nxr_manifest_run *run, uint64_t step,
                        const nxr_checkpoint_file *files, uint32_t n_files, nxr_fault *fault) {
  json_t *manifest = make_manifest(run, step, files, n_files);
  char *text = manifest ? json_dumps(manifest, JSON_INDENT(1)) : NULL;
  json_decref(manifest);
  if (text == NULL) return nxr_fault_set(fault, "out of memory");
  bool good =
      nxr_beside_write(folder, run->plan, fault) && nxr_write_text(folder, "manifest.json", text, fault);
  free(text);
  return good;
}

/* One file as the manifest has it, and whether it is there. */
static bool read_entry(const char *folder, const json_t *entries, nxr_checkpoint_file *file,
                       nxr_fault *fault) {
  const json_t *entry = json_object_get(entries, file->name);
  const json_t *bytes = json_object_get(entry, "bytes");
  if (!json_is_integer(bytes) || !nxr_sum_parse(json_string_value(json_object_get(entry, "sum")), &file->sum))
    return nxr_fault_set(fault, "its manifest.json does not name %s", file->name);
  if (!find_size(folder, file, fault)) return false;
  uint64_t wanted = (uint64_t)json_integer_value(bytes);
  return file->n_bytes == wanted || nxr_fault_set(fault, "%s has %" PRIu64 " bytes, not %" PRIu64, file->name,
                                                  file->n_bytes, wanted);
}

bool nxr_manifest_files(const json_t *manifest, const char *folder, nxr_checkpoint_file *files,
                        uint32_t n_files, nxr_fault *fault) {
  const json_t *entries = json_object_get(manifest, "files");
  for (uint32_t i = 0; i < n_files; i++)
    if (!read_entry(folder, entries, &files[i], fault)) return false;
  return true;
}

uint32_t nxr_manifest_n_files(const json_t *manifest) {
  return (uint32_t)json_object_size(json_object_get(manifest, "files"));
}

/* NULL where there is none, or none of a checkpoint. */
static json_t *load(const char *folder, nxr_fault *fault) {
  char path[NXR_PATH_BYTES];
  json_error_t error;
  snprintf(path, sizeof path, "%s/manifest.json", folder);
  nxr_mapping file;
  if (!nxr_mapping_open(path, &file, fault)) return NULL;
  json_t *read = json_loadb((const char *)file.bytes, file.n_bytes, JSON_REJECT_DUPLICATES, &error);
  nxr_mapping_close(&file);
  if (read == NULL) return nxr_fault_set(fault, "manifest.json is damaged: %s", error.text), NULL;
  const char *format = json_string_value(json_object_get(read, "format"));
  if (format && strcmp(format, FORMAT) == 0) return read;
  json_decref(read);
  return nxr_fault_set(fault, "manifest.json is damaged"), NULL;
}

bool nxr_manifest_is_there(const char *folder) {
  nxr_fault none = {""};
  json_t *manifest = load(folder, &none);
  json_decref(manifest);
  return manifest != NULL;
}

bool nxr_manifest_read(const char *folder, uint64_t step, json_t **manifest, nxr_fault *fault) {
  uint8_t plan_id[32];
  *manifest = NULL;
  json_t *read = load(folder, fault);
  if (read == NULL) return false;
  const json_t *recorded = json_object_get(read, "step");
  bool good = json_is_integer(json_object_get(read, "version")) &&
              parse_hex(json_string_value(json_object_get(read, "plan_id")), plan_id) &&
              json_is_integer(recorded);
  bool other = good && (uint64_t)json_integer_value(recorded) != step;
  if (good && !other) *manifest = read;
  else json_decref(read);
  if (other) return nxr_fault_set(fault, "its manifest.json is of another step: was the folder renamed?");
  return good || nxr_fault_set(fault, "manifest.json is damaged");
}

/* Steps behind which the decay is over, whatever steps there are. */
static double decay_of(const json_t *settings) {
  return json_number_value(json_object_get(settings, "schedule.max_steps")) -
         json_number_value(json_object_get(settings, "schedule.constant_steps"));
}

/* Whether the setting says a part of the schedule that another value of it changes. */
static bool is_scheduled(const char *path, bool same_decay) {
  static const char *const others[] = {"optimizer.lr", "optimizer.weight_decay",
                                       "optimizer.start_weight_decay", "optimizer.weight_decay_growth"};
  if (strcmp(path, "schedule.max_steps") == 0 || strcmp(path, "schedule.constant_steps") == 0)
    return !same_decay;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (strcmp(path, others[i]) == 0) return true;
  return strncmp(path, "schedule.", strlen("schedule.")) == 0;
}

/* Its index in the plan; NX_NONE: the plan does not know it. */
static uint32_t setting_of(const nx_plan *plan, const char *path) {
  for (uint32_t i = 0; i < plan->n[NX_SECTION_SETTINGS]; i++)
    if (strcmp(nx_plan_text(plan, plan->settings[i].path), path) == 0) return i;
  return NX_NONE;
}

/* A setting that this plan does not know binds. Where the dataset lies does not, if another is welcome. */
static bool binds(const nxr_manifest_run *run, const char *path) {
  const nx_plan *plan = run->plan;
  if (run->new_dataset && strcmp(path, "data.path") == 0) return false;
  uint32_t setting = setting_of(plan, path);
  return setting == NX_NONE || plan->settings[setting].bound;
}

/* Whether nobody chose its value. */
static bool is_default(const nx_plan *plan, const char *path) {
  uint32_t setting = setting_of(plan, path);
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PROVENANCES]; i++)
    if (plan->provenances[i].setting == setting)
      return strcmp(nx_plan_text(plan, plan->provenances[i].kind), "default") == 0;
  return false;
}

/* Settings that differ: a few of them as text, and how many there are. */
typedef struct differences {
  char text[600];
  size_t n_used, n;
} differences;

static void add_difference(differences *to, const char *path, const json_t *there, const json_t *here) {
  enum { MOST = 5 };
  if (++to->n > MOST || to->n_used + 1 >= sizeof to->text) return;
  char *was = there ? json_dumps(there, JSON_ENCODE_ANY) : NULL;
  char *is = here ? json_dumps(here, JSON_ENCODE_ANY) : NULL;
  to->n_used +=
      (size_t)snprintf(to->text + to->n_used, sizeof to->text - to->n_used, "\n  %s: %.60s there, %.60s here",
                       path, was ? was : "not set", is ? is : "not set");
  free(was);
  free(is);
}

static void end_differences(differences *to) {
  enum { MOST = 5 };
  if (to->n_used >= sizeof to->text) to->n_used = sizeof to->text - 1;
  if (to->n > MOST)
    snprintf(to->text + to->n_used, sizeof to->text - to->n_used, "\n  and %zu more", to->n - MOST);
}

/* Those that bind a run, and those that do not. A default that an earlier nxcfg did not have is what it did.
 */
static void compare_settings(const json_t *manifest, const nxr_manifest_run *run, differences *bound,
                             differences *free_ones) {
  json_t *old = json_object_get(manifest, "settings"), *new = make_settings(run->plan), *value;
  json_t *merged = json_copy(old);
  const char *path;
  json_object_update_missing(merged, new);
  bool same_decay = decay_of(old) == decay_of(new),
       keeps = run->plan->run_names->schedule != NX_SCHEDULE_OF_PLAN;
  json_object_foreach(merged, path, value) {
    const json_t *there = json_object_get(old, path), *here = json_object_get(new, path);
    bool binding = binds(run, path) || (keeps && is_scheduled(path, same_decay));
    if (there == NULL && is_default(run->plan, path)) continue;
    if (!json_equal(there, here)) add_difference(binding ? bound : free_ones, path, there, here);
  }
  end_differences(bound);
  end_differences(free_ones);
  json_decref(merged);
  json_decref(new);
}

static const char *remedy_of(uint32_t schedule) {
  static const char *const remedies[] = {
      [NX_SCHEDULE_OF_PLAN] =
          "A run goes on only where these are the same; to start a new run from these weights, set "
          "run.init_from to that folder",
      [NX_SCHEDULE_SAME] =
          "A run goes on only where these are the same, by checkpoint.schedule the schedule too: plan "
          "takes that of this plan; to start a new run from these weights, set run.init_from to that "
          "folder",
      [NX_SCHEDULE_OF_CHECKPOINT] =
          "The run is to have the checkpoint's schedule, and a plan holds its own: make the "
          "plan with what stands there, as with --set nx:NAME=VALUE"};
  return remedies[schedule];
}

static bool check_plan(const json_t *manifest, const char *folder, const nxr_manifest_run *run,
                       nxr_fault *fault) {
  char hex[HEX_BYTES];
  differences bound = {"", 0, 0}, others = {"", 0, 0};
  const char *recorded = json_string_value(json_object_get(manifest, "plan_id"));
  long long version = json_integer_value(json_object_get(manifest, "version"));
  if (version != VERSION)
    return nxr_fault_set(fault, "%s has version %lld of the format, and this nxrun reads %d", folder, version,
                         VERSION);
  nx_hex(run->plan->header->plan_id, hex);
  if (strcmp(recorded, hex) == 0) return true;
  compare_settings(manifest, run, &bound, &others);
  if (bound.n == 0 && others.n == 0) {
    fprintf(
        stderr,
        "nxrun: another version of nxcfg made the plan of %s. No setting differs, so the run goes on; its "
        "sums may round otherwise\n",
        folder);
    return true;
  }
  if (bound.n == 0) {
    fprintf(stderr, "nxrun: %s was made by another plan, from which this run may go on. What differs:%s\n",
            folder, others.text);
    return true;
  }
  return nxr_fault_set(fault, "%s is of another plan: %.12s…, and this one is %.12s…. What differs:%s\n%s",
                       folder, recorded, hex, bound.text, remedy_of(run->plan->run_names->schedule));
}

/* Another dataset is refused, unless it is welcome. */
static bool judge_dataset(const nxr_fingerprint *there, const char *folder, const nxr_manifest_run *run,
                          nxr_fault *fault) {
  const nxr_fingerprint *here = run->dataset;
  char was[HEX_BYTES], is[HEX_BYTES], what[300];
  nx_hex(there->sha256, was);
  nx_hex(here->sha256, is);
  snprintf(what, sizeof what,
           "of another dataset: %" PRIu64 " documents of %" PRIu64 " tokens there (SHA-256 %.12s…), %" PRIu64
           " of %" PRIu64 " here (%.12s…)",
           there->n_documents, there->n_tokens, was, here->n_documents, here->n_tokens, is);
  if (run->new_dataset) fprintf(stderr, "nxrun: %s is %s\n", folder, what);
  return run->new_dataset ||
         nxr_fault_set(fault,
                       "%s is %s; put the first one back, or give --new-dataset to go on with this one",
                       folder, what);
}

/* Manifests of older versions do not say what the run was trained on. */
static bool check_dataset(const json_t *manifest, const char *folder, const nxr_manifest_run *run,
                          nxr_fault *fault) {
  const json_t *recorded = json_object_get(manifest, "dataset");
  nxr_fingerprint there = {
      .n_documents = (uint64_t)json_integer_value(json_object_get(recorded, "documents")),
      .n_tokens = (uint64_t)json_integer_value(json_object_get(recorded, "tokens"))};
  bool known = parse_hex(json_string_value(json_object_get(recorded, "sha256")), there.sha256);
  if (run->dataset == NULL || (known && nxr_fingerprint_equal(&there, run->dataset))) return true;
  if (known) return judge_dataset(&there, folder, run, fault);
  fprintf(stderr, "nxrun: %s does not say on which dataset it was trained: this one is taken to be it\n",
          folder);
  return true;
}

bool nxr_manifest_check_run(const json_t *manifest, const char *folder, const nxr_manifest_run *run,
                            nxr_fault *fault) {
  if (!check_plan(manifest, folder, run, fault) || !check_dataset(manifest, folder, run, fault)) return false;
  read_scale(manifest, run->scale);
  read_plateau(manifest, run->plateau);
  if (run->score) nxr_manifest_score(manifest, run->score);
  read_began(manifest, (uint64_t)json_integer_value(json_object_get(manifest, "step")), run->optimizer_began);
  return true;
}
