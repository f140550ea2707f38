/* SPDX-License-Identifier: Apache-2.0 */
/* What validate prints for programs is what they read: SARIF 2.1.0 by the rows of its schema that concern
 * what is written, GitLab's Code Quality, GitHub's commands. TAP. Usage: formats NXCFG FILE... */
#include "tests/tap.h"

#include <ctype.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Runs nxcfg; what it prints, freed by the caller. */
static char *output_of(const char *nxcfg, const char *arguments) {
  enum { MOST_BYTES = 1 << 24 };
  char command[8192], *text = malloc(MOST_BYTES);
  snprintf(command, sizeof command, "'%s' validate %s", nxcfg, arguments);
  FILE *printed = popen(command, "r");
  if (printed == NULL || text == NULL) exit(EXIT_FAILURE);
  size_t n_bytes = fread(text, 1, MOST_BYTES - 1, printed);
  text[n_bytes] = '\0';
  pclose(printed);
  return text;
}

static json_t *json_of(const char *nxcfg, const char *arguments) {
  char *text = output_of(nxcfg, arguments);
  json_t *document = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
  free(text);
  return document;
}

/* -- SARIF
 * ------------------------------------------------------------------------------------------------ */

/* A property of an object of the schema. Kinds: text; uri; a number from `count` (0) or `place` (1) on; words
 * with bars between them; [object: a list of objects, <object: of different ones; {: a map of texts; else an
 * object. */
typedef struct property {
  const char *object, *name;
  bool required;
  const char *kind;
} property;

static const property properties[] = {
    {"log", "$schema", false, "uri"},
    {"log", "version", true, "|2.1.0|"},
    {"log", "runs", true, "[run"},
    {"run", "tool", true, "tool"},
    {"run", "columnKind", false, "|utf16CodeUnits|unicodeCodePoints|"},
    {"run", "results", false, "[result"},
    {"tool", "driver", true, "driver"},
    {"driver", "name", true, "text"},
    {"driver", "version", false, "text"},
    {"driver", "semanticVersion", false, "text"},
    {"driver", "informationUri", false, "uri"},
    {"driver", "rules", false, "<rule"},
    {"rule", "id", true, "text"},
    {"rule", "shortDescription", false, "words"},
    {"rule", "fullDescription", false, "words"},
    {"rule", "help", false, "words"},
    {"words", "text", true, "text"},
    {"result", "ruleId", false, "text"},
    {"result", "ruleIndex", false, "count"},
    {"result", "level", false, "|none|note|warning|error|"},
    {"result", "message", true, "words"},
    {"result", "locations", false, "[location"},
    {"result", "relatedLocations", false, "<location"},
    {"result", "partialFingerprints", false, "{"},
    {"result", "suppressions", false, "<suppression"},
    {"result", "fixes", false, "<fix"},
    {"location", "physicalLocation", false, "physical"},
    {"location", "message", false, "words"},
    {"physical", "artifactLocation", true, "artifact"},
    {"physical", "region", false, "region"},
    {"artifact", "uri", true, "uri"},
    {"region", "startLine", true, "place"},
    {"region", "startColumn", false, "place"},
    {"region", "endLine", false, "place"},
    {"region", "endColumn", false, "place"},
    {"region", "charOffset", false, "count"},
    {"region", "charLength", false, "count"},
    {"suppression", "kind", true, "|inSource|external|"},
    {"suppression", "justification", false, "text"},
    {"fix", "description", false, "words"},
    {"fix", "artifactChanges", true, "<change"},
    {"fix", "properties", false, "bag"},
    {"bag", "safe", true, "truth"},
    {"change", "artifactLocation", true, "artifact"},
    {"change", "replacements", true, "[replacement"},
    {"replacement", "deletedRegion", true, "region"},
    {"replacement", "insertedContent", false, "content"},
    {"content", "text", false, "text"},
};
enum { N_PROPERTIES = sizeof properties / sizeof *properties };

/* RFC 3986: a reference has no other characters, and one without a scheme no colon before its first slash. */
static bool is_uri(const char *text) {
  static const char marks[] = "-._~:/?#[]@!$&'()*+,;=%";
  const char *colon = strchr(text, ':'), *slash = strchr(text, '/');
  bool scheme = strncmp(text, "https://", 8) == 0 || strncmp(text, "file:///", 8) == 0;
  if (colon != NULL && (slash == NULL || colon < slash) && !scheme) return false;
  for (; *text != '\0'; text++) {
    if (!isalnum((unsigned char)*text) && strchr(marks, *text) == NULL) return false;
    if (*text == '%' && !(isxdigit((unsigned char)text[1]) && isxdigit((unsigned char)text[2]))) return false;
  }
  return true;
}

