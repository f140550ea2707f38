/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/diagnostics/secret.h"

#include <string.h>
#include <strings.h>

bool nxc_key_is_secret(const char *key) {
  static const char *const endings[] = {"token",      "secret",     "password",   "passwd",     "passphrase",
                                       "credential", "credentials", "api_key",   "apikey",     "secret_key",
                                       "access_key", "private_key"};
  size_t n = strlen(key);
  if (n == 0 || strchr("delnsty", key[n - 1] | 0x20) == NULL)
    return false; /* the last letters of the endings */
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    size_t n_ending = strlen(endings[i]);
    if (n >= n_ending && strcasecmp(key + n - n_ending, endings[i]) == 0) return true;
  }
  return false;
}
