/* SPDX-License-Identifier: Apache-2.0 */
/* The text before a program, and programs kept on disk.
 *
 * A built program is a file of $NXRUN_CACHE (else $XDG_CACHE_HOME/nxrun, else ~/.cache/nxrun), named by the
 * hash of platform, device, driver, options and text. It begins with the hash of what follows, for a driver
 * may end the process that gives it half of a program. What cannot be kept is built again. */
#include "kernels/opencl/opencl.h"

#include "schema/optimizers.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- the text ---- */

static void say_operand(FILE *text, const nxk_operator *operator, uint32_t index) {
  bool out = index >= operator->n_in;
  const nxk_tensor *tensor = &operator->args[index];
  const char *type = nx_dtype_name(tensor->dtype);
  uint32_t number = out ? index - operator->n_in : index;
  char side = out ? 'Y' : 'X';
  fprintf(text, "#define %c%u(i) LOAD_%s(buffer%u + call.at[%u], i)\n", side, number, type, index, index);
  for (int wide = 0; wide < 2; wide++)
    fprintf(text, "#define %c%u_%s(i, end) load_%s_%s(buffer%u + call.at[%u], i, end)\n", side, number,
            wide ? "WIDE" : "RUN", wide ? "wide" : "run", type, index, index);
  fprintf(text, "#define TYPE_%c%u NX_%s\n", side, number, type);
  if (!out) return;
  fprintf(text, "#define SET_Y%u(i, v) STORE_%s(buffer%u + call.at[%u], i, v)\n", number, type, index, index);
  fprintf(text, "#define SET_Y%u_RUN(i, end, v) store_run_%s(buffer%u + call.at[%u], i, end, v)\n", number,
          type, index, index);
  if (tensor->dtype == NX_bf16)
    fprintf(text, "#define SET_Y%u_BITS(i, v) (((global ushort *)(buffer%u + call.at[%u]))[i] = (v))\n",
            number, index, index);
  else fprintf(text, "#define SET_Y%u_BITS(i, v) (void)(v)\n", number);
}

/* Names of an enumeration's values: ATTRIBUTE_VALUE. */
static void say_values(FILE *text, const nx_attr_row *attr) {
  uint32_t number = 0;
  for (const char *at = attr->values; at && *at; number++) {
    int n_chars = (int)strcspn(at, " ");
    fprintf(text, "#define %s_%.*s %u\n", attr->name, n_chars, at, number);
    at += n_chars + (at[n_chars] == ' ');
  }
}

static void say_attributes(FILE *text, const nx_op_row *row) {
  uint64_t reals = 0;
  for (uint32_t i = 0; i < nx_op_n_attrs(row); i++) {
    bool real = row->attrs[i].type == NX_REAL;
    if (real) fprintf(text, "#define REAL_%s call.reals[%u]\n", row->attrs[i].name, i);
    fprintf(text, real ? "#define A_%s REAL_OF(call.reals[%u])\n" : "#define A_%s call.ints[%u]\n",
            row->attrs[i].name, i);
    say_values(text, &row->attrs[i]);
    reals |= (uint64_t)real << i;
  }
  fprintf(text, "#define IS_REAL 0x%llxUL\n", (unsigned long long)reals);
}

static void say_types(FILE *text) {
  for (uint32_t dtype = 1; dtype < NX_DTYPE_END; dtype++)
    fprintf(text, "#define NX_%s %u\n", nx_dtype_name(dtype), dtype);
}

/* All that differs between the programs of a file. */
static char *text_of(const nxk_device *device, const ocl_row *row, const nxk_operator *operator) {
  char *lines = NULL;
  size_t n_bytes;
  FILE *text = open_memstream(&lines, &n_bytes);
  if (!text) return NULL;
  const nx_op_row *op = nx_op_find(operator->op);
  uint32_t n_args = operator->n_in + operator->n_out, n_attrs = operator->n_attrs;
  fprintf(text, "%s#define IN_%s\n", device->fp64 ? "" : "#define NO_FP64\n", row->file);
  fprintf(text, "#define IS_%s\n#define LOCAL %u\n#define TILE_SIDE %u\n", op->name, device->local,
          device->tile_side);
  fprintf(text, "#define WIDTH %u\n#define ITEM_ROWS %u\n", device->width, device->item_rows);
  fprintf(text, "#define N_IN %u\n#define N_OUT %u\n#define N_ARGS %u\n#define N_ATTRS %u\n",
                operator->n_in, operator->n_out, n_args, n_attrs ? n_attrs : 1);
  fputs("#define OPERANDS ", text);
  for (uint32_t i = 0; i < n_args; i++) fprintf(text, "global uchar *buffer%u, ", i);
  fputs("global uchar *scratch, global int *status, const call_values call\n", text);
  say_types(text);
  for (uint32_t i = 0; i < n_args; i++) say_operand(text, operator, i);
  if (operator->n_in > 0) fprintf(text, "#define X_LAST X%u\n", operator->n_in - 1);
  say_attributes(text, op);
  if (row->define) row->define(text, device, operator);
  if (fclose(text) == 0) return lines;
  free(lines);
  return NULL;
}

