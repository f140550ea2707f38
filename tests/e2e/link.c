/* SPDX-License-Identifier: Apache-2.0 */
/* A cable between two network namespaces that delays and loses packets, and carries so many bits a second
 * each way, for kernels without netem: two TUN devices, named `cable`, between which this program carries
 * what it reads. SIGUSR1 cuts it for good. Where nothing is lost the devices take up to 64 KiB at once,
 * without sums, as cards do that cut and sum themselves: else the hosts' cores, which also run this program,
 * would do the cards' work.
 *
 * usage: link NAMESPACE NAMESPACE DELAY_MS LOST_OF_1000 [MBIT_PER_S]
 * Ends with 77 where no such device can be made. The loss is the same in every run. */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { SKIPPED = 77, MOST_BYTES = 65536 + sizeof(struct virtio_net_hdr), N_QUEUED = 4096 };

typedef struct packet {
  double due_s;
  size_t n_bytes;
  uint8_t *bytes;
} packet;

/* Packets on their way to one end: a ring, in the order in which they are due. */
typedef struct end {
  int device;
  packet queued[N_QUEUED];
  uint32_t first, n;
  double free_s; /* when what was put on the way before has left */
} end;

typedef struct cable {
  double delay_s, s_per_byte;
  uint32_t lost_of_1000;
} cable;

static volatile sig_atomic_t is_cut;

static void cut(int number) {
  (void)number;
  is_cut = 1;
}

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int open_device(const char *space, bool cuts) {
  char path[256];
  struct ifreq asked = {.ifr_flags = (short)(IFF_TUN | IFF_NO_PI | (cuts ? IFF_VNET_HDR : 0))};
  snprintf(path, sizeof path, "/var/run/netns/%s", space);
  int inside = open(path, O_RDONLY | O_CLOEXEC);
  if (inside < 0 || setns(inside, CLONE_NEWNET) != 0) return -1;
  close(inside);
  int device = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
  strcpy(asked.ifr_name, "cable");
  if (device < 0 || ioctl(device, TUNSETIFF, &asked) != 0) return -1;
  return !cuts || ioctl(device, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4) == 0 ? device : -1;
}

static bool is_lost(uint32_t lost_of_1000) {
  static uint64_t state = 1;
  state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (state >> 33) % 1000 < lost_of_1000;
}

/* When a packet that comes now has arrived: behind those before it. */
static double due(end *to, size_t n_bytes, const cable *way) {
  double now = now_s(), begins = to->free_s > now ? to->free_s : now;
  to->free_s = begins + (double)n_bytes * way->s_per_byte;
  return to->free_s + way->delay_s;
}

static void take(int device, end *to, const cable *way) {
  static uint8_t bytes[MOST_BYTES];
  for (ssize_t n; (n = read(device, bytes, sizeof bytes)) > 0;) {
    if (is_cut || to->n == N_QUEUED || is_lost(way->lost_of_1000)) continue;
    packet *next = &to->queued[(to->first + to->n) % N_QUEUED];
    *next = (packet){due(to, (size_t)n, way), (size_t)n, malloc((size_t)n)};
    if (next->bytes == NULL) continue;
    memcpy(next->bytes, bytes, (size_t)n);
    to->n++;
  }
}

/* Seconds until the next is due. */
static double deliver(end *to) {
  for (; to->n > 0; to->first = (to->first + 1) % N_QUEUED, to->n--) {
    packet *next = &to->queued[to->first];
    double left_s = next->due_s - now_s();
    if (left_s > 0) return left_s;
    if (!is_cut && write(to->device, next->bytes, next->n_bytes) < 0 && errno == EIO) return 1; /* not up */
    free(next->bytes);
  }
  return 1;
}

int main(int argc, char **argv) {
  static end ends[2];
  if (argc != 5 && argc != 6) return 2;
  const cable way = {.delay_s = 1e-3 * strtod(argv[3], NULL),
                     .s_per_byte = argc > 5 ? 8e-6 / strtod(argv[5], NULL) : 0,
                     .lost_of_1000 = (uint32_t)strtoul(argv[4], NULL, 10)};
  for (int i = 0; i < 2; i++) {
    ends[i].device = open_device(argv[1 + i], way.lost_of_1000 == 0);
    if (ends[i].device < 0) return fprintf(stderr, "link: %s: %s\n", argv[1 + i], strerror(errno)), SKIPPED;
  }
  signal(SIGUSR1, cut);
  puts("ready");
  fflush(stdout);
  for (double wait_s = 0;;) {
    struct pollfd ready[2] = {{.fd = ends[0].device, .events = POLLIN},
                              {.fd = ends[1].device, .events = POLLIN}};
    const struct timespec wait = {.tv_sec = (time_t)wait_s,
                                  .tv_nsec = (long)(1e9 * (wait_s - (double)(time_t)wait_s))};
    ppoll(ready, 2, &wait, NULL);
    for (int i = 0; i < 2; i++) take(ends[i].device, &ends[1 - i], &way);
    double first_s = deliver(&ends[0]), second_s = deliver(&ends[1]);
    wait_s = first_s < second_s ? first_s : second_s;
  }
}
