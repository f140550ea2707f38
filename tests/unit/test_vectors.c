/* SPDX-License-Identifier: Apache-2.0 */
/* Replays what the real OmegaConf gave, $NX_SHARED/vectors/omegaconf.json, in --compat omegaconf. */
#include "compiler/config/write/write.h"
#include "compiler/document/canon.h"
#include "compiler/config/interpolation/interpolate.h"
#include "tests/unit/cmocka_all.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Cases that deviate, each with the reason. */
static const struct {
  const char *id, *reason;
} deviations[] = {
    {"yaml.str/\"\\ud83d\\ude00\"", "libyaml refuses surrogate escapes, as OmegaConf 2.4 does"},
    {"dotlist/noeq", "an assignment without = is refused: OmegaConf makes the key null"},
    {"dotlist/spaces", "blanks around = are refused: OmegaConf makes a key that ends in a blank"},
    {"dotlist/list_idx", "--set changes items of lists, which OmegaConf's dotlist cannot"},
    {"dotlist/list_idx_br", "--set changes items of lists, which OmegaConf's dotlist cannot"},
    {"to_yaml/multiline", "texts of several lines stand in double quotes, not single: the value is the same"},
    {"missing/ref_inplace", "a reference to ??? is an error, as in OmegaConf 2.4; 2.2 silently makes it ???"},
};

/* Diagnostic ids and the neutral code that the vectors use for them. Several ids may stand for one code. */
static const struct {
  const char *id, *code;
} codes[] = {
    {"NX1001", "yaml.syntax"},
    {"NX1002", "yaml.bad_character"},
    {"NX1005", "yaml.duplicate_key"},
    {"NX1008", "yaml.syntax"},
    {"NX1009", "yaml.multiple_documents"},
    {"NX1010", "yaml.undefined_alias"},
    {"NX1011", "yaml.recursive_alias"},
    {"NX1012", "yaml.duplicate_anchor"},
    {"NX1013", "yaml.bad_merge"},
    {"NX1014", "yaml.unknown_tag"},
    {"NX1015", "config.unsupported_value"},
    {"NX1016", "yaml.key_not_scalar"},
    {"NX1017", "config.bad_key_type"},
    {"NX1018", "config.root_not_container"},
    {"NX1019", "config.merge_type"},
    {"NX1201", "interp.syntax"},
    {"NX1202", "interp.key_not_found"},
    {"NX1203", "interp.above_root"},
    {"NX1204", "interp.not_a_container"},
    {"NX1205", "interp.index_not_int"},
    {"NX1206", "interp.cycle"},
    {"NX1207", "interp.parent"},
    {"NX1208", "interp.to_missing"},
    {"NX1209", "interp.unknown_resolver"},
    {"NX1210", "interp.resolver_failed"},
    {"NX1211", "interp.key_not_string"},
    {"NX1212", "interp.resolver_name_not_string"},
    {"NX1214", "config.missing_value"},
    {"NX1215", "config.key_not_found"},
    {"NX1216", "config.index_out_of_range"},
    {"NX1217", "config.not_a_container"},
    {"NX1224", "interp.resolver_failed"},
    {"NX1226", "config.index_not_int"},
};

static const char *code_of(const char *id) {
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
    if (strcmp(codes[i].id, id) == 0) return codes[i].code;
  return id;
}

