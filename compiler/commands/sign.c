/* SPDX-License-Identifier: Apache-2.0 */
/* nxcfg sign: signs plans and folders of weights, looks at signatures, and makes keys
 * (schema/signature.h). */
#include "compiler/commands/commands.h"
#include "compiler/commands/options.h"
#include "compiler/commands/output.h"
#include "compiler/render/screen.h"
#include "schema/plan_check.h"
#include "schema/regular.h"
#include "schema/signed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage[] =
    "usage: nxcfg sign PATH... --key KEY\n"
    "       nxcfg sign PATH... --trust KEYS\n"
    "       nxcfg sign --new-key KEY\n"
    "Signs plans and folders of weights, so that nxrun --trust KEYS runs nothing else. The signature of a\n"
    "plan stands beside it, in PATH.sig; a folder gets SHA256SUMS, which sha256sum -c reads, and\n"
    "SHA256SUMS.sig.\n"
    "  --key KEY       sign with this secret key\n"
    "  --trust KEYS    only look: whether one of these public keys has signed each PATH as it is\n"
    "  --new-key KEY   make a key: the secret half in KEY, for its owner alone, the public half in KEY.pub\n";

static int complain(const nx_fault *fault, int status) {
  fprintf(stderr, "nxcfg sign: %s\n", fault->text);
  return status;
}

/* ---- keys ---- */

/* Nothing is replaced: who loses a key can sign nothing any more. */
static bool write_new(const char *path, const char *text, mode_t mode) {
  int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  size_t n = strlen(text);
  bool good = file >= 0 && write(file, text, n) == (ssize_t)n && fsync(file) == 0;
  if (!good) fprintf(stderr, "nxcfg sign: cannot write %s: %s\n", path, strerror(errno));
  if (!good && file >= 0) unlink(path);
  if (file >= 0) close(file);
  return good;
}

static int make_key(nxc_arena *arena, const char *path) {
  nx_secret_key key;
  char secret[NX_KEY_TEXT], public[NX_KEY_TEXT];
  const char *beside = nxc_arena_printf(arena, "%s.pub", path);
  if (!nx_key_make(&key)) {
    fprintf(stderr, "nxcfg sign: this system has no random numbers: %s\n", strerror(errno));
    return NXC_EXIT_USAGE;
  }
  nx_key_print(&key, secret, public);
  bool alone = write_new(path, secret, 0600), good = alone && write_new(beside, public, 0644);
  if (alone && !good) unlink(path);
  explicit_bzero(&key, sizeof key);
  explicit_bzero(secret, sizeof secret);
  if (!good) return NXC_EXIT_USAGE;
  printf("%s signs, and must stay secret; %s goes to whoever runs what it signs\n", path, beside);
  return NXC_EXIT_GOOD;
}

static bool read_key(const char *path, nx_secret_key *key) {
  struct stat about;
  char *text = nx_text_read(path);
  if (text == NULL) {
    fprintf(stderr, "nxcfg sign: cannot read the key %s: %s\n", path, strerror(errno));
    return false;
  }
  bool good = nx_key_read(text, key);
  explicit_bzero(text, strlen(text));
  free(text);
  if (!good)
    fprintf(stderr, "nxcfg sign: %s is no secret key: nxcfg sign --new-key FILE makes one\n", path);
  bool open_to_others = good && stat(path, &about) == 0 && (about.st_mode & 077) != 0;
  if (open_to_others)
    fprintf(stderr, "nxcfg sign: others may read the key %s: chmod 600 %s\n", path, path);
  return good && !open_to_others;
}

/* ---- what is signed ---- */

