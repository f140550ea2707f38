/* SPDX-License-Identifier: Apache-2.0 */
/* What is never shown, in a finding's excerpt or anywhere else: values of keys that name a secret, and texts
 * that are one themselves, whatever their key. The one place that knows. */
#ifndef NXC_SECRET_H
#define NXC_SECRET_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a key names a secret (*token, *secret, *password, *api_key); - and _ are alike. */
bool nxc_key_is_secret(const char *key);
/* Whether a text holds a secret: a password, a token or a signature in a URL, or a key that a well-known
 * service has given out. */
bool nxc_text_is_secret(const char *text, size_t n_bytes);
/* Where the first secret of a line begins, behind `key:`, `key=` or `--key`; n_bytes where there is none. */
size_t nxc_secret_in_line(const char *line, size_t n_bytes);

#endif
