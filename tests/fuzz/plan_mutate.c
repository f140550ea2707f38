/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/plan_mutate.h"

#include "tests/plan_edit.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_CHANGES = 4 };

static uint64_t random_state = 1;

static uint64_t draw(uint64_t bound) {
  random_state ^= random_state << 13, random_state ^= random_state >> 7, random_state ^= random_state << 17;
  return random_state % bound;
}

static const nx_section *section_at(const uint8_t *bytes, uint32_t index) {
  return (const nx_section *)(const void *)(bytes + sizeof(nx_header)) + index;
}

bool plan_has_sections(const uint8_t *bytes, size_t n_bytes) {
  const nx_header *header = (const void *)bytes;
  if (n_bytes < sizeof *header || header->n_sections == 0 || header->n_sections >= NX_SECTION_END)
    return false;
  if (n_bytes - sizeof *header < header->n_sections * sizeof(nx_section)) return false;
  for (uint32_t i = 0; i < header->n_sections; i++)
    if (section_at(bytes, i)->offset > n_bytes ||
        section_at(bytes, i)->bytes > n_bytes - section_at(bytes, i)->offset)
      return false;
  return true;
}

uint8_t *plan_copy(const uint8_t *bytes, size_t n_bytes) {
  void *copied;
  if (posix_memalign(&copied, NX_PLAN_ALIGNMENT, n_bytes ? n_bytes : 1) != 0) abort();
  memcpy(copied, bytes, n_bytes);
  return copied;
}

/* One field of one record gets another number: a near one, an extreme one, or that of another record. */
static void change_field(uint8_t *bytes) {
  static const uint64_t extremes[] = {0, 1, UINT8_MAX, UINT16_MAX, INT32_MAX, UINT32_MAX, UINT32_MAX - 1,
                                      UINT64_C(1) << 48, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX};
  const uint32_t n_sections = ((const nx_header *)(const void *)bytes)->n_sections;
  const nx_section *section = section_at(bytes, (uint32_t)draw(n_sections));
  /* mostly what a run is made of: names and provenance rarely change it */
  for (int i = 0; i < 4 && (!(section->flags & NX_SECTION_MEANING) || section->record_bytes == 1); i++)
    section = section_at(bytes, (uint32_t)draw(n_sections));
  uint64_t width = UINT64_C(1) << draw(4), value = 0, other = 0;
  while (width > section->record_bytes) width /= 2;
  if (section->n_records == 0 || width == 0 || section->bytes < section->record_bytes) return;
  uint64_t n_records = section->bytes / section->record_bytes;
  uint64_t field = draw(section->record_bytes / width) * width;
  uint8_t *at = bytes + section->offset + draw(n_records) * section->record_bytes + field;
  memcpy(&value, at, width);
  memcpy(&other, bytes + section->offset + draw(n_records) * section->record_bytes + field, width);
  const uint64_t changed[] = {value + 1, value - 1, value * 2, value ^ UINT64_C(1) << draw(8 * width),
                              draw(64), other,
                              extremes[draw(sizeof extremes / sizeof *extremes)]};
  value = changed[draw(sizeof changed / sizeof *changed)];
  memcpy(at, &value, width);
}

/* A change may be one of the table of sections, where a section lies over it. */
void plan_mutate(uint8_t *bytes, size_t n_bytes, uint64_t seed) {
  random_state = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15);
  for (uint64_t n = 1 + draw(MOST_CHANGES); n > 0 && plan_has_sections(bytes, n_bytes); n--)
    change_field(bytes);
}
