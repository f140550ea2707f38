/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the tables of estimates: schema/systems/NAME.yaml, schema/models.yaml and schema/tokenizers.yaml as
 * constant C. Arguments are the files; the name tells the kind.
 *
 * Every expression is parsed and its names are looked up in sizes.def, so that a system that would fail at
 * run time fails to build. */
#include "compiler/expression/expression.h"
#include "compiler/gen/literal.h"
#include "compiler/gen/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const sizes[] = {
#define SIZE(name, meaning) #name,
#include "compiler/estimate/sizes.def"
#undef SIZE
};

static const char *const keeps[] = {"stage", "layer",     "dense",   "mixture", "input",
                                    "batch", "transient", "growing", NULL};
static const char *const parts[] = {"parameters", "gradients", "optimizer", "activations", "buffers", NULL};

static unsigned n_complaints;

static void complain(const gen_file *file, const gen_system *row, const char *what, const char *text) {
  fprintf(stderr, "%s: %s: %s: %s\n", file->path,
          row->keeps  ? row->keeps
          : row->does ? row->does
                      : "a row",
          what, text ? text : "");
  n_complaints++;
}

static bool is_size(const char *name) {
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    if (strcmp(sizes[i], name) == 0) return true;
  return false;
}

static void check_expression(nxc_arena *arena, const gen_file *file, const gen_system *row,
                             const char *text) {
  const char *error;
  size_t error_at;
  if (text == NULL) return;
  const nxc_expression *expression = nxc_expression_parse(arena, text, &error, &error_at);
  if (expression == NULL) complain(file, row, error, text);
  for (size_t i = 0; expression != NULL && i < expression->n_names; i++)
    if (!is_size(expression->names[i].path))
      complain(file, row, "there is no size", expression->names[i].path);
}

/* The place of a word in a list that ends with NULL; complains where it is not there. */
static int find(const char *const *words, const char *word, const gen_file *file, const gen_system *row) {
  for (int i = 0; words[i] != NULL; i++)
    if (word != NULL && strcmp(words[i], word) == 0) return i;
  complain(file, row, "no such word", word);
  return 0;
}

static void write_row(nxc_arena *arena, const gen_file *file, const gen_system *row) {
  bool keeps_bytes = row->keeps != NULL && row->bytes != NULL,
       works = row->does != NULL && row->value != NULL;
  if (keeps_bytes == works) complain(file, row, "a row keeps bytes, or does something of a value", NULL);
  check_expression(arena, file, row, row->bytes);
  check_expression(arena, file, row, row->when);
  check_expression(arena, file, row, row->value);
  fputs("  {.name = ", stdout);
  gen_write_text(row->keeps ? row->keeps : row->does);
  if (row->keeps)
    printf(", .keep = %d, .part = %d", find(keeps, row->of, file, row), find(parts, row->part, file, row));
  gen_write_field("bytes", row->bytes);
  gen_write_field("when", row->when);
  gen_write_field("module", row->module);
  gen_write_field("input_of", row->input_of);
  gen_write_field("trait", row->does);
  gen_write_field("value", row->value);
  puts("},"); /* what a row's doc and source say is for who reads the file */
}

static void write_rows(nxc_arena *arena, const gen_file *file) {
  printf("static const nxc_system_row rows_of_%s[] = {\n", file->name);
  for (unsigned i = 0; i < file->n_rows; i++) write_row(arena, file, (const gen_system *)file->rows + i);
  puts("};\n");
}

/* ---- models and tokenizers ---- */

static void pair(const char *key, const char *value, bool quoted) {
  if (value == NULL) return;
  printf(quoted ? ", \\\"%s\\\": \\\"%s\\\"" : ", \\\"%s\\\": %s", key, value);
}

/* Of so many layers the last one attends over the whole sequence. */
static void write_layer_types(const char *every) {
  if (every == NULL) return;
  fputs(", \\\"layer_types\\\": [", stdout);
  for (int i = 1; i < atoi(every); i++) fputs("\\\"sliding_attention\\\", ", stdout);
  fputs("\\\"full_attention\\\"]", stdout);
}

