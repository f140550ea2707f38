/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/signed.h"

#include "schema/plan_check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, MOST_TEXT = 1 << 22 };

char *nx_text_read(const char *path) {
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* of a pipe nothing is awaited */
  struct stat about;
  bool fits = file >= 0 && fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size <= MOST_TEXT;
  if (file >= 0 && !fits) errno = EINVAL;
  char *text = fits ? calloc((size_t)about.st_size + 1, 1) : NULL;
  ssize_t n = text ? read(file, text, (size_t)about.st_size) : 0;
  int why = errno;
  if (file >= 0) close(file);
  errno = why;
  if (text && n >= 0) return text;
  free(text);
  return NULL;
}

bool nx_trusted_open(const char *path, nx_trusted_keys *keys, nx_fault *fault) {
  uint32_t line;
  char *text = nx_text_read(path);
  if (text == NULL)
    return nx_fault_set(fault, 0, "cannot read the trusted keys %s: %s", path, strerror(errno));
  bool good = nx_trusted_read(text, keys, &line);
  free(text);
  return good || nx_fault_set(fault, 0,
                              "line %u of %s is no public key: it takes the text of a .pub file that nxcfg "
                              "sign --new-key wrote, one a line, %d at most",
                              line, path, NX_TRUSTED_KEYS);
}

/* Of PATH that has this hash. */
static bool check_signature(const char *path, const char *kind, const char hash[NX_HASH_TEXT],
                            const nx_trusted_keys *keys, nx_fault *fault) {
  char file[PATH_BYTES];
  bool named = snprintf(file, sizeof file, "%s" NX_SIGNATURE_ENDING, path) < (int)sizeof file;
  char *text = named ? nx_text_read(file) : NULL;
  if (text == NULL)
    return nx_fault_set(fault, 0, "%s has no signature %s: %s", path, file, strerror(errno));
  const char *flaw = nx_signature_flaw(text, kind, hash, keys);
  free(text);
  return flaw == NULL || nx_fault_set(fault, 0, "%s %s", file, flaw);
}

bool nx_plan_is_signed(const char *path, const void *bytes, uint64_t n_bytes, const nx_trusted_keys *keys,
                       nx_fault *fault) {
  char hash[NX_HASH_TEXT];
  nx_sha256_hex(bytes, n_bytes, hash);
  return check_signature(path, NX_SIGNED_PLAN, hash, keys, fault);
}

/* ---- folders ---- */

static int is_listed(const struct dirent *entry) {
  static const char *const beside[] = {".", "..", NX_SUMS_FILE, NX_SUMS_FILE NX_SIGNATURE_ENDING};
  for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
    if (strcmp(entry->d_name, beside[i]) == 0) return 0;
  return 1;
}

static int by_name(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

static void free_entries(struct dirent **entries, int n) {
  for (int i = 0; i < n; i++) free(entries[i]);
  if (n >= 0) free(entries);
}

static bool join(const char *folder, const char *name, char path[PATH_BYTES]) {
  return snprintf(path, PATH_BYTES, "%s/%s", folder, name) < PATH_BYTES;
}

static bool print_sum(const char *folder, const char *name, FILE *out, nx_fault *fault) {
  char path[PATH_BYTES], hash[NX_HASH_TEXT];
  if (strchr(name, '\n') != NULL)
    return nx_fault_set(fault, 0, "a file in %s has a line end in its name", folder);
  errno = ENAMETOOLONG;
  if (join(folder, name, path) && nx_hash_file(path, NULL, hash))
    return fprintf(out, "%s  %s\n", hash, name) > 0;
  return nx_fault_set(fault, 0, "cannot read %s: %s; a folder is signed that has plain files alone", path,
                      errno == EINVAL ? "it is no plain file" : strerror(errno));
}

char *nx_folder_sums(const char *folder, nx_fault *fault) {
  struct dirent **entries = NULL;
  char *text = NULL;
  size_t n_bytes;
  int n = scandir(folder, &entries, is_listed, by_name);
  FILE *out = n > 0 ? open_memstream(&text, &n_bytes) : NULL;
  bool good = out != NULL;
  if (!good) nx_fault_set(fault, 0, "%s: %s", folder, n == 0 ? "there is no file to sign" : strerror(errno));
  for (int i = 0; good && i < n; i++) good = print_sum(folder, entries[i]->d_name, out, fault);
  if (out && fclose(out) != 0 && good) good = nx_fault_set(fault, 0, "out of memory");
  free_entries(entries, n);
  if (good) return text;
  free(text);
  return NULL;
}

static bool unsigned_file(const char *folder, const char *name, nx_fault *fault) {
  return nx_fault_set(fault, 0, "%s has %s, which was not signed", folder, name);
}

/* Both are in one order, so they are read side by side. */
static bool compare(const char *folder, const char *list, struct dirent **entries, int n, uint32_t first,
                    uint32_t stride, void (*beat)(void), nx_fault *fault) {
  char path[PATH_BYTES], hash[NX_HASH_TEXT], listed[NX_HASH_TEXT], name[NX_SUM_NAME];
  uint32_t at = 0;
  for (; nx_sums_next(&list, listed, name); at++) {
    int order = at < (uint32_t)n ? strcmp(entries[at]->d_name, name) : 1;
    if (order < 0) return unsigned_file(folder, entries[at]->d_name, fault);
    if (order > 0) return nx_fault_set(fault, 0, "%s lacks %s, which was signed", folder, name);
    if (at % stride != first) continue;
    if (!join(folder, name, path) || !nx_hash_file(path, beat, hash))
      return nx_fault_set(fault, 0, "cannot read %s/%s: %s", folder, name, strerror(errno));
    if (strcmp(hash, listed) != 0)
      return nx_fault_set(fault, 0, "%s is not the file that was signed", path);
  }
  if (*list != '\0') return nx_fault_set(fault, 0, "%s/" NX_SUMS_FILE " is malformed", folder);
  return at == (uint32_t)n || unsigned_file(folder, entries[at]->d_name, fault);
}

bool nx_folder_is_signed(const char *folder, const nx_trusted_keys *keys, uint32_t first, uint32_t stride,
                         void (*beat)(void), nx_fault *fault) {
  char path[PATH_BYTES], hash[NX_HASH_TEXT];
  struct dirent **entries = NULL;
  char *list = join(folder, NX_SUMS_FILE, path) ? nx_text_read(path) : NULL;
  if (list == NULL)
    return nx_fault_set(fault, 0, "%s is not signed: it has no " NX_SUMS_FILE, folder);
  nx_sha256_hex(list, strlen(list), hash);
  bool good = check_signature(path, NX_SIGNED_FOLDER, hash, keys, fault);
  int n = good ? scandir(folder, &entries, is_listed, by_name) : -1;
  if (good && n < 0) nx_fault_set(fault, 0, "%s: %s", folder, strerror(errno));
  good = n >= 0 && compare(folder, list, entries, n, first, stride, beat, fault);
  free_entries(entries, n);
  free(list);
  return good;
}
