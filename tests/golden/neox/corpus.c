/* SPDX-License-Identifier: Apache-2.0 */
/* Real GPT-NeoX files, and what the real argument code made of them.
 *
 * For every entry of $NX_SHARED/corpora/neox/expected.json ("GPUS|FILE[+FILE...]": values, or an error) a
 * line says how nxcfg judges the files: valid or refused, with the ids of its errors and warnings, and every
 * value that is not the expected one. The lines must be those of corpus.txt, where each deviation has its
 * reason; UPDATE=1 prints them on standard error. TAP. Usage: corpus NXCFG CORPUS.TXT */
#include "tests/tap.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 4096 };

typedef struct field {
  const char *name;    /* in expected.json */
  const char *setting; /* in nxcfg plan */
  const char *words[8]; /* pairs: the real system's word, ours */
} field;

static const field fields[] = {
    {"train_batch_size", "batch.global", {0}},
    {"train_micro_batch_size_per_gpu", "batch.micro", {0}},
    {"gradient_accumulation_steps", "batch.accumulation", {0}},
    {"model_parallel_size", "mesh.tensor", {0}},
    {"num_layers", "model.layers", {0}},
    {"hidden_size", "model.hidden", {0}},
    {"num_attention_heads", "model.heads", {0}},
    {"num_kv_heads", "model.kv_heads", {0}},
    {"seq_length", "model.sequence", {0}},
    {"max_position_embeddings", "model.max_positions", {0}},
    {"rotary_pct", "model.rotary_percentage", {0}},
    {"hidden_dropout", "model.hidden_dropout", {0}},
    {"attention_dropout", "model.attention_dropout", {0}},
    {"activation", "model.activation", {0}},
    {"norm", "model.normalization", {0}},
    {"pos_emb", "model.position_embedding", {"rotary", "rope"}},
    {"precision", "precision.preset", {0}},
    {"zero_stage", "optimizer.zero_stage", {0}},
    {"optimizer_type", "optimizer.name", {"Adam", "adamw"}},
    {"lr", "optimizer.lr", {0}},
    {"min_lr", "schedule.min_lr", {0}},
    {"lr_decay_style", "schedule.name", {0}},
    {"train_iters", "schedule.max_steps", {0}},
    {"weight_decay", "optimizer.weight_decay", {0}},
    {"clip_grad", "optimizer.clip_norm", {0}},
};
enum { N_FIELDS = sizeof fields / sizeof *fields };

typedef struct line {
  char text[LINE_MAX_BYTES];
} line;

static void add(line *to, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(line *to, const char *format, ...) {
  size_t n_used = strlen(to->text);
  va_list args;
  va_start(args, format);
  vsnprintf(to->text + n_used, sizeof to->text - n_used, format, args);
  va_end(args);
}

/* `nxcfg COMMAND FILES --world-size N --format json`, from the corpus's folder; NULL: no JSON came out. */
static json_t *run(const char *nxcfg, const char *command, const char *key) {
  char text[LINE_MAX_BYTES], files[LINE_MAX_BYTES];
  snprintf(files, sizeof files, "%s", strchr(key, '|') + 1);
  int n = snprintf(text, sizeof text, "'%s' %s --format json --world-size %d", nxcfg, command, atoi(key));
  const char *before = "";
  for (char *file = strtok(files, "+"); file != NULL; file = strtok(NULL, "+"), before = "-l ")
    n += snprintf(text + n, sizeof text - (size_t)n, " %s'%s'", before, file);
  FILE *pipe = popen(text, "r");
  json_t *answer = pipe ? json_loadf(pipe, 0, NULL) : NULL;
  if (pipe != NULL) pclose(pipe);
  return answer;
}

static bool same(const field *at, const json_t *wanted, const json_t *found) {
  if (json_is_number(wanted) && json_is_number(found)) {
    double a = json_number_value(wanted), b = json_number_value(found);
    return fabs(a - b) <= 1e-12 * fabs(a);
  }
  if (!json_is_string(wanted) || !json_is_string(found)) return json_equal(wanted, found);
  const char *word = json_string_value(wanted);
  for (size_t i = 0; i < 8 && at->words[i] != NULL; i += 2)
    if (strcmp(at->words[i], word) == 0) word = at->words[i + 1];
  return strcmp(word, json_string_value(found)) == 0;
}

static void compare(line *to, const json_t *wanted, const json_t *settings) {
  for (size_t i = 0; i < N_FIELDS; i++) {
    const json_t *value = json_object_get(wanted, fields[i].name);
    const json_t *found = json_object_get(settings, fields[i].setting);
    bool nothing = value == NULL || json_is_null(value);
    if (nothing || (found != NULL && same(&fields[i], value, found))) continue;
    char *a = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(12));
    bool known = found != NULL && !json_is_null(found);
    char *b = known ? json_dumps(found, JSON_ENCODE_ANY | JSON_REAL_PRECISION(12)) : NULL;
    add(to, " %s=%s(wanted %s)", fields[i].name, b ? b : "unknown", a);
    free(a);
    free(b);
  }
  /* What is known by another name or as a yes and a no. */
  const json_t *untied = json_object_get(wanted, "no_weight_tying");
  if (json_is_true(untied) == json_is_true(json_object_get(settings, "model.tied_embeddings")))
    add(to, " no_weight_tying");
  bool recompute = json_is_true(json_object_get(wanted, "checkpoint_activations"));
  const char *granularity = json_string_value(json_object_get(settings, "recompute.granularity"));
  if (recompute != (granularity != NULL && strcmp(granularity, "full") == 0))
    add(to, " checkpoint_activations");
  bool parallel = json_is_true(json_object_get(wanted, "gpt_j_residual"));
  const char *block = json_string_value(json_object_get(settings, "model.block"));
  if (parallel != (block != NULL && strcmp(block, "gpt_j") == 0)) add(to, " gpt_j_residual");
  double share = json_number_value(json_object_get(wanted, "warmup"));
  double n_steps = json_number_value(json_object_get(wanted, "lr_decay_iters"));
  double n_warmup = json_number_value(json_object_get(settings, "schedule.warmup_steps"));
  if (n_warmup != share * n_steps) add(to, " warmup=%g(wanted %g)", n_warmup, share * n_steps);
}

