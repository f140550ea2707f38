/* SPDX-License-Identifier: Apache-2.0 */
/* Hydra's overrides: what each makes of one small document, or the finding and its column. */
#include "compiler/document/canon.h"
#include "compiler/config/front/override.h"
#include "compiler/config/interpolation/interpolate.h"
#include "tests/unit/cmocka_all.h"

#include <string.h>

static const char text[] = "a: 1\nb: {c: 2, d: [1, 2]}\nn: null\nr: ${a}\n";

typedef struct trial {
  const char *argument;
  const char *wanted; /* the tree after it, without what it has in common; or !ID:COLUMN */
} trial;

static const trial trials[] = {
    /* one word is typed by Hydra's words, not by YAML's */
    {"a=2", "{s\"a\":i2,"},
    {"a=-3", "{s\"a\":i-3,"},
    {"a=1_000", "{s\"a\":i1000,"},
    {"a=1e-4", "{s\"a\":f0.0001,"},
    {"a=.5", "{s\"a\":f0.5,"},
    {"a=inf", "{s\"a\":finf,"},
    {"a=True", "{s\"a\":true,"},
    {"a=NULL", "{s\"a\":null,"},
    {"a=yes", "{s\"a\":s\"yes\","},
    {"a=", "{s\"a\":s\"\","},
    {"a=010", "{s\"a\":s\"010\","},
    {"a=10:30", "{s\"a\":s\"10:30\","},
    {"a=s3://x/y-z_1.bin", "{s\"a\":s\"s3://x/y-z_1.bin\","},
    {"a=two  words ", "{s\"a\":s\"two  words\","},
    /* quotes and backslashes */
    {"a='2'", "{s\"a\":s\"2\","},
    {"a=\"it's\"", "{s\"a\":s\"it's\","},
    {"a='it\\'s'", "{s\"a\":s\"it's\","},
    {"a=x\\,y\\=z", "{s\"a\":s\"x,y=z\","},
    {"a=' b '", "{s\"a\":s\" b \","},
    /* lists and maps */
    {"a=[1, b,'c,d',[]]", "{s\"a\":[i1,s\"b\",s\"c,d\",[]],"},
    {"a={x:1,y: {z: [q]}}", "{s\"a\":{s\"x\":i1,s\"y\":{s\"z\":[s\"q\"]}},"},
    {"b={c: 7}", "s\"b\":{s\"c\":i7,s\"d\":[i1,i2]}"},
    {"b.d=[9]", "s\"d\":[i9]"},
    {"b.d.1=9", "s\"d\":[i1,i9]"},
    {"b.d[1]=9", "s\"d\":[i1,i9]"},
    /* references */
    {"a=${b.c}", "{s\"a\":i2,"},
    {"a=x_${b.c}_y", "{s\"a\":s\"x_2_y\","},
    {"a=$<b.c>", "{s\"a\":i2,"},
    {"a='${b.c}'", "{s\"a\":i2,"},
    {"a=[${b.c},${n}]", "{s\"a\":[i2,null],"},
    {"b.c=5", "s\"b\":{s\"c\":i5,"},
    {"a=4", "s\"r\":i4}"},
    /* adding and deleting */
    {"+e=5", "s\"e\":i5}"},
    {"+b.e=5", "s\"d\":[i1,i2],s\"e\":i5}"},
    {"+x.y.z=5", "s\"x\":{s\"y\":{s\"z\":i5}}}"},
    {"+n=5", "s\"n\":i5,"},
    {"++a=5", "{s\"a\":i5,"},
    {"++z=5", "s\"z\":i5}"},
    {"+b={e: 5}", "s\"d\":[i1,i2],s\"e\":i5}"},
    {"~n", "s\"d\":[i1,i2]},s\"r\""},
    {"~b.c", "s\"b\":{s\"d\":[i1,i2]}"},
    {"~b.c=2", "s\"b\":{s\"d\":[i1,i2]}"},
    {"hydra.run.dir=x", "s\"hydra\":{s\"run\":{s\"dir\":s\"x\"}}}"},
    /* what Hydra refuses */
    {"e=5", "!NX1026:1"},
    {"b.e=5", "!NX1026:1"},
    {"~b.e", "!NX1026:2"},
    {"+a=5", "!NX1027:2"},
    {"~a=5", "!NX1028:4"},
    {"~b.d[0]", "!NX1028:2"},
    {"a=1,2", "!NX1025:4"},
    {"a=b=c", "!NX1025:4"},
    {"a=f(x)", "!NX1025:4"},
    {"a=x!", "!NX1025:4"},
    {"a='x", "!NX1025:3"},
    {"a=[1,2", "!NX1025:3"},
    {"a=[1,,2]", "!NX1025:6"},
    {"a=[1,]", "!NX1025:6"},
    {"a={x}", "!NX1025:5"},
    {"a=x]", "!NX1025:4"},
    {"a=${b", "!NX1025:3"},
    {"a='x' y", "!NX1025:7"},
    {"b.d.7=9", "!NX1026:1"},
};

static const char *outcome(nxc_arena *arena, const char *argument) {
  static const nxc_reading reading = {0};
  static const nxc_resolving resolving = {0};
  nxc_sink *sink = nxc_sink_new(arena);
  nxc_document *document =
      nxc_document_read(arena, nxc_source_new(arena, "x.yaml", text, strlen(text)), &reading, sink);
  bool good = nxc_override_apply(document, argument, NULL, sink);
  if (good) nxc_resolve(document, &resolving, sink);
  if (nxc_sink_n_findings(sink) > 0) {
    const nxc_finding *finding = nxc_sink_finding(sink, 0);
    return nxc_arena_printf(arena, "!%s:%u", finding->id, finding->at.column);
  }
  nxc_buffer canon = {.arena = arena};
  nxc_write_canon(&canon, nxc_node_value(arena, document->root));
  return good ? canon.bytes : "nothing is said";
}

static void test_overrides(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
    nxc_arena *arena = nxc_arena_new();
    const char *found = outcome(arena, trials[i].argument);
    bool refused = trials[i].wanted[0] == '!';
    bool good = refused ? strcmp(found, trials[i].wanted) == 0 : strstr(found, trials[i].wanted) != NULL;
    if (!good) fail_msg("%s gives %s, not %s", trials[i].argument, found, trials[i].wanted);
    nxc_arena_free(arena);
  }
}

static void test_form(void **state) {
  (void)state;
  static const char *const overrides[] = {"a=1", "+a.b=", "++a=1", "~a", "~a.b=1", "_x[0]=1", "a.b-c=x=y"};
  static const char *const others[] = {"a",  "a.yaml", "conf/a=1.yaml", "~/x", "=1",
                                       "+a", "-x=1",   "1=2",           "",    "~"};
  for (size_t i = 0; i < sizeof overrides / sizeof *overrides; i++)
    if (!nxc_override_is(overrides[i])) fail_msg("%s is an override", overrides[i]);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (nxc_override_is(others[i])) fail_msg("%s is no override", others[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_overrides), cmocka_unit_test(test_form)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
