/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures of plans and of folders of weights: Ed25519 (RFC 8032) over a SHA-256.
 *
 * A key is a file with one line, "nx-ed25519-secret HEX"; its public half is "nx-ed25519 HEX [who it is of]",
 * and a file of trusted keys has such a line for each ('#' begins a comment). The signature of FILE is
 * FILE.sig, one line: "nx-ed25519-signature KIND PUBLIC-KEY SIGNATURE". What is signed is the text "nx KIND
 * SHA-256-in-hex", so that no signature serves for another kind of thing.
 *
 * A plan is signed as the bytes of its file. A folder is signed as its list SHA256SUMS, in the format of
 * sha256sum(1): a line for each plain file of the folder but the list and its signature. */
#ifndef NX_SIGNATURE_H
#define NX_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NX_SIGNATURE_ENDING ".sig"
#define NX_SUMS_FILE "SHA256SUMS"
#define NX_SIGNED_PLAN "plan"
#define NX_SIGNED_FOLDER "folder"

enum {
  NX_KEY_BYTES = 32,
  NX_SIGNATURE_BYTES = 64,
  NX_HASH_TEXT = 65,
  NX_KEY_TEXT = 128,       /* of a line, with its end */
  NX_SIGNATURE_TEXT = 320,
  NX_TRUSTED_KEYS = 64     /* of a file, at most */
};

typedef struct nx_secret_key {
  uint8_t bytes[NX_KEY_BYTES];
} nx_secret_key;

typedef struct nx_trusted_keys {
  uint32_t n;
  uint8_t keys[NX_TRUSTED_KEYS][NX_KEY_BYTES];
} nx_trusted_keys;

/* From the system's random numbers; false where it has none. */
bool nx_key_make(nx_secret_key *key);
void nx_key_print(const nx_secret_key *key, char secret[NX_KEY_TEXT], char public[NX_KEY_TEXT]);
/* Of a whole text; false where it is none. */
bool nx_key_read(const char *text, nx_secret_key *key);
/* *line is the first that is no key; false there, and where there is none or too many. */
bool nx_trusted_read(const char *text, nx_trusted_keys *keys, uint32_t *line);

void nx_sign(const nx_secret_key *key, const char *kind, const char hash[NX_HASH_TEXT],
             char text[NX_SIGNATURE_TEXT]);
/* NULL where one of the keys has signed it; otherwise what is wrong, as the end of a sentence about the
 * file. */
const char *nx_signature_flaw(const char *text, const char *kind, const char hash[NX_HASH_TEXT],
                              const nx_trusted_keys *keys);

/* Of a plain file's bytes; `beat`, or NULL, is called now and then. False with errno. */
bool nx_hash_file(const char *path, void (*beat)(void), char hash[NX_HASH_TEXT]);
/* A line of a list of sums at *at, which moves behind it: false at the end, and where it is malformed, when
 * *at is not at the end. */
enum { NX_SUM_NAME = 256 };
bool nx_sums_next(const char **at, char hash[NX_HASH_TEXT], char name[NX_SUM_NAME]);

#endif
