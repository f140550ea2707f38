/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that cut a model's layers into the chunks of a pipeline. Each gives the list that pipeline.cuts
 * is: what every chunk but the last ends with, "layers.7", or "embedding" where the first has no layers. */
#include "compiler/expression/expression_cuts.h"

#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

typedef const nxc_value *const *arguments;
typedef nxc_evaluation evaluation;

enum { LAYERS_MAX = 100000, PARTS_MAX = 10000 };

/* Layers of each chunk -> names of what it ends with. */
static const nxc_value *name_cuts(evaluation *e, const int64_t *n_layers, size_t n_chunks) {
  nxc_value *names = nxc_arena_array(e->arena, n_chunks, sizeof *names);
  int64_t before = 0;
  for (size_t chunk = 0; chunk + 1 < n_chunks; chunk++) {
    before += n_layers[chunk];
    const char *name =
        before ? nxc_arena_printf(e->arena, "layers.%lld", (long long)before - 1) : "embedding";
    names[chunk] = (nxc_value){.kind = NXC_STRING, .text = name, .n_bytes = strlen(name)};
  }
  nxc_value *list = nxc_arena_alloc(e->arena, sizeof *list);
  *list = (nxc_value){.kind = NXC_LIST, .items = names, .n_items = n_chunks - 1};
  return list;
}

static bool read_count(evaluation *e, const nxc_value *value, int64_t most, int64_t *count) {
  bool good = value->kind == NXC_INT && value->integer >= 0 && value->integer <= most;
  if (good) *count = value->integer;
  else nxc_evaluation_fail(e, "cuts need numbers of layers and chunks");
  return good;
}

/* stage_cuts(layers, stages, chunks of a stage, first, last, embedding, loss): Megatron's. The first and the
 * last stage have as many layers as is said, where it is (not null); the others share the rest evenly, with
 * the embedding and the loss counted as so many layers. The chunks of a stage are equal before those are
 * taken off. */
const nxc_value *nxc_call_stage_cuts(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  int64_t layers, stages, chunks, embedding, loss, given[2] = {0, 0}, n_given = 0;
  if (!read_count(e, args[0], LAYERS_MAX, &layers) || !read_count(e, args[1], PARTS_MAX, &stages) ||
      !read_count(e, args[2], PARTS_MAX, &chunks) || !read_count(e, args[5], LAYERS_MAX, &embedding) ||
      !read_count(e, args[6], LAYERS_MAX, &loss))
    return NULL;
  for (int end = 0; end < 2; end++) {
    if (args[3 + end]->kind == NXC_NULL) continue;
    if (!read_count(e, args[3 + end], layers, &given[end])) return NULL;
    n_given++;
  }
  int64_t rest = layers + embedding + loss - given[0] - given[1], others = stages - n_given;
  if (stages * chunks == 0 || stages * chunks > PARTS_MAX || rest < 0 ||
      (others > 0 ? rest % others : rest) != 0)
    return nxc_evaluation_fail(e, "the layers cannot be divided evenly over the stages");
  int64_t *n_layers = nxc_arena_array(e->arena, (size_t)(stages * chunks), sizeof *n_layers);
  for (int64_t at = 0; at < stages * chunks; at++) {
    int64_t stage = at % stages, of_stage = others > 0 ? rest / others : 0;
    if (stage == 0 && args[3]->kind != NXC_NULL) of_stage = given[0];
    else if (stage == stages - 1 && args[4]->kind != NXC_NULL) of_stage = given[1];
    if (of_stage % chunks != 0)
      return nxc_evaluation_fail(e, "the layers of a stage cannot be divided evenly over its chunks");
    n_layers[at] = of_stage / chunks;
  }
  n_layers[0] -= embedding;
  n_layers[stages * chunks - 1] -= loss;
  if (n_layers[0] < 0 || n_layers[stages * chunks - 1] < 0)
    return nxc_evaluation_fail(e, "a stage has fewer layers than its embedding or loss count for");
  return name_cuts(e, n_layers, (size_t)(stages * chunks));
}

/* weighted_cuts(layers, chunks, embedding, loss): the embedding and the loss count as so many layers; what is
 * left over of an even division goes to the first chunks, one layer each (torchtitan, xorl). */
