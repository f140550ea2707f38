/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/reference_file.h"

#include "schema/regular.h"

#include <dirent.h>
#include <errno.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct header {
  char magic[8];
  uint8_t key[NXR_REFERENCE_KEY_BYTES];
  uint64_t n;
} header;

static const char MAGIC[8] = "NXREF\0\0\1";

static void digest_of(const double *sums, uint64_t n, uint8_t digest[SHA256_DIGEST_SIZE]) {
  struct sha256_ctx state;
  sha256_init(&state);
  sha256_update(&state, n * sizeof *sums, (const uint8_t *)sums);
  sha256_digest(&state, SHA256_DIGEST_SIZE, digest);
}

/* ---- the key ---- */

static void add_text(struct sha256_ctx *state, const char *text) {
  sha256_update(state, strlen(text) + 1, (const uint8_t *)text);
}

static void add_number(struct sha256_ctx *state, uint64_t number) {
  sha256_update(state, sizeof number, (const uint8_t *)&number);
}

static void add_file(struct sha256_ctx *state, const char *path) {
  struct stat is;
  add_text(state, path);
  if (stat(path, &is) != 0 || !S_ISREG(is.st_mode)) return;
  add_number(state, (uint64_t)is.st_size);
  add_number(state, (uint64_t)is.st_mtim.tv_sec);
  add_number(state, (uint64_t)is.st_mtim.tv_nsec);
}

/* A file, or those of a folder, in the order of their names. */
static void add_path(struct sha256_ctx *state, const char *path) {
  struct dirent **entries;
  char within[4096];
  add_file(state, path);
  int n = path[0] != '\0' ? scandir(path, &entries, NULL, alphasort) : -1;
  for (int i = 0; i < n; i++) {
    if (snprintf(within, sizeof within, "%s/%s", path, entries[i]->d_name) < (int)sizeof within)
      add_file(state, within);
    free(entries[i]);
  }
  if (n >= 0) free(entries);
}

static bool is_of_model(const char *path) {
  static const char *const begins[] = {"model.", "attention.", "position.",
                                       "moe.",   "precision.", "lora.base_type"};
  for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
    if (strncmp(path, begins[i], strlen(begins[i])) == 0) return true;
  return false;
}

void nxr_reference_key(const nx_plan *plan, const nxr_fingerprint *data,
                       uint8_t key[NXR_REFERENCE_KEY_BYTES]) {
  struct sha256_ctx state;
  sha256_init(&state);
  sha256_update(&state, sizeof data->sha256, data->sha256);
  add_number(&state, plan->run->sequence);
  add_number(&state, plan->run->seed);
  add_path(&state, nx_plan_string(plan, plan->run->init_from));
  add_path(&state, nx_plan_text(plan, plan->run_names->load));
  add_number(&state, plan->run_names->load_step);
  for (uint32_t i = 0; i < plan->n[NX_SECTION_SETTINGS]; i++) {
    const char *path = nx_plan_text(plan, plan->settings[i].path);
    if (!is_of_model(path)) continue;
    add_text(&state, path);
    add_text(&state, nx_plan_text(plan, plan->settings[i].value));
  }
  sha256_digest(&state, NXR_REFERENCE_KEY_BYTES, key);
}

/* ---- the file ---- */

static bool path_of(const char *directory, const char *name, char path[4096]) {
  return snprintf(path, 4096, "%s/%s", directory, name) < 4096;
}

bool nxr_reference_read(const char *directory, const uint8_t key[NXR_REFERENCE_KEY_BYTES], double *sums,
                        uint64_t n) {
  char path[4096];
  header is;
  uint8_t found[SHA256_DIGEST_SIZE], wanted[SHA256_DIGEST_SIZE];
  FILE *file = path_of(directory, "reference.bin", path) ? nx_regular_open(path) : NULL;
  if (file == NULL) return false;
  bool good = fread(&is, sizeof is, 1, file) == 1 && memcmp(is.magic, MAGIC, sizeof MAGIC) == 0 &&
              memcmp(is.key, key, sizeof is.key) == 0 && is.n == n &&
              fread(sums, sizeof *sums, n, file) == n && fread(wanted, sizeof wanted, 1, file) == 1;
  fclose(file);
  if (good) digest_of(sums, n, found);
  good = good && memcmp(found, wanted, sizeof found) == 0;
  if (!good) memset(sums, 0, n * sizeof *sums);
  return good;
}

bool nxr_reference_write(const char *directory, const uint8_t key[NXR_REFERENCE_KEY_BYTES],
                         const double *sums, uint64_t n, nxr_fault *fault) {
  char path[4096], new_path[4096];
  header is = {.n = n};
  uint8_t digest[SHA256_DIGEST_SIZE];
  memcpy(is.magic, MAGIC, sizeof MAGIC);
  memcpy(is.key, key, sizeof is.key);
  digest_of(sums, n, digest);
  bool named = path_of(directory, "reference.bin", path) && path_of(directory, "reference.bin.new", new_path);
  FILE *file = named ? fopen(new_path, "wb") : NULL;
  bool good = file && fwrite(&is, sizeof is, 1, file) == 1 && fwrite(sums, sizeof *sums, n, file) == n &&
              fwrite(digest, sizeof digest, 1, file) == 1 && fflush(file) == 0 && fsync(fileno(file)) == 0;
  int why = errno;
  if (file && fclose(file) != 0 && good) good = false, why = errno;
  if (good && rename(new_path, path) != 0) good = false, why = errno;
  if (!good && file) unlink(new_path);
  return good || nxr_fault_set(fault, "cannot write %s: %s", path, strerror(why));
}
