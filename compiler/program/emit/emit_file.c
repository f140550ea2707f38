/* SPDX-License-Identifier: Apache-2.0 */
/* Sections that grow record by record, interned strings, and the file that they make. */
#include "compiler/program/emit/emit.h"

#include "compiler/hash.h"
#include "schema/plan_check.h"

#include <nettle/sha2.h>
#include <string.h>

/* ---- sections and strings ---- */

static void append(nxc_emitter *e, nxc_section *section, const void *bytes, size_t n_bytes) {
  if (section->n_bytes + n_bytes > section->room) {
    size_t room = 2 * (section->n_bytes + n_bytes) + 1024;
    uint8_t *grown = nxc_arena_alloc(e->arena, room);
    if (section->n_bytes) memcpy(grown, section->bytes, section->n_bytes);
    section->bytes = grown;
    section->room = room;
  }
  memcpy(section->bytes + section->n_bytes, bytes, n_bytes);
  section->n_bytes += n_bytes;
}

uint32_t nxc_emit_record(nxc_emitter *e, nx_section_type type, const void *record) {
  append(e, &e->sections[type], record, nx_section_record_bytes(type));
  return e->sections[type].n_records++;
}

static uint32_t *string_slot(const nxc_strings *strings, const char *text) {
  size_t at = nxc_hash_bytes(text, strlen(text)) & (strings->n_slots - 1);
  while (strings->slots[at] && strcmp((const char *)strings->section->bytes + strings->slots[at], text) != 0)
    at = (at + 1) & (strings->n_slots - 1);
  return &strings->slots[at];
}

static void strings_grow(nxc_emitter *e, nxc_strings *strings) {
  nxc_strings old = *strings;
  strings->n_slots = old.n_slots ? 2 * old.n_slots : 256;
  strings->slots = nxc_arena_array(e->arena, strings->n_slots, sizeof *strings->slots);
  for (size_t i = 0; i < old.n_slots; i++)
    if (old.slots[i])
      *string_slot(strings, (const char *)strings->section->bytes + old.slots[i]) = old.slots[i];
}

static uint32_t intern(nxc_emitter *e, nxc_strings *strings, const char *text) {
  if (*text == '\0') return 0;
  if (2 * strings->n_used >= strings->n_slots) strings_grow(e, strings);
  uint32_t *slot = string_slot(strings, text);
  if (*slot) return *slot;
  *slot = (uint32_t)strings->section->n_bytes;
  strings->n_used++;
  append(e, strings->section, text, strlen(text) + 1);
  strings->section->n_records = (uint32_t)strings->section->n_bytes;
  return *slot;
}

uint32_t nxc_emit_string(nxc_emitter *e, const char *text) {
  return intern(e, &e->strings, text);
}

uint32_t nxc_emit_provenance_text(nxc_emitter *e, const char *text) {
  return intern(e, &e->provenance, text);
}

void nxc_emit_strings_begin(nxc_emitter *e, nxc_strings *strings, nx_section_type type) {
  strings->section = &e->sections[type];
  append(e, strings->section, "", 1);
  strings->section->n_records = 1;
  strings_grow(e, strings);
}

/* ---- the file ---- */

static bool is_meaning(nx_section_type type) {
  return type != NX_SECTION_SETTINGS && type != NX_SECTION_PROVENANCES &&
         type != NX_SECTION_PROVENANCE_TEXT && type != NX_SECTION_RUN_NAMES &&
         type != NX_SECTION_EVALUATIONS && type != NX_SECTION_EXTRA_SAVES && type != NX_SECTION_ROUTES;
}

static uint64_t align(uint64_t offset) {
  return (offset + NX_PLAN_ALIGNMENT - 1) / NX_PLAN_ALIGNMENT * NX_PLAN_ALIGNMENT;
}

static nx_section entry_of(const nxc_section *section, nx_section_type type, uint64_t offset) {
  nx_section entry = {.type = type,
                      .flags = is_meaning(type) ? NX_SECTION_MEANING : 0,
                      .offset = offset,
                      .bytes = section->n_bytes,
                      .record_bytes = nx_section_record_bytes(type),
                      .n_records = section->n_records};
  struct sha256_ctx state;
  sha256_init(&state);
  sha256_update(&state, section->n_bytes, section->bytes);
  sha256_digest(&state, sizeof entry.sha256, entry.sha256);
  return entry;
}

const uint8_t *nxc_emit_file(nxc_emitter *e, uint64_t *n_bytes) {
  uint32_t n_sections = 0;
  uint64_t size = 0;
  for (nx_section_type type = 1; type < NX_SECTION_END; type++) {
    if (e->sections[type].n_records == 0) continue;
    n_sections++;
    size += align(e->sections[type].n_bytes);
  }
  uint64_t at = sizeof(nx_header) + n_sections * sizeof(nx_section);
  *n_bytes = at + size;
  uint8_t *file = nxc_arena_alloc(e->arena, *n_bytes);
  nx_header *header = (nx_header *)(void *)file;
  *header = (nx_header){.major = NX_PLAN_MAJOR,
                        .minor = NX_PLAN_MINOR,
                        .header_bytes = sizeof *header,
                        .endian = 0x01020304,
                        .n_sections = n_sections,
                        .file_bytes = *n_bytes,
                        .section_table_offset = sizeof *header};
  memcpy(header->magic, NX_PLAN_MAGIC, sizeof header->magic);
  nx_section *entry = (nx_section *)(void *)(file + sizeof *header);
  for (nx_section_type type = 1; type < NX_SECTION_END; type++) {
    const nxc_section *section = &e->sections[type];
    if (section->n_records == 0) continue;
    *entry++ = entry_of(section, type, at);
    memcpy(file + at, section->bytes, section->n_bytes);
    at += align(section->n_bytes);
  }
  nx_plan_hash_meaning(file, header->plan_id);
  nx_plan_hash_root(file, header->root);
  return file;
}