static bool fits(const json_t *value, const char *object, int depth);

static bool are_objects(const json_t *list, const char *object, bool different, int depth) {
  for (size_t i = 0; i < json_array_size(list); i++) {
    if (!fits(json_array_get(list, i), object, depth)) return false;
    for (size_t k = 0; different && k < i; k++)
      if (json_equal(json_array_get(list, k), json_array_get(list, i))) return false;
  }
  bool filled = strcmp(object, "change") != 0 && strcmp(object, "replacement") != 0;
  return json_is_array(list) && (filled || json_array_size(list) > 0);
}

static bool are_texts(json_t *map) {
  const char *name;
  json_t *text;
  json_object_foreach(map, name, text) {
    if (!json_is_string(text)) return false;
  }
  return json_is_object(map);
}

static bool is_kind(json_t *value, const char *kind, int depth) {
  char word[64];
  if (*kind == '[' || *kind == '<') return are_objects(value, kind + 1, *kind == '<', depth);
  if (*kind == '{') return are_texts(value);
  if (*kind == '|') {
    snprintf(word, sizeof word, "|%s|", json_is_string(value) ? json_string_value(value) : "?");
    return strstr(kind, word) != NULL;
  }
  if (strcmp(kind, "truth") == 0) return json_is_boolean(value);
  if (strcmp(kind, "text") == 0) return json_is_string(value);
  if (strcmp(kind, "uri") == 0) return json_is_string(value) && is_uri(json_string_value(value));
  if (strcmp(kind, "count") == 0) return json_is_integer(value) && json_integer_value(value) >= 0;
  if (strcmp(kind, "place") == 0) return json_is_integer(value) && json_integer_value(value) >= 1;
  return fits(value, kind, depth);
}

static const property *find_property(const char *object, const char *name) {
  for (size_t i = 0; i < N_PROPERTIES; i++)
    if (strcmp(properties[i].object, object) == 0 && strcmp(properties[i].name, name) == 0)
      return &properties[i];
  return NULL;
}

static bool fits(const json_t *value, const char *object, int depth) {
  const char *name;
  json_t *inside;
  if (!json_is_object(value) || depth > 16) return false;
  json_object_foreach((json_t *)value, name, inside) {
    const property *row = find_property(object, name);
    if (row != NULL && is_kind(inside, row->kind, depth + 1)) continue;
    tap_note("%s of %s", name, object);
    return false;
  }
  for (size_t i = 0; i < N_PROPERTIES; i++) {
    if (strcmp(properties[i].object, object) != 0 || !properties[i].required) continue;
    if (json_object_get(value, properties[i].name) == NULL) return false;
  }
  return true;
}

/* Every result's rule stands where its index says, and its region ends behind its start. */
static bool agrees(const json_t *run) {
  const json_t *rules = json_object_get(json_object_get(json_object_get(run, "tool"), "driver"), "rules"),
               *results = json_object_get(run, "results");
  for (size_t i = 0; i < json_array_size(results); i++) {
    const json_t *result = json_array_get(results, i);
    size_t index = (size_t)json_integer_value(json_object_get(result, "ruleIndex"));
    if (!json_equal(json_object_get(json_array_get(rules, index), "id"), json_object_get(result, "ruleId")))
      return false;
  }
  return true;
}

static void check_sarif(const char *nxcfg, const char *files) {
  char arguments[6000];
  snprintf(arguments, sizeof arguments, "--dialect nxdt --format sarif %s", files);
  json_t *log = json_of(nxcfg, arguments), *run = json_array_get(json_object_get(log, "runs"), 0);
  const json_t *results = json_object_get(run, "results");
  bool has_suppressed = false, has_fix = false, has_related = false;
  for (size_t i = 0; i < json_array_size(results); i++) {
    const json_t *result = json_array_get(results, i);
    has_suppressed = has_suppressed || json_object_get(result, "suppressions") != NULL;
    has_fix = has_fix || json_object_get(result, "fixes") != NULL;
    has_related = has_related || json_object_get(result, "relatedLocations") != NULL;
  }
  tap_report(fits(log, "log", 0), "sarif: the log is one of SARIF 2.1.0");
  tap_report(agrees(run), "sarif: results point to their rules");
  tap_report(has_suppressed && has_fix && has_related,
        "sarif: suppressions, fixes and related places are among them");
  json_decref(log);
}

