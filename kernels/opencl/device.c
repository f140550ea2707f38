/* SPDX-License-Identifier: Apache-2.0 */
/* Which device, and what it can do. */
#include "kernels/opencl/product.h"

#include <stdlib.h>
#include <string.h>

/* ---- what there is ---- */

typedef struct found {
  cl_platform_id platform;
  cl_device_id device;
  cl_device_type type;
} found;

/* All devices of all platforms, in their order. */
static uint32_t find_all(found *all) {
  cl_platform_id platforms[16];
  cl_uint n_platforms = 0, n_devices;
  uint32_t n = 0;
  if (clGetPlatformIDs(16, platforms, &n_platforms) != CL_SUCCESS) return 0;
  if (n_platforms > 16) n_platforms = 16;
  for (cl_uint p = 0; p < n_platforms; p++) {
    cl_device_id devices[OCL_MAX_DEVICES];
    if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, OCL_MAX_DEVICES, devices, &n_devices) != CL_SUCCESS)
      continue;
    for (cl_uint d = 0; d < n_devices && n < OCL_MAX_DEVICES; d++, n++) {
      all[n] = (found){platforms[p], devices[d], 0};
      clGetDeviceInfo(devices[d], CL_DEVICE_TYPE, sizeof all[n].type, &all[n].type, NULL);
    }
  }
  return n;
}

static void device_text(cl_device_id device, cl_device_info what, char text[OCL_NAME]) {
  if (clGetDeviceInfo(device, what, OCL_NAME, text, NULL) != CL_SUCCESS) text[0] = '\0';
}

static uint64_t device_number(cl_device_id device, cl_device_info what) {
  cl_ulong number = 0;
  size_t size = 0;
  clGetDeviceInfo(device, what, 0, NULL, &size);
  if (size <= sizeof number) clGetDeviceInfo(device, what, size, &number, NULL);
  return number;
}

