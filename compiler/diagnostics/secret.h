/* SPDX-License-Identifier: Apache-2.0 */
/* Keys whose values are never shown, in a finding's excerpt or anywhere else. */
#ifndef NXC_SECRET_H
#define NXC_SECRET_H

#include <stdbool.h>

/* Whether a key names a secret (*token, *secret, *password, *api_key). */
bool nxc_key_is_secret(const char *key);

#endif