/* ---- on disk ---- */

static void hash_text(struct sha256_ctx *hash, const char *text) {
  sha256_update(hash, strlen(text) + 1, (const uint8_t *)text);
}

static bool folder_of(char *path, size_t room) {
  const char *own = getenv("NXRUN_CACHE"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (own && own[0]) snprintf(path, room, "%s", own);
  else if (cache && cache[0]) snprintf(path, room, "%s/nxrun", cache);
  else if (home && home[0]) snprintf(path, room, "%s/.cache/nxrun", home);
  else return false;
  for (char *at = path + 1; (at = strchr(at, '/')); *at++ = '/') {
    *at = '\0';
    if (mkdir(path, 0777) != 0 && errno != EEXIST) return false;
  }
  return mkdir(path, 0777) == 0 || errno == EEXIST;
}

static bool path_of(const nxk_device *device, const char *const *texts, const char *options, char *path,
                    size_t room) {
  struct sha256_ctx hash;
  uint8_t digest[SHA256_DIGEST_SIZE];
  sha256_init(&hash);
  hash_text(&hash, device->platform);
  hash_text(&hash, device->name);
  hash_text(&hash, device->driver);
  hash_text(&hash, options);
  for (uint32_t i = 0; i < 3; i++) hash_text(&hash, texts[i]);
  sha256_digest(&hash, sizeof digest, digest);
  if (!folder_of(path, room - 2 * sizeof digest - 8)) return false;
  strcat(path, "/");
  for (size_t i = 0; i < sizeof digest; i++) sprintf(path + strlen(path), "%02x", digest[i]);
  return true;
}

static void digest_of(const uint8_t *bytes, size_t n_bytes, uint8_t digest[SHA256_DIGEST_SIZE]) {
  struct sha256_ctx hash;
  sha256_init(&hash);
  sha256_update(&hash, n_bytes, bytes);
  sha256_digest(&hash, SHA256_DIGEST_SIZE, digest);
}

/* All of a file; NULL where it is not what was kept. */
static uint8_t *file_read(const char *path, size_t *n_bytes) {
  uint8_t digest[SHA256_DIGEST_SIZE];
  FILE *file = fopen(path, "rb");
  struct stat of;
  if (!file) return NULL;
  uint8_t *bytes = fstat(fileno(file), &of) == 0 ? malloc((size_t)of.st_size + 1) : NULL;
  *n_bytes = bytes ? fread(bytes, 1, (size_t)of.st_size, file) : 0;
  fclose(file);
  if (*n_bytes > sizeof digest) {
    digest_of(bytes + sizeof digest, *n_bytes - sizeof digest, digest);
    if (memcmp(bytes, digest, sizeof digest) == 0) return bytes;
  }
  free(bytes);
  return NULL;
}

static cl_program program_load(const nxk_device *device, const char *path, const char *options) {
  size_t n_bytes;
  uint8_t *bytes = file_read(path, &n_bytes);
  if (!bytes) return NULL;
  const unsigned char *binary = bytes + SHA256_DIGEST_SIZE;
  n_bytes -= SHA256_DIGEST_SIZE;
  cl_int status, error;
  cl_program program =
      clCreateProgramWithBinary(device->context, 1, &device->id, &n_bytes, &binary, &status, &error);
  free(bytes);
  if (error != CL_SUCCESS) return NULL;
  if (clBuildProgram(program, 1, &device->id, options, NULL, NULL) == CL_SUCCESS) return program;
  clReleaseProgram(program);
  return NULL;
}

/* Under a name of its own first: several ranks may write the same one. */
static void file_write(const char *path, const uint8_t *bytes, size_t n_bytes) {
  char own[4200];
  snprintf(own, sizeof own, "%s.%d", path, (int)getpid());
  FILE *file = fopen(own, "wb");
  if (!file) return;
  bool well = fwrite(bytes, 1, n_bytes, file) == n_bytes;
  if (fclose(file) != 0 || !well || rename(own, path) != 0) unlink(own);
}

static void program_keep(cl_program program, const char *path) {
  size_t n_bytes = 0;
  if (clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof n_bytes, &n_bytes, NULL) != CL_SUCCESS ||
      n_bytes == 0)
    return;
  uint8_t *bytes = malloc(SHA256_DIGEST_SIZE + n_bytes);
  unsigned char *binary = bytes + SHA256_DIGEST_SIZE;
  if (bytes &&
      clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL) == CL_SUCCESS) {
    digest_of(binary, n_bytes, bytes);
    file_write(path, bytes, SHA256_DIGEST_SIZE + n_bytes);
  }
  free(bytes);
}

