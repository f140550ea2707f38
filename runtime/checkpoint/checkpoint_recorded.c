/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of a manifest that a later run compares with its own. */
#include "runtime/checkpoint/checkpoint_manifest.h"

#include <stdlib.h>
#include <string.h>

enum { HEX_BYTES = 65 };

bool nxr_hex_parse(const char *hex, uint8_t bytes[32]) {
  char again[HEX_BYTES];
  if (hex == NULL || strlen(hex) != HEX_BYTES - 1) return false;
  for (int i = 0; i < 32; i++) {
    const char pair[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
    bytes[i] = (uint8_t)strtoul(pair, NULL, 16);
  }
  nx_hex(bytes, again);
  return strcmp(again, hex) == 0;
}

json_t *nxr_manifest_settings(const nx_plan *plan) {
  json_t *settings = json_object();
  for (uint32_t i = 0; i < plan->n[NX_SECTION_SETTINGS]; i++) {
    const char *text = nx_plan_text(plan, plan->settings[i].value);
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    json_object_set_new(settings, nx_plan_text(plan, plan->settings[i].path),
                        value ? value : json_string(text));
  }
  return settings;
}

bool nxr_manifest_dataset(const json_t *manifest, nxr_fingerprint *dataset) {
  const json_t *recorded = json_object_get(manifest, "dataset");
  *dataset = (nxr_fingerprint){
      .n_documents = (uint64_t)json_integer_value(json_object_get(recorded, "documents")),
      .n_tokens = (uint64_t)json_integer_value(json_object_get(recorded, "tokens"))};
  return nxr_hex_parse(json_string_value(json_object_get(recorded, "sha256")), dataset->sha256);
}
