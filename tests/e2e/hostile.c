/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that are made to take forever, to take much memory, or to fool who reads the findings: `nxcfg
 * validate` ends with the finding that says what is wrong, within bounds, and prints nothing that a terminal
 * obeys, in every format. TAP. Usage: hostile NXCFG LIMIT, where LIMIT multiplies the bounds (1 but for
 * builds that check themselves). */
#include "tests/measure.h"
#include "tests/tap.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
  LIMIT_S = 60,
  N_TRIES = 40,
  USUAL_MS = 100,
  USUAL_MIB = 64,
  OUTPUT_BYTES_MAX = 1 << 20,
  LARGE_BYTES = 300000
};

typedef struct piece {
  const char *bytes;
  size_t n_bytes;
} piece;
#define TEXT(text) {text, sizeof text - 1}

/* head, n units, tail. Units with a %d are numbered. */
typedef struct hostile {
  const char *name;
  const char *id; /* of the finding that is looked for; NULL: there is none of the text itself */
  piece head, unit;
  int n;
  piece tail;
  int cpu_ms, memory_mib; /* 0: as usual */
} hostile;

static const hostile texts[] = {
    {"100 KB of [", "NX1004", .unit = TEXT("["), .n = 100000},
    {"100 KB of {", "NX1016", .unit = TEXT("{"), .n = 100000},
    {"100 KB of - ", "NX1004", .unit = TEXT("- "), .n = 50000},
    {"100 KB of ? ", "NX1016", .unit = TEXT("? "), .n = 50000},
    {"100 KB of {a: ", "NX1004", .unit = TEXT("{a: "), .n = 25000},
    {"100 KB of :", "NX1001", .unit = TEXT(":"), .n = 100000},
    {"100 KB of !", "NX1014", .unit = TEXT("!"), .n = 100000},
    {"100 KB of %", "NX1022", .unit = TEXT("%"), .n = 100000},
    {"100 KB of &", "NX1001", .unit = TEXT("&"), .n = 100000},
    {"1 MB of #", NULL, .unit = TEXT("#"), .n = 1000000},
    {"3 MB of empty lines", NULL, .unit = TEXT("\n"), .n = 3000000},
    {"lists that go on nowhere", "NX1001", .unit = TEXT("- - - - - -\n "), .n = 10000},
    {"billion laughs", "NX1007",
     TEXT("l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n"
          "l1: &l1 [*l0, *l0, *l0, *l0, *l0, *l0, *l0, *l0, *l0, *l0]\n"
          "l2: &l2 [*l1, *l1, *l1, *l1, *l1, *l1, *l1, *l1, *l1, *l1]\n"
          "l3: &l3 [*l2, *l2, *l2, *l2, *l2, *l2, *l2, *l2, *l2, *l2]\n"
          "l4: &l4 [*l3, *l3, *l3, *l3, *l3, *l3, *l3, *l3, *l3, *l3]\n")},
    {"1e6 aliases", "NX1007", TEXT("a: &a 1\nb: ["), TEXT("*a,"), 1000000, TEXT("]\n")},
    {"50,000 anchors", "NX1302", .unit = TEXT("k%d: &a%d 1\n"), .n = 50000, .memory_mib = 96},
    {"an anchor given twice", "NX1012", TEXT("a: &x 1\nb: &x 2\nc: *x\n")},
    {"an alias without an anchor", "NX1010", TEXT("a: *x\n")},
    {"a list in itself", "NX1011", TEXT("a: &a [*a]\n")},
    {"a map in itself", "NX1011", TEXT("a: &a {b: {c: *a}}\n")},
    {"a map merged into itself", "NX1011", TEXT("a: &a\n  <<: *a\n  b: 1\n")},
    {"merge keys that double", "NX1007", TEXT("b0: &b0 {x: 1}\n"),
     TEXT("c%d: {<<: [*b0, *b0, *b0], k%d: 1}\n"), 4000},
    {"a merge key of a text", "NX1013", TEXT("a: {<<: x}\n")},
    {"100,000 keys", "NX1302", .unit = TEXT("k%d: 1\n"), .n = 100000, .cpu_ms = 250, .memory_mib = 128},
    {"300,000 keys", "NX1006", .unit = TEXT("k%d: 1\n"), .n = 300000, .cpu_ms = 250, .memory_mib = 128},
    {"100,000 times one key", "NX1005", .unit = TEXT("k: 1\n"), .n = 100000, .cpu_ms = 250,
     .memory_mib = 128},
    {"100,000 keys on one line", "NX1302", TEXT("{"), TEXT("k%d: 1, "), 100000, TEXT("}\n"), 250, 128},
    {"100,000 odd scalars on one line", "NX1101", TEXT("mine: {"), TEXT("k%d: yes, "), 100000, TEXT("}\n"),
     250, 160},
    {"100,000 quoted texts on one line", NULL, TEXT("mine: ["), TEXT("\"x\", "), 100000, TEXT("]\n"), 250,
     96},
    {"50,000 findings that comments allow", "NX1302", TEXT("last: 1\n"),
     TEXT("k%d: yes # nxcfg: allow NX1101 NX1301\n"), 50000, .cpu_ms = 600, .memory_mib = 256},
    {"a NUL byte", "NX1002", TEXT("mesh: {a: 1\0}\n")},
    {"100 KB of NUL bytes", "NX1002", .unit = TEXT("\0"), .n = 100000},
    {"all control characters", "NX1002",
     .unit = TEXT("\1\2\3\4\5\6\7\10\13\14\16\17\20\21\22\23\24\25\26\27\30\31\32\33\34\35\36\37\177"),
     .n = 3000},
    {"an escape of a terminal", "NX1002", TEXT("a: \33[31m\33]0;x\7\n")},
    {"an escape in a key", "NX1302", TEXT("\"k\\e[31m\\u009b31m\": 1\n")},
    {"an escape in a value", "NX1303", TEXT("trainer: {devices: \"\\e[2J\\x07\"}\n")},
    {"marks of direction", "NX1302", TEXT("\"tr\\u202Ereniat\\u2066\": 1\n")},
    {"marks of direction as they are", "NX1302", TEXT("tr\xE2\x80\xAEreniat: 1\n")},
    {"UTF-8 goes on without a beginning", "NX1002", TEXT("a: \x80\n")},
    {"UTF-8 in two bytes for one", "NX1002", TEXT("a: \xC0\x80\n")},
    {"UTF-8 in three bytes for one", "NX1002", TEXT("a: \xE0\x80\x80\n")},
    {"UTF-8 in four bytes for one", "NX1002", TEXT("a: \xF0\x80\x80\x80\n")},
    {"UTF-8 of a surrogate", "NX1002", TEXT("a: \xED\xA0\x80\n")},
    {"UTF-8 beyond the last character", "NX1002", TEXT("a: \xF4\x90\x80\x80\n")},
    {"UTF-8 that ends too early", "NX1002", TEXT("a: \xE2\x82")},
    {"a byte that is never UTF-8", "NX1002", TEXT("a: \xFE\n")},
    {"1 MB that is no UTF-8", "NX1002", TEXT("a: "), TEXT("\xFF"), 1000000},
    {"UTF-16, little-endian", "NX1003",
     TEXT("\xFF\xFE"
          "a\0:\0 \0001\0\n\0")},
    {"UTF-16, big-endian", "NX1003", TEXT("\xFE\xFF\0a\0:\0 \0001\0\n")},
    {"a plan", "NX1003", TEXT("\x89NXP\r\n\x1a\n\0\0\0")},
    {"UTF-16 without its mark", "NX1003", TEXT("a\0:\0 \0001\0\n\0")},
    {"UTF-32", "NX1003", TEXT("\xFF\xFE\0\0a\0\0\0:\0\0\0")},
    {"a byte-order mark at the start", NULL, TEXT("\xEF\xBB\xBF# nothing\n")},
    {"a byte-order mark inside", "NX1002",
     TEXT("trainer:\n  \xEF\xBB\xBF"
          "devices: 2\n")},
    {"line breaks of DOS", NULL, TEXT("trainer:\r\n  devices: 2\r\n")},
    {"line breaks of old Macs", NULL, TEXT("trainer:\r  devices: 2\r")},
    {"tabs for indentation", "NX1001", TEXT("trainer:\n\tdevices: 2\n")},
    {"a tab behind a colon", "NX1008", TEXT("trainer:\n  devices:\t2\n")},
    {"a scalar of 10 MB", NULL, TEXT("name: "), TEXT("x"), 10000000, TEXT("\n"), 200},
    {"a quoted scalar of 10 MB", NULL, TEXT("name: \""), TEXT("x"), 10000000, TEXT("\"\n"), 200},
    {"an unknown key with 10 MB behind it", "NX1301", TEXT("namez: "), TEXT("x"), 10000000, TEXT("\n"), 200},
    {"17 MB", "NX1500", TEXT("name: "), TEXT("x"), 17000000, TEXT("\n")},
    {"a number of 1 MB", "NX1109", TEXT("trainer: {devices: "), TEXT("9"), 1000000, TEXT("}\n")},
    {"a key of 100 KB", "NX1001", .unit = TEXT("x"), .n = 100000, .tail = TEXT(": 1\n")},
    {"a finding far into a line", "NX1001", TEXT("trainer: {devices: 2, "), TEXT("x"), 100000,
     TEXT(": 1}\n")},
    {"two documents", "NX1009", TEXT("a: 1\n---\nb: 2\n")},
    {"20,000 documents", "NX1009", .unit = TEXT("---\na: 1\n"), .n = 20000},
    {"an unknown directive", "NX1022", TEXT("%FOO bar\n---\na: 1\n")},
    {"YAML 9.9", "NX1001", TEXT("%YAML 9.9\n---\na: 1\n")},
    {"20,000 tag directives", "NX1006", .unit = TEXT("%%TAG !a%d! tag:x%d:\n"), .n = 20000,
     .tail = TEXT("---\na: 1\n")},
    {"a tag of Python's objects", "NX1014", TEXT("a: !!python/object/apply:os.system [\"id\"]\n")},
    {"a tag of one's own", "NX1014", TEXT("a: !mine x\n")},
    {"bytes that are none", "NX1109", TEXT("a: !!binary \"@@@\"\n")},
    {"a set", "NX1015", TEXT("a: !!set {x, y}\n")},
    {"nothing", "NX1307", TEXT("")},
    {"comments alone", "NX1307", TEXT("# a\n# b\n")},
    {"an end in the middle of a text", "NX1001", TEXT("trainer:\n  devices: \"2")},
    {"an end in the middle of a list", "NX1001", TEXT("trainer: {devices: [2, ")},
    {"a quote never closed", "NX1001", TEXT("a: \""), TEXT("x\n"), 100000},
    {"100 KB of ${", "NX1201", TEXT("x: \""), TEXT("${"), 50000, TEXT("\"\n")},
    {"references in references", "NX1201", TEXT("x: \"${a${a${a${a${a${a"), TEXT("${a"), 10000, TEXT("\"\n")},
    {"texts that double", "NX1213",
     TEXT("a0: \"xxxxxxxxxxxxxxxx\"\n"
          "a1: ${a0}${a0}${a0}${a0}${a0}${a0}${a0}${a0}\n"
          "a2: ${a1}${a1}${a1}${a1}${a1}${a1}${a1}${a1}\n"
          "a3: ${a2}${a2}${a2}${a2}${a2}${a2}${a2}${a2}\n"
          "a4: ${a3}${a3}${a3}${a3}${a3}${a3}${a3}${a3}\n"
          "a5: ${a4}${a4}${a4}${a4}${a4}${a4}${a4}${a4}\n"
          "a6: ${a5}${a5}${a5}${a5}${a5}${a5}${a5}${a5}\n"
          "a7: ${a6}${a6}${a6}${a6}${a6}${a6}${a6}${a6}\n")},
    {"a circle of references", "NX1206", TEXT("a: ${b}\nb: ${c}\nc: ${a}\n")},
    {"a reference to what holds it", "NX1207", TEXT("a: {b: '${a}'}\n")},
    {"100,000 references in one text", NULL, TEXT("x: 1\ny: \""), TEXT("${x}"), 100000, TEXT("\"\n")},
    {"100,000 references that are escaped", NULL, TEXT("mine: {x: 1, "), TEXT("k%d: \"\\x24{mine.x}\", "),
     100000, TEXT("}\n"), 500, 256},
    {"a map of 60,000 pairs in an argument", NULL, TEXT("x: \"${oc.decode:'{"), TEXT("k%d: 1, "), 60000,
     TEXT("z: 1}'}\"\n"), 200, 128},
};

