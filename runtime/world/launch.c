/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/world/launch.h"

#include "runtime/files/fault.h"

#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { LEAST_SHARED_BYTES = 8 << 20 /* of MPI itself */, MOST_UNANNOUNCED = 4 << 20 };
enum { LEAST_FILES = 64, ENOUGH_FILES = 65536 };

static unsigned long launcher_number(const char *name, unsigned long otherwise) {
  const char *text = getenv(name);
  return text ? strtoul(text, NULL, 10) : otherwise;
}

uint32_t nxr_launch_ranks(void) {
  uint32_t n = (uint32_t)launcher_number("PMI_SIZE", 1);
  return n ? n : 1;
}

uint32_t nxr_launch_local_ranks(void) {
  uint32_t n = (uint32_t)launcher_number("MPI_LOCALNRANKS", 1);
  return n ? n : 1;
}

bool nxr_launch_is_orphan(void) {
  struct pollfd launcher = {.fd = (int)launcher_number("PMI_FD", (unsigned long)-1)};
  return launcher.fd >= 0 && poll(&launcher, 1, 0) == 1 && (launcher.revents & (POLLHUP | POLLERR));
}

/* As many as the user may have: MPI has some for each rank, and a dataset one for each part. */
static void raise_files(bool tells) {
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= ENOUGH_FILES) return;
  rlim_t most = files.rlim_max < ENOUGH_FILES ? files.rlim_max : ENOUGH_FILES;
  if (setrlimit(RLIMIT_NOFILE, &(struct rlimit){most, files.rlim_max}) == 0 && most >= LEAST_FILES) return;
  if (!tells) return;
  nxr_print(stderr,
            "nxrun: no more than %llu files may be open at once, with which MPI may not start: ulimit -n "
            "%d\n",
            (unsigned long long)files.rlim_max, ENOUGH_FILES);
}

void nxr_launch_look_around(void) {
  struct statvfs memory;
  struct rlimit file;
  bool first = launcher_number("MPI_LOCALRANKID", 0) == 0;
  raise_files(first);
  if (!first || nxr_launch_local_ranks() == 1) return;
  if (statvfs("/dev/shm", &memory) == 0 && (uint64_t)memory.f_bavail * memory.f_frsize < LEAST_SHARED_BYTES)
    nxr_print(stderr,
            "nxrun: /dev/shm has room for %llu KiB, with which MPI may not start: enlarge it (mount -o "
            "remount,size=… /dev/shm, docker --shm-size), or remove what ended runs left there\n",
            (unsigned long long)((uint64_t)memory.f_bavail * memory.f_frsize >> 10));
  if (getrlimit(RLIMIT_FSIZE, &file) == 0 && file.rlim_cur < LEAST_SHARED_BYTES)
    nxr_print(stderr,
            "nxrun: no file may have more than %llu KiB, with which MPI may not start and no checkpoint is "
            "written: ulimit -f unlimited\n",
            (unsigned long long)(file.rlim_cur >> 10));
}

static bool has_rdma(void) {
  DIR *devices = opendir("/sys/class/infiniband");
  bool found = false;
  for (struct dirent *at; devices && !found && (at = readdir(devices));) found = at->d_name[0] != '.';
  if (devices) closedir(devices);
  return found;
}

/* One rank alone, whoever may have started it: it needs neither shared memory nor a network. */
static bool is_alone(void) {
  return nxr_launch_ranks() == 1 && launcher_number("SLURM_NTASKS", 1) == 1 && getenv("PMIX_RANK") == NULL;
}

/* Over TCP an announcement gains nothing: the bytes are copied anyway, and each message would cross the
 * cable several times before the first of them. Up to what a late receiver may have to set aside. */
void nxr_launch_choose_messages(void) {
  if (is_alone()) setenv("UCX_TLS", "self", 0);
  bool one_host = nxr_launch_ranks() <= nxr_launch_local_ranks();
  if (!one_host && !has_rdma()) setenv("UCX_RNDV_THRESH", "4m", 0);
}

uint64_t nxr_launch_unannounced_bytes(void) {
  static const char units[] = "kmg";
  const char *text = getenv("UCX_RNDV_THRESH");
  if (text == NULL) return MOST_UNANNOUNCED; /* UCX's own choice is less */
  char *end;
  uint64_t n = strtoull(text, &end, 10);
  const char *unit = *end ? strchr(units, *end | 0x20) : NULL;
  if (end == text || (*end && unit == NULL)) return UINT64_MAX; /* inf, auto, one for each way */
  return unit ? n << (10 * (unit - units + 1)) : n;
}

void nxr_launch_prepare(const nx_run *run, char **argv) {
  cpu_set_t cores;
  if (run->n_threads == 1 || getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT")) return;
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return;
  if ((uint64_t)nxr_launch_local_ranks() * run->n_threads > (uint64_t)CPU_COUNT(&cores))
    setenv("OMP_WAIT_POLICY", "passive", 1);
  else
    setenv("GOMP_SPINCOUNT", "2000", 1); /* some 50 microseconds */
  execv("/proc/self/exe", argv);
}
