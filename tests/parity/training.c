/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/parity/training.h"

#include "runtime/files/safetensors.h"
#include "tests/tap.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { COMMAND_BYTES = 65536 };

static void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
static void die(const char *format, ...) {
  va_list args;
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fputc('\n', stderr);
  exit(1);
}

static const char *program(const char *variable) {
  const char *path = getenv(variable);
  if (path == NULL) die("%s is not set", variable);
  return path;
}

/* Runs a command, its output into a file; shows it and the end of that when it fails. */
static void run(const char *output, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void run(const char *output, const char *format, ...) {
  static char command[COMMAND_BYTES], line[2 * COMMAND_BYTES];
  va_list args;
  va_start(args, format);
  if (vsnprintf(command, sizeof command, format, args) >= (int)sizeof command) die("command too long");
  va_end(args);
  snprintf(line, sizeof line, "%s >'%s' 2>&1", command, output);
  if (system(line) == 0) return;
  fprintf(stderr, "failed: %s\n", command);
  snprintf(line, sizeof line, "tail -n 40 '%s' >&2", output);
  if (system(line) != 0) die("and its output can not be read");
  exit(1);
}

static void write_config(const training *request) {
  char path[4096], command[4200];
  snprintf(command, sizeof command, "rm -rf '%s'", request->folder);
  if (system(command) != 0 || mkdir(request->folder, 0777) != 0)
    die("cannot make %s: %s", request->folder, strerror(errno));
  snprintf(path, sizeof path, "%s/config.yaml", request->folder);
  FILE *out = fopen(path, "w");
  if (out == NULL || fputs(request->config, out) < 0 || fclose(out) != 0) die("cannot write %s", path);
}

static double number_at(json_t *object, const char *key) {
  json_t *value = json_object_get(object, key);
  if (!json_is_number(value)) die("a step lacks %s", key);
  return json_number_value(value);
}

void training_read(const char *folder, training_result *result) {
  char path[4096], line[4096];
  snprintf(path, sizeof path, "%s/metrics.jsonl", folder);
  FILE *in = fopen(path, "r");
  if (in == NULL) die("cannot read %s", path);
  result->n_steps = result->n_evaluations = 0;
  while (fgets(line, sizeof line, in)) {
    json_t *object = json_loads(line, 0, NULL);
    bool full = result->n_steps == TRAINING_MAX_STEPS || result->n_evaluations == TRAINING_MAX_STEPS;
    if (object == NULL || full) die("cannot read %s", path);
    double loss = number_at(object, "loss");
    if (json_object_get(object, "set")) result->evaluations[result->n_evaluations++] = loss;
    else
      result->steps[result->n_steps++] =
          (training_step){loss, number_at(object, "grad_norm"), number_at(object, "lr")};
    json_decref(object);
  }
  fclose(in);
}

void training_expect(const json_t *steps, size_t first, training_result *expected) {
  expected->n_steps = json_array_size(steps) - first;
  if (expected->n_steps > TRAINING_MAX_STEPS) die("a record has too many steps");
  for (size_t i = 0; i < expected->n_steps; i++) {
    json_t *step = json_array_get(steps, first + i);
    expected->steps[i] =
        (training_step){number_at(step, "loss"), number_at(step, "grad_norm"), number_at(step, "lr")};
  }
}

static const char *output_of(const char *folder) {
  static char path[512];
  snprintf(path, sizeof path, "%s/output.txt", folder);
  return path;
}

training_share training_share_of(const char *word) {
  training_share share = {.name = word};
  if (word && sscanf(word, "%zuof%zu", &share.first, &share.n) == 2 && share.n > 0) return share;
  return (training_share){0, 1, "all"};
}

bool training_is_in(const training_share *share, size_t which) {
  return which % share->n == share->first % share->n;
}

void training_compile(const training *request) {
  const char *folder = request->folder;
  write_config(request);
  run(output_of(folder), "'%s' plan --dialect nx '%s/config.yaml' %s -o '%s/plan.bin'", program("NX_NXCFG"),
      folder, request->overrides ? request->overrides : "", folder);
}

void training_together(unsigned n_ranks, const char *name, const char *words) {
  char output[512];
  snprintf(output, sizeof output, "%s-%u.txt", name, n_ranks);
  run(output, "'%s' -n %u '%s' %s", program("NX_MPIEXEC"), n_ranks, program("NX_TRAIN_PLANS"), words);
}

void training_run(const training *request, training_result *result) {
  const char *folder = request->folder;
  char launcher[512] = "", gradients[512] = "";
  training_compile(request);
  if (request->n_ranks > 1)
    snprintf(launcher, sizeof launcher, "'%s' -n %u", program("NX_MPIEXEC"), request->n_ranks);
  if (request->gradients) snprintf(gradients, sizeof gradients, "--dump-gradients '%s/gradients'", folder);
  run(output_of(folder), "%s '%s' '%s/plan.bin' --log json --metrics '%s/metrics.jsonl' --dir '%s/run' %s %s",
      launcher, program("NX_NXRUN"), folder, folder, folder, gradients,
      request->arguments ? request->arguments : "");
  training_read(folder, result);
}

static double relative(double expected, double actual) {
  return fabs(expected - actual) / fmax(fabs(expected), 1e-300);
}

bool training_compare(const training_result *expected, const training_result *actual, double tolerance,
                      double norm_tolerance) {
  double worst_loss = 0, worst_norm = 0, worst_lr = 0;
  if (expected->n_steps != actual->n_steps || expected->n_steps == 0) {
    tap_note("%zu steps instead of %zu", actual->n_steps, expected->n_steps);
    return false;
  }
  for (size_t i = 0; i < expected->n_steps; i++) {
    const training_step *a = &expected->steps[i], *b = &actual->steps[i];
    worst_loss = fmax(worst_loss, isfinite(b->loss) ? relative(a->loss, b->loss) : INFINITY);
    worst_norm = fmax(worst_norm, isfinite(b->grad_norm) ? relative(a->grad_norm, b->grad_norm) : INFINITY);
    worst_lr = fmax(worst_lr, a->lr == b->lr ? 0 : relative(a->lr, b->lr));
    bool good = worst_loss <= tolerance && worst_norm <= norm_tolerance && worst_lr <= 1e-12;
    if (!good) {
      tap_note(
          "step %zu: loss %.9g instead of %.9g, gradient norm %.9g instead of %.9g, rate %.12g instead of "
          "%.12g",
          i + 1, b->loss, a->loss, b->grad_norm, a->grad_norm, b->lr, a->lr);
      return false;
    }
  }
  tap_note("%zu steps: loss within %.1e (tolerance %.0e), gradient norm within %.1e (tolerance %.0e)",
           expected->n_steps, worst_loss, tolerance, worst_norm, norm_tolerance);
  return true;
}

static uint64_t n_elements(const nxr_safetensor *tensor) {
  uint64_t n = 1;
  for (uint32_t dim = 0; dim < tensor->n_dims; dim++) n *= (uint64_t)tensor->dims[dim];
  return n;
}

static double tensor_distance(const nxr_safetensor *expected, const nxr_safetensor *actual) {
  uint64_t n = n_elements(expected);
  if (n != n_elements(actual)) return INFINITY;
  float *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b);
  if (a == NULL || b == NULL) die("out of memory");
  nxr_safetensor_floats(expected, 0, n, a);
  nxr_safetensor_floats(actual, 0, n, b);
  double difference = 0, size = 0;
  for (uint64_t i = 0; i < n; i++) {
    difference += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    size += (double)a[i] * a[i];
  }
  free(a);
  free(b);
  return difference == 0 ? 0 : sqrt(difference / size);
}

