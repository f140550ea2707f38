/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/characters.h"
#include "schema/plan_check.h"

#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>

/* Each section: its record size, whether a plan must have it, whether it counts toward plan_id, where it
 * goes. */
typedef struct section_row {
  const char *name;
  uint32_t record_bytes;
  bool required, meaning;
  size_t field; /* offset in nx_plan of the pointer to its records */
} section_row;

#define AT(member) offsetof(nx_plan, member)
static const section_row section_rows[NX_SECTION_END] = {
    [NX_SECTION_STRINGS] = {"strings", 1, true, true, AT(strings)},
    [NX_SECTION_RUN] = {"run", sizeof(nx_run), true, true, AT(run)},
    [NX_SECTION_ATOMS] = {"atoms", sizeof(nx_atom), false, true, AT(atoms)},
    [NX_SECTION_GROUPS] = {"groups", sizeof(nx_group), false, true, AT(groups)},
    [NX_SECTION_CONSTANTS] = {"constants", sizeof(nx_constant), false, true, AT(constants)},
    [NX_SECTION_TERMS] = {"terms", sizeof(nx_term), false, true, AT(terms)},
    [NX_SECTION_TABLE] = {"table", sizeof(int64_t), false, true, AT(table)},
    [NX_SECTION_ARENAS] = {"arenas", sizeof(nx_arena_record), true, true, AT(arenas)},
    [NX_SECTION_VALUES] = {"values", sizeof(nx_value), true, true, AT(values)},
    [NX_SECTION_PIECES] = {"pieces", sizeof(nx_piece), true, true, AT(pieces)},
    [NX_SECTION_RANGES] = {"ranges", sizeof(nx_range), true, true, AT(ranges)},
    [NX_SECTION_OPERATORS] = {"operators", sizeof(nx_operator), true, true, AT(operators)},
    [NX_SECTION_ARGUMENTS] = {"arguments", sizeof(uint32_t), true, true, AT(arguments)},
    [NX_SECTION_ATTRIBUTES] = {"attributes", sizeof(nx_attribute), false, true, AT(attributes)},
    [NX_SECTION_PROGRAMS] = {"programs", sizeof(nx_program), true, true, AT(programs)},
    [NX_SECTION_CHUNKS] = {"chunks", sizeof(nx_chunk), true, true, AT(chunks)},
    [NX_SECTION_ITEMS] = {"items", sizeof(nx_item), true, true, AT(items)},
    [NX_SECTION_SETTINGS] = {"settings", sizeof(nx_setting_record), false, false, AT(settings)},
    [NX_SECTION_DATASETS] = {"datasets", sizeof(nx_dataset), false, true, AT(datasets)},
    [NX_SECTION_PROVENANCES] = {"provenances", sizeof(nx_provenance), false, false, AT(provenances)},
    [NX_SECTION_PROVENANCE_TEXT] = {"provenance text", 1, true, false, AT(provenance_text)},
    [NX_SECTION_RUN_NAMES] = {"run names", sizeof(nx_run_names), true, false, AT(run_names)},
    [NX_SECTION_PARAMETER_GROUPS] = {"parameter groups", sizeof(nx_parameter_group), true, true,
                                     AT(parameter_groups)},
    [NX_SECTION_SOURCES] = {"sources", sizeof(nx_source), false, true, AT(sources)},
    [NX_SECTION_SCHEDULES] = {"schedules", sizeof(nx_schedule), true, true, AT(schedules)},
    [NX_SECTION_EXTRA_SAVES] = {"extra saves", sizeof(uint64_t), false, false, AT(extra_saves)},
    [NX_SECTION_SKIPPED] = {"skipped steps", sizeof(uint64_t), false, true, AT(skipped)},
    [NX_SECTION_EVALUATIONS] = {"evaluations", sizeof(nx_evaluation), false, false, AT(evaluations)},
    [NX_SECTION_RECIPES] = {"recipes", sizeof(nx_recipe), false, true, AT(recipes)},
    [NX_SECTION_FIXED_VALUES] = {"fixed values", sizeof(nx_fixed_value), false, true, AT(fixed_values)},
    [NX_SECTION_MEASURES] = {"measures", sizeof(nx_measure), false, true, AT(measures)},
    [NX_SECTION_PHASES] = {"phases", sizeof(nx_phase), false, true, AT(phases)},
    [NX_SECTION_ROUTES] = {"routes", sizeof(nx_route), false, false, AT(routes)},
};
#undef AT

