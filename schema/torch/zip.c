/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/torch/zip.h"

#include "schema/plan_check.h"

#include <stdlib.h>
#include <string.h>

/* Sizes of the records, and their first four bytes. */
enum { END_BYTES = 22, ENTRY_BYTES = 46, LOCAL_BYTES = 30, LOCATOR_BYTES = 20, END64_BYTES = 56 };
static const uint32_t END = 0x06054b50, ENTRY = 0x02014b50, LOCAL = 0x04034b50, LOCATOR = 0x07064b50,
                      END64 = 0x06064b50;

typedef struct reader {
  const char *path;
  const uint8_t *bytes;
  uint64_t n_bytes;
  nx_fault *fault;
} reader;

static uint64_t number(const uint8_t *at, int n) {
  uint64_t value = 0;
  for (int i = 0; i < n; i++) value |= (uint64_t)at[i] << (8 * i);
  return value;
}

static bool damaged(const reader *in) {
  return nx_fault_set(in->fault, 0, "%s is damaged: it is no whole zip file", in->path);
}

/* Whether so many bytes from `at` on are in the file, and begin so. */
static bool has(const reader *in, uint64_t at, uint64_t n, uint32_t signature) {
  return at <= in->n_bytes && in->n_bytes - at >= n && number(in->bytes + at, 4) == signature;
}

/* Where the directory begins, and how many members it has. Sizes that need more than 32 bits stand in a
 * second record before the last. */
static bool find_directory(const reader *in, uint64_t *at, uint64_t *n) {
  uint64_t most = in->n_bytes < 65535 + END_BYTES ? in->n_bytes : 65535 + END_BYTES, end = 0;
  for (uint64_t back = END_BYTES; end == 0 && back <= most; back++)
    if (has(in, in->n_bytes - back, END_BYTES, END)) end = in->n_bytes - back;
  if (end == 0) return damaged(in);
  *n = number(in->bytes + end + 10, 2);
  *at = number(in->bytes + end + 16, 4);
  if (end < LOCATOR_BYTES || !has(in, end - LOCATOR_BYTES, LOCATOR_BYTES, LOCATOR)) return true;
  uint64_t end64 = number(in->bytes + end - LOCATOR_BYTES + 8, 8);
  if (!has(in, end64, END64_BYTES, END64)) return damaged(in);
  *n = number(in->bytes + end64 + 32, 8);
  *at = number(in->bytes + end64 + 48, 8);
  return true;
}

/* Those of size, packed size and offset that did not fit stand in this order in a field of their own. */
static bool read_extra(const uint8_t *extra, uint64_t n_extra, uint64_t *wide[3]) {
  for (uint64_t at = 0; at + 4 <= n_extra;) {
    uint64_t kind = number(extra + at, 2), n = number(extra + at + 2, 2), used = at + 4;
    at += 4 + n;
    if (at > n_extra) return false;
    if (kind != 1) continue;
    for (int i = 0; i < 3; i++) {
      if (*wide[i] != UINT32_MAX) continue;
      if (used + 8 > at) return false;
      *wide[i] = number(extra + used, 8);
      used += 8;
    }
  }
  return true;
}

/* The member of the directory's entry at *at, which goes on to the next. */
static bool read_entry(const reader *in, uint64_t *at, nx_zip_member *member) {
  if (!has(in, *at, ENTRY_BYTES, ENTRY)) return damaged(in);
  const uint8_t *entry = in->bytes + *at;
  uint64_t n_name = number(entry + 28, 2), n_extra = number(entry + 30, 2), n_comment = number(entry + 32, 2);
  uint64_t packed = number(entry + 20, 4), n_bytes = number(entry + 24, 4), local = number(entry + 42, 4);
  uint64_t *wide[3] = {&n_bytes, &packed, &local};
  if (in->n_bytes - *at - ENTRY_BYTES < n_name + n_extra + n_comment) return damaged(in);
  if (!read_extra(entry + ENTRY_BYTES + n_name, n_extra, wide)) return damaged(in);
  *at += ENTRY_BYTES + n_name + n_extra + n_comment;
  if (number(entry + 10, 2) != 0 || packed != n_bytes || (number(entry + 8, 2) & 1))
    return nx_fault_set(in->fault, 0, "%s: its member %.*s is packed, and only what is stored is read",
                        in->path, (int)n_name, (const char *)entry + ENTRY_BYTES);
  if (!has(in, local, LOCAL_BYTES, LOCAL)) return damaged(in);
  uint64_t begin =
      local + LOCAL_BYTES + number(in->bytes + local + 26, 2) + number(in->bytes + local + 28, 2);
  if (begin > in->n_bytes || in->n_bytes - begin < n_bytes) return damaged(in);
  *member = (nx_zip_member){(const char *)entry + ENTRY_BYTES, n_name, in->bytes + begin, n_bytes};
  return true;
}

static int compare(const char *a, size_t n_a, const char *b, size_t n_b) {
  int order = memcmp(a, b, n_a < n_b ? n_a : n_b);
  return order ? order : (n_a > n_b) - (n_a < n_b);
}

static int by_name(const void *a, const void *b) {
  const nx_zip_member *x = a, *y = b;
  return compare(x->name, x->n_name, y->name, y->n_name);
}

bool nx_zip_open(const char *path, const uint8_t *bytes, uint64_t n_bytes, nx_zip *zip, nx_fault *fault) {
  reader in = {path, bytes, n_bytes, fault};
  uint64_t at = 0, n = 0;
  *zip = (nx_zip){0};
  if (!find_directory(&in, &at, &n)) return false;
  if (n > n_bytes / ENTRY_BYTES) return damaged(&in);
  zip->members = calloc(n + 1, sizeof *zip->members);
  if (zip->members == NULL) return nx_fault_set(fault, 0, "out of memory");
  for (; zip->n_members < n; zip->n_members++)
    if (!read_entry(&in, &at, &zip->members[zip->n_members])) {
      nx_zip_close(zip);
      return false;
    }
  qsort(zip->members, n, sizeof *zip->members, by_name);
  return true;
}

void nx_zip_close(nx_zip *zip) {
  free(zip->members);
  *zip = (nx_zip){0};
}

const nx_zip_member *nx_zip_find(const nx_zip *zip, const char *name) {
  nx_zip_member key = {.name = name, .n_name = strlen(name)};
  return zip->n_members ? bsearch(&key, zip->members, zip->n_members, sizeof key, by_name) : NULL;
}

bool nx_is_zip(const uint8_t *bytes, uint64_t n_bytes) {
  return n_bytes >= 4 && number(bytes, 4) == LOCAL;
}
