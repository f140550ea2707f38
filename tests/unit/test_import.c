/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of other programs: which files are taken, under which names, and what is said where they do not
 * fit. */
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/files/safetensors.h"
#include "tests/unit/cmocka_all.h"
#include "tests/unit/mesh_plan.h"
#include "tests/unit/temporary.h"

enum { N_TENSORS = 5 };

/* The tensors of mesh_plan.h by names as Hugging Face gives them; element i of a tensor is base + i. */
static const char *const names[N_TENSORS] = {
    "model.embed_tokens.weight", "model.layers.0.mlp.down_proj.weight", "model.layers.0.attn.c_attn.weight",
    "model.layers.0.attn.c_attn.bias", "model.norm.weight"};
static const nxr_safetensor shapes[N_TENSORS] = {{.n_dims = 2, .dims = {7, 5}},
                                                 {.n_dims = 2, .dims = {6, 4}},
                                                 {.n_dims = 2, .dims = {5, 6}},
                                                 {.n_dims = 1, .dims = {6}},
                                                 {.n_dims = 1, .dims = {5}}};

static mesh_plan mesh;
static mesh_ranks *ranks;

static int open_mesh(void **state) {
  temporary_make(state);
  mesh_make(&mesh, &(mesh_shape){2, 1, true, true});
  uint32_t texts[N_TENSORS];
  const uint32_t tensor_of[MESH_PIECES] = {0, 1, 2, 2, 2, 3, 3, 3, 4};
  for (uint32_t i = 0; i < N_TENSORS; i++) texts[i] = mesh_string(&mesh, names[i]);
  for (uint32_t i = 0; i < MESH_PIECES; i++) mesh.pieces[i].name = texts[tensor_of[i]];
  ranks = mesh_ranks_open(&mesh);
  return 0;
}

static int close_mesh(void **state) {
  mesh_ranks_close(ranks);
  return temporary_remove(state);
}

typedef struct entry {
  const char *name;
  uint32_t like; /* shape of that tensor */
  float base;
  nx_dtype dtype;
} entry;

static void write_file(const char *name, const entry *entries, uint64_t n) {
  nxr_safetensor tensors[8] = {0};
  uint8_t bytes[4096];
  uint64_t n_header, n_file;
  for (uint64_t i = 0; i < n; i++) {
    tensors[i] = shapes[entries[i].like];
    tensors[i].name = entries[i].name;
    tensors[i].dtype = entries[i].dtype ? entries[i].dtype : NX_f32;
  }
  char *header = nxr_safetensors_layout(tensors, n, &n_header, &n_file);
  assert_true(header && n_file <= sizeof bytes);
  memcpy(bytes, header, n_header);
  free(header);
  for (uint64_t i = 0; i < n; i++) {
    for (uint64_t at = 0; at < tensors[i].n_bytes / (nx_dtype_bits(tensors[i].dtype) / 8); at++) {
      float value = entries[i].base + (float)at;
      uint32_t bits;
      memcpy(&bits, &value, sizeof bits);
      uint16_t half = (uint16_t)(bits >> 16);
      if (tensors[i].dtype == NX_bf16) memcpy(bytes + tensors[i].offset + 2 * at, &half, sizeof half);
      else memcpy(bytes + tensors[i].offset + 4 * at, &value, sizeof value);
    }
  }
  temporary_write(name, bytes, n_file);
}

static const entry complete[] = {{"model.embed_tokens.weight", 0, 1, 0},
                                 {"model.layers.0.mlp.down_proj.weight", 1, 40, 0},
                                 {"model.layers.0.attn.c_attn.weight", 2, 80, 0},
                                 {"model.layers.0.attn.c_attn.bias", 3, 120, 0},
                                 {"model.norm.weight", 4, 160, 0},
                                 {"", 0, 0, 0},
                                 {"", 0, 0, 0}};

static bool import_one(mesh_rank *rank, void *path) {
  memset(rank->arenas, 0, (size_t)NX_N_ARENAS * MESH_ARENA_BYTES);
  const nxr_checkpoint checkpoint = {{.plan = &rank->all->mesh->plan}, &rank->world, &rank->pieces, "unused"};
  return nxr_checkpoint_import(&checkpoint, path, &rank->fault);
}

static bool import(const char *name) {
  char path[512];
  strcpy(path, temporary_path(0, name));
  return mesh_run(ranks, import_one, path);
}

/* A master weight of a rank, where the file says element `at` of the tensor. */
static float weight(uint32_t rank, uint32_t piece, int64_t row, int64_t column) {
  nxr_span span = nxr_pieces_row(&ranks->ranks[rank].pieces, NXR_MASTER, piece, row);
  return ((float *)span.address)[column];
}

static void fits(const char *name) {
  if (!import(name)) fail_msg("%s", mesh_fault(ranks));
  assert_true(weight(0, 0, 0, 0) == 1 && weight(0, 0, 3, 4) == 1 + 19);
  assert_true(weight(1, 0, 0, 0) == 1 + 20 && weight(1, 0, 2, 4) == 1 + 34);
  assert_true(weight(0, 1, 1, 0) == 40 + 1 && weight(1, 1, 3, 2) == 40 + 5 * 4 + 3); /* the file has [6, 4] */
  assert_true(weight(0, 3, 0, 4) == 80 + 4 * 6 + 2 && weight(1, 4, 0, 0) == 80 + 5); /* the file has [5, 6] */
  assert_true(weight(0, 6, 0, 0) == 120 + 2 && weight(1, 7, 0, 0) == 120 + 5);
  assert_true(weight(0, 8, 0, 4) == 164 && weight(1, 8, 0, 4) == 164);
}

