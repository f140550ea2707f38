/* SPDX-License-Identifier: Apache-2.0 */
#include "chat/template.h"

#include "chat/run.h"

#include <stdlib.h>
#include <string.h>

struct nxj_template {
  nxj_pool pool;
  nxj_nodes body;
  bool has_generation;
};

/* Apart from what owns the template, so that a failure leaves nothing half done there. */
static bool parse(nxj_template *opened, const char *name, const char *text, size_t n_bytes) {
  if (setjmp(opened->pool.escape)) return false;
  opened->pool.name = name;
  opened->pool.name = nxj_copy(&opened->pool, name, strlen(name));
  opened->body = nxj_parse(&opened->pool, text, n_bytes, &opened->has_generation);
  return true;
}

nxj_template *nxj_template_open(const char *name, const char *text, size_t n_bytes, nxj_limits limits,
                                nxr_fault *fault) {
  nxj_template *opened = calloc(1, sizeof *opened);
  if (opened == NULL) {
    nxr_fault_set(fault, "out of memory");
    return NULL;
  }
  opened->pool.limit = limits.bytes, opened->pool.limit_steps = UINT64_MAX, opened->pool.fault = fault;
  bool good = parse(opened, name, text, n_bytes);
  opened->pool.fault = NULL; /* the caller's */
  if (good) return opened;
  nxj_template_close(opened);
  return NULL;
}

void nxj_template_close(nxj_template *opened) {
  if (opened == NULL) return;
  nxj_pool_free(&opened->pool);
  free(opened);
}

bool nxj_template_has_generation(const nxj_template *opened) {
  return opened->has_generation;
}

static void add_names(nxj_run *run, const nxj_input *input) {
  run->frame = nxj_alloc(run->pool, sizeof *run->frame);
  json_t *object = (json_t *)input->names; /* walking changes nothing */
  for (void *at = json_object_iter(object); at != NULL; at = json_object_iter_next(object, at)) {
    const char *key = json_object_iter_key(at);
    nxj_set_variable(run, nxj_copy(run->pool, key, strlen(key)),
                     nxj_from_json(run->pool, json_object_iter_value(at)));
  }
  for (size_t i = 0; i < input->n_more; i++)
    nxj_set_variable(run, input->more[i].name, nxj_from_json(run->pool, input->more[i].value));
}

static void *copy_out(nxj_pool *pool, const void *from, size_t n_bytes) {
  void *copy = malloc(n_bytes + 1);
  if (copy == NULL) nxj_fail(pool, "out of memory");
  if (n_bytes > 0) memcpy(copy, from, n_bytes);
  ((char *)copy)[n_bytes] = '\0';
  return copy;
}

static bool render(nxj_pool *pool, const nxj_template *opened, const nxj_input *input, nxj_text *rendered) {
  if (setjmp(pool->escape)) return false;
  nxj_buffer out = {0};
  nxj_run run = {
      .pool = pool, .out = &out, .clock = input->has_clock ? &input->clock : NULL, .is_outermost = true};
  add_names(&run, input);
  nxj_render(&run, &opened->body);
  rendered->spans = copy_out(pool, run.spans, run.n_spans * sizeof *run.spans);
  rendered->n_spans = run.n_spans;
  rendered->text = copy_out(pool, out.text, out.n);
  rendered->n_bytes = out.n;
  return true;
}

bool nxj_template_render(const nxj_template *opened, const nxj_input *input, nxj_text *rendered,
                         nxr_fault *fault) {
  nxj_pool *pool = calloc(1, sizeof *pool);
  *rendered = (nxj_text){0};
  if (pool == NULL) return nxr_fault_set(fault, "out of memory");
  *pool = (nxj_pool){.limit = input->limits.bytes,
                     .limit_steps = input->limits.steps,
                     .name = opened->pool.name,
                     .fault = fault};
  bool good = render(pool, opened, input, rendered);
  if (!good) nxj_text_free(rendered);
  nxj_pool_free(pool);
  free(pool);
  return good;
}

void nxj_text_free(nxj_text *rendered) {
  free(rendered->text);
  free(rendered->spans);
  *rendered = (nxj_text){0};
}