static bool has_fp64(cl_device_id device) {
  return device_number(device, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
}

static bool is_processor(const found *at) {
  return (at->type & CL_DEVICE_TYPE_CPU) != 0;
}

uint32_t ocl_devices(nxk_description *room, uint32_t n) {
  found all[OCL_MAX_DEVICES];
  uint32_t n_found = find_all(all);
  for (uint32_t i = 0; i < n_found && i < n; i++) {
    char name[OCL_NAME], driver[OCL_NAME], platform[OCL_NAME] = "";
    device_text(all[i].device, CL_DEVICE_NAME, name);
    device_text(all[i].device, CL_DRIVER_VERSION, driver);
    clGetPlatformInfo(all[i].platform, CL_PLATFORM_NAME, sizeof platform, platform, NULL);
    const char *lacks = has_fp64(all[i].device) ? "" : "; without fp64";
    snprintf(room[i].text, sizeof room[i].text, "%.90s (%.60s, driver %.40s), %s, %llu MiB%s", name, platform,
             driver, is_processor(&all[i]) ? "processor" : "accelerator",
             (unsigned long long)(device_number(all[i].device, CL_DEVICE_GLOBAL_MEM_SIZE) >> 20), lacks);
  }
  return n_found;
}

/* ---- which one ---- */

static bool is_called(const found *at, const char *wanted) {
  char name[OCL_NAME], platform[OCL_NAME] = "";
  device_text(at->device, CL_DEVICE_NAME, name);
  clGetPlatformInfo(at->platform, CL_PLATFORM_NAME, sizeof platform, platform, NULL);
  return strcasestr(name, wanted) || strcasestr(platform, wanted);
}

/* `given`: a number of `nxrun --devices`, or a part of the name of a device or platform. */
static uint32_t keep_called(found *all, uint32_t n, const char *given) {
  char *end;
  unsigned long number = strtoul(given, &end, 10);
  uint32_t n_kept = 0;
  if (given[0] != '\0' && *end == '\0') {
    if (number >= n) return 0;
    all[0] = all[number];
    return 1;
  }
  for (uint32_t i = 0; i < n; i++)
    if (is_called(&all[i], given)) all[n_kept++] = all[i];
  return n_kept;
}

/* Accelerators, where there is one. */
static uint32_t keep_accelerators(found *all, uint32_t n) {
  uint32_t n_kept = 0;
  for (uint32_t i = 0; i < n; i++)
    if (!is_processor(&all[i])) all[n_kept++] = all[i];
  return n_kept ? n_kept : n;
}

/* pocl, which makes devices of processors, would take all of them for every rank: it gets the threads of the
 * plan, and one that copies beside them. It reads these when it is first asked, 3.1 the first and later ones
 * the second; and puts what it builds for groups of ours beside what serves any into what is kept of a
 * program. What users set stays. */
static void advise_pocl(const nxk_device_options *options) {
  char n_threads[16];
  snprintf(n_threads, sizeof n_threads, "%u", options->n_threads + 1);
  if (options->n_threads) {
    setenv("POCL_MAX_PTHREAD_COUNT", n_threads, 0);
    setenv("POCL_CPU_MAX_CU_COUNT", n_threads, 0);
  }
  setenv("POCL_BINARY_SPECIALIZE_WG", "64-1-1-goffs0-smallgrid", 0);
}

static bool choose(const nxk_device_options *options, found *chosen, nxk_fault *fault) {
  found all[OCL_MAX_DEVICES];
  uint32_t n = find_all(all), n_found = n;
  if (n == 0) {
    snprintf(fault->text, sizeof fault->text,
             "there is no OpenCL device: install the driver of yours (Debian: nvidia-opencl-icd, "
             "mesa-opencl-icd or intel-opencl-icd; pocl-opencl-icd for a processor), and in a container the "
             "files of /etc/OpenCL/vendors too; clinfo lists what is found");
    return false;
  }
  n = options->device ? keep_called(all, n, options->device) : keep_accelerators(all, n);
  if (n == 0) {
    snprintf(fault->text, sizeof fault->text,
             "no device is called %s: nxrun --devices lists %u, each with its number and name",
             options->device, n_found);
    return false;
  }
  *chosen = all[options->local_rank % n];
  if (options->local_size > n && options->local_rank == 0 && !is_processor(chosen))
    fprintf(stderr, "nxrun: %u ranks of this host share %u device%s: each needs memory of its own there\n",
            options->local_size, n, n == 1 ? "" : "s");
  return true;
}

/* ---- open and close ---- */

/* A group is a square of items: more on an accelerator, whose items run side by side. */
static void size_groups(nxk_device *device, const found *chosen) {
  uint64_t most = device_number(chosen->device, CL_DEVICE_MAX_WORK_GROUP_SIZE);
  bool large = !is_processor(chosen) && most >= 256 && device->local_bytes >= 16384;
  device->local = large ? 256 : 64;
  device->tile_side = large ? 16 : 8;
  /* A processor has vectors in each item, an accelerator makes them of its items. */
  uint64_t lanes =
      is_processor(chosen) ? device_number(chosen->device, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT) : 1;
  device->width = lanes >= 16 ? 16 : lanes >= 8 ? 8 : 4;
  device->item_rows = device->width > 4 ? 8 : 4;
}

static bool describe(nxk_device *device, const found *chosen, nxk_fault *fault) {
  device->id = chosen->device;
  device_text(device->id, CL_DEVICE_NAME, device->name);
  device_text(device->id, CL_DRIVER_VERSION, device->driver);
  clGetPlatformInfo(chosen->platform, CL_PLATFORM_VERSION, sizeof device->platform, device->platform, NULL);
  device->memory_bytes = device_number(device->id, CL_DEVICE_GLOBAL_MEM_SIZE);
  device->most_bytes = device_number(device->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  device->local_bytes = device_number(device->id, CL_DEVICE_LOCAL_MEM_SIZE);
  size_groups(device, chosen);
  uint64_t group = device_number(device->id, CL_DEVICE_MAX_WORK_GROUP_SIZE);
  device->fp64 = has_fp64(device->id);
  const char *lacks = group < 64 ? "groups of 64 work-items"
                      : device_number(device->id, CL_DEVICE_MAX_PARAMETER_SIZE) < 1024
                          ? "kernels with parameters of 1024 bytes"
                          : NULL;
  if (!lacks) return true;
  snprintf(fault->text, sizeof fault->text, "%s lacks %s: give --device another, of nxrun --devices",
           device->name, lacks);
  return false;
}

static bool open_context(nxk_device *device, nxk_fault *fault) {
  cl_int error;
  device->context = clCreateContext(NULL, 1, &device->id, NULL, NULL, &error);
  if (error != CL_SUCCESS) return ocl_fault(fault, "context", error);
  if (!ocl_queues_open(device, fault)) return false;
  const cl_int none = 0;
  device->status = clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof none,
                                  (void *)(uintptr_t)&none, &error);
  if (error != CL_SUCCESS) return ocl_fault(fault, "buffer", error);
  return ocl_room_reserve(device, &device->scratch, 64, fault);
}

bool ocl_device_open(const nxk_device_options *options, nxk_device **out, nxk_fault *fault) {
  found chosen;
  advise_pocl(options);
  if (!choose(options, &chosen, fault)) return false;
  nxk_device *device = calloc(1, sizeof *device);
  if (!device) return ocl_fault(fault, "device", CL_OUT_OF_HOST_MEMORY);
  device->workspace_limit = options->workspace_bytes;
  if (describe(device, &chosen, fault) && open_context(device, fault)) {
    *out = device;
    return true;
  }
  ocl_device_close(device);
  return false;
}

void ocl_device_close(nxk_device *device) {
  for (int queue = 0; queue < NXK_N_QUEUES; queue++)
    if (device->queues[queue]) clFinish(device->queues[queue]);
  ocl_kernels_close(device);
  ocl_products_close(device);
  ocl_programs_close(device);
  ocl_arenas_close(device);
  if (device->status) clReleaseMemObject(device->status);
  ocl_queues_close(device);
  if (device->context) clReleaseContext(device->context);
  free(device);
}