static bool check(bool good, const char *what) {
  if (!good) tap_note("%s", what);
  return good;
}

/* -- texts
 * ------------------------------------------------------------------------------------------------ */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static bool write_text(const char *path, const hostile *of) {
  FILE *file = fopen(path, "wb");
  if (file == NULL) return false;
  bool numbered = of->unit.bytes != NULL && strstr(of->unit.bytes, "%d") != NULL;
  if (of->head.bytes) fwrite(of->head.bytes, 1, of->head.n_bytes, file);
  for (int i = 0; i < of->n; i++) {
    if (numbered) fprintf(file, of->unit.bytes, i, i);
    else fwrite(of->unit.bytes, 1, of->unit.n_bytes, file);
  }
  if (of->tail.bytes) fwrite(of->tail.bytes, 1, of->tail.n_bytes, file);
  return fclose(file) == 0;
}
#pragma GCC diagnostic pop

/* -- what comes out
 * --------------------------------------------------------------------------------------- */

/* A file's text, NUL-terminated and freed by the caller; NULL where it is longer than output may be, or holds
 * NULs. */
static char *read_output(const char *path) {
  FILE *file = fopen(path, "rb");
  char *text = malloc(OUTPUT_BYTES_MAX + 1);
  if (file == NULL || text == NULL) exit(EXIT_FAILURE);
  size_t n_bytes = fread(text, 1, OUTPUT_BYTES_MAX, file);
  bool whole = fgetc(file) == EOF;
  fclose(file);
  text[n_bytes] = '\0';
  if (whole && strlen(text) == n_bytes) return text;
  free(text);
  return NULL;
}

