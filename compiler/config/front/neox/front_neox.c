/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/config/front/neox/front_neox.h"

#include "compiler/config/front/lenient.h"
#include "compiler/document/nodes.h"
#include "compiler/document/scalar.h"
#include "compiler/settings/programs.h"
#include "compiler/document/repair.h"

#include <ctype.h>
#include <string.h>

/* The last days before its code forgot a key or a word, or changed a default that trains otherwise. */
const char *const nxc_neox_versions[] = {
    "today",      "2025-05-08", "2025-02-17", "2024-09-28", "2024-09-05", "2024-08-26", "2024-05-03",
    "2024-02-04", "2023-12-25", "2023-09-17", "2023-05-18", "2023-05-01", "2023-03-25", "2022-12-13",
    "2022-12-04", "2021-10-19", "2021-08-29", "2021-05-06", "2021-05-05", "2021-05-01", NULL};

/* -- keys ------------------------------------------------------------------------------------------------ */

static const char *fold(nxc_arena *arena, const char *key, size_t n_bytes) {
  char *folded = nxc_arena_strndup(arena, key, n_bytes);
  for (char *c = folded; (c = strchr(c, '-')) != NULL;) *c = '_';
  return folded;
}

static bool report_twice(nxc_sink *sink, nxc_arena *arena, const char *id, const nxc_node *first,
                         const nxc_node *second, const char *what, const char *fix) {
  const nxc_remark earlier = {first->key_at, "first given here"};
  nxc_sink_report(sink, &(nxc_finding){.id = id,
                                       .severity = NXC_SEVERITY_ERROR,
                                       .message = nxc_arena_printf(arena, "%s %s", second->key, what),
                                       .at = second->key_at,
                                       .fix = fix,
                                       .remarks = &earlier,
                                       .n_remarks = 1});
  return false;
}

/* Keys of the whole document by their folded names; `num-layers` and `num_layers` in one file are one key. */
static bool fold_keys(nxc_arena *arena, nxc_node *root, nxc_sink *sink) {
  bool good = true;
  nxc_node **children = root->children;
  size_t n_children = root->n_children;
  root->children = NULL;
  root->n_children = 0;
  root->names = NULL;
  for (size_t i = 0; i < n_children; i++) {
    nxc_node *child = children[i];
    if (child->key_value.kind != NXC_STRING) {
      nxc_node_append(arena, root, child);
      continue;
    }
    const char *key = fold(arena, child->key, strlen(child->key));
    nxc_value value = {.kind = NXC_STRING, .text = key, .n_bytes = strlen(key)};
    nxc_node *earlier = nxc_node_find_key(arena, root, &value);
    if (earlier != NULL) {
      good = report_twice(sink, arena, "NX6902", earlier, child,
                          "is given twice, with - and with _, which are one key", "remove one of them");
      continue;
    }
    nxc_node_set_key(child, &value, key, child->key_at);
    nxc_node_append(arena, root, child);
  }
  return good;
}

/* -- files ----------------------------------------------------------------------------------------------- */

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static nxc_document *read_one(const nxc_front_texts *texts, const nxc_source *source) {
  const nxc_reading reading = {.omegaconf = texts->omegaconf, .pyyaml = true};
  nxc_document *document = nxc_document_read(texts->arena, source, &reading, texts->sink);
  if (document->root->kind != NXC_NODE_MAP) {
    nxc_report(texts->sink, "NX1314", NXC_SEVERITY_ERROR, document->root->at,
               "write KEY: VALUE, without a dash in front", "a configuration is a map of keys, not a list");
    document->complete = false;
    return document;
  }
  document->complete = fold_keys(texts->arena, document->root, texts->sink) && document->complete;
  if (document->complete && document->root->n_children == 0) {
    nxc_report(texts->sink, "NX6904", NXC_SEVERITY_ERROR, (nxc_span){source, 1, 1, 1},
               "leave the file out, or write options into it",
               "%s holds no options, which the real loader cannot read", source->name);
    document->complete = false;
  }
  return document;
}

/* Whether a later file's key passes the real search for keys given twice, which compares them as they are
 * written with what earlier files gave, written with _. */
static bool passes_unseen(const nxc_node *key) {
  size_t begin = nxc_span_offset(key->key_at, false), end = nxc_span_offset(key->key_at, true);
  return memchr(key->key_at.source->text + begin, '-', end - begin) != NULL;
}

/* No two files may give one key, not even inside one section. Written with - the later one counts, which is
 * no mistake where both say the same. */