static const char *experts_key(const char *family) {
  static const char *const others[][2] = {{"mixtral", "num_local_experts"},
                                          {"gpt_oss", "num_local_experts"},
                                          {"glm4_moe", "n_routed_experts"}};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (strcmp(others[i][0], family) == 0) return others[i][1];
  return "num_experts";
}

/* What its config.json would say of its shape. */
static void write_config(const gen_model *row) {
  printf("\"{\\\"model_type\\\": \\\"%s\\\"", row->family);
  pair("num_hidden_layers", row->layers, false);
  pair("hidden_size", row->hidden, false);
  pair("intermediate_size", row->ffn, false);
  pair("num_attention_heads", row->heads, false);
  pair("num_key_value_heads", row->kv_heads, false);
  pair("head_dim", row->head_dim, false);
  pair("vocab_size", row->vocab, false);
  pair("max_position_embeddings", row->max_positions, false);
  pair("rope_theta", row->rope_theta, false);
  pair("tie_word_embeddings", row->tied, false);
  pair(experts_key(row->family), row->experts, false);
  pair("num_experts_per_tok", row->top_k, false);
  pair("moe_intermediate_size", row->expert_ffn, false);
  pair("shared_expert_intermediate_size", row->shared_ffn, false);
  pair("first_k_dense_replace", row->first_dense, false);
  pair("sliding_window", row->sliding_window, false);
  write_layer_types(row->full_every);
  fputs("}\"", stdout);
}

static const char *number(const char *text) {
  return text ? text : "0";
}

static void write_models(const gen_file *file) {
  puts("const nxc_known_model nxc_known_models[] = {");
  for (unsigned i = 0; i < file->n_rows; i++) {
    const gen_model *row = (const gen_model *)file->rows + i;
    printf("  {\"%s\", \"%s\", %s, %s, %s, ", row->model, row->family, number(row->layers),
           number(row->hidden), number(row->vocab));
    write_config(row);
    puts("},");
  }
  puts("};\nconst size_t nxc_n_known_models = sizeof nxc_known_models / sizeof *nxc_known_models;\n");
}

static void write_tokenizers(const gen_file *file) {
  puts("const nxc_known_tokenizer nxc_known_tokenizers[] = {");
  for (unsigned i = 0; i < file->n_rows; i++) {
    const gen_tokenizer *row = (const gen_tokenizer *)file->rows + i;
    printf("  {\"%s\", %s, %s, \"%s\"},\n", row->tokenizer, row->vocab, row->usual ? "true" : "false",
           row->source);
  }
  puts("};\nconst size_t nxc_n_known_tokenizers = sizeof nxc_known_tokenizers / sizeof "
       "*nxc_known_tokenizers;\n");
}

static gen_kind kind_of(const char *path) {
  if (strstr(path, "models.yaml") != NULL) return GEN_MODELS;
  return strstr(path, "tokenizers.yaml") != NULL ? GEN_TOKENIZERS : GEN_SYSTEM;
}

int main(int argc, char **argv) {
  nxc_arena *arena = nxc_arena_new();
  gen_file *files = nxc_arena_array(arena, (size_t)argc, sizeof *files);
  puts("/* SPDX-License-Identifier: Apache-2.0 */");
  puts("/* Made from schema by compiler/gen; do not edit. */");
  puts("#include \"compiler/estimate/known.h\"\n#include \"compiler/estimate/system.h\"\n");
  for (int i = 1; i < argc; i++) {
    gen_kind kind = kind_of(argv[i]);
    if (!gen_file_read(&files[i], kind, argv[i])) return EXIT_FAILURE;
    if (kind == GEN_SYSTEM) write_rows(arena, &files[i]);
    if (kind == GEN_MODELS) write_models(&files[i]);
    if (kind == GEN_TOKENIZERS) write_tokenizers(&files[i]);
  }
  puts("const nxc_system_table nxc_system_tables[] = {");
  for (int i = 1; i < argc; i++)
    if (kind_of(argv[i]) == GEN_SYSTEM)
      printf("  {\"%s\", rows_of_%s, sizeof rows_of_%s / sizeof *rows_of_%s},\n", files[i].name,
             files[i].name, files[i].name, files[i].name);
  puts("};\nconst size_t nxc_n_system_tables = sizeof nxc_system_tables / sizeof *nxc_system_tables;");
  nxc_arena_free(arena);
  return n_complaints > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
