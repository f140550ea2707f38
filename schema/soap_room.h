/* SPDX-License-Identifier: Apache-2.0 */
/* What soap.h works in. */
#ifndef NX_SOAP_ROOM_H
#define NX_SOAP_ROOM_H

enum { SOAP_TILE = 32 /* columns */, EIGEN_VECTORS = 6 /* that eigen.h needs, of the longer side */ };

static inline int64_t soap_tiles(int64_t columns) {
  return (columns + SOAP_TILE - 1) / SOAP_TILE;
}

/* Elements: as much as both sides, two squares of the longer one in tiles, the matrix, vectors and a panel.
 */
static inline int64_t soap_room(int64_t m, int64_t n) {
  const int64_t most = m > n ? m : n;
  return m * m + n * n + 2 * most * soap_tiles(most) * SOAP_TILE + m * n + (EIGEN_VECTORS + SOAP_TILE) * most;
}

#endif