static bool add_file(nxc_arena *arena, nxc_node *base, const nxc_node *over, nxc_sink *sink) {
  bool good = true;
  for (size_t i = 0; i < over->n_children; i++) {
    nxc_node *fresh = over->children[i];
    nxc_node *earlier = nxc_node_find_key(arena, base, &fresh->key_value);
    bool scalars = earlier != NULL && earlier->kind == NXC_NODE_SCALAR && fresh->kind == NXC_NODE_SCALAR;
    if (scalars && passes_unseen(fresh) && nxc_value_equal(&earlier->value, &fresh->value)) continue;
    if (earlier == NULL) {
      nxc_node_append(arena, base, fresh);
      continue;
    }
    const char *what = nxc_arena_printf(arena, "is given in two files, %s and %s",
                                        earlier->key_at.source->name, fresh->key_at.source->name);
    good = report_twice(sink, arena, "NX6901", earlier, fresh, what,
                        "keep it in one of them; files that are read together may not share a key");
  }
  return good;
}

/* The real system looks for NAME.yml unless the name ends in .yml or .json. */
static void check_ending(const nxc_source *source, nxc_sink *sink) {
  const char *name = source ? base_name(source->name) : "", *end = strrchr(name, '.');
  if (end == NULL || strcmp(end, ".yaml") != 0) return;
  nxc_report(sink, "NX6910", NXC_SEVERITY_WARNING, (nxc_span){source, 1, 1, 1},
             "give the file a name that ends in .yml",
             "GPT-NeoX puts .yml behind a name that ends in neither .yml nor .json, and does not find %s.yml",
             name);
}

static bool check_name(const nxc_front_texts *texts, size_t which) {
  const char *name = base_name(texts->layers[which]->name);
  bool taken = texts->first != NULL && strcmp(base_name(texts->first->name), name) == 0;
  for (size_t i = 0; i < which; i++) taken = taken || strcmp(base_name(texts->layers[i]->name), name) == 0;
  if (!taken) return true;
  nxc_report(texts->sink, "NX6903", NXC_SEVERITY_ERROR, (nxc_span){texts->layers[which], 1, 1, 1},
             "rename one of them", "two files are called %s; the real loader tells files by that name alone",
             name);
  return false;
}

/* --set num-layers=3 is --set num_layers=3. */
static const char *fold_assignment(nxc_arena *arena, const char *assignment) {
  size_t n_key = strcspn(assignment, ".=[");
  return nxc_arena_printf(arena, "%s%s", fold(arena, assignment, n_key), assignment + n_key);
}

/* A file that holds nothing but what one program reads, as that of text generation: no training. */
static void find_program(nxc_document *document) {
  nxc_node *root = document->root;
  const char **keys = nxc_arena_array(document->arena, root->n_children + 1, sizeof *keys);
  for (size_t i = 0; i < root->n_children; i++) keys[i] = root->children[i]->key;
  document->program = nxc_program_row_with("neox", keys, root->n_children);
  if (document->program == NULL) return;
  document->program_name = base_name(root->at.source ? root->at.source->name : "");
  document->program_at = root->at;
}

nxc_document *nxc_neox_read(const nxc_front_texts *texts) {
  const nxc_reading reading = {.omegaconf = texts->omegaconf, .pyyaml = true};
  nxc_document *document = read_one(texts, texts->first);
  check_ending(texts->first, texts->sink);
  for (size_t i = 0; i < texts->n_layers; i++) {
    nxc_document *layer = read_one(texts, texts->layers[i]);
    check_ending(texts->layers[i], texts->sink);
    bool good = layer->complete && check_name(texts, i);
    if (document->root->kind == NXC_NODE_MAP && layer->root->kind == NXC_NODE_MAP)
      good = add_file(texts->arena, document->root, layer->root, texts->sink) && good;
    document->complete = document->complete && good;
  }
  for (size_t i = 0; i < texts->n_sets; i++) {
    const char *assignment = fold_assignment(texts->arena, texts->sets[i]);
    document->complete =
        nxc_document_set(document, assignment, "--set", &reading, texts->sink) && document->complete;
  }
  if (document->root->kind == NXC_NODE_MAP) find_program(document);
  return document;
}

/* -- telling the dialect --------------------------------------------------------------------------------- */

static const char *skip_blank(const char *at) {
  for (;;) {
    while (isspace((unsigned char)*at)) at++;
    if (*at != '#') return at;
    while (*at != '\0' && *at != '\n') at++;
  }
}