const nxc_value *nxc_call_weighted_cuts(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  int64_t layers, chunks, embedding, loss;
  if (!read_count(e, args[0], LAYERS_MAX, &layers) || !read_count(e, args[1], PARTS_MAX, &chunks) ||
      !read_count(e, args[2], LAYERS_MAX, &embedding) || !read_count(e, args[3], LAYERS_MAX, &loss))
    return NULL;
  if (chunks == 0) return nxc_evaluation_fail(e, "there are no chunks");
  int64_t all = layers + embedding + loss;
  int64_t *n_layers = nxc_arena_array(e->arena, (size_t)chunks, sizeof *n_layers);
  for (int64_t at = 0; at < chunks; at++) n_layers[at] = all / chunks + (at < all % chunks);
  n_layers[0] -= embedding;
  n_layers[chunks - 1] -= loss;
  if (n_layers[0] < 0 || n_layers[chunks - 1] < 0)
    return nxc_evaluation_fail(e, "embedding or loss count for more layers than a chunk has");
  return name_cuts(e, n_layers, (size_t)chunks);
}

/* ---- a layout written out ---- */

/* A layout with its repetitions, X*3 and (...)*3, written out. One level of parentheses, as in Megatron. */
typedef struct layout {
  evaluation *e;
  char *text;
  size_t n;
} layout;

static bool append(layout *l, const char *from, size_t n, int64_t times) {
  if (times < 0 || times > LAYERS_MAX || l->n + n * (size_t)times > LAYERS_MAX) {
    nxc_evaluation_fail(l->e, "the layout is too long");
    return false;
  }
  for (; times > 0; times--) {
    memcpy(l->text + l->n, from, n);
    l->n += n;
  }
  return true;
}

static bool expand(layout *l, const char *text) {
  for (const char *at = text; *at;) {
    const char *from = at, *end = strchr(at, ')');
    bool group = *at == '(';
    if (group && end == NULL) return nxc_evaluation_fail(l->e, "a ( is never closed"), false;
    size_t n = group ? (size_t)(end - at) - 1 : 1;
    from += group;
    at += group ? n + 2 : 1;
    int64_t times = 1;
    if (*at == '*') {
      char *behind;
      times = strtoll(at + 1, &behind, 10);
      at = behind;
    }
    if (*from != ',' && *from != ' ' && !append(l, from, n, times)) return false;
  }
  return true;
}

/* layout_cuts(text): Megatron's pipeline-model-parallel-layout, E embedding, t a layer, L loss, | between
 * chunks. */
const nxc_value *nxc_call_layout_cuts(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  if (args[0]->kind != NXC_STRING) return nxc_evaluation_fail(e, "layout_cuts needs a text");
  layout l = {.e = e, .text = nxc_arena_alloc(e->arena, LAYERS_MAX)};
  if (!expand(&l, args[0]->text)) return NULL;
  int64_t *n_layers = nxc_arena_array(e->arena, l.n + 1, sizeof *n_layers);
  size_t chunk = 0, n_embeddings = 0, n_losses = 0;
  for (size_t i = 0; i < l.n; i++) {
    char what = l.text[i];
    if (what == '|') chunk++;
    else if (what == 't') n_layers[chunk]++;
    else if (what == 'E' && i == 0) n_embeddings++;
    else if (what == 'L' && i + 1 == l.n) n_losses++;
    else if (what != ',' && what != ' ') return nxc_evaluation_fail(e, "a layout is E, then t and |, then L");
  }
  if (n_embeddings != 1 || n_losses != 1)
    return nxc_evaluation_fail(e, "a layout is E, then t and |, then L");
  return name_cuts(e, n_layers, chunk + 1);
}

/* ---- DeepSpeed's partitions ---- */

typedef struct modules {
  double *sums; /* of the weights of the modules up to this one */
  int64_t n, n_parts;
  int64_t *starts; /* [n_parts + 1] */
} modules;

static int64_t first_reaching(const modules *m, double target, int64_t low, int64_t high) {
  while (low < high && m->sums[low] < target) low++;
  return low;
}

static void partition_uniform(modules *m) {
  int64_t each = m->n / m->n_parts;
  for (int64_t part = 0; part <= m->n_parts; part++)
    m->starts[part] = m->n <= m->n_parts ? (part < m->n ? part : m->n) : part * each;
  m->starts[m->n_parts] = m->n;
}

/* Fills the parts one after another, each up to the bottleneck; whether all modules found room. DeeperSpeed's
 * utils.py looks for a part's end in steps of an even part's length, which decides where weights are 0. */
static bool fill_parts(modules *m, double bottleneck) {
  double target = bottleneck, all = m->sums[m->n - 1];
  int64_t each = m->n / m->n_parts, step = each;
  for (int64_t part = 1; part <= m->n_parts; part++) m->starts[part] = m->n;
  for (int64_t part = 1; part < m->n_parts; part++) {
    while (step < m->n && m->sums[step] < target) step += each;
    m->starts[part] = first_reaching(m, target, step - each, step < m->n ? step : m->n);
    if (m->starts[part] == m->n) return all - m->sums[m->starts[part - 1]] < bottleneck;
    target = m->sums[m->starts[part] ? m->starts[part] - 1 : m->n - 1] + bottleneck; /* Python's item -1 */
  }
  return target >= all;
}

