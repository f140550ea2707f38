/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/merge.h"

#include "datasets/beside.h"
#include "datasets/copy.h"
#include "schema/merge.h"
#include "schema/plan.h"
#include "schema/regular.h"

#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each dataset is opened once, however many lines name it. */
typedef struct opened {
  uint32_t n;
  nxr_dataset *datasets;        /* [n] */
  char (*prefixes)[NXD_PATH_BYTES]; /* [n] */
  const nxr_dataset **of_lines;
} opened;

static void close_all(opened *parts) {
  for (uint32_t i = 0; i < parts->n; i++) nxr_dataset_close(&parts->datasets[i]);
  free(parts->datasets);
  free(parts->prefixes);
  free(parts->of_lines);
}

/* The dataset of a line; NULL: it cannot be opened. */
static const nxr_dataset *open_part(opened *parts, const nx_merge_part *part, nxr_fault *fault) {
  char *prefix = parts->prefixes[parts->n];
  if (snprintf(prefix, NXD_PATH_BYTES, "%.*s", (int)part->n_prefix, part->prefix) >= NXD_PATH_BYTES) {
    nxr_fault_set(fault, "the name of a dataset is too long");
    return NULL;
  }
  for (uint32_t i = 0; i < parts->n; i++)
    if (strcmp(parts->prefixes[i], prefix) == 0) return &parts->datasets[i];
  nxr_dataset *dataset = &parts->datasets[parts->n];
  if (!nxr_dataset_open(prefix, dataset, fault)) return NULL;
  parts->n++;
  return dataset;
}

/* Of the lines, those of one prefix are one dataset. */
static uint32_t count_lines(const char *lines, uint32_t *n_most) {
  nx_merge_part part, last = {.n_prefix = 0};
  uint32_t n = 0;
  for (*n_most = 1; nx_merge_next(&lines, &part); last = part, n++)
    *n_most += part.n_prefix != last.n_prefix || memcmp(part.prefix, last.prefix, part.n_prefix) != 0;
  return n;
}

static bool open_all(const char *lines, opened *parts, nxr_fault *fault) {
  uint32_t n_most, n = count_lines(lines, &n_most);
  nx_merge_part part;
  *parts = (opened){.datasets = calloc(n_most, sizeof *parts->datasets),
                    .prefixes = calloc(n_most, sizeof *parts->prefixes),
                    .of_lines = calloc((size_t)n + 1, sizeof *parts->of_lines)};
  if (!parts->datasets || !parts->prefixes || !parts->of_lines) return nxr_fault_set(fault, "out of memory");
  for (uint32_t i = 0; nx_merge_next(&lines, &part); i++) {
    parts->of_lines[i] = open_part(parts, &part, fault);
    if (parts->of_lines[i] == NULL) return false;
  }
  return true;
}

/* -- key ------------------------------------------------------------------------------------------------- */

void nxd_merge_key(const nxd_merge *merge, char key[65]) {
  struct sha256_ctx state;
  uint8_t digest[SHA256_DIGEST_SIZE];
  char text[NXD_PATH_BYTES + 128];
  nx_merge_part part;
  sha256_init(&state);
  for (const char *at = merge->lines; nx_merge_next(&at, &part);) {
    char made[65] = "";
    snprintf(text, sizeof text, "%.*s.key", (int)part.n_prefix, part.prefix);
    FILE *file = nx_regular_open(text);
    if (file && fread(made, 1, 64, file) != 64) made[0] = '\0';
    if (file) fclose(file);
    int n = snprintf(text, sizeof text, "%s %llu %u %u\n", made, (unsigned long long)part.tokens, part.pieces,
                     part.piece);
    sha256_update(&state, (size_t)n, (const uint8_t *)text);
  }
  int n = snprintf(text, sizeof text, "%s %d %d %llu %u %u", NX_VERSION, merge->each, merge->all,
                   (unsigned long long)merge->seed, merge->pieces, merge->piece);
  sha256_update(&state, (size_t)n, (const uint8_t *)text);
  sha256_digest(&state, sizeof digest, digest);
  nx_hex(digest, key);
}

/* -- writing --------------------------------------------------------------------------------------------- */

static bool explain_nothing(const nxd_merge *merge, const nxd_merge_order *order, nxr_fault *fault) {
  if (order->n > 0) return true;
  nx_merge_part part;
  const char *lines = merge->lines;
  if (nx_merge_next(&lines, &part) && *lines == '\0' && part.pieces > 0 &&
      order->n_empty + order->n_long == 0)
    return nxr_fault_set(fault, "nothing to write: piece %u of %u of %.*s has no record", part.piece,
                         part.pieces, (int)part.n_prefix, part.prefix);
  if (merge->pieces > 0)
    return nxr_fault_set(fault, "nothing to write: piece %u of %u of the merged documents has none",
                         merge->piece, merge->pieces);
  return nxr_fault_set(
      fault,
      "nothing to write: of the merged documents %llu have no token that counts, and %llu are "
      "too long",
      (unsigned long long)order->n_empty, (unsigned long long)order->n_long);
}

static bool write_all(const nxd_merge *merge, const opened *parts, const nxd_merge_order *order,
                      nxd_standing *standing, uint8_t *type_code, nxr_fault *fault) {
  nxd_writer writer = {.folder = ""};
  nxd_writer_options options = {.prefix = merge->prefix, .force = true};
  options.type_code = *type_code = nxd_copy_type(parts->datasets, (int)parts->n);
  for (uint32_t i = 0; i < parts->n; i++)
    options.weights = options.weights || parts->datasets[i].weights.n_bytes > 0;
  bool good = nxd_writer_open(&writer, &options, fault);
  for (uint64_t i = 0; good && i < order->n; i++) {
    const nxd_merged *is = &order->documents[i];
    good = nxd_copy_documents(parts->of_lines[is->dataset], is->document, is->document + 1, &writer, fault);
  }
  good = good && nxd_writer_finish(&writer, fault) &&
         nxd_copy_beside(parts->datasets[0].prefix, merge->prefix, fault);
  *standing = writer.standing;
  standing->n_long = order->n_long, standing->n_empty = order->n_empty;
  nxd_writer_close(&writer);
  return good;
}

bool nxd_merge_run(const nxd_merge *merge, uint8_t *type_code, nxd_standing *standing, nxr_fault *fault) {
  opened parts;
  nxd_merge_order order = {.n = 0};
  bool good = open_all(merge->lines, &parts, fault) &&
              nxd_merge_order_of(merge, parts.of_lines, &order, fault) &&
              explain_nothing(merge, &order, fault) &&
              write_all(merge, &parts, &order, standing, type_code, fault);
  free(order.documents);
  close_all(&parts);
  return good;
}
