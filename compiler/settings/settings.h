/* SPDX-License-Identifier: Apache-2.0 */
/* The typed record that a configuration becomes: every setting of schema/settings.yaml, and where each
 * came from.
 *
 * There is one slot per setting (nxc_setting_id, generated: NX_SETTING_MESH_TENSOR is `mesh.tensor`). A
 * setting is unknown until something gives it a value: the catalogue's default, a dialect's option (file,
 * layer, command line, or the dialect's own default), HF config.json, a precision preset, or a deriving
 * rule. A known setting may be null ("none"). Every value has the catalogue's type, and carries its
 * provenance; what it displaced follows in `previous`. The record lives in the arena that it was made in.
 * Invariant: a known value is within its bounds, because nxc_settings_set refuses others. */
#ifndef NXC_SETTINGS_H
#define NXC_SETTINGS_H

#include "compiler/arena.h"
#include "compiler/settings/catalogue.h"
#include "compiler/diagnostics/diagnostics.h"
#include "compiler/diagnostics/source.h"
#include "compiler/value.h"
#include "compiler/gen/settings_ids.gen.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In rising strength: a value displaces one of the same or a weaker kind. */
typedef enum nxc_provenance_kind {
  NXC_FROM_UNKNOWN,         /* nothing gave it a value */
  NXC_FROM_DEFAULT,         /* the settings catalogue's default */
  NXC_FROM_ABSENT,          /* the file's own system has no such thing: a value that changes nothing */
  NXC_FROM_FIXED,           /* what the system's own code decides (schema/fixed) */
  NXC_FROM_RULE,            /* derived by a rule from other settings */
  NXC_FROM_DIALECT_DEFAULT, /* the default of the real system's option */
  NXC_FROM_PRESET,          /* a precision preset */
  NXC_FROM_ASSUMED,         /* what is usual, or well known of a model or tokenizer of this name */
  NXC_FROM_MODEL_CONFIG,    /* --model-config, HF config.json */
  NXC_FROM_FILE,            /* the configuration file */
  NXC_FROM_LAYER,           /* a file laid over it with -l */
  NXC_FROM_PROJECT,         /* the project file .nxcfg.yaml */
  NXC_FROM_CLI              /* --set, --world-size */
} nxc_provenance_kind;

typedef struct nxc_provenance nxc_provenance;
struct nxc_provenance {
  nxc_provenance_kind kind;
  nxc_span at;                  /* source is NULL for defaults, presets and rules */
  const char *option;           /* the option's dotted name in its dialect; NULL when no option gave it */
  const char *origin;           /* id of the rule, name of the preset; else NULL */
  bool interpolated;            /* the text that stands there was an interpolation */
  bool redacted;                /* the value came from the environment: never print it */
  const nxc_setting_id *inputs; /* what a rule derived it from */
  size_t n_inputs;
  const char *input_names;        /* the same in the user's words, options among them */
  const nxc_value *value;         /* what it gave; NULL for unknown */
  const nxc_provenance *previous; /* what it displaced; NULL when nothing */
};

typedef struct nxc_settings nxc_settings;

/* Every setting at its catalogue default, or unknown. */
nxc_settings *nxc_settings_new(nxc_arena *arena);
nxc_arena *nxc_settings_arena(const nxc_settings *settings);
/* From now on settings are called what this dialect calls them; until then they are called by their paths. */
void nxc_settings_speak(nxc_settings *settings, const nxc_dialect *dialect);
/* The config.json, or the model, that the file names and nobody can read here. */
void nxc_settings_miss_model(nxc_settings *settings, const char *name);
const char *nxc_settings_missed_model(const nxc_settings *settings); /* NULL: none */
/* How many of its own arguments a script reads that nobody told. */
void nxc_settings_miss_arguments(nxc_settings *settings, size_t n_arguments);
size_t nxc_settings_missed_arguments(const nxc_settings *settings);
/* NX_N_SETTINGS when there is no such setting. */
nxc_setting_id nxc_setting_find(const char *path);
const char *nxc_setting_path(nxc_setting_id id);

