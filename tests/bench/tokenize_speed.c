/* SPDX-License-Identifier: Apache-2.0 */
/* How fast texts are encoded on one core: processor time, the best of several runs, each with an encoder of
 * its own.
 *
 *   tokenize_speed TOKENIZER RUNS TEXT...      prints for each text: name, MB/s, ids */
#include "tokenizer/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PART = 4096 }; /* bytes of a document */

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static char *read_file(const char *path, size_t *n) {
  FILE *file = fopen(path, "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) return NULL;
  *n = (size_t)ftell(file);
  rewind(file);
  char *bytes = malloc(*n + 1);
  if (bytes != NULL && fread(bytes, 1, *n, file) != *n) *n = 0;
  fclose(file);
  return bytes;
}

static double encode_all(const nxt_tokenizer *tokenizer, const char *bytes, size_t n, nxt_ids *ids) {
  nxt_encoder *encoder = nxt_encoder_open(tokenizer);
  nx_fault fault = {.text = ""};
  double start = now();
  ids->n = 0;
  for (size_t at = 0; at < n; at += PART)
    nxt_encode(encoder, bytes + at, n - at < PART ? n - at : PART, 0, ids, &fault);
  double seconds = now() - start;
  nxt_encoder_close(encoder);
  return seconds;
}

int main(int argc, char **argv) {
  nx_fault fault = {.text = ""};
  double start = now();
  nxt_tokenizer *tokenizer = argc > 3 ? nxt_open(argv[1], &fault) : NULL;
  if (tokenizer == NULL) {
    fprintf(stderr, "tokenize_speed: %s\n", fault.text);
    return 2;
  }
  printf("opening  %.3f s\n", now() - start);
  nxt_ids ids = {0};
  for (int i = 3; i < argc; i++) {
    size_t n = 0;
    char *bytes = read_file(argv[i], &n);
    double best = 1e9;
    for (int run = 0; bytes != NULL && run < atoi(argv[2]); run++) {
      double seconds = encode_all(tokenizer, bytes, n, &ids);
      if (seconds < best) best = seconds;
    }
    printf("%s %.2f %zu\n", argv[i], (double)n / 1e6 / best, ids.n);
    free(bytes);
  }
  free(ids.items);
  nxt_close(tokenizer);
  return 0;
}