static void partition_balanced(modules *m) {
  const double epsilon = 1e-3;
  double all = m->sums[m->n - 1], lower = all / (double)m->n_parts, upper = all;
  if (m->n <= m->n_parts) {
    partition_uniform(m);
    return;
  }
  while (upper > lower + epsilon) {
    double middle = lower + (upper - lower) / 2;
    if (fill_parts(m, middle)) upper = middle;
    else lower = middle + epsilon;
  }
  fill_parts(m, upper);
}

/* What a module weighs, by its number of parameters or by its class's name. */
typedef struct scale {
  evaluation *e;
  pcre2_code *pattern; /* of the names that count, in small or capital letters; NULL: numbers */
  pcre2_match_data *match;
} scale;

static bool weigh(const scale *with, const nxc_value *module, double *weight) {
  if (with->pattern != NULL && module->kind == NXC_STRING) {
    PCRE2_SPTR name = (PCRE2_SPTR)module->text;
    *weight = pcre2_match(with->pattern, name, module->n_bytes, 0, 0, with->match, NULL) >= 0;
    return true;
  }
  bool good = with->pattern == NULL && nxc_value_number(module, weight) && *weight >= 0;
  if (!good) nxc_evaluation_fail(with->e, "cuts need numbers of parameters, or names of classes");
  return good;
}

/* The modules before the layers, the layers, and those behind them. */
static bool weigh_all(const scale *with, const nxc_value *before, const nxc_value *layer,
                      const nxc_value *behind, modules *m) {
  int64_t first = (int64_t)before->n_items, last = m->n - (int64_t)behind->n_items;
  for (int64_t i = 0; i < m->n; i++) {
    const nxc_value *module = i < first ? &before->items[i] : i < last ? layer : &behind->items[i - last];
    if (!weigh(with, module, &m->sums[i])) return false;
  }
  return true;
}

static bool weigh_by_type(evaluation *e, const char *text, arguments modules_of, modules *m) {
  int code;
  size_t offset;
  scale with = {.e = e};
  with.pattern =
      pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, PCRE2_CASELESS, &code, &offset, NULL);
  if (with.pattern == NULL) return nxc_evaluation_fail(e, "%s is not a regular expression", text), false;
  with.match = pcre2_match_data_create(1, NULL);
  bool good = weigh_all(&with, modules_of[0], modules_of[1], modules_of[2], m);
  pcre2_match_data_free(with.match);
  pcre2_code_free(with.pattern);
  return good;
}

/* deepspeed_cuts(method, layers, stages, modules before the layers, a layer, modules behind them): what
 * DeepSpeed makes of a list of modules, of which its methods type: and parameters need the names of their
 * classes, or how many parameters they have. */
const nxc_value *nxc_call_deepspeed_cuts(evaluation *e, arguments args, size_t n_args) {
  (void)n_args;
  int64_t layers, stages;
  if (args[0]->kind != NXC_STRING || args[3]->kind != NXC_LIST || args[5]->kind != NXC_LIST ||
      !read_count(e, args[1], LAYERS_MAX, &layers) || !read_count(e, args[2], PARTS_MAX, &stages))
    return nxc_evaluation_fail(e, "cuts need a method, layers, stages and modules");
  if (stages == 0) return nxc_evaluation_fail(e, "there are no stages");
  const char *method = args[0]->text;
  const int64_t first = (int64_t)args[3]->n_items, behind = (int64_t)args[5]->n_items;
  modules m = {.n = first + layers + behind, .n_parts = stages};
  m.sums = nxc_arena_array(e->arena, (size_t)m.n + 1, sizeof *m.sums);
  m.starts = nxc_arena_array(e->arena, (size_t)stages + 1, sizeof *m.starts);
  bool weighed = false, uniform = strcmp(method, "uniform") == 0;
  if (strcmp(method, "parameters") == 0) weighed = weigh_all(&(scale){.e = e}, args[3], args[4], args[5], &m);
  else if (strncmp(method, "type:", 5) == 0) weighed = weigh_by_type(e, method + 5, args + 3, &m);
  else if (!uniform) nxc_evaluation_fail(e, "there is no such method");
  if (!weighed && !uniform) return NULL;
  for (int64_t i = 1; i < m.n; i++) m.sums[i] += m.sums[i - 1];
  if (uniform) partition_uniform(&m);
  else partition_balanced(&m);
  int64_t *n_layers = nxc_arena_array(e->arena, (size_t)stages, sizeof *n_layers);
  for (int64_t part = 0; part < stages; part++)
    for (int64_t i = m.starts[part]; i < m.starts[part + 1]; i++)
      n_layers[part] += i >= first && i < m.n - behind;
  return name_cuts(e, n_layers, (size_t)stages);
}