static int compare_ids(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The ids of what was found, each once and in order; gives the number of errors. */
static size_t add_ids(line *to, const json_t *findings) {
  const char *ids[256];
  size_t n_ids = 0, n_errors = 0, i;
  json_t *finding;
  json_array_foreach(findings, i, finding) {
    const char *severity = json_string_value(json_object_get(finding, "severity"));
    bool error = severity != NULL && strcmp(severity, "error") == 0;
    bool warning = severity != NULL && strcmp(severity, "warning") == 0;
    n_errors += error;
    if ((error || warning) && n_ids < 256) ids[n_ids++] = json_string_value(json_object_get(finding, "id"));
  }
  qsort(ids, n_ids, sizeof *ids, compare_ids);
  add(to, n_errors ? "refused" : "valid");
  for (i = 0; i < n_ids; i++)
    if (i == 0 || strcmp(ids[i], ids[i - 1]) != 0) add(to, " %s", ids[i]);
  return n_errors;
}

static line judge(const char *nxcfg, const char *key, const json_t *wanted) {
  line found = {.text = ""};
  add(&found, "%s: ", key);
  json_t *findings = run(nxcfg, "validate", key);
  size_t n_errors = add_ids(&found, findings);
  if (json_is_string(wanted) != (n_errors > 0)) add(&found, " (the real system does not)");
  json_t *plan = json_is_object(wanted) ? run(nxcfg, "plan", key) : NULL;
  if (json_is_object(wanted)) compare(&found, wanted, json_object_get(plan, "settings"));
  json_decref(plan);
  json_decref(findings);
  return found;
}

/* The next line of corpus.txt that is no comment; "" at its end. */
static void next_line(FILE *file, line *to) {
  do {
    to->text[0] = '\0';
    if (fgets(to->text, sizeof to->text, file) == NULL) return;
    to->text[strcspn(to->text, "\n")] = '\0';
  } while (to->text[0] == '#' || to->text[0] == '\0');
}

int main(int argc, char **argv) {
  const char *shared = getenv("NX_SHARED");
  if (argc != 3 || shared == NULL)
    return argc != 3 ? 2 : tap_skip_all("NX_SHARED names no folder with corpora");
  char *nxcfg = realpath(argv[1], NULL), *listing = realpath(argv[2], NULL), path[LINE_MAX_BYTES];
  snprintf(path, sizeof path, "%s/corpora/neox", shared);
  json_t *all = NULL;
  if (nxcfg != NULL && listing != NULL && freopen("/dev/null", "r", stdin) != NULL) {
    snprintf(path, sizeof path, "%s/corpora/neox/expected.json", shared);
    all = json_load_file(path, 0, NULL);
    *strrchr(path, '/') = '\0';
  }
  if (all == NULL || chdir(path) != 0) tap_bail("cannot read %s", path);
  FILE *wanted = getenv("UPDATE") ? NULL : fopen(listing, "r"), *rewritten = NULL;
  if (wanted == NULL) rewritten = fopen("/dev/stderr", "w");
  const char *key;
  json_t *value;
  json_object_foreach(all, key, value) {
    line found = judge(nxcfg, key, value), expected = found;
    if (wanted != NULL) next_line(wanted, &expected);
    if (rewritten != NULL) fprintf(rewritten, "%s\n", found.text);
    bool good = strcmp(found.text, expected.text) == 0;
    if (!good) tap_note("wanted %s", expected.text), tap_note("found  %s", found.text);
    tap_report(good, "%s", key);
  }
  json_decref(all);
  free(nxcfg);
  free(listing);
  if (wanted != NULL) fclose(wanted);
  if (rewritten != NULL) fclose(rewritten);
  return tap_end();
}
