/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/beside.h"

#include "runtime/data/dataset.h"
#include "schema/regular.h"
#include "tokenizer/files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void forget(const char *folder, const char *name) {
  char path[NXD_PATH_BYTES + 32];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  unlink(path);
}

void nxd_remove_beside(const char *folder) {
  for (int i = 0; nxt_file_names[i]; i++) forget(folder, nxt_file_names[i]);
  forget(folder, NXR_TEXT_FILE);
  rmdir(folder);
}

/* Known where every token of the dataset is of a text that was written whole. */
static bool write_lengths(const char *folder, const nxd_standing *standing, nxr_fault *fault) {
  char path[NXD_PATH_BYTES + 32];
  if (standing->n_text_tokens == 0 || standing->n_text_tokens != standing->n_tokens) return true;
  snprintf(path, sizeof path, "%s/" NXR_TEXT_FILE, folder);
  FILE *file = fopen(path, "wb");
  bool good = file && fprintf(file, "{\"bytes\": %" PRIu64 ", \"tokens\": %" PRIu64 "}\n",
                              standing->n_text_bytes, standing->n_text_tokens) > 0;
  if (file && fclose(file) != 0) good = false;
  return good || nxr_fault_set(fault, "cannot write %s: %s", path, strerror(errno));
}

bool nxd_write_beside(const char *folder, const char *tokenizer, const nxt_unsaid *unsaid,
                      const nxd_standing *standing, nxr_fault *fault) {
  nx_fault wrong = {.text = ""};
  bool named = tokenizer && tokenizer[0] != '\0';
  nxd_remove_beside(folder);
  if (!named && standing->n_text_tokens == 0) return true; /* token ids of who knows what */
  if (mkdir(folder, 0777) != 0)
    return nxr_fault_set(fault, "cannot make the folder %s: %s", folder, strerror(errno));
  if (named ? nxt_copy_files(tokenizer, unsaid, folder, &wrong) : nxt_write_bytes(folder, &wrong))
    return write_lengths(folder, standing, fault);
  return nxr_fault_set(fault, "%s", wrong.text);
}

static void folder_of(const char *prefix, char folder[NXD_PATH_BYTES]) {
  snprintf(folder, NXD_PATH_BYTES, "%s" NXR_TOKENIZER_FOLDER, prefix);
}

bool nxd_copy_beside(const char *from, const char *to, nxr_fault *fault) {
  char source[NXD_PATH_BYTES], folder[NXD_PATH_BYTES];
  nx_fault wrong = {.text = ""};
  folder_of(from, source);
  folder_of(to, folder);
  nxd_remove_beside(folder);
  if (!nxt_is_there(source)) return true;
  if (mkdir(folder, 0777) != 0)
    return nxr_fault_set(fault, "cannot make the folder %s: %s", folder, strerror(errno));
  return nxt_copy_files(source, NULL, folder, &wrong) || nxr_fault_set(fault, "%s", wrong.text);
}

static bool same_bytes(const char *a, const char *b) {
  FILE *one = nx_regular_open(a), *other = nx_regular_open(b);
  bool same = (one == NULL) == (other == NULL);
  while (same && one) {
    int c = getc(one);
    same = c == getc(other);
    if (c == EOF) break;
  }
  if (one) fclose(one);
  if (other) fclose(other);
  return same;
}

bool nxd_same_beside(const char *prefix, const char *other) {
  const char *const prefixes[2] = {prefix, other};
  for (int i = 0; nxt_file_names[i]; i++) {
    char paths[2][NXD_PATH_BYTES];
    for (int k = 0; k < 2; k++)
      snprintf(paths[k], sizeof paths[k], "%s" NXR_TOKENIZER_FOLDER "/%s", prefixes[k], nxt_file_names[i]);
    if (!same_bytes(paths[0], paths[1])) return false;
  }
  return true;
}