/* -- a file of its own
 * ------------------------------------------------------------------------------------ */

static const char text[] =
    "trainer:\n  devices: 2\n  devices: 3\n  gradient_clip_vall: 1\n  nonsense_q: 1\n  nonsense_q2: 1\n";

static void write_file(const char *path, const char *above) {
  FILE *file = fopen(path, "w");
  if (file == NULL) exit(EXIT_FAILURE);
  fprintf(file, "%s%s", above, text);
  fclose(file);
}

static bool is_code_quality(const json_t *list) {
  for (size_t i = 0; i < json_array_size(list); i++) {
    const char *description, *name, *fingerprint, *severity, *path;
    int line;
    json_t *issue = json_array_get(list, i);
    bool good = json_unpack(issue, "{s:s, s:s, s:s, s:s, s:{s:s, s:{s:i}}}", "description", &description,
                            "check_name", &name, "fingerprint", &fingerprint, "severity", &severity,
                            "location", "path", &path, "lines", "begin", &line) == 0;
    if (!good || line < 1 || strlen(fingerprint) != 64 || strncmp(path, "./", 2) == 0 || *path == '/')
      return false;
    if (strcmp(severity, "major") != 0 && strcmp(severity, "minor") != 0) return false;
    for (size_t k = 0; k < i; k++)
      if (json_equal(json_object_get(json_array_get(list, k), "fingerprint"),
                     json_object_get(issue, "fingerprint")))
        return false;
  }
  return json_array_size(list) > 0;
}

static bool same_fingerprints(const json_t *a, const json_t *b) {
  bool same = json_array_size(a) == json_array_size(b);
  for (size_t i = 0; same && i < json_array_size(a); i++)
    same = json_equal(json_object_get(json_array_get(a, i), "fingerprint"),
                      json_object_get(json_array_get(b, i), "fingerprint"));
  return same;
}

static void check_gitlab(const char *nxcfg) {
  static const char arguments[] = "--dialect nxdt --format gitlab moved.yaml";
  write_file("moved.yaml", "");
  json_t *before = json_of(nxcfg, arguments);
  write_file("moved.yaml", "# two lines\n# more\n");
  json_t *after = json_of(nxcfg, arguments);
  tap_report(is_code_quality(before),
        "gitlab: a report of Code Quality, each finding with a fingerprint of its own");
  tap_report(same_fingerprints(before, after) && !json_equal(before, after),
        "gitlab: fingerprints stay when lines move");
  json_decref(before);
  json_decref(after);
}

static void check_github(const char *nxcfg) {
  static const char name[] = "a,b:c%.yaml", wanted[] = " file=a%2Cb%3Ac%25.yaml,line=";
  write_file(name, "");
  char *printed = output_of(nxcfg, "--dialect nxdt --format github 'a,b:c%.yaml'");
  size_t n_lines = 0, n_good = 0;
  for (char *rest, *line = strtok_r(printed, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
    n_lines++;
    n_good +=
        strncmp(line, "::", 2) == 0 && strstr(line, wanted) != NULL && strstr(line, ",title=NX") != NULL;
  }
  tap_report(n_lines > 0 && n_good == n_lines, "github: a file's name with marks of the commands");
  free(printed);
  json_t *log = json_of(nxcfg, "--dialect nxdt --format sarif 'a,b:c%.yaml'");
  tap_report(fits(log, "log", 0), "sarif: the same name");
  json_decref(log);
  unlink(name);
}

int main(int argc, char **argv) {
  char folder[] = "/tmp/nxcfg-formats-XXXXXX", files[4096] = "",
       *nxcfg = argc > 2 ? realpath(argv[1], NULL) : NULL;
  if (nxcfg == NULL) return EXIT_FAILURE;
  for (int i = 2; i < argc; i++) {
    size_t n_bytes = strlen(files);
    snprintf(files + n_bytes, sizeof files - n_bytes, "'%s' ", argv[i]);
  }
  check_sarif(nxcfg, files);
  if (mkdtemp(folder) == NULL || chdir(folder) != 0) return EXIT_FAILURE;
  check_gitlab(nxcfg);
  check_github(nxcfg);
  unlink("moved.yaml");
  if (chdir("/") != 0 || rmdir(folder) != 0) return EXIT_FAILURE;
  free(nxcfg);
  return tap_end();
}
