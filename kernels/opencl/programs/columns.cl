/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of columns in two stages: a group for LOCAL columns of COLUMN_ROWS rows puts its sums into scratch,
 * one row for each such block, and an item for each column adds these up. Rows ascend in both. */

/* An item's column of n and its rows, [begin, end) of n_rows. */
#define COLUMN_PLACE(n, n_rows) \
  long n_across = ((n) + LOCAL - 1) / LOCAL, block = get_group_id(0) / n_across; \
  long i = get_group_id(0) % n_across * LOCAL + get_local_id(0); \
  long begin = block * COLUMN_ROWS, end = min(begin + COLUMN_ROWS, (long)(n_rows));

static float column_total(global const float *parts, long i, long n, long n_rows) {
  float sum = 0;
  for (long block = 0; block * COLUMN_ROWS < n_rows; block++) sum += parts[block * n + i];
  return sum;
}

/* Of a second sum, which stands behind the first in scratch. */
#define SECOND(n, n_rows) (((n_rows) + COLUMN_ROWS - 1) / COLUMN_ROWS * (n))