bool training_compare_tensors(const char *expected_path, const char *actual_path, double tolerance) {
  nxr_safetensors expected, actual;
  nxr_fault fault = {""};
  if (!nxr_safetensors_open(expected_path, &expected, &fault) ||
      !nxr_safetensors_open(actual_path, &actual, &fault))
    die("%s", fault.text);
  double worst = 0;
  bool good = expected.n_tensors == actual.n_tensors;
  if (!good)
    tap_note("%llu tensors instead of %llu", (unsigned long long)actual.n_tensors,
             (unsigned long long)expected.n_tensors);
  for (uint64_t i = 0; i < expected.n_tensors; i++) {
    const nxr_safetensor *tensor = &expected.tensors[i], *other = nxr_safetensors_find(&actual, tensor->name);
    double distance = other ? tensor_distance(tensor, other) : INFINITY;
    if (!(distance <= tolerance))
      tap_note("%s differs by %.2e (tolerance %.0e)", tensor->name, distance, tolerance);
    good = good && distance <= tolerance;
    worst = fmax(worst, distance);
  }
  if (good)
    tap_note("%llu tensors within %.1e (tolerance %.0e)", (unsigned long long)expected.n_tensors, worst,
             tolerance);
  nxr_safetensors_close(&expected);
  nxr_safetensors_close(&actual);
  return good;
}