bool nx_fault_set(nx_fault *fault, uint64_t offset, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(fault->text, sizeof fault->text, format, args);
  va_end(args);
  nx_characters_hide(fault->text);
  fault->offset = offset;
  return false;
}

uint32_t nx_section_record_bytes(uint32_t type) {
  return type > 0 && type < NX_SECTION_END ? section_rows[type].record_bytes : 0;
}

static const nx_section *section_table(const uint8_t *bytes) {
  return (const nx_section *)(const void *)(bytes + sizeof(nx_header));
}

void nx_plan_hash_meaning(const uint8_t *bytes, uint8_t plan_id[32]) {
  const nx_header *header = (const void *)bytes;
  struct sha256_ctx state;
  sha256_init(&state);
  for (uint32_t i = 0; i < header->n_sections; i++) {
    const nx_section *section = &section_table(bytes)[i];
    if (!(section->flags & NX_SECTION_MEANING)) continue;
    sha256_update(&state, sizeof section->type, (const uint8_t *)&section->type);
    sha256_update(&state, sizeof section->bytes, (const uint8_t *)&section->bytes);
    sha256_update(&state, sizeof section->sha256, section->sha256);
  }
  sha256_digest(&state, 32, plan_id);
}

void nx_plan_hash_root(const uint8_t *bytes, uint8_t root[32]) {
  nx_header header;
  memcpy(&header, bytes, sizeof header);
  memset(header.root, 0, sizeof header.root);
  struct sha256_ctx state;
  sha256_init(&state);
  sha256_update(&state, sizeof header, (const uint8_t *)&header);
  sha256_update(&state, header.n_sections * sizeof(nx_section), bytes + sizeof header);
  sha256_digest(&state, 32, root);
}

static bool check_header(const uint8_t *bytes, uint64_t n_bytes, nx_fault *fault) {
  static const nx_header zero;
  const nx_header *header = (const void *)bytes;
  if (n_bytes < sizeof *header) return nx_fault_set(fault, n_bytes, "the file ends within the header");
  if (n_bytes > NX_PLAN_MAX_BYTES) return nx_fault_set(fault, 0, "the file is larger than a plan may be");
  if (memcmp(header->magic, NX_PLAN_MAGIC, sizeof header->magic) != 0)
    return nx_fault_set(fault, 0, "this is not a plan (or it was copied in text mode)");
  if (header->endian != 0x01020304) return nx_fault_set(fault, 16, "the plan has another byte order");
  if (header->major != NX_PLAN_MAJOR || header->minor > NX_PLAN_MINOR)
    return nx_fault_set(fault, 8, "the plan has format %u.%u and this program reads %d.%d: compile it again",
                        header->major, header->minor, NX_PLAN_MAJOR, NX_PLAN_MINOR);
  if (header->header_bytes != sizeof *header || header->section_table_offset != sizeof *header)
    return nx_fault_set(fault, 12, "the header has the wrong size");
  if (memcmp(header->reserved, zero.reserved, sizeof zero.reserved) != 0)
    return nx_fault_set(fault, offsetof(nx_header, reserved), "reserved bytes of the header are set");
  if (header->file_bytes != n_bytes)
    return nx_fault_set(fault, 24, "the file has %llu bytes and should have %llu: it was cut or appended to",
                        (unsigned long long)n_bytes, (unsigned long long)header->file_bytes);
  if (header->n_sections == 0 || header->n_sections >= NX_SECTION_END ||
      n_bytes - sizeof *header < header->n_sections * sizeof(nx_section))
    return nx_fault_set(fault, 20, "the section table does not fit");
  return true;
}