static void says(const char *name, const char *const *parts) {
  if (import(name)) fail_msg("%s was imported", name);
  for (; *parts; parts++)
    if (strstr(mesh_fault(ranks), *parts) == NULL)
      fail_msg("expected \"%s\" in: %s", *parts, mesh_fault(ranks));
}
#define SAYS(name, ...) says(name, (const char *const[]){__VA_ARGS__, NULL})

static void takes_a_file_or_a_folder(void **state) {
  (void)state;
  write_file("weights", complete, N_TENSORS);
  fits("weights");
  mkdir(temporary_path(0, "folder"), 0700);
  write_file("folder/model.safetensors", complete, N_TENSORS);
  fits("folder");
  SAYS("nowhere", "nowhere: No such file");
  mkdir(temporary_path(0, "empty"), 0700);
  SAYS("empty", "neither model.safetensors nor");
}

static void write_text(const char *name, const char *text) {
  temporary_write(name, text, strlen(text));
}

static void takes_an_index_of_several(void **state) {
  (void)state;
  mkdir(temporary_path(0, "parts"), 0700);
  write_file("parts/a.safetensors", complete, 2);
  write_file("parts/b.safetensors", complete + 2, 3);
  const char *const index = "parts/model.safetensors.index.json";
  write_text(index,
             "{\"weight_map\": {\"model.embed_tokens.weight\": \"a.safetensors\", \"model.norm.weight\": "
             "\"b.safetensors\", \"model.layers.0.mlp.down_proj.weight\": \"a.safetensors\"}}");
  fits("parts");
  write_text(
      index,
      "{\"weight_map\": {\"model.embed_tokens.weight\": \"a.safetensors\", \"x\": \"a.safetensors\"}}");
  SAYS("parts", "tensor x is not in a.safetensors");
  write_text(index, "{\"weight_map\": {\"x\": \"../a.safetensors\"}}");
  SAYS("parts", "is none of its folder");
  write_text(index, "{\"weight_map\": {\"x\": 1}}");
  SAYS("parts", "is none of its folder");
  write_text(index, "{\"weight_map\": {\"x\": \"c.safetensors\"}}");
  SAYS("parts", "c.safetensors: No such file");
  write_text(index, "{}");
  SAYS("parts", "no weight_map");
  write_text(index, "{");
  SAYS("parts", "is damaged");
  write_file("parts/b.safetensors", complete + 1, 4);
  write_text(index,
             "{\"weight_map\": {\"model.embed_tokens.weight\": \"a.safetensors\", \"model.norm.weight\": "
             "\"b.safetensors\"}}");
  SAYS("parts", "two of its files have tensor model.layers.0.mlp.down_proj.weight");
}

static void knows_the_habits_of_others(void **state) {
  (void)state;
  entry entries[7];
  memcpy(entries, complete, sizeof entries);
  for (int i = 0; i < N_TENSORS; i++) entries[i].name += strlen("model."); /* as base models are stored */
  entries[5] = (entry){"layers.0.attn.bias", 0, 7, 0};
  write_file("weights", entries, 6);
  fits("weights");
  memcpy(entries, complete, sizeof entries);
  for (int i = 0; i < N_TENSORS; i++) entries[i].dtype = NX_bf16; /* these numbers are exact in bf16 */
  write_file("weights", entries, N_TENSORS);
  fits("weights");
}

static void takes_tied_outputs_that_are_equal(void **state) {
  (void)state;
  entry entries[7];
  memcpy(entries, complete, sizeof entries);
  entries[5] = (entry){"lm_head.weight", 0, 1, 0};
  write_file("weights", entries, 6);
  fits("weights");
  entries[5].base = 2;
  write_file("weights", entries, 6);
  SAYS("weights", "1 too much: lm_head.weight", "model.tied_embeddings");
}

static void says_what_does_not_fit(void **state) {
  (void)state;
  entry entries[7];
  memcpy(entries, complete, sizeof entries);
  entries[4].name = "model.form.weight";
  write_file("weights", entries, N_TENSORS);
  SAYS("weights", "1 missing: model.norm.weight (did it mean model.form.weight?)",
       "1 too much: model.form.weight");
  memcpy(entries, complete, sizeof entries);
  entries[1].like = 2, entries[3].like = 4;
  write_file("weights", entries, N_TENSORS);
  SAYS("weights", "2 of another shape", "model.layers.0.mlp.down_proj.weight is [5, 6], not [6, 4]",
       "model.layers.0.attn.c_attn.bias is [5], not [6]");
  write_file("weights", complete, 1);
  SAYS("weights", "4 missing", ", …");
  temporary_write("weights", "{", 1);
  SAYS("weights", "not a safetensors file");
  const char integers[] = "{\"model.norm.weight\":{\"dtype\":\"I32\",\"shape\":[5],\"data_offsets\":[0,20]}}";
  uint8_t bytes[256] = {0};
  uint64_t n_header = sizeof integers - 1;
  memcpy(bytes, &n_header, 8);
  memcpy(bytes + 8, integers, n_header);
  temporary_write("weights", bytes, 8 + n_header + 20);
  SAYS("weights", "model.norm.weight has no type of weights");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(takes_a_file_or_a_folder),
      cmocka_unit_test(takes_an_index_of_several),
      cmocka_unit_test(knows_the_habits_of_others),
      cmocka_unit_test(takes_tied_outputs_that_are_equal),
      cmocka_unit_test(says_what_does_not_fit),
  };
  return cmocka_run_group_tests_name("import", tests, open_mesh, close_mesh);
}
