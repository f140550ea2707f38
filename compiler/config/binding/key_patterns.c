/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/binding/key_patterns.h"

#include <fnmatch.h>
#include <string.h>

bool nxc_key_patterns_match(const nxc_texts *patterns, const char *name) {
  for (size_t i = 0; i < patterns->n_items; i++) {
    const char *pattern = patterns->items[i];
    size_t n_bytes = strlen(pattern);
    bool section = n_bytes > 2 && strcmp(pattern + n_bytes - 2, ".*") == 0;
    if (section && strncmp(pattern, name, n_bytes - 2) == 0 && name[n_bytes - 2] == '\0') return true;
    if (fnmatch(pattern, name, 0) == 0) return true;
  }
  return false;
}