static bool is_zero(const uint8_t *bytes, uint64_t from, uint64_t to) {
  for (uint64_t i = from; i < to; i++)
    if (bytes[i] != 0) return false;
  return true;
}

/* One section at `expected`, where the one before it ended. */
static bool check_section(const uint8_t *bytes, uint64_t n_bytes, const nx_section *section,
                          uint64_t expected, uint64_t *end, nx_fault *fault) {
  uint64_t at = (uint64_t)((const uint8_t *)section - bytes);
  const section_row *row = section->type < NX_SECTION_END ? &section_rows[section->type] : NULL;
  if (row == NULL || row->name == NULL) return nx_fault_set(fault, at, "unknown section %u", section->type);
  if (section->flags != (row->meaning ? NX_SECTION_MEANING : 0u))
    return nx_fault_set(fault, at, "section %s has the wrong flags", row->name);
  if (section->record_bytes != row->record_bytes ||
      section->bytes != (uint64_t)section->n_records * row->record_bytes)
    return nx_fault_set(fault, at, "section %s has records of the wrong size", row->name);
  if (section->offset != expected || section->bytes > n_bytes - section->offset)
    return nx_fault_set(fault, at, "section %s lies outside the file or not where it should", row->name);
  *end = section->offset + section->bytes;
  uint64_t padded = (*end + NX_PLAN_ALIGNMENT - 1) / NX_PLAN_ALIGNMENT * NX_PLAN_ALIGNMENT;
  if (padded > n_bytes || !is_zero(bytes, *end, padded))
    return nx_fault_set(fault, *end, "the padding after section %s is not zero", row->name);
  *end = padded;
  uint8_t digest[32];
  struct sha256_ctx state;
  sha256_init(&state);
  sha256_update(&state, section->bytes, bytes + section->offset);
  sha256_digest(&state, sizeof digest, digest);
  if (memcmp(digest, section->sha256, sizeof digest) != 0)
    return nx_fault_set(fault, section->offset, "section %s is damaged: its hash differs", row->name);
  return true;
}

static bool check_sections(const uint8_t *bytes, uint64_t n_bytes, nx_plan *plan, nx_fault *fault) {
  const nx_header *header = plan->header;
  uint64_t end = sizeof *header + header->n_sections * sizeof(nx_section);
  uint32_t last_type = 0;
  for (uint32_t i = 0; i < header->n_sections; i++) {
    const nx_section *section = &section_table(bytes)[i];
    if (section->type <= last_type)
      return nx_fault_set(fault, (uint64_t)((const uint8_t *)section - bytes), "sections are out of order");
    if (!check_section(bytes, n_bytes, section, end, &end, fault)) return false;
    last_type = section->type;
    plan->n[section->type] = section->n_records;
    const uint8_t *records = bytes + section->offset;
    memcpy((uint8_t *)plan + section_rows[section->type].field, &records, sizeof records);
  }
  if (end != n_bytes) return nx_fault_set(fault, end, "bytes follow the last section");
  for (uint32_t type = 0; type < NX_SECTION_END; type++)
    if (section_rows[type].required && plan->n[type] == 0)
      return nx_fault_set(fault, sizeof *header, "section %s is missing", section_rows[type].name);
  return true;
}

bool nx_plan_check_file(const void *bytes, uint64_t n_bytes, nx_plan *plan, nx_fault *fault) {
  *plan = (nx_plan){.bytes = bytes, .n_bytes = n_bytes, .header = bytes};
  if (!check_header(bytes, n_bytes, fault)) return false;
  uint8_t digest[32];
  nx_plan_hash_root(bytes, digest);
  if (memcmp(digest, plan->header->root, sizeof digest) != 0)
    return nx_fault_set(fault, offsetof(nx_header, root), "the header is damaged: its hash differs");
  if (!check_sections(bytes, n_bytes, plan, fault)) return false;
  nx_plan_hash_meaning(bytes, digest);
  if (memcmp(digest, plan->header->plan_id, sizeof digest) != 0)
    return nx_fault_set(fault, offsetof(nx_header, plan_id), "the plan's id does not match its sections");
  return true;
}
