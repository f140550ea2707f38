/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/checkpoint_beside.h"

#include "runtime/checkpoint/checkpoint_files.h"
#include "runtime/data/dataset.h"
#include "tokenizer/files.h"
#include "tokenizer/unsaid.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the tokenizer ---- */

/* PATH with `rest` behind it ("/": it must be a folder), where a tokenizer is there. */
static bool take(const char *there, const char *rest, char path[NXR_PATH_BYTES]) {
  int n = there && there[0] != '\0' ? snprintf(path, NXR_PATH_BYTES, "%s%s", there, rest) : NXR_PATH_BYTES;
  if (n < NXR_PATH_BYTES && nxt_is_there(path)) return true;
  path[0] = '\0';
  return false;
}

void nxr_tokenizer_find(const nx_plan *plan, const char *first, char path[NXR_PATH_BYTES]) {
  if (take(first, "/", path) || take(nx_plan_text(plan, plan->run_names->tokenizer), "", path)) return;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_RECIPES]; i++)
    if (take(nx_plan_string(plan, plan->recipes[i].tokenizer), "", path)) return;
  for (uint32_t i = 0; i < plan->n[NX_SECTION_SOURCES]; i++)
    if (take(nx_plan_string(plan, plan->sources[i].prefix), NXR_TOKENIZER_FOLDER, path)) return;
  take(nx_plan_string(plan, plan->run->init_from), "/", path);
}

nxt_tokenizer *nxr_tokenizer_open(const nx_plan *plan, const char *path, nx_fault *fault) {
  nxt_unsaid unsaid;
  if (!nxt_unsaid_read(plan, path, &unsaid, fault)) return NULL;
  nxt_tokenizer *tokenizer = nxt_open_with(path, &unsaid, fault);
  nxt_unsaid_free(&unsaid);
  return tokenizer;
}

/* ---- files ---- */

bool nxr_write_text(const char *folder, const char *name, const char *text, nxr_fault *fault) {
  char path[NXR_PATH_BYTES];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "wx");
  bool good = file != NULL && fputs(text, file) >= 0 && fputc('\n', file) == '\n' && fflush(file) == 0 &&
              fsync(fileno(file)) == 0;
  if (!good) nxr_fault_set(fault, "cannot write %s: %s", path, strerror(errno));
  if (file != NULL && fclose(file) != 0 && good)
    good = nxr_fault_set(fault, "cannot write %s: %s", path, strerror(errno));
  return good;
}

static bool write_json(const char *folder, const char *name, const json_t *object, nxr_fault *fault) {
  char *text = json_dumps(object, JSON_INDENT(1) | JSON_REAL_PRECISION(16));
  bool good = text ? nxr_write_text(folder, name, text, fault) : nxr_fault_set(fault, "out of memory");
  free(text);
  return good;
}

/* The ids with which texts begin and end, as transformers calls them; none that no file says, or the model
 * lacks. */
static json_t *find_roles(const nx_plan *plan, const char *tokenizer) {
  static const char *const keys[] = {
      [NXT_BOS] = "bos_token_id", [NXT_EOS] = "eos_token_id", [NXT_PAD] = "pad_token_id"};
  json_t *roles = json_object();
  nx_fault none = {.text = ""};
  nxt_tokenizer *opened = tokenizer[0] != '\0' ? nxr_tokenizer_open(plan, tokenizer, &none) : NULL;
  for (nxt_role role = NXT_BOS; opened && role <= NXT_PAD; role++) {
    uint32_t id;
    if (nxt_role_id(opened, role, &id) && id < plan->run->vocab)
      json_object_set_new(roles, keys[role], json_integer(id));
  }
  if (opened) nxt_close(opened);
  return roles;
}

/* What the family's file says stays: the rest is the tokenizer's. */
static bool write_model_config(const char *folder, const nx_plan *plan, json_t *roles, nxr_fault *fault) {
  json_t *config = json_loads(nx_plan_string(plan, plan->run->model_config), 0, NULL);
  if (config == NULL) return true; /* there is nothing to say in it */
  json_object_update_missing(config, roles);
  bool good = write_json(folder, NXR_MODEL_CONFIG, config, fault);
  json_decref(config);
  return good;
}

static bool write_generation_config(const char *folder, json_t *roles, nxr_fault *fault) {
  json_object_set_new(roles, "_from_model_config", json_true());
  return write_json(folder, NXR_GENERATION_CONFIG, roles, fault);
}

static bool copy_tokenizer(const nx_plan *plan, const char *tokenizer, const char *folder, nxr_fault *fault) {
  nx_fault wrong = {.text = ""};
  nxt_unsaid unsaid;
  if (tokenizer[0] == '\0') return true;
  bool good = nxt_unsaid_read(plan, tokenizer, &unsaid, &wrong);
  if (good) {
    good = nxt_copy_files(tokenizer, &unsaid, folder, &wrong);
    nxt_unsaid_free(&unsaid);
  }
  return good || nxr_fault_set(fault, "%s", wrong.text);
}

bool nxr_beside_write(const char *folder, const nx_plan *plan, nxr_fault *fault) {
  char tokenizer[NXR_PATH_BYTES];
  const char *adapter = nx_plan_string(plan, plan->run->adapter_config);
  bool has_base = nxr_manifest_has_base(plan);
  if (adapter[0] != '\0' && !nxr_write_text(folder, NXR_ADAPTER_CONFIG, adapter, fault)) return false;
  if (plan->run_names->rules & NX_RUN_BARE_WEIGHTS) return true;
  nxr_tokenizer_find(plan, NULL, tokenizer);
  json_t *roles = find_roles(plan, tokenizer);
  bool good = copy_tokenizer(plan, tokenizer, folder, fault) &&
              (!has_base || (write_model_config(folder, plan, roles, fault) &&
                             write_generation_config(folder, roles, fault)));
  json_decref(roles);
  return good;
}

bool nxr_beside_is_known(const char *name) {
  for (int i = 0; nxt_file_names[i]; i++)
    if (strcmp(name, nxt_file_names[i]) == 0) return true;
  return strcmp(name, NXR_MODEL_CONFIG) == 0 || strcmp(name, NXR_MODEL_INDEX) == 0 ||
         strcmp(name, NXR_GENERATION_CONFIG) == 0 || strcmp(name, NXR_ADAPTER_CONFIG) == 0;
}

bool nxr_manifest_has_base(const nx_plan *plan) {
  return plan->run->adapter_config == 0 || plan->run->save_base;
}
