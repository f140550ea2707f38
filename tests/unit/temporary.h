/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of a test's own, and files in it.
 *
 * Paths are made in the folder by name; they live until the next call with the same slot (0 … 7). */
#ifndef TESTS_UNIT_TEMPORARY_H
#define TESTS_UNIT_TEMPORARY_H

#include <assert.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char temporary_folder[64];

/* A setup and a teardown of CMocka. */
static inline int temporary_make(void **state) {
  (void)state;
  strcpy(temporary_folder, "/tmp/nx-test-XXXXXX");
  char *made = mkdtemp(temporary_folder);
  return made == NULL;
}

static inline int temporary_remove_one(const char *path, const struct stat *status, int type,
                                       struct FTW *where) {
  (void)status, (void)type, (void)where;
  return remove(path);
}

static inline int temporary_remove(void **state) {
  (void)state;
  return nftw(temporary_folder, temporary_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline const char *temporary_path(int slot, const char *name) {
  static char paths[8][512];
  snprintf(paths[slot], sizeof paths[slot], "%s/%s", temporary_folder, name);
  return paths[slot];
}

static inline void temporary_write(const char *name, const void *bytes, size_t n_bytes) {
  FILE *file = fopen(temporary_path(7, name), "wb");
  assert(file != NULL);
  size_t n_written = fwrite(bytes, 1, n_bytes, file);
  int closed = fclose(file);
  assert(n_written == n_bytes && closed == 0);
  (void)n_written, (void)closed;
}

/* The bytes are the caller's to free. */
static inline uint8_t *temporary_read(const char *name, size_t *n_bytes) {
  FILE *file = fopen(temporary_path(7, name), "rb");
  assert(file != NULL);
  fseek(file, 0, SEEK_END);
  *n_bytes = (size_t)ftell(file);
  rewind(file);
  uint8_t *bytes = malloc(*n_bytes + 1);
  assert(bytes != NULL);
  size_t n_read = fread(bytes, 1, *n_bytes, file);
  fclose(file);
  assert(n_read == *n_bytes);
  (void)n_read;
  return bytes;
}

static inline int temporary_exists(const char *name) {
  return access(temporary_path(7, name), F_OK) == 0;
}

#endif
