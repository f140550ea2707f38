/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of a compilation: the user's texts, and what the command line says of them. */
#ifndef NXC_CONFIG_REQUEST_H
#define NXC_CONFIG_REQUEST_H

#include "compiler/diagnostics/source.h"
#include "compiler/settings/settings.h"

struct nxc_followed; /* front/shell/script.h */

/* What a setting is taken to be where nothing else gives it: for estimates, never for a plan. */
typedef struct nxc_assumption {
  nxc_setting_id setting;
  const char *value, *why;
} nxc_assumption;

typedef struct nxc_request {
  const char *file; /* "-": standard input; NULL: arguments alone */
  const nxc_source *text; /* what is read in place of the file, which then only has a place; NULL: the file */
  struct nxc_followed *followed; /* as the first compilation read it (nxc_request_keep); NULL: each reads it */
  const char *const *layers;
  size_t n_layers;
  const char *const *sets; /* KEY=VALUE or nx:PATH=VALUE */
  size_t n_sets;
  const char *const *overrides; /* Hydra's KEY=VALUE, +KEY=VALUE, ~KEY, for dialects that take them */
  size_t n_overrides;
  const char *const *arguments; /* behind `--`, for dialects that take arguments */
  size_t n_arguments;
  const char *script_arguments; /* --args: the words behind a script's name; NULL: not told */
  const char *dialect;      /* with @VERSION; NULL: detected */
  const char *world_size;   /* NULL: what the file says */
  const char *model_config; /* NULL: none */
  const nxc_source *model_text; /* in place of that file */
  bool model_assumed;           /* it is what a model of that name has */
  const nxc_assumption *assumptions;
  size_t n_assumptions;
  const char *const *rules; /* files of a site's own rules */
  size_t n_rules;
  const char *const *allow; /* ids of findings that are not wanted */
  size_t n_allow;
  bool omegaconf;           /* --compat omegaconf */
  bool hermetic;            /* environment variables must be declared in .nxcfg.yaml */
  size_t launch;            /* of a script that starts several programs, counted from 1; 0: none named */
  bool all_launches;        /* each is judged; else the file must mean one training */
  bool judges_only;         /* a variable of the environment that is not set is unknown, not an error */
  bool for_nxrun;           /* what nxrun cannot execute is an error */
  bool searched;            /* found below a folder: what is no training's is left alone */
  bool partial;             /* judged as a part: what is not given may come from other files */
  bool assumes_defaults;    /* for estimates, of a part: what is not given here has its default */
} nxc_request;

/* For what is compiled more than once, as for each program that a script starts, or with other assumptions:
 * the file is read once, as a pipe must be, and followed once where it is a script. Copies of the request share
 * what is kept, which lives in this arena. */
void nxc_request_keep(nxc_arena *arena, nxc_request *request);

#endif
