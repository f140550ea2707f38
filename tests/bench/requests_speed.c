/* SPDX-License-Identifier: Apache-2.0 */
/* mpiexec -n 2 requests_speed: what persistent requests of MPI's would gain. Two ranks exchange messages of
 * some sizes by new requests, as nxrun does, and by persistent ones that are only started again, in turns;
 * prints the median microseconds of an exchange by each, and how many times faster the persistent ones are.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LARGEST = 4 << 20, N_ROUNDS = 101 };

typedef struct bench {
  int other;
  MPI_Request kept[2];
} bench;

static char sent[LARGEST], received[LARGEST];

static void complete(MPI_Request *requests) {
  for (int i = 0, done = 0; i < 2; i++, done = 0)
    while (!done) MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE);
}

static void exchange_new(bench *at, MPI_Count n_bytes) {
  MPI_Request requests[2];
  MPI_Irecv_c(received, n_bytes, MPI_BYTE, at->other, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend_c(sent, n_bytes, MPI_BYTE, at->other, 1, MPI_COMM_WORLD, &requests[1]);
  complete(requests);
}

static void exchange_kept(bench *at, MPI_Count n_bytes) {
  (void)n_bytes;
  MPI_Startall(2, at->kept);
  complete(at->kept);
}

static double measure(bench *at, void (*exchange)(bench *at, MPI_Count n_bytes), MPI_Count n_bytes) {
  int n = n_bytes > 1 << 16 ? 8 : 128;
  MPI_Barrier(MPI_COMM_WORLD);
  double start = MPI_Wtime();
  for (int i = 0; i < n; i++) exchange(at, n_bytes);
  return 1e6 * (MPI_Wtime() - start) / n;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(void) {
  static const MPI_Count sizes[] = {8, 256, 8192, 16384, 1 << 18, LARGEST};
  int provided, rank, n_ranks;
  MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided); /* as nxrun */
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  if (n_ranks != 2) return fprintf(stderr, "requests_speed: takes two ranks\n"), 2;
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    bench at = {.other = 1 - rank};
    double by_new[N_ROUNDS], by_kept[N_ROUNDS];
    MPI_Recv_init_c(received, sizes[s], MPI_BYTE, at.other, 1, MPI_COMM_WORLD, &at.kept[0]);
    MPI_Send_init_c(sent, sizes[s], MPI_BYTE, at.other, 1, MPI_COMM_WORLD, &at.kept[1]);
    for (int round = 0; round < N_ROUNDS; round++) {
      by_new[round] = measure(&at, exchange_new, sizes[s]);
      by_kept[round] = measure(&at, exchange_kept, sizes[s]);
    }
    for (int i = 0; i < 2; i++) MPI_Request_free(&at.kept[i]);
    qsort(by_new, N_ROUNDS, sizeof *by_new, compare);
    qsort(by_kept, N_ROUNDS, sizeof *by_kept, compare);
    double fresh = by_new[N_ROUNDS / 2], kept = by_kept[N_ROUNDS / 2];
    if (rank == 0)
      printf("%8lld bytes  new %9.3f us  persistent %9.3f us  %.3fx\n", (long long)sizes[s], fresh, kept,
             fresh / kept);
  }
  MPI_Finalize();
  return 0;
}
