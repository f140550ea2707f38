/* SPDX-License-Identifier: Apache-2.0 */
/* One training in another dialect's words.
 *
 *   file ─▶ settings ─▶ options of the other dialect ─▶ text ─▶ read back ─▶ settings, compared with the
 * first
 *
 * A file that stays in its dialect is not composed anew: its own tree is written, resolved and with its
 * layers, so that keys which mean nothing here stay too; only what the command line says about settings is
 * composed into it. Either way the text is read back by the dialect's own front, and a setting that then
 * differs is unsaid: that list is complete by construction. Secrets and values of the environment are
 * written only where asked for. */
#ifndef NXC_CONFIG_CONVERT_H
#define NXC_CONFIG_CONVERT_H

#include "compiler/config/compile_settings.h"

typedef struct nxc_conversion_request {
  nxc_request from;
  const char *to;         /* a dialect, with @VERSION where one is meant */
  bool anew;              /* compose a file that stays in its dialect, too */
  const char *model_path; /* where the config.json that the text names will stand; NULL: none is made */
  bool reveal;            /* secrets, and values of the environment */
} nxc_conversion_request;

/* In the first line of a text in other words, between its dialect and where it comes from. */
#define NXC_CONVERTED ", converted by nxcfg from"

/* Something that the text does not say. */
typedef struct nxc_unsaid {
  const char *name;  /* a setting, or an option of the first dialect; NULL: the reader refuses the text */
  const char *value; /* what it is */
  const char *there; /* what the text's reader takes instead; NULL: nothing */
  const char *why;
  bool is_option;
  const char *finding; /* the id of what the reader refuses; NULL: nothing */
} nxc_unsaid;

typedef struct nxc_conversion {
  bool unreadable;               /* a file could not be opened */
  const char *dialect, *version; /* of the text */
  const char *text;              /* with a comment of what is unsaid at its head */
  const char *model_text;        /* config.json; NULL: none was asked for, or none is read there */
  const char *world_size;        /* what a reader must be told; NULL: the text says it, or nobody does */
  nxc_unsaid *unsaid;
  size_t n_unsaid;
  size_t n_said;    /* settings that are known, and the same there */
  const char *filled; /* "option = value, ..." that the dialect demands and nothing asks for; "" for none */
  const char *left; /* given options that mean something to the first system alone, "a, b"; "" for none */
  const char *first; /* the dialect of the file */
} nxc_conversion;

/* "run.threads = 4 (there 1): nxdt has no option for it" */
const char *nxc_unsaid_show(nxc_arena *arena, const nxc_unsaid *unsaid);
/* False when the file cannot be converted: an error in it was reported. */
bool nxc_convert(nxc_arena *arena, const nxc_conversion_request *request, nxc_sink *sink,
                 nxc_conversion *conversion);

#endif