/* No control character but line breaks, as one byte or as U+0080 to U+009F, and no mark of direction. */
static bool is_harmless(const char *text) {
  for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
    if ((*at < ' ' && *at != '\n') || *at == 0x7F) return false;
    if (at[0] == 0xC2 && at[1] >= 0x80 && at[1] < 0xA0) return false;
    if (at[0] == 0xE2 && at[1] == 0x80 && at[2] >= 0xAA && at[2] <= 0xAE) return false;
    if (at[0] == 0xE2 && at[1] == 0x81 && at[2] >= 0xA6 && at[2] <= 0xA9) return false;
  }
  return true;
}

static bool is_json(const char *text) {
  json_t *document = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
  json_decref(document);
  return document != NULL;
}

/* Every line is a command. */
static bool is_for_github(const char *text) {
  for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
    if (strncmp(line, "::error ", 8) != 0 && strncmp(line, "::warning ", 10) != 0) return false;
    if (strchr(line, '\n') == NULL) return false;
  }
  return true;
}

static bool is_any(const char *text) {
  return text != NULL;
}

static bool try_format(char *nxcfg, char *file, const char *output, const char *format,
                       bool (*is_good)(const char *)) {
  char validate[] = "validate", dialect[] = "--dialect", nxdt[] = "nxdt", option[] = "--format", name[16];
  snprintf(name, sizeof name, "%s", format);
  measured run =
      measure_run((char *[]){nxcfg, validate, dialect, nxdt, option, name, file, NULL}, output, LIMIT_S);
  char *text = read_output(output);
  bool good = check(run.exit_status <= 2, "it does not end as it should") &&
              check(text != NULL, "it prints very much") &&
              check(is_harmless(text), "it prints what a terminal obeys") &&
              check(is_good(text), "it prints what is not of the format");
  if (!good) tap_note("in the format %s", format);
  free(text);
  return good;
}

