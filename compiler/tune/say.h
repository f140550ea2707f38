/* SPDX-License-Identifier: Apache-2.0 */
/* A layout in the file's own options, and whether its system accepts it.
 *
 * The chosen settings are composed into options; those that differ from the file's are edits of its text. The
 * text that results is read back whole: only where it has no error by the system's rules that the file has
 * not, no more warnings, and says what was chosen, is the layout accepted. Options that only place layers,
 * and no longer fit, are taken out. */
#ifndef NXC_TUNE_SAY_H
#define NXC_TUNE_SAY_H

#include "compiler/config/compile_settings.h"
#include "compiler/tune/patch.h"
#include "compiler/tune/space.h"

/* Why a layout is not accepted. */
enum { NXC_MOST_WAYS = 10 }; /* to say a layout */

typedef struct nxc_refusal {
  const char *message;     /* NULL: it is accepted */
  const char *id, *remedy; /* of the finding that says so; NULL: none does */
  const nxc_rule_row
      *rules[NXC_MOST_WAYS]; /* of the catalogue, for each way of saying it, the last one tells */
  size_t n_rules;                           /* 0: not all ways are refused by rules */
} nxc_refusal;

typedef struct nxc_speaker nxc_speaker;

/* `request` has what is assumed; `compiled` is what it gives, with these findings. */
nxc_speaker *nxc_speaker_new(nxc_arena *arena, const nxc_request *request, const nxc_compiled *compiled,
                             const nxc_sink *findings);

typedef struct nxc_said {
  const nxc_option_change *edits;
  size_t n_edits;
  const char *text; /* of the file, with them */
  nxc_compiled compiled;
  nxc_training training;
  bool has_errors; /* those of the file, and no others */
  bool *stays;     /* of each of its findings: it is an error with these edits, too */
  nxc_refusal refused;
} nxc_said;

nxc_said nxc_say(nxc_speaker *speaker, const nxc_space *space, const nxc_choice *choice, nxc_arena *arena);
/* The edits alone that may give one setting this value; none where no option does. Nothing is read back. */
nxc_said nxc_say_setting(nxc_speaker *speaker, nxc_setting_id id, const nxc_value *value, nxc_arena *arena);

#endif
