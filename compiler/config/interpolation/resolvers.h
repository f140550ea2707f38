/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of ${name:arguments}: OmegaConf's oc.*, NeMo's arithmetic, and probes.
 *
 * One table in resolvers.c holds every resolver: its name, how many arguments it takes, whether lists and
 * maps of the document reach it as nodes, and who defines it. Arithmetic is Python's: integers stay exact,
 * true is 1, and text times a number repeats the text (which is worth a warning). */
#ifndef NXC_CONFIG_RESOLVERS_H
#define NXC_CONFIG_RESOLVERS_H

#include "compiler/config/interpolation/interpolate_machine.h"

enum { NXC_RESOLVER_NODES = 1, NXC_RESOLVER_PROBE = 2 };

typedef struct nxc_resolver nxc_resolver;
typedef nxc_step nxc_resolver_run(nxc_evaluator *machine, const nxc_resolver *self, nxc_item *args,
                                  size_t n_args, nxc_item *result);
struct nxc_resolver {
  const char *name;
  nxc_resolver_run *run;
  unsigned n_least, n_most;
  unsigned flags;
  char op; /* arithmetic: which */
  const char *meaning;
};

nxc_step nxc_resolver_call(nxc_evaluator *machine, const char *name, nxc_item *args, size_t n_args,
                           nxc_item *result);
/* Fails with NX1210, naming the resolver. */
nxc_step nxc_resolver_fail(nxc_evaluator *machine, const nxc_resolver *self, const char *problem);

/* resolvers_oc.c */
nxc_resolver_run nxc_resolve_env, nxc_resolve_select_key, nxc_resolve_decode, nxc_resolve_create,
    nxc_resolve_dict_keys, nxc_resolve_dict_values, nxc_resolve_deprecated;

#endif
