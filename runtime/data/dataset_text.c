/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/data/dataset.h"

#include "schema/regular.h"

#include <jansson.h>
#include <stdio.h>

double nxr_dataset_bytes_per_token(const char *prefix) {
  char path[4096];
  if (snprintf(path, sizeof path, "%s" NXR_TOKENIZER_FOLDER "/" NXR_TEXT_FILE, prefix) >= (int)sizeof path)
    return 0;
  json_t *text = nx_json_read(path, 0, NULL);
  double n_bytes = json_number_value(json_object_get(text, "bytes"));
  double n_tokens = json_number_value(json_object_get(text, "tokens"));
  json_decref(text);
  return n_bytes > 0 && n_tokens > 0 ? n_bytes / n_tokens : 0;
}