/* Gives a setting a value, converted to the catalogue's type (an int becomes a float, a scalar a list of
 * one; never the other way). Reports and returns false when the type or the bounds forbid it; the setting
 * then keeps what it had. A weaker provenance is kept as `previous` of the stronger, and does not displace
 * it. */
bool nxc_settings_set(nxc_settings *settings, nxc_setting_id id, const nxc_value *value,
                      const nxc_provenance *from, nxc_sink *sink);
/* What a rule that overrides the user does: displaces whatever there is. */
bool nxc_settings_override(nxc_settings *settings, nxc_setting_id id, const nxc_value *value,
                           const nxc_provenance *from, nxc_sink *sink);
/* Makes a setting unknown, its default included, because what an option says about it is wrong (reported).
 * No rule derives it then. */
void nxc_settings_forget(nxc_settings *settings, nxc_setting_id id, const char *option, nxc_span at);
/* A record of its own with the same values and provenance: what is set in one is not set in the other. */
nxc_settings *nxc_settings_copy(nxc_arena *arena, const nxc_settings *settings);
/* Makes a setting unknown, so that a rule may derive it again. */
void nxc_settings_clear(nxc_settings *settings, nxc_setting_id id);
bool nxc_settings_known(const nxc_settings *settings, nxc_setting_id id);
/* The file's own system has no such thing, so that the value is nobody's. */
bool nxc_settings_absent(const nxc_settings *settings, nxc_setting_id id);
/* Known and not null. What nxc_int and its siblings demand (asserted). */
bool nxc_has(const nxc_settings *settings, nxc_setting_id id);
const nxc_value *nxc_settings_value(const nxc_settings *settings, nxc_setting_id id); /* NULL: unknown */
int64_t nxc_int(const nxc_settings *settings, nxc_setting_id id);
double nxc_number(const nxc_settings *settings, nxc_setting_id id); /* of an int or a float */
bool nxc_flag(const nxc_settings *settings, nxc_setting_id id);
const char *nxc_text(const nxc_settings *settings, nxc_setting_id id);
/* false too when unknown or null */
bool nxc_is(const nxc_settings *settings, nxc_setting_id id, const char *text);
/* The same of what may be null or unknown. */
static inline int64_t nxc_int_or(const nxc_settings *settings, nxc_setting_id id, int64_t otherwise) {
  return nxc_has(settings, id) ? nxc_int(settings, id) : otherwise;
}
static inline double nxc_number_or(const nxc_settings *settings, nxc_setting_id id, double otherwise) {
  return nxc_has(settings, id) ? nxc_number(settings, id) : otherwise;
}

/* null: no items */
const nxc_value *nxc_list(const nxc_settings *settings, nxc_setting_id id, size_t *n_items);

/* Never NULL; kind NXC_FROM_UNKNOWN for an unknown setting. */
const nxc_provenance *nxc_settings_from(const nxc_settings *settings, nxc_setting_id id);
const char *nxc_provenance_kind_name(nxc_provenance_kind kind); /* "file", "layer", "rule", ... */
/* Where the user wrote it; of a derived setting, where its first input that stands in a text does. */
nxc_span nxc_settings_span(const nxc_settings *settings, nxc_setting_id id);
/* What the user calls it: the option that gave it, or the dialect's option that would; the path when there
 * is none. */
const char *nxc_setting_name_in_dialect(const nxc_settings *settings, nxc_setting_id id);
/* "64", "[0.9, 0.95]", "none", "unknown", "not in megatron"; "(not shown)" for what came from the
 * environment. For messages. */
const char *nxc_settings_show(const nxc_settings *settings, nxc_setting_id id);
/* Where it came from, in words: "default", "fixed by megatron", "derived by NX2001", "preset
 * mixed_precision", "given in case.yaml". */
const char *nxc_settings_show_origin(const nxc_settings *settings, nxc_setting_id id);

/* `plan -o` demands that it be known; what has a default has lost it where it is not. */
bool nxc_setting_is_wanted(nxc_setting_id id);
/* What would tell the unknown settings that `plan -o` demands; returns how many there are. */
size_t nxc_settings_unknown_for_plan(const nxc_settings *settings, nxc_setting_id ids[NX_N_SETTINGS]);

#endif
