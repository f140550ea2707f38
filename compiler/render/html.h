/* SPDX-License-Identifier: Apache-2.0 */
/* A page that needs nothing but itself: page.html with the data put into it. What it shows, and how, is the
 * page's. */
#ifndef NXC_HTML_H
#define NXC_HTML_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* NULL where there is no memory; the caller frees it. */
char *nxc_html(const json_t *data, size_t *n_bytes);

#endif
