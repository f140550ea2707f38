/* SPDX-License-Identifier: Apache-2.0 */
/* A fuzz target's main for the normal test run: replays the files, and the files in the folders, that are
 * given; but not those that golden tests wrote, *.out.
 *
 * With -DNX_LIBFUZZER there is none, and libFuzzer's is linked. */
#ifndef TESTS_FUZZ_REPLAY_H
#define TESTS_FUZZ_REPLAY_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

/* Of several things that can be done with an input a replay does all. A search, which must be fast, does the
 * one that the input chooses; of things with another `salt` it chooses apart. */
static inline bool is_chosen(const uint8_t *bytes, size_t n_bytes, uint64_t salt, size_t which,
                             size_t n_ways) {
#ifdef NX_LIBFUZZER
  uint64_t sum = n_bytes + salt;
  for (size_t i = 0; i < n_bytes; i++) sum = (sum ^ bytes[i]) * UINT64_C(0x100000001B3);
  return (sum ^ sum >> 32) * UINT64_C(0x9E3779B97F4A7C15) % n_ways == which;
#else
  (void)bytes, (void)n_bytes, (void)salt, (void)which, (void)n_ways;
  return true;
#endif
}

#ifndef NX_LIBFUZZER
static size_t replay_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) {
    perror(path);
    exit(1);
  }
  fseek(file, 0, SEEK_END);
  size_t n_bytes = (size_t)ftell(file);
  rewind(file);
  uint8_t *bytes = malloc(n_bytes + 1); /* as long as the input, so that a sanitizer sees what reads on */
  if (bytes == NULL || fread(bytes, 1, n_bytes, file) != n_bytes) exit(1);
  fclose(file);
  LLVMFuzzerTestOneInput(bytes, n_bytes);
  free(bytes);
  return 1;
}

static size_t replay(const char *path) {
  DIR *folder = opendir(path);
  if (folder == NULL) return replay_file(path);
  size_t n = 0;
  for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    char inside[4096];
    const char *end = strrchr(entry->d_name, '.');
    if (entry->d_name[0] == '.' || (end != NULL && strcmp(end, ".out") == 0)) continue;
    snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name);
    n += replay(inside);
  }
  closedir(folder);
  return n;
}

int main(int argc, char **argv) {
  size_t n = 0;
  for (int i = 1; i < argc; i++) n += replay(argv[i]);
  printf("%zu inputs\n", n);
  return n > 0 ? 0 : 1;
}
#endif

#endif
