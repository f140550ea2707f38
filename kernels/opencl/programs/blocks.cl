/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over BLOCKED elements in two stages: a group for each block of NORM_BLOCK puts its sum of TERM(i) into
 * scratch, and one group adds these up. */

kernel void block_sums(OPERANDS) {
  local double room[LOCAL];
  long first = get_group_id(0) * (long)NORM_BLOCK, end = min(first + NORM_BLOCK, (long)BLOCKED);
  double sum = 0;
  for (long i = first + get_local_id(0); i < end; i += LOCAL) sum += TERM(i);
  sum = group_sum(sum, room);
  if (get_local_id(0) == 0) ((global double *)scratch)[get_group_id(0)] = sum;
}

static double blocks_total(global const double *parts, long n, local double *room) {
  double sum = 0;
  for (long i = get_local_id(0); i < (n + NORM_BLOCK - 1) / NORM_BLOCK; i += LOCAL) sum += parts[i];
  return group_sum(sum, room);
}