/* The formats differ in how findings are written; of a large text two are enough. */
static bool try_formats(char *nxcfg, char *file, const char *output) {
  struct stat about;
  bool large = stat(file, &about) == 0 && about.st_size > LARGE_BYTES;
  bool good =
      try_format(nxcfg, file, output, "text", is_any) && try_format(nxcfg, file, output, "json", is_json);
  if (!good || large) return good;
  return try_format(nxcfg, file, output, "sarif", is_json) &&
         try_format(nxcfg, file, output, "gitlab", is_json) &&
         try_format(nxcfg, file, output, "github", is_for_github);
}

/* The finding, within bounds; a run that other work made slow is repeated. */
static bool try_limits(char *nxcfg, char *file, const char *output, const hostile *of, double more) {
  char validate[] = "validate", dialect[] = "--dialect", nxdt[] = "nxdt", option[] = "--format",
       name[] = "short";
  char *command[] = {nxcfg, validate, dialect, nxdt, option, name, file, NULL}, wanted[32];
  double cpu_ms = more * (of->cpu_ms ? of->cpu_ms : USUAL_MS);
  long memory_kib = (long)(more * 1024) * (of->memory_mib ? of->memory_mib : USUAL_MIB);
  measured run = {0};
  bool in_time = false, small = false;
  for (int i = 0; i < N_TRIES && !(in_time && small); i++) {
    double slowness = measure_slowness();
    run = measure_run(command, output, LIMIT_S);
    in_time = run.cpu_ms <= cpu_ms * slowness;
    small = run.memory_kib <= memory_kib;
  }
  char *text = read_output(output);
  snprintf(wanted, sizeof wanted, "[%s]", of->id ? of->id : "");
  bool told = text != NULL && (of->id != NULL ? strstr(text, wanted) != NULL : strstr(text, "[NX10") == NULL);
  bool good = check(run.exit_status == 1 || run.exit_status == 2, "it does not end with a finding") &&
              check(told, "the finding is another") && check(in_time, "it takes long") &&
              check(small, "it takes much memory");
  tap_note("%.1f ms of %.0f, %ld KiB of %ld, exit status %d", run.cpu_ms, cpu_ms, run.memory_kib,
         memory_kib, run.exit_status);
  free(text);
  return good;
}

int main(int argc, char **argv) {
  char folder[] = "/tmp/nxcfg-hostile-XXXXXX", file[64], output[64];
  if (argc != 3 || mkdtemp(folder) == NULL) return EXIT_FAILURE;
  snprintf(file, sizeof file, "%s/file.yaml", folder);
  snprintf(output, sizeof output, "%s/output", folder);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    if (!write_text(file, &texts[i])) return EXIT_FAILURE;
    bool good =
        try_limits(argv[1], file, output, &texts[i], atof(argv[2])) && try_formats(argv[1], file, output);
    tap_report(good, "%s", texts[i].name);
  }
  unlink(file);
  unlink(output);
  rmdir(folder);
  return tap_end();
}
