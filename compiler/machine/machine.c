/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/machine/machine.h"

#include "compiler/diagnostics/nearest.h"
#include "compiler/document/document.h"
#include "compiler/machine/names.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- quantities ---- */

static const struct {
  const char *name;
  double bytes;
} units[] = {{"", 1},         {"B", 1},          {"kB", 1e3},         {"KB", 1e3},
             {"MB", 1e6},     {"GB", 1e9},       {"TB", 1e12},        {"KiB", 1024.0},
             {"MiB", 1048576}, {"GiB", 1073741824}, {"TiB", 1099511627776}};

bool nxc_bytes_parse(const char *text, uint64_t *bytes) {
  char *end;
  if (!(*text >= '0' && *text <= '9') && *text != '.') return false;
  if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) return false;
  double number = strtod(text, &end);
  end += strspn(end, " ");
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    if (strcmp(end, units[i].name) != 0) continue;
    number *= units[i].bytes;
    if (!(number >= 1 && number < 9e18)) return false;
    *bytes = (uint64_t)number;
    return true;
  }
  return false;
}

const char *nxc_bytes_show(nxc_arena *arena, uint64_t bytes) {
  static const char *const names[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double number = (double)bytes;
  size_t unit = 0;
  for (; number >= 1000 && unit + 1 < sizeof names / sizeof *names; unit++) number /= 1024;
  if (bytes == 1) return "1 byte";
  return nxc_arena_printf(arena, unit == 0 ? "%.0f %s" : "%.2f %s", number, names[unit]);
}

double nxc_rate_at(const nxc_rate *rate, double size) {
  const nxc_rate_point *points = rate->points;
  size_t n = rate->n_points, above = 0;
  while (above < n && points[above].size < size) above++;
  if (above == 0) return points[0].rate;
  if (above == n) return points[n - 1].rate;
  const nxc_rate_point *a = &points[above - 1], *b = &points[above];
  double share = log(size / a->size) / log(b->size / a->size);
  return a->rate * pow(b->rate / a->rate, share);
}

double nxc_rate_peak(const nxc_rate *rate) {
  double peak = 0;
  for (size_t i = 0; i < rate->n_points; i++)
    if (rate->points[i].rate > peak) peak = rate->points[i].rate;
  return peak;
}

/* ---- the file ---- */

typedef struct reading {
  nxc_arena *arena;
  nxc_sink *sink;
  nxc_machine *machine;
  bool good;
} reading;

static void complain(reading *r, const nxc_node *node, const char *what) {
  nxc_report(r->sink, "NX3110", NXC_SEVERITY_ERROR, nxc_node_span(node),
             "correct it; nx-machine(5) says what stands there", "%s %s", nxc_node_path(r->arena, node),
             what);
  r->good = false;
}

/* A positive number; 0 where it is none. */
static double number_of(const nxc_node *node) {
  const nxc_value *value = &node->value;
  if (node->kind != NXC_NODE_SCALAR || value->digits != NULL) return 0;
  double number = value->kind == NXC_INT     ? (double)value->integer
                  : value->kind == NXC_FLOAT ? value->number
                                             : 0;
  return isfinite(number) && number > 0 ? number : 0;
}

static void read_text(reading *r, const nxc_node *node, void *field) {
  if (node->kind == NXC_NODE_SCALAR && node->raw_bytes > 0) *(const char **)field = node->raw;
  else complain(r, node, "must be a name");
}

static void read_count(reading *r, const nxc_node *node, void *field) {
  double number = number_of(node);
  bool whole = node->value.kind == NXC_INT && number >= 1 && number <= UINT32_MAX;
  if (whole) *(uint32_t *)field = (uint32_t)number;
  else complain(r, node, "must be a whole number from 1 on");
}

static bool is_nothing(const nxc_node *node) {
  return node->kind == NXC_NODE_SCALAR && node->value.kind == NXC_INT && node->value.integer == 0;
}

static void read_seconds(reading *r, const nxc_node *node, void *field) {
  *(double *)field = number_of(node);
  if (*(double *)field == 0 && !is_nothing(node)) complain(r, node, "must be a number of seconds");
}

/* What is for the list of names alone (names.h). */
static void read_names(reading *r, const nxc_node *node, void *field) {
  (void)field;
  if (node->kind != NXC_NODE_LIST) complain(r, node, "must be a list of names");
}

static void read_overlap(reading *r, const nxc_node *node, void *field) {
  if (node->kind == NXC_NODE_SCALAR && node->value.kind == NXC_BOOL)
    *(nxc_overlap *)field = node->value.boolean ? NXC_OVERLAPS : NXC_WAITS;
  else complain(r, node, "must be true or false");
}

static void read_bytes(reading *r, const nxc_node *node, void *field) {
  if (node->kind != NXC_NODE_SCALAR || !nxc_bytes_parse(node->raw, field))
    complain(r, node, "must be a number of bytes, as 80GiB");
}

/* [size, rate] */
static bool read_point(const nxc_node *node, nxc_rate_point *point) {
  if (node->kind != NXC_NODE_LIST || node->n_children != 2) return false;
  *point = (nxc_rate_point){number_of(node->children[0]), number_of(node->children[1])};
  return point->size > 0 && point->rate > 0;
}

static void read_rate(reading *r, const nxc_node *node, void *field) {
  bool list = node->kind == NXC_NODE_LIST;
  size_t n = list ? node->n_children : 1;
  nxc_rate_point *points = nxc_arena_array(r->arena, n + 1, sizeof *points);
  bool good = n > 0;
  if (!list) points[0] = (nxc_rate_point){1, number_of(node)};
  if (!list) good = points[0].rate > 0;
  for (size_t i = 0; list && i < n && good; i++)
    good = read_point(node->children[i], &points[i]) && (i == 0 || points[i - 1].size < points[i].size);
  if (good) *(nxc_rate *)field = (nxc_rate){points, n};
  else complain(r, node,
                "must be a number per second, or a list of [size, number] in ascending order of size");
}

typedef struct key {
  const char *name;
  void (*read)(reading *r, const nxc_node *node, void *field);
  void *field;
  bool needed;
} key;

static void read_keys(reading *r, const nxc_node *map, const key *keys, size_t n_keys);

static void read_share(reading *r, const nxc_node *node, void *field) {
  *(double *)field = number_of(node);
  bool share = *(double *)field > 0 ? *(double *)field <= 1 : is_nothing(node);
  if (!share) complain(r, node, "must be a share, 0 to 1");
}

static void read_link(reading *r, const nxc_node *node, void *field) {
  nxc_link *link = field;
  const key keys[] = {{"bandwidth", read_rate, &link->bandwidth, true},
                      {"start", read_seconds, &link->start_s, false},
                      {"latency", read_seconds, &link->latency_s, true},
                      {"taken", read_share, &link->taken, false}};
  read_keys(r, node, keys, sizeof keys / sizeof *keys);
}

static void read_products(reading *r, const nxc_node *node, void *field) {
  nxc_rate *products = field;
  key keys[NX_DTYPE_END];
  for (uint32_t type = 1; type < NX_DTYPE_END; type++)
    keys[type - 1] = (key){nx_dtype_name(type), read_rate, &products[type], false};
  read_keys(r, node, keys, NX_DTYPE_END - 1);
  if (node->n_children == 0) complain(r, node, "must name a type at least");
}

/* Rates of operators by name, NX_OP_END of them. */
static void read_operators(reading *r, const nxc_node *node, void *field) {
  nxc_rate *rates = nxc_arena_array(r->arena, NX_OP_END, sizeof *rates);
  key *keys = nxc_arena_array(r->arena, NX_OP_END, sizeof *keys);
  size_t n = 0;
  for (uint32_t op = 0; op < NX_OP_END; op++)
    if (nx_op_find(op)) keys[n++] = (key){nx_op_find(op)->name, read_rate, &rates[op], false};
  read_keys(r, node, keys, n);
  *(const nxc_rate **)field = rates;
}

static void read_by_type(reading *r, const nxc_node *node, void *field) {
  const nxc_rate **operators = field;
  key keys[NX_DTYPE_END];
  for (uint32_t type = 1; type < NX_DTYPE_END; type++)
    keys[type - 1] = (key){nx_dtype_name(type), read_operators, (void *)&operators[type], false};
  read_keys(r, node, keys, NX_DTYPE_END - 1);
}

static void read_number(reading *r, const nxc_node *node, void *field) {
  *(double *)field = number_of(node);
  if (*(double *)field == 0) complain(r, node, "must be a positive number");
}

/* [rows, columns] */
static void read_tile(reading *r, const nxc_node *node, void *field) {
  nxc_device *device = field;
  nxc_rate_point tile = {0, 0};
  if (!read_point(node, &tile)) complain(r, node, "must be [rows, columns]");
  device->tile_rows = tile.size;
  device->tile_columns = tile.rate;
}

/* [axes, ranks] */
static void read_torus(reading *r, const nxc_node *node, void *field) {
  nxc_device *device = field;
  nxc_rate_point torus = {0, 0};
  bool whole = read_point(node, &torus) && torus.size == floor(torus.size);
  if (!whole) complain(r, node, "must be [axes, ranks from which on its rings are closed]");
  device->axes = torus.size;
  device->closed = torus.rate;
}

/* [forward, backward], which stand one after the other */
static void read_attention(reading *r, const nxc_node *node, void *field) {
  double *forward = field;
  nxc_rate_point shares = {0, 0};
  if (!read_point(node, &shares)) complain(r, node, "must be [forward, backward], shares of the peak");
  forward[0] = shares.size;
  forward[1] = shares.rate;
}

static void read_device(reading *r, const nxc_node *node, void *field) {
  nxc_device *device = nxc_arena_alloc(r->arena, sizeof *device);
  const key keys[] = {{"peak", read_number, &device->peak, true},
                      {"peak_fp8", read_number, &device->peak_fp8, false},
                      {"peak_fp4", read_number, &device->peak_fp4, false},
                      {"peak_f32", read_number, &device->peak_f32, false},
                      {"efficiency", read_number, &device->efficiency, true},
                      {"efficiency_fp8", read_number, &device->efficiency_fp8, false},
                      {"efficiency_fp4", read_number, &device->efficiency_fp4, false},
                      {"attention", read_attention, &device->attention_forward, true},
                      {"attention_before", read_attention, &device->before_forward, false},
                      {"narrow_heads", read_share, &device->narrow_heads, false},
                      {"attention_block", read_number, &device->attention_block, false},
                      {"tile", read_tile, device, true},
                      {"units", read_number, &device->units, true},
                      {"depth", read_number, &device->depth, true},
                      {"memory_bandwidth", read_number, &device->memory_bandwidth, true},
                      {"scattered", read_number, &device->scattered, false},
                      {"launch", read_seconds, &device->launch_s, true},
                      {"collective_units", read_number, &device->collective_units, false},
                      {"host_bandwidth", read_number, &device->host_bandwidth, false},
                      {"domain", read_number, &device->domain, true},
                      {"torus", read_torus, device, false},
                      {"rings", read_share, &device->rings, false},
                      {"pairs", read_number, &device->pairs, false},
                      {"compiled", read_share, &device->compiled, false},
                      {"hidden_sums", read_share, &device->hidden_sums, false},
                      {"allocator", read_number, &device->allocator, false},
                      {"reserved", read_bytes, &device->reserved_bytes, false}};
  *device = (nxc_device){.allocator = 1,
                         .narrow_heads = 0.7,
                         .attention_block = 128,
                         .scattered = 0.75,
                         .hidden_sums = 1,
                         .host_bandwidth = 2.5e10};
  read_keys(r, node, keys, sizeof keys / sizeof *keys);
  if (device->efficiency_fp8 == 0) device->efficiency_fp8 = device->efficiency;
  if (device->efficiency_fp4 == 0) device->efficiency_fp4 = device->efficiency_fp8;
  *(const nxc_device **)field = device;
}

static const key *find_key(const key *keys, size_t n_keys, const char *name) {
  for (size_t i = 0; i < n_keys; i++)
    if (strcmp(keys[i].name, name) == 0) return &keys[i];
  return NULL;
}

static void complain_unknown(reading *r, const nxc_node *node, const key *keys, size_t n_keys) {
  const char **names = nxc_arena_array(r->arena, n_keys, sizeof *names);
  for (size_t i = 0; i < n_keys; i++) names[i] = keys[i].name;
  const char *nearest = nxc_nearest(node->key, names, n_keys);
  const char *hint = nxc_did_you_mean(r->arena, "", nearest);
  complain(r, node,
           nxc_arena_printf(r->arena, "is no key of a machine description%s%s", hint ? "; " : "",
                            hint ? hint : ""));
}

static void read_keys(reading *r, const nxc_node *map, const key *keys, size_t n_keys) {
  if (map->kind != NXC_NODE_MAP) {
    complain(r, map, "must be a map");
    return;
  }
  for (size_t i = 0; i < map->n_children; i++) {
    const nxc_node *node = map->children[i];
    const key *at = node->key_value.kind == NXC_STRING ? find_key(keys, n_keys, node->key) : NULL;
    if (at == NULL) complain_unknown(r, node, keys, n_keys);
    else at->read(r, node, at->field);
  }
  for (size_t i = 0; i < n_keys; i++) {
    if (!keys[i].needed || nxc_node_child(map, keys[i].name) != NULL) continue;
    nxc_report(r->sink, "NX3110", NXC_SEVERITY_ERROR, map->at, "add it; nx-machine(5) says what stands there",
               "the machine description has no %s%s%s", map->parent ? nxc_node_path(r->arena, map) : "",
               map->parent ? "." : "", keys[i].name);
    r->good = false;
  }
}

/* A known name counts before a file of that name; a path has a slash or an ending. */
static const nxc_source *find_source(nxc_arena *arena, const char *name, nxc_sink *sink) {
  bool path = strpbrk(name, "/.") != NULL;
  const nxc_machine_text *known = path ? NULL : nxc_machine_named(name);
  if (known != NULL)
    return nxc_source_new(arena, nxc_arena_printf(arena, "machine %s", known->name), known->text,
                          strlen(known->text));
  const nxc_source *source = nxc_source_read(arena, name, NXC_DOCUMENT_BYTES_MAX);
  if (source != NULL) return source;
  const char *why = strerror(errno), *nearest = nxc_machine_nearest(name);
  const char *hint =
      nearest ? nxc_arena_printf(arena, "did you mean %s?", nearest) : "nxcfg machines lists those";
  const char *known_as = path ? "" : nxc_arena_printf(arena, "; nor is it known by name (%s)", hint);
  nxc_report(sink, "NX3110", NXC_SEVERITY_ERROR, (nxc_span){0},
             "name a file, or a machine that nxcfg machines lists", "cannot read the machine file %s: %s%s",
             name, why, known_as);
  return NULL;
}

const nxc_machine *nxc_machine_read(nxc_arena *arena, const char *path, nxc_sink *sink) {
  static const nxc_reading plain = {.omegaconf = true};
  nxc_machine *machine = nxc_arena_alloc(arena, sizeof *machine);
  reading r = {arena, sink, machine, true};
  machine->source = find_source(arena, path, sink);
  if (machine->source == NULL) return NULL;
  nxc_document *document = nxc_document_read(arena, machine->source, &plain, sink);
  bool map = document->complete && document->root->kind == NXC_NODE_MAP;
  bool host = !map || nxc_node_child(document->root, "device") == NULL;
  const key keys[] = {
      {"name", read_text, &machine->name, false},
      {"also", read_names, NULL, false},
      {"ranks_per_host", read_count, &machine->ranks_per_host, true},
      {"threads", read_count, &machine->threads, false},
      {"memory", read_bytes, &machine->memory_bytes, false},
      {"operator", read_seconds, &machine->operator_s, false},
      {"products", read_products, machine->products, host},
      {"memory_bandwidth", read_rate, &machine->bandwidth, host},
      {"operators", read_by_type, (void *)machine->operators, false},
      {"device", read_device, &machine->device, false},
      {"inside", read_link, &machine->inside, !host}, /* any layout is estimated on a device */
      {"between", read_link, &machine->between, !host},
      {"overlap", read_overlap, &machine->overlap, false},
  };
  machine->name = path;
  if (document->complete) read_keys(&r, document->root, keys, sizeof keys / sizeof *keys);
  return document->complete && r.good ? machine : NULL;
}
