/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/input.h"

#include <string.h>

static const nxd_input_kind *const kinds[] = {&nxd_input_text, &nxd_input_lines, &nxd_input_jsonl,
                                              &nxd_input_json, &nxd_input_arrow, &nxd_input_indexed};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

/* Kinds of files that teams have and nothing here reads. */
static const struct {
  const char *ending, *remedy;
} unread[] = {
    {".parquet",
     "datasets.load_dataset('parquet', data_files=...).save_to_disk(FOLDER) makes one that is read"},
    {".csv", "datasets.load_dataset('csv', data_files=...).save_to_disk(FOLDER) makes one that is read"},
    {".bz2", "decompress it, or give it compressed with gzip or zstd"},
    {".xz", "decompress it, or give it compressed with gzip or zstd"},
};

static bool ends_with(const char *path, size_t length, const char *ending, size_t n) {
  return length > n && memcmp(path + length - n, ending, n) == 0;
}

/* The length of a path without the endings of compressed files. */
static size_t bare_length(const char *path) {
  size_t length = strlen(path);
  if (ends_with(path, length, ".gz", 3)) length -= 3;
  else if (ends_with(path, length, ".zst", 4)) length -= 4;
  return length;
}

static bool has_ending(const nxd_input_kind *kind, const char *path, size_t length) {
  for (const char *at = kind->endings; *at != '\0';) {
    size_t n = strcspn(at, " ");
    if (ends_with(path, length, at, n)) return true;
    at += n + strspn(at + n, " ");
  }
  return false;
}

const nxd_input_kind *nxd_input_kind_named(const char *name) {
  for (size_t i = 0; i < N_KINDS; i++)
    if (strcmp(kinds[i]->name, name) == 0) return kinds[i];
  return NULL;
}

const nxd_input_kind *nxd_input_kind_of(const char *path, nxr_fault *fault) {
  size_t length = bare_length(path);
  for (size_t i = 0; i < sizeof unread / sizeof *unread; i++)
    if (ends_with(path, length, unread[i].ending, strlen(unread[i].ending))) {
      nxr_fault_set(fault, "cannot read %s: %s", path, unread[i].remedy);
      return NULL;
    }
  for (size_t i = 0; i < N_KINDS; i++)
    if (has_ending(kinds[i], path, length)) return kinds[i];
  return &nxd_input_text;
}

bool nxd_input_open(nxd_input *input, const nxd_input_kind *kind, const char *path, const nxd_wanted *wanted,
                    nxr_fault *fault) {
  *input = (nxd_input){.kind = kind, .path = path, .wanted = wanted};
  if (kind->open(input, fault)) return true;
  *input = (nxd_input){0};
  return false;
}

void nxd_input_close(nxd_input *input) {
  if (input->kind) input->kind->close(input);
  *input = (nxd_input){0};
}
