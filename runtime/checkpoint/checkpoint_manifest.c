/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/checkpoint_manifest.h"

#include "runtime/checkpoint/checkpoint_agree.h"
#include "runtime/checkpoint/checkpoint_beside.h"
#include "runtime/files/mapping.h"

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

static const char FORMAT[] = "nxrun checkpoint", SUM[] = "manifest_sum";
enum { HEX_BYTES = 65 };

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
  return json_pack("{s:f, s:I, s:I, s:I, s:I}", "factor", run->scale->factor, "good",
                   (json_int_t)run->scale->n_good, "left", (json_int_t)run->scale->n_left, "skipped",
                   (json_int_t)run->scale->n_skipped, "samples", (json_int_t)run->scale->n_samples);
}

/* One without it begins anew. */
static void read_scale(const json_t *manifest, const nxr_manifest_run *run) {
  nxr_loss_scale *scale = run->scale;
  double factor;
  json_int_t n_good, n_left, n_skipped, n_samples = -1;
  if (scale == NULL ||
      json_unpack((json_t *)(uintptr_t)json_object_get(manifest, "loss_scale"), "{s:F, s:I, s:I, s:I, s?I}",
                  "factor", &factor, "good", &n_good, "left", &n_left, "skipped", &n_skipped, "samples",
                  &n_samples) != 0 ||
      !(factor > 0) || n_good < 0 || n_left < 0 || n_skipped < 0)
    return;
  if (n_samples < 0) n_samples = n_skipped * nx_plan_phase(run->plan, 0).global_batch;
  *scale =
      (nxr_loss_scale){factor, (uint32_t)n_good, (uint32_t)n_left, (uint64_t)n_skipped, (uint64_t)n_samples};
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
                   "version", NXR_MANIFEST_VERSION, "plan_id", hex, "step", (json_int_t)step, "files",
                   entries, "settings", nxr_manifest_settings(run->plan), "dataset",
                   make_dataset(run->dataset), "loss_scale", make_scale(run), "score", make_score(run),
                   "optimizer_began", make_began(run), "plateau", make_plateau(run));
}

/* Of all of it but its own sum. */
static bool sum_up(const json_t *manifest, char text[NXR_SUM_TEXT_BYTES]) {
  nxr_sum sum = {{0}};
  json_t *rest = json_copy((json_t *)(uintptr_t)manifest);
  json_object_del(rest, SUM);
  char *all = json_dumps(rest, JSON_COMPACT | JSON_SORT_KEYS);
  json_decref(rest);
  if (all == NULL) return false;
  nxr_sum_add(&sum, all, strlen(all), 0);
  nxr_sum_text(&sum, text);
  free(all);
  return true;
}

char *nxr_manifest_text(json_t *manifest) {
  char sum[NXR_SUM_TEXT_BYTES];
  bool good = sum_up(manifest, sum) && json_object_set_new(manifest, SUM, json_string(sum)) == 0;
  return good ? json_dumps(manifest, JSON_INDENT(1)) : NULL;
}

bool nxr_manifest_write(const char *folder, const nxr_manifest_run *run, uint64_t step,
                        const nxr_checkpoint_file *files, uint32_t n_files, nxr_fault *fault) {
  json_t *manifest = make_manifest(run, step, files, n_files);
  char *text = manifest ? nxr_manifest_text(manifest) : NULL;
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
  const char *text = file.n_bytes ? (const char *)file.bytes : "";
  json_t *read = json_loadb(text, file.n_bytes, JSON_REJECT_DUPLICATES, &error);
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

static bool is_whole(const json_t *manifest) {
  const json_t *recorded = json_object_get(manifest, SUM);
  char sum[NXR_SUM_TEXT_BYTES];
  return recorded == NULL ||
         (json_is_string(recorded) && sum_up(manifest, sum) && strcmp(json_string_value(recorded), sum) == 0);
}

bool nxr_manifest_read(const char *folder, uint64_t step, json_t **manifest, nxr_fault *fault) {
  uint8_t plan_id[32];
  *manifest = NULL;
  json_t *read = load(folder, fault);
  if (read == NULL) return false;
  if (!is_whole(read)) {
    json_decref(read);
    return nxr_fault_set(fault, "the checksum of manifest.json is wrong");
  }
  const json_t *recorded = json_object_get(read, "step");
  bool good = json_is_integer(json_object_get(read, "version")) &&
              nxr_hex_parse(json_string_value(json_object_get(read, "plan_id")), plan_id) &&
              json_is_integer(recorded);
  bool other = good && (uint64_t)json_integer_value(recorded) != step;
  if (good && !other) *manifest = read;
  else json_decref(read);
  if (other) return nxr_fault_set(fault, "its manifest.json is of another step: was the folder renamed?");
  return good || nxr_fault_set(fault, "manifest.json is damaged");
}

bool nxr_manifest_check_run(const json_t *manifest, const char *folder, const nxr_manifest_run *run,
                            nxr_fault *fault) {
  if (!nxr_manifest_agrees(manifest, folder, run, fault)) return false;
  read_scale(manifest, run);
  read_plateau(manifest, run->plateau);
  if (run->score) nxr_manifest_score(manifest, run->score);
  read_began(manifest, (uint64_t)json_integer_value(json_object_get(manifest, "step")), run->optimizer_began);
  return true;
}
