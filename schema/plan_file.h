/* SPDX-License-Identifier: Apache-2.0 */
/* The envelope of a plan: header, section table, and how many there may be of what. Its layout: plan.h. */
#ifndef NX_PLAN_FILE_H
#define NX_PLAN_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NX_NONE UINT32_MAX
#define NX_PLAN_MAGIC "\x89NXP\r\n\x1a\n"

enum {
  NX_PLAN_MAJOR = 12,
  NX_PLAN_MINOR = 0,
  NX_PLAN_ALIGNMENT = 64,
  NX_MAX_ATOMS = 16,
  NX_MAX_RANKS = 1 << 24,
  NX_MAX_THREADS = 1024, /* of a rank */
  NX_MAX_DATASETS = 1024,
  NX_MAX_SOURCES = 32767, /* of all datasets */
  NX_MAX_ALPHA = 16,
  NX_MAX_BATCHES = 1 << 30, /* of an evaluation */
  NX_VALUE_ALIGNMENT = 64,
  NX_BLOCK_BYTES = 64 /* a ZeRO shard of a range is a multiple of this */
};
static const uint64_t NX_PLAN_MAX_BYTES = UINT64_C(1) << 30;

typedef struct nx_header {
  uint8_t magic[8];
  uint16_t major, minor;
  uint32_t header_bytes; /* 128 */
  uint32_t endian;       /* 0x01020304 */
  uint32_t n_sections;
  uint64_t file_bytes;
  uint64_t section_table_offset; /* 128 */
  uint8_t reserved[24];
  uint8_t plan_id[32];
  uint8_t root[32];
} nx_header;
_Static_assert(sizeof(nx_header) == 128, "plan header");

typedef enum nx_section_type {
  NX_SECTION_STRINGS = 1,
  NX_SECTION_RUN,
  NX_SECTION_ATOMS,
  NX_SECTION_GROUPS,
  NX_SECTION_CONSTANTS,
  NX_SECTION_TERMS,
  NX_SECTION_TABLE, /* int64 entries: of table terms, of groups' stages, of fixed values */
  NX_SECTION_ARENAS,
  NX_SECTION_VALUES,
  NX_SECTION_PIECES,
  NX_SECTION_RANGES,
  NX_SECTION_OPERATORS,
  NX_SECTION_ARGUMENTS, /* u32 value indices */
  NX_SECTION_ATTRIBUTES,
  NX_SECTION_PROGRAMS,
  NX_SECTION_CHUNKS,
  NX_SECTION_ITEMS,
  NX_SECTION_SETTINGS,
  NX_SECTION_DATASETS,
  NX_SECTION_PROVENANCES,     /* provenance, not part of the meaning */
  NX_SECTION_PROVENANCE_TEXT,
  NX_SECTION_RUN_NAMES, /* nx_run_names: names and intervals that change no number of the training */
  NX_SECTION_PARAMETER_GROUPS,
  NX_SECTION_SOURCES, /* of the datasets */
  NX_SECTION_SCHEDULES,
  NX_SECTION_EVALUATIONS, /* they change no number of the training; their names are texts */
  NX_SECTION_EXTRA_SAVES, /* u64 steps, ascending: as nx_run_names.save_every */
  NX_SECTION_RECIPES, /* of those sources whose files nxdata makes */
  NX_SECTION_FIXED_VALUES,
  NX_SECTION_MEASURES, /* numbers of a step that are logged beside its loss */
  NX_SECTION_PHASES,  /* of a training whose batch grows; none: all steps have run.global_batch */
  NX_SECTION_SKIPPED, /* u64 steps, from 1, ascending: their data is passed over, and nothing is trained */
  NX_SECTION_ROUTES,  /* of collectives between hosts; they change no number of the training */
  NX_SECTION_END
} nx_section_type;

enum { NX_SECTION_MEANING = 1 };

typedef struct nx_section {
  uint32_t type;
  uint32_t flags;
  uint64_t offset;
  uint64_t bytes; /* n_records x record_bytes; padding not counted */
  uint32_t record_bytes;
  uint32_t n_records;
  uint8_t sha256[32];
} nx_section;
_Static_assert(sizeof(nx_section) == 64, "plan section entry");

#endif