static bool is_folder(const char *path) {
  struct stat about;
  return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* A plan's bytes, to be freed; NULL with a fault. Only what is a plan is signed as one. */
static void *read_plan(const char *path, uint64_t *n_bytes, nx_fault *fault) {
  FILE *file = nx_regular_open(path);
  struct stat about;
  bool fits = file != NULL && fstat(fileno(file), &about) == 0 && S_ISREG(about.st_mode) &&
              about.st_size > 0 && (uint64_t)about.st_size <= NX_PLAN_MAX_BYTES;
  void *bytes = NULL;
  nx_plan plan;
  nx_fault why = {.text = ""};
  if (file == NULL) nx_fault_set(fault, 0, "cannot read %s: %s", path, strerror(errno));
  *n_bytes = fits ? (uint64_t)about.st_size : 0;
  bool read = fits && posix_memalign(&bytes, NX_PLAN_ALIGNMENT, *n_bytes) == 0 &&
              fread(bytes, 1, *n_bytes, file) == *n_bytes;
  bool good = read && nx_plan_check(bytes, *n_bytes, &plan, &why);
  if (file != NULL && !good)
    nx_fault_set(fault, 0,
                 "%s is no plan%s%s: nxcfg plan FILE -o PLAN makes one; weights are signed as a folder", path,
                 why.text[0] ? ", " : "", why.text);
  if (file != NULL) fclose(file);
  if (good) return bytes;
  free(bytes);
  return NULL;
}

static bool write_signature(nxc_arena *arena, const nx_secret_key *key, const char *kind, const char *path,
                            const char hash[NX_HASH_TEXT]) {
  char text[NX_SIGNATURE_TEXT];
  nx_sign(key, kind, hash, text);
  return nxc_output_write(arena, "sign", nxc_arena_printf(arena, "%s" NX_SIGNATURE_ENDING, path), text,
                          strlen(text));
}

static int sign_plan(nxc_arena *arena, const nx_secret_key *key, const char *path) {
  nx_fault fault = {.text = ""};
  uint64_t n_bytes;
  char hash[NX_HASH_TEXT];
  void *bytes = read_plan(path, &n_bytes, &fault);
  if (bytes == NULL) return complain(&fault, NXC_EXIT_USAGE);
  nx_sha256_hex(bytes, n_bytes, hash);
  free(bytes);
  return write_signature(arena, key, NX_SIGNED_PLAN, path, hash) ? NXC_EXIT_GOOD : NXC_EXIT_USAGE;
}

static int sign_folder(nxc_arena *arena, const nx_secret_key *key, const char *folder) {
  nx_fault fault = {.text = ""};
  char hash[NX_HASH_TEXT];
  const char *path = nxc_arena_printf(arena, "%s/" NX_SUMS_FILE, folder);
  char *list = nx_folder_sums(folder, &fault);
  if (list == NULL) return complain(&fault, NXC_EXIT_USAGE);
  nx_sha256_hex(list, strlen(list), hash);
  bool good = nxc_output_write(arena, "sign", path, list, strlen(list)) &&
              write_signature(arena, key, NX_SIGNED_FOLDER, path, hash);
  free(list);
  return good ? NXC_EXIT_GOOD : NXC_EXIT_USAGE;
}

static int verify(const char *path, const nx_trusted_keys *keys) {
  nx_fault fault = {.text = ""};
  bool folder = is_folder(path);
  uint64_t n_bytes;
  void *bytes = folder ? NULL : read_plan(path, &n_bytes, &fault);
  if (!folder && bytes == NULL) return complain(&fault, NXC_EXIT_USAGE);
  bool good = folder ? nx_folder_is_signed(path, keys, 0, 1, NULL, &fault)
                     : nx_plan_is_signed(path, bytes, n_bytes, keys, &fault);
  free(bytes);
  return good ? NXC_EXIT_GOOD : complain(&fault, NXC_EXIT_FOUND);
}

static int each(nxc_arena *arena, const nxc_texts *paths, const nx_secret_key *key,
                const nx_trusted_keys *keys) {
  int status = NXC_EXIT_GOOD;
  for (size_t i = 0; i < paths->n_items; i++) {
    const char *path = paths->items[i];
    int own = keys ? verify(path, keys)
                   : (is_folder(path) ? sign_folder : sign_plan)(arena, key, path);
    if (own > status) status = own;
  }
  return status;
}

static int run(nxc_arena *arena, const nxc_options *options, const char *key_path, const char *trust,
               const char *new_key) {
  nx_secret_key key;
  nx_trusted_keys keys;
  nx_fault fault = {.text = ""};
  bool alone = (key_path != NULL) + (trust != NULL) + (new_key != NULL) == 1;
  if (!alone || (options->files.n_items == 0) != (new_key != NULL)) {
    nxc_print_usage(stderr, usage);
    return NXC_EXIT_USAGE;
  }
  if (new_key != NULL) return make_key(arena, new_key);
  if (trust != NULL)
    return nx_trusted_open(trust, &keys, &fault) ? each(arena, &options->files, NULL, &keys)
                                                 : complain(&fault, NXC_EXIT_USAGE);
  int status = read_key(key_path, &key) ? each(arena, &options->files, &key, NULL) : NXC_EXIT_USAGE;
  explicit_bzero(&key, sizeof key);
  return status;
}

int nxc_command_sign(int argc, char **argv) {
  nxc_arena *arena = nxc_arena_new();
  nxc_options options;
  const char *key = NULL, *trust = NULL, *new_key = NULL;
  const nxc_extra_option extras[] = {
      {.name = "--key", .text = &key}, {.name = "--trust", .text = &trust},
      {.name = "--new-key", .text = &new_key}, {.name = NULL}};
  int status = NXC_EXIT_USAGE;
  if (nxc_options_parse(arena, &options, "sign", argc - 1, argv + 1, extras, false)) {
    if (options.help) nxc_print_usage(stdout, usage);
    status = options.help ? NXC_EXIT_GOOD : run(arena, &options, key, trust, new_key);
  }
  nxc_arena_free(arena);
  return status;
}