/* Behind the quoted text that starts at `at`. */
static const char *skip_quoted(const char *at) {
  char quote = *at++;
  while (*at != '\0' && *at != quote) at += *at == '\\' && quote == '"' && at[1] != '\0' ? 2 : 1;
  return *at ? at + 1 : at;
}

/* Whether a key, folded, is an option of this dialect that names itself by two words or more. */
static bool is_telling(const char *key, size_t n_bytes) {
  char name[64];
  if (n_bytes == 0 || n_bytes >= sizeof name) return false;
  bool two_words = false;
  for (size_t i = 0; i < n_bytes; i++) {
    name[i] = key[i];
    if (key[i] == '-') name[i] = '_';
    two_words = two_words || name[i] == '_';
  }
  name[n_bytes] = '\0';
  const nxc_dialect *dialect = nxc_dialect_find("neox");
  return two_words && dialect != NULL && nxc_option_find(dialect, name) != NULL;
}

/* In block style a key at a line's beginning that no other system has: most are DeepSpeed's too. */
static bool has_own_key(const nxc_source *text) {
  static const char *const own[] = {"pipe_parallel_size", "pipe-parallel-size", "pos_emb", "pos-emb", NULL};
  for (uint32_t line = 1; line <= text->n_lines; line++)
    if (nxc_source_line_has_key(text, line, own)) return true;
  return false;
}

static bool is_name(const char *key, size_t n_bytes, const char *name) {
  return n_bytes == strlen(name) && memcmp(key, name, n_bytes) == 0;
}

/* The root is a flow mapping, and a key of it is an option; or has_own_key. A config.json of Hugging Face,
 * which shares names with it, has a model_type, and mostly another word for num_layers. */
bool nxc_neox_claims(const nxc_source *text) {
  const char *at = skip_blank(text->text);
  if (strncmp(at, "\xEF\xBB\xBF", 3) == 0) at = skip_blank(at + 3);
  if (*at != '{') return has_own_key(text);
  int depth = 0;
  bool told = false, typed = false, layered = false;
  for (; *(at = skip_blank(at)) != '\0';) {
    if (*at == '"' || *at == '\'') {
      const char *start = at + 1;
      at = skip_quoted(at);
      bool key = depth == 1 && *skip_blank(at) == ':';
      size_t n = (size_t)(at - start) - 1;
      typed = typed || (key && is_name(start, n, "model_type"));
      layered = layered || (key && (is_name(start, n, "num_layers") || is_name(start, n, "num-layers")));
      told = told || (key && is_telling(start, n));
      continue;
    }
    depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
    at++;
  }
  return told && (layered || !typed);
}

/* -- what follows from options --------------------------------------------------------------------------- */

static nxc_misfit_value *misfit_at(const nxc_binding *binding, const nxc_node *node) {
  for (size_t i = 0; i < binding->n_misfits; i++) {
    nxc_span at = binding->misfits[i].at;
    if (at.source == node->at.source && at.line == node->at.line && at.column == node->at.column)
      return &binding->misfits[i];
  }
  return NULL;
}

/* Plain texts that look like numbers or dates: 1e-5 stays text, a date does not, and nobody means either. */
static void note_scalars(nxc_binding *binding, const nxc_node *node) {
  for (size_t i = 0; i < node->n_children; i++) note_scalars(binding, node->children[i]);
  bool plain = node->kind == NXC_NODE_SCALAR && node->style == NXC_STYLE_PLAIN;
  if (!plain || node->value.kind != NXC_STRING) return;
  const char *meant = node->raw ? nxc_scalar_pyyaml_float(binding->arena, node->raw) : NULL;
  if (node->raw && nxc_scalar_is_date(node->raw))
    nxc_report(binding->sink, "NX6909", NXC_SEVERITY_ERROR, node->at, "quote it",
               "%s is read as a date, which no option takes", node->raw);
  if (meant == NULL) return;
  nxc_misfit_value *misfit = misfit_at(binding, node);
  const char *fix = nxc_arena_printf(binding->arena, "write %s", meant);
  static const char why[] = "with an exponent only a point, and a sign in the exponent, make a number here";
  if (misfit == NULL) {
    nxc_report_repair(binding->sink, "NX1105", NXC_SEVERITY_WARNING, node->at, fix,
                      nxc_repair_value(binding->arena, node, meant, false),
                      "%s looks like a number but is read as text", node->raw);
    return;
  }
  bool whole = misfit->bound->row->domain.type == NXC_TYPE_INT; /* for which no exponent is right */
  if (whole && misfit->verdict.written != NULL) return;
  if (whole) {
    misfit->verdict.fix = "write a whole number";
    return;
  }
  misfit->verdict.fix = nxc_arena_printf(binding->arena, "%s: %s", fix, why);
  misfit->verdict.written = meant;
  misfit->verdict.certain = true;
}

