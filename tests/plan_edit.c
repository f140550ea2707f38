/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/plan_edit.h"

#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>

uint8_t *plan_read(const char *path, uint64_t *n_bytes) {
  FILE *in = path ? fopen(path, "rb") : NULL;
  if (in == NULL) return NULL;
  fseek(in, 0, SEEK_END);
  *n_bytes = (uint64_t)ftell(in);
  rewind(in);
  uint8_t *bytes = aligned_alloc(64, (*n_bytes + 63) / 64 * 64);
  bool whole = bytes && fread(bytes, 1, *n_bytes, in) == *n_bytes;
  fclose(in);
  if (whole) return bytes;
  free(bytes);
  return NULL;
}

bool plan_write(const char *path, const uint8_t *bytes, uint64_t n_bytes) {
  FILE *out = fopen(path, "wb");
  if (out == NULL) return false;
  bool whole = fwrite(bytes, 1, n_bytes, out) == n_bytes;
  return fclose(out) == 0 && whole;
}

nx_section *plan_section(uint8_t *bytes, nx_section_type type) {
  nx_header *header = (void *)bytes;
  nx_section *sections = (void *)(bytes + sizeof *header);
  for (uint32_t i = 0; i < header->n_sections; i++)
    if (sections[i].type == (uint32_t)type) return &sections[i];
  return NULL;
}

void *plan_record(uint8_t *bytes, nx_section_type type, uint32_t index) {
  nx_section *section = plan_section(bytes, type);
  if (section == NULL || index >= section->n_records) return NULL;
  return bytes + section->offset + (uint64_t)index * section->record_bytes;
}

nx_operator *plan_operator(uint8_t *bytes, nx_op op) {
  nx_operator *at;
  for (uint32_t i = 0; (at = plan_record(bytes, NX_SECTION_OPERATORS, i)) != NULL; i++)
    if (at->op == op) return at;
  return NULL;
}

nx_attribute *plan_attribute(uint8_t *bytes, const nx_operator *op, uint32_t index) {
  return plan_record(bytes, NX_SECTION_ATTRIBUTES, op->first_attribute + index);
}

uint32_t *plan_argument(uint8_t *bytes, const nx_operator *op, uint32_t index) {
  return plan_record(bytes, NX_SECTION_ARGUMENTS, op->first_argument + index);
}

void plan_seal_header(uint8_t *bytes) {
  nx_header *header = (void *)bytes;
  nx_plan_hash_meaning(bytes, header->plan_id);
  nx_plan_hash_root(bytes, header->root);
}

void plan_seal(uint8_t *bytes) {
  nx_header *header = (void *)bytes;
  nx_section *sections = (void *)(bytes + sizeof *header);
  for (uint32_t i = 0; i < header->n_sections; i++) {
    struct sha256_ctx hash;
    sha256_init(&hash);
    sha256_update(&hash, sections[i].bytes, bytes + sections[i].offset);
    sha256_digest(&hash, 32, sections[i].sha256);
  }
  plan_seal_header(bytes);
}
