/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/signature.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/base16.h>
#include <nettle/eddsa.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static const char SECRET[] = "nx-ed25519-secret ", PUBLIC[] = "nx-ed25519 ",
                  SIGNATURE[] = "nx-ed25519-signature ";
enum { HASHED_TEXT = 128, CHUNK = 1 << 20 };

static void to_hex(const uint8_t *bytes, size_t n, char *text) {
  base16_encode_update(text, n, bytes);
  text[2 * n] = '\0';
}

/* n bytes of exactly 2n digits; NULL where they are not there, else what follows. */
static const char *from_hex(const char *text, uint8_t *bytes, size_t n) {
  struct base16_decode_ctx state;
  size_t n_read = n;
  if (strspn(text, "0123456789abcdef") != 2 * n) return NULL;
  base16_decode_init(&state);
  return base16_decode_update(&state, &n_read, bytes, 2 * n, text) ? text + 2 * n : NULL;
}

/* ---- keys ---- */

bool nx_key_make(nx_secret_key *key) {
  return getrandom(key->bytes, sizeof key->bytes, 0) == (ssize_t)sizeof key->bytes;
}

void nx_key_print(const nx_secret_key *key, char secret[NX_KEY_TEXT], char public[NX_KEY_TEXT]) {
  uint8_t other[NX_KEY_BYTES];
  char hex[NX_HASH_TEXT];
  to_hex(key->bytes, NX_KEY_BYTES, hex);
  snprintf(secret, NX_KEY_TEXT, "%s%s\n", SECRET, hex);
  ed25519_sha512_public_key(other, key->bytes);
  to_hex(other, NX_KEY_BYTES, hex);
  snprintf(public, NX_KEY_TEXT, "%s%s\n", PUBLIC, hex);
}

bool nx_key_read(const char *text, nx_secret_key *key) {
  if (strncmp(text, SECRET, sizeof SECRET - 1) != 0) return false;
  const char *end = from_hex(text + sizeof SECRET - 1, key->bytes, NX_KEY_BYTES);
  return end != NULL && strspn(end, " \t\r\n") == strlen(end);
}

bool nx_trusted_read(const char *text, nx_trusted_keys *keys, uint32_t *line) {
  keys->n = 0;
  *line = 1;
  for (; *text != '\0'; ++*line) {
    const char *at = text + strspn(text, " \t"), *end = text + strcspn(text, "\n");
    bool empty = at == end || *at == '#' || *at == '\r';
    if (!empty && (keys->n == NX_TRUSTED_KEYS || strncmp(at, PUBLIC, sizeof PUBLIC - 1) != 0)) return false;
    const char *rest = empty ? at : from_hex(at + sizeof PUBLIC - 1, keys->keys[keys->n], NX_KEY_BYTES);
    if (rest == NULL || (!empty && strchr(" \t\r\n", *rest) == NULL)) return false;
    keys->n += !empty;
    text = *end ? end + 1 : end;
  }
  return keys->n > 0;
}

/* ---- signatures ---- */

static size_t signed_text(const char *kind, const char hash[NX_HASH_TEXT], char text[HASHED_TEXT]) {
  return (size_t)snprintf(text, HASHED_TEXT, "nx %.16s %.64s", kind, hash);
}

void nx_sign(const nx_secret_key *key, const char *kind, const char hash[NX_HASH_TEXT],
             char text[NX_SIGNATURE_TEXT]) {
  uint8_t public[NX_KEY_BYTES], signature[NX_SIGNATURE_BYTES];
  char of[HASHED_TEXT], public_hex[NX_HASH_TEXT], signature_hex[2 * NX_SIGNATURE_BYTES + 1];
  size_t n = signed_text(kind, hash, of);
  ed25519_sha512_public_key(public, key->bytes);
  ed25519_sha512_sign(public, key->bytes, n, (const uint8_t *)of, signature);
  to_hex(public, sizeof public, public_hex);
  to_hex(signature, sizeof signature, signature_hex);
  snprintf(text, NX_SIGNATURE_TEXT, "%s%s %s %s\n", SIGNATURE, kind, public_hex, signature_hex);
}

static bool is_trusted(const nx_trusted_keys *keys, const uint8_t key[NX_KEY_BYTES]) {
  for (uint32_t i = 0; i < keys->n; i++)
    if (memcmp(keys->keys[i], key, NX_KEY_BYTES) == 0) return true;
  return false;
}

const char *nx_signature_flaw(const char *text, const char *kind, const char hash[NX_HASH_TEXT],
                              const nx_trusted_keys *keys) {
  static const char NONE[] = "is no signature";
  uint8_t public[NX_KEY_BYTES], signature[NX_SIGNATURE_BYTES];
  char of[HASHED_TEXT];
  size_t n_kind = strlen(kind);
  if (strncmp(text, SIGNATURE, sizeof SIGNATURE - 1) != 0) return NONE;
  text += sizeof SIGNATURE - 1;
  if (strncmp(text, kind, n_kind) != 0 || text[n_kind] != ' ') return "is a signature of something else";
  text = from_hex(text + n_kind + 1, public, sizeof public);
  if (text == NULL || *text != ' ') return NONE;
  text = from_hex(text + 1, signature, sizeof signature);
  if (text == NULL || strspn(text, " \t\r\n") != strlen(text)) return NONE;
  if (!is_trusted(keys, public)) return "is of a key that is not trusted";
  size_t n = signed_text(kind, hash, of);
  return ed25519_sha512_verify(public, n, (const uint8_t *)of, signature)
             ? NULL
             : "does not fit it: one of the two was changed";
}

/* ---- sums of files ---- */

bool nx_hash_file(const char *path, void (*beat)(void), char hash[NX_HASH_TEXT]) {
  struct sha256_ctx state;
  struct stat about;
  uint8_t digest[SHA256_DIGEST_SIZE];
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  bool plain = file >= 0 && fstat(file, &about) == 0 && S_ISREG(about.st_mode);
  if (file >= 0 && !plain) errno = EINVAL;
  uint8_t *chunk = plain ? malloc(CHUNK) : NULL;
  ssize_t n = -1;
  sha256_init(&state);
  while (chunk != NULL && (n = read(file, chunk, CHUNK)) > 0) {
    sha256_update(&state, (size_t)n, chunk);
    if (beat) beat();
  }
  int why = errno;
  free(chunk);
  if (file >= 0) close(file);
  errno = why;
  sha256_digest(&state, sizeof digest, digest);
  to_hex(digest, sizeof digest, hash);
  return n == 0;
}

bool nx_sums_next(const char **at, char hash[NX_HASH_TEXT], char name[NX_SUM_NAME]) {
  uint8_t digest[SHA256_DIGEST_SIZE];
  const char *line = *at, *rest = from_hex(line, digest, sizeof digest);
  if (rest == NULL || strncmp(rest, "  ", 2) != 0) return false;
  rest += 2;
  size_t n = strcspn(rest, "\n");
  if (n == 0 || n >= NX_SUM_NAME || rest[n] != '\n' || memchr(rest, '/', n) != NULL) return false;
  memcpy(hash, line, NX_HASH_TEXT - 1);
  hash[NX_HASH_TEXT - 1] = '\0';
  memcpy(name, rest, n);
  name[n] = '\0';
  *at = rest + n + 1;
  return true;
}
