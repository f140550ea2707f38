/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/render/html.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const char nxc_page_html[];

/* Where a script's text must not end early: no < stands in it. */
static void put_escaped(const char *json, FILE *out) {
  for (; *json != '\0'; json++)
    if (*json == '<') fputs("\\u003c", out);
    else putc(*json, out);
}

char *nxc_html(const json_t *data, size_t *n_bytes) {
  static const char mark[] = "@DATA@";
  const char *at = strstr(nxc_page_html, mark);
  char *json = json_dumps(data, JSON_COMPACT | JSON_ENSURE_ASCII), *text = NULL;
  FILE *out = json ? open_memstream(&text, n_bytes) : NULL;
  if (out != NULL) {
    fwrite(nxc_page_html, 1, (size_t)(at - nxc_page_html), out);
    put_escaped(json, out);
    fputs(at + sizeof mark - 1, out);
    fclose(out);
  }
  free(json);
  return text;
}