static const char *text_of(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

static bool has_tag(const json_t *one, const char *tag) {
  size_t i;
  json_t *item;
  json_array_foreach(json_object_get(one, "tags"), i, item) {
    if (strcmp(json_string_value(item), tag) == 0) return true;
  }
  return false;
}

static nxc_document *read_case(nxc_arena *arena, const json_t *one, nxc_sink *sink) {
  const nxc_reading reading = {.omegaconf = true};
  const json_t *yaml = json_object_get(one, "yaml");
  const nxc_source *source =
      nxc_source_new(arena, "case.yaml", json_string_value(yaml), json_string_length(yaml));
  nxc_document *document = nxc_document_read(arena, source, &reading, sink);
  size_t i;
  json_t *item;
  json_array_foreach(json_object_get(one, "overlays"), i, item) {
    const char *text = json_string_value(item);
    source = nxc_source_new(arena, "overlay.yaml", text, strlen(text));
    nxc_document_layer(document, nxc_document_read(arena, source, &reading, sink), sink);
  }
  json_array_foreach(json_object_get(one, "dotlist"), i, item) {
    nxc_document_set(document, json_string_value(item), "--set", &reading, sink);
  }
  return document;
}

static int compare_texts(const void *a, const void *b) {
  return strcmp(((const nxc_value *)a)->text, ((const nxc_value *)b)->text);
}

static void collect_missing(nxc_arena *arena, const nxc_node *node, nxc_value *list) {
  const nxc_node *final = nxc_node_final(node);
  for (size_t i = 0; i < final->n_children; i++) collect_missing(arena, final->children[i], list);
  if (final->kind != NXC_NODE_SCALAR || final->value.kind != NXC_MISSING) return;
  nxc_value *items = nxc_arena_grow(arena, (void *)list->items, list->n_items, sizeof *items);
  const char *path = nxc_node_path(arena, node);
  items[list->n_items++] = (nxc_value){.kind = NXC_STRING, .text = path, .n_bytes = strlen(path)};
  list->items = items;
}

/* What resolve and convert write for OmegaConf's dialects, as a string. */
static const nxc_value *as_yaml(nxc_arena *arena, const nxc_node *root) {
  nxc_buffer text = {.arena = arena};
  nxc_value *written = nxc_arena_alloc(arena, sizeof *written);
  nxc_write_yaml_omegaconf(&text, nxc_node_value(arena, root));
  *written = (nxc_value){.kind = NXC_STRING, .text = text.bytes, .n_bytes = text.n_bytes};
  return written;
}

/* Runs the case's operation. NULL where it found an error. */
static const nxc_value *run_case(nxc_arena *arena, const json_t *one, nxc_sink *sink) {
  static const nxc_value nothing = {.kind = NXC_NULL};
  const nxc_resolving resolving = {.omegaconf = true, .probes = true};
  const char *op = text_of(one, "op");
  nxc_document *document = read_case(arena, one, sink);
  if (!document->complete) return NULL;
  nxc_node *found = document->root;
  if (strcmp(op, "get") == 0) {
    const char *steps[16];
    size_t n = 0, i;
    json_t *item;
    json_array_foreach(json_object_get(one, "path"), i, item) {
      steps[n++] = json_is_string(item) ? json_string_value(item)
                                        : nxc_arena_printf(arena, "%d", (int)json_integer_value(item));
    }
    nxc_resolve_at(document, steps, n, &resolving, sink, &found);
  } else if (strncmp(op, "select", 6) == 0) {
    bool ok = nxc_resolve_select(document, text_of(one, "key"), &resolving, sink, &found).ok;
    if (strcmp(op, "select_strict") == 0) nxc_report_missing(arena, document->root, sink);
    if (ok && found == NULL) return &nothing;
  } else if (strcmp(op, "load") == 0) {
    /* Grammar errors count on loading: resolve a copy of the text, and show this one unresolved. */
    nxc_document *other = read_case(arena, one, sink);
    nxc_node *root;
    const char *no_steps[] = {NULL};
    nxc_sink *quiet = nxc_sink_new(arena);
    nxc_resolve_at(other, no_steps, 0, &resolving, quiet, &root);
    for (size_t i = 0; i < nxc_sink_n_findings(quiet); i++)
      if (strcmp(nxc_sink_finding(quiet, i)->id, "NX1201") == 0)
        nxc_sink_report(sink, nxc_sink_finding(quiet, i));
  } else if (strcmp(op, "to_yaml") == 0) {
    if (json_is_true(json_object_get(one, "resolve_first"))) nxc_resolve(document, &resolving, sink);
    return as_yaml(arena, document->root);
  } else {
    nxc_resolve(document, &resolving, sink);
    if (strcmp(op, "resolve_strict") == 0) nxc_report_missing(arena, document->root, sink);
    if (strcmp(op, "missing_keys") == 0) {
      nxc_value *list = nxc_arena_alloc(arena, sizeof *list);
      list->kind = NXC_LIST;
      collect_missing(arena, document->root, list);
      qsort((void *)list->items, list->n_items, sizeof *list->items, compare_texts);
      return list;
    }
  }
  return found && nxc_sink_count(sink, NXC_SEVERITY_ERROR) == 0 ? nxc_node_value(arena, found) : NULL;
}

/* What the case gave, as one line: the canon text, or ! and the codes of the errors. */
static const char *outcome(nxc_arena *arena, const json_t *one, bool *has_code, const char *code) {
  nxc_sink *sink = nxc_sink_new(arena);
  const nxc_value *value = run_case(arena, one, sink);
  nxc_buffer text = {.arena = arena};
  *has_code = false;
  size_t n = nxc_sink_n_findings(sink), n_errors = nxc_sink_count(sink, NXC_SEVERITY_ERROR);
  if (value && n_errors == 0) nxc_write_canon(&text, value);
  if (n_errors) nxc_buffer_puts(&text, "!");
  for (size_t i = 0; i < n; i++) {
    const nxc_finding *finding = nxc_sink_finding(sink, i);
    nxc_buffer_puts(&text, " ");
    nxc_buffer_puts(&text, finding->id);
    nxc_buffer_puts(&text, " ");
    nxc_buffer_puts(&text, finding->message);
    *has_code = *has_code || strcmp(code_of(finding->id), code) == 0;
    if (finding->at.source == NULL || finding->at.line == 0) nxc_buffer_puts(&text, " WITHOUT A PLACE");
  }
  return text.bytes ? text.bytes : "nothing";
}

static bool case_passes(nxc_arena *arena, const json_t *one) {
  const json_t *expect = json_object_get(one, "expect");
  bool has_code, ok = json_is_true(json_object_get(expect, "ok"));
  const char *code = text_of(expect, "code"), *canon = text_of(expect, "canon");
  const char *given = outcome(arena, one, &has_code, code);
  if (strstr(given, "WITHOUT A PLACE") == NULL) {
    if (ok && strcmp(given, canon) == 0) return true;
    if (!ok && given[0] == '!' && (has_code || has_tag(one, "python-internal-error"))) return true;
  }
  nxc_buffer yaml = {.arena = arena};
  nxc_write_json_string(&yaml, text_of(one, "yaml"), strlen(text_of(one, "yaml")), true);
  print_message("# %s: %s\n#   expected %s\n#   given    %s\n", text_of(one, "id"), yaml.bytes,
                ok ? canon : code, given);
  return false;
}

static const char *deviation(const char *id) {
  for (size_t i = 0; i < sizeof deviations / sizeof *deviations; i++)
    if (strcmp(deviations[i].id, id) == 0) return deviations[i].reason;
  return NULL;
}

static void set_environment(const json_t *one, bool set) {
  const char *name;
  json_t *value;
  json_object_foreach(json_object_get(one, "env"), name, value) {
    if (set) setenv(name, json_string_value(value), 1);
    else unsetenv(name);
  }
}

static void replays_vectors(void **state) {
  (void)state;
  const char *shared = getenv("NX_SHARED");
  if (shared == NULL) {
    skip_test(__func__, "NX_SHARED names no folder with vectors");
    return;
  }
  char path[4096];
  snprintf(path, sizeof path, "%s/vectors/omegaconf.json", shared);
  json_t *file = json_load_file(path, JSON_ALLOW_NUL, NULL), *one;
  assert_non_null(file);
  size_t i, n_run = 0, n_failed = 0, n_deviating = 0;
  json_array_foreach(json_object_get(file, "cases"), i, one) {
    nxc_arena *arena = nxc_arena_new();
    set_environment(one, true);
    bool passes = case_passes(arena, one);
    set_environment(one, false);
    const char *reason = deviation(text_of(one, "id"));
    if (reason) print_message("# deviates: %s\n", reason);
    if (reason && passes) n_failed++; /* a deviation that no longer deviates must leave the table */
    n_deviating += reason != NULL;
    n_failed += !passes && reason == NULL;
    n_run++;
    nxc_arena_free(arena);
  }
  json_decref(file);
  print_message("# %zu cases, %zu deviate as documented, %zu fail\n", n_run, n_deviating, n_failed);
  assert_true(n_run > 700);
  assert_int_equal(n_failed, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(replays_vectors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