/* One process of the host builds a program, the others take what it kept: a byte of the file `lock`, whose
 * place is of the program's hash. Whoever waits too long, or can not, builds it too. -1: so it is. */
static int lock_program(const char *path) {
  enum { MOST_NAPS = 6000 };
  static const struct timespec nap = {.tv_nsec = 50000000};
  const char *hash = strrchr(path, '/') + 1;
  char own[4200], first[16] = "";
  snprintf(own, sizeof own, "%.*slock", (int)(hash - path), path);
  memcpy(first, hash, sizeof first - 1);
  struct flock at = {
      .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = strtoll(first, NULL, 16), .l_len = 1};
  int file = open(own, O_RDWR | O_CREAT | O_CLOEXEC, 0666), error = 0;
  for (int naps = 0; file >= 0 && naps < MOST_NAPS; naps++) {
    if (fcntl(file, F_OFD_SETLK, &at) == 0) return file;
    error = errno;
    if (error != EAGAIN && error != EACCES && error != EINTR) break;
    nanosleep(&nap, NULL);
  }
  if (file >= 0) close(file);
  return -1;
}

/* ---- building ---- */

static void say_build_failure(const nxk_device *device, cl_program program, const char *file, cl_int error,
                              nxk_fault *fault) {
  size_t n_bytes = 0;
  clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &n_bytes);
  char *log = calloc(1, n_bytes + 1);
  if (log) clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, n_bytes, log, NULL);
  fprintf(stderr, "%s\n", log ? log : "");
  snprintf(
      fault->text, sizeof fault->text,
      "the driver %s of %s does not build %s.cl (%d): its words stand above; NXRUN_OPENCL_OPTIONS gives its "
      "compiler options, and another version of the driver may build it",
      device->driver, device->name, file, error);
  free(log);
}

/* What a driver would warn of in programs that are not the user's is not said; why one is not built is.
 * Constants of the headers that are shared have the type that the device has. */
static void options_of(const nxk_device *device, char *options, size_t room) {
  const char *more = getenv("NXRUN_OPENCL_OPTIONS");
  snprintf(options, room, "-w %s%s", device->fp64 ? "" : "-cl-single-precision-constant ", more ? more : "");
}

static cl_program build_source(nxk_device *device, const char *const *texts, const char *options,
                               const char *file, nxk_fault *fault) {
  cl_int error;
  cl_program program =
      clCreateProgramWithSource(device->context, 3, (const char **)(uintptr_t)texts, NULL, &error);
  if (error != CL_SUCCESS) {
    ocl_fault(fault, "program", error);
    return NULL;
  }
  error = clBuildProgram(program, 1, &device->id, options, NULL, NULL);
  if (error == CL_SUCCESS) return program;
  if (error == CL_BUILD_PROGRAM_FAILURE) say_build_failure(device, program, file, error, fault);
  else ocl_fault(fault, device->name, error);
  device->broken = true;
  clReleaseProgram(program);
  return NULL;
}

static cl_program program_build(nxk_device *device, const char *const *texts, const char *file,
                                nxk_fault *fault) {
  char path[4096];
  char options[4096];
  options_of(device, options, sizeof options);
  bool kept = path_of(device, texts, options, path, sizeof path);
  cl_program program = kept ? program_load(device, path, options) : NULL;
  if (program) return program;
  if (device->broken) {
    snprintf(fault->text, sizeof fault->text, "not tried");
    return NULL;
  }
  int lock = kept ? lock_program(path) : -1;
  if (lock >= 0) program = program_load(device, path, options);
  if (!program) {
    program = build_source(device, texts, options, file, fault);
    if (program && kept) program_keep(program, path);
  }
  if (lock >= 0) close(lock);
  return program;
}

cl_program ocl_program_of(nxk_device *device, const ocl_row *row, const nxk_operator *operator,
                          nxk_fault * fault) {
  char *text = text_of(device, row, operator);
  ocl_program *at = device->programs;
  while (text && at && strcmp(at->text, text) != 0) at = at->next;
  if (at) {
    free(text);
    return at->program;
  }
  const char *const texts[] = {text, ocl_source("prelude"), ocl_source(row->file)};
  ocl_program *own = text ? calloc(1, sizeof *own) : NULL;
  if (!own) ocl_fault(fault, "program", CL_OUT_OF_HOST_MEMORY);
  cl_program program = own ? program_build(device, texts, row->file, fault) : NULL;
  if (!program) {
    free(own);
    free(text);
    return NULL;
  }
  *own = (ocl_program){device->programs, text, program};
  device->programs = own;
  return program;
}

void ocl_programs_close(nxk_device *device) {
  while (device->programs) {
    ocl_program *at = device->programs;
    device->programs = at->next;
    clReleaseProgram(at->program);
    free(at->text);
    free(at);
  }
}