/* Keys that the real system gives DeepSpeed itself: over these deepspeed_extra_args would win silently. */
static bool is_given_anyway(const nxc_binding *binding, const char *key) {
  static const char *const derived[] = {
      "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps",
      "gradient_clipping", "optimizer", "scheduler", "fp16", "bf16", "zero_optimization"};
  for (size_t i = 0; i < sizeof derived / sizeof *derived; i++)
    if (strcmp(derived[i], key) == 0) return true;
  const nxc_bound *bound = nxc_binding_find(binding, key);
  return bound != NULL && bound->given;
}

static void report_extra(nxc_binding *binding, const nxc_node *extra) {
  nxc_arena *arena = binding->arena;
  const nxc_bound *bound = nxc_binding_find(binding, extra->key);
  bool given = bound != NULL && bound->given;
  const nxc_remark also = {
      given ? bound->at : (nxc_span){0},
      nxc_arena_printf(arena, "%s is %s", extra->key, given ? "given here" : "derived otherwise")};
  nxc_finding finding = {.id = "NX6908", .severity = NXC_SEVERITY_ERROR, .at = nxc_node_span(extra)};
  finding.message = nxc_arena_printf(
      arena, "deepspeed_extra_args.%s would silently replace what the rest counts with", extra->key);
  finding.fix = nxc_arena_printf(arena, "give %s at the top level", extra->key);
  finding.remarks = &also;
  finding.n_remarks = 1;
  nxc_sink_report(binding->sink, &finding);
}

/* Whether it says again what its option says: then nothing is replaced. */
static bool repeats(const nxc_binding *binding, const nxc_node *extra) {
  const nxc_bound *bound = nxc_binding_find(binding, extra->key);
  return bound != NULL && bound->given && bound->value != NULL && extra->kind == NXC_NODE_SCALAR &&
         nxc_value_equal(bound->value, &extra->value);
}

static void check_extra_arguments(nxc_binding *binding) {
  const nxc_node *extra = nxc_node_child(binding->document->root, "deepspeed_extra_args");
  for (size_t i = 0; extra != NULL && extra->kind == NXC_NODE_MAP && i < extra->n_children; i++) {
    const nxc_node *key = extra->children[i];
    if (is_given_anyway(binding, key->key) && !repeats(binding, key)) report_extra(binding, key);
  }
}

/* In a section, which DeepSpeed reads, 0 and 1 say false and true; GPT-NeoX refuses them for options of its
 * own. */
static bool take_bit_of_section(nxc_arena *arena, const nxc_misfit_value *misfit, nxc_value *taken) {
  (void)arena;
  return strchr(misfit->bound->row->name, '.') != NULL && nxc_take_bit(misfit, taken);
}

/* Under autotuning "auto" is of every type, and options of ZeRO may be lists: DeepSpeed tries values there.
 * What it will be is unknown here. */
static void accept_auto(nxc_binding *binding) {
  const nxc_bound *tuning = nxc_binding_find(binding, "autotuning");
  if (!tuning->given || tuning->node->kind != NXC_NODE_MAP) return;
  size_t n_kept = 0;
  for (size_t i = 0; i < binding->n_misfits; i++) {
    const nxc_value *value = binding->misfits[i].value;
    bool tried = strncmp(binding->misfits[i].name, "zero_optimization.", 18) == 0;
    tried = tried || (value->kind == NXC_STRING && strcmp(value->text, "auto") == 0);
    if (!tried) binding->misfits[n_kept++] = binding->misfits[i];
  }
  binding->n_misfits = n_kept;
}

void nxc_neox_prepare(nxc_binding *binding) {
  note_scalars(binding, binding->document->root);
  accept_auto(binding);
  nxc_take_misfits(binding, take_bit_of_section);
  nxc_note_null_texts(binding);
  nxc_neox_count_gpus(binding);
  nxc_neox_expand_attention(binding);
  nxc_neox_check_partition(binding);
  check_extra_arguments(binding);
  nxc_neox_judge_as_part(binding);
}
