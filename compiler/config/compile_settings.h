/* SPDX-License-Identifier: Apache-2.0 */
/* From the user's files to settings: the front half of the compiler, as one function.
 *
 *   files, -l, --set, arguments ─▶ document ─▶ interpolated ─▶ bound to a dialect ─▶ preset ─▶ rules ─▶
 * settings
 *
 * validate, plan and explain all start here. Every stage reports to the sink and the next goes on with
 * what is left, so that all problems of a file come out in one run; a text that is no YAML ends it early.
 * Everything lives in the arena that is passed. */
#ifndef NXC_COMPILE_SETTINGS_H
#define NXC_COMPILE_SETTINGS_H

#include "compiler/config/binding/dialect.h"
#include "compiler/config/front/front.h"
#include "compiler/config/interpolation/interpolate.h"
#include "compiler/config/project.h"
#include "compiler/config/rules/rules.h"
#include "compiler/settings/settings.h"

/* What a setting is taken to be where nothing else gives it: for estimates, never for a plan. */
typedef struct nxc_assumption {
  nxc_setting_id setting;
  const char *value, *why;
} nxc_assumption;

typedef struct nxc_request {
  const char *file; /* "-": standard input; NULL: arguments alone */
  const nxc_source *text; /* what is read in place of the file, which then only has a place; NULL: the file */
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

typedef struct nxc_compiled {
  nxc_document *document;     /* NULL when the file cannot be read */
  nxc_resolution resolution;  /* with the environment variables that the file names */
  const nxc_dialect *dialect; /* NULL when it could not be told */
  const char *version;        /* of the dialect; NULL where it has one only */
  const char *version_evidence; /* the key that tells it; NULL: none does, or the user named it */
  const char
      *version_doubts; /* options whose defaults are others in versions that it may be too; NULL: none */
  nxc_settings *settings;     /* NULL when there is no dialect */
  nxc_binding *binding;
  nxc_project project; /* what .nxcfg.yaml says about this file */
  nxc_rule_run rules; /* with the rules that were skipped */
  bool unreadable;    /* a file could not be opened: exit 2, not 1 */
  bool foreign;       /* searched, and no training's: nothing is reported */
} nxc_compiled;

/* False when an error was reported. */
bool nxc_compile_settings(nxc_arena *arena, const nxc_request *request, nxc_sink *sink,
                          nxc_compiled *compiled);

#endif
