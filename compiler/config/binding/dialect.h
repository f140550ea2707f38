/* SPDX-License-Identifier: Apache-2.0 */
/* A document bound to a dialect: which option each key is, whether its value fits, and the settings it
 * sets.
 *
 * A binding has one nxc_bound per option row of the dialect (and of hf_config, the keys of a Hugging Face
 * config.json), in the rows' order. A bound option is given (it stands in the document), or stands for its
 * default, or is unknown. It is inactive when its row's `for` is false: the real system does not read it,
 * so it sets nothing. The binder reports everything that it finds, and goes on; an option whose value is
 * wrong is unknown afterwards. A binding is also the scope of expressions: of `sets` here, of the rules in
 * rules.h. */
#ifndef NXC_CONFIG_DIALECT_H
#define NXC_CONFIG_DIALECT_H

#include "compiler/document/document.h"
#include "compiler/texts.h"
#include "compiler/expression/expression.h"
#include "compiler/settings/catalogue.h"
#include "compiler/settings/domain.h"
#include "compiler/settings/programs.h"
#include "compiler/settings/relatives.h"
#include "compiler/settings/settings.h"

typedef struct nxc_bound {
  const nxc_option_row *row;
  const nxc_node *node;   /* where it is given; NULL: not given. Of config.json: NULL too, see `at` */
  nxc_span at;            /* of the key that gives it */
  const nxc_value *value; /* given or default; NULL: unknown */
  bool given;  /* a key that was meant for it counts too */
  bool lacks;  /* required and not given, or meant by another key, which has been reported: unknown */
  bool inactive;
  bool refused; /* nxrun cannot execute it, which has been reported */
  bool secret;  /* its value must not be shown */
  nxc_provenance_kind kind;
} nxc_bound;

/* A given value that its option cannot take. */
typedef struct nxc_misfit_value {
  const nxc_bound *bound;
  nxc_span at;
  const char *name; /* as it is given, which may be an alias */
  const nxc_value *value;
  nxc_verdict verdict;
} nxc_misfit_value;

/* Where the document's nodes come from, so that a source tells the kind of a provenance. */
typedef struct nxc_origin {
  const nxc_source *first; /* the configuration file */
  const nxc_source **layers;
  size_t n_layers; /* everything else came from the command line */
} nxc_origin;

typedef struct nxc_binding {
  nxc_arena *arena;
  nxc_sink *sink;
  const nxc_dialect *dialect;
  const char *version;              /* of the dialect; NULL where it has one only */
  const nxc_dialect *model_dialect; /* hf_config */
  nxc_document *document;
  nxc_origin origin;
  nxc_settings *settings;
  nxc_bound *options;       /* dialect->n_options */
  nxc_bound *model_options; /* model_dialect->n_options */
  nxc_misfit_value *misfits;
  size_t n_misfits;
  struct nxc_unknown_key {
    const nxc_node *node;
    const char *name;
  } *unknown; /* keys that are no option */
  size_t n_unknown;
  const nxc_texts *own_keys; /* patterns of keys that the project reads itself; NULL: none */
  const char *const *strict_sections; /* whose unknown keys the system refuses; NULL: it refuses all */
  bool has_model_config;
  bool model_taken;   /* options say the model of a checkpoint of the system itself */
  bool one_family;    /* the system takes every config.json for a Llama's */
  bool model_assumed; /* it is what is well known of a model of that name */
  bool for_nxrun;           /* what nxrun cannot execute is an error */
  bool checks_all;          /* the real system judges values that it does not read, too */
  const nxc_program_row *program; /* whose own options may stand there too; NULL: none */
  bool own_program;               /* the user's own may have further options */
  const nxc_relative *relative;   /* the code that the document is for instead; NULL: the system as known */
  bool elsewhere;           /* other texts will complete this one: what is not given may be given there */
  bool partial;             /* so, or another program's defaults count: what is not given is unknown */
  bool whole_sections;      /* no other text completes a section of this one */
  bool assumes_defaults;    /* but for estimates it has its default */
  const nxc_bound *current; /* what `value` means in the expression that is evaluated */
} nxc_binding;

/* Whether whoever gives the section of the option gives the option, in the same text: an entry of a list is
 * never completed by another text, and where sections are whole, neither are they. */
bool nxc_option_is_demanded(nxc_arena *arena, const nxc_option_row *row, bool whole_sections);

/* Whether what the document is written for has the option: the version of the system, or the code that grew
 * out of it. What is given there it has. */
bool nxc_binding_may_have(const nxc_binding *binding, const nxc_option_row *row);
/* A binding with every option at its default in this version of the dialect (NULL: it has one only). */
nxc_binding *nxc_binding_new(nxc_arena *arena, const nxc_dialect *dialect, const char *version,
                             nxc_document *document, const nxc_origin *origin, nxc_settings *settings,
                             nxc_sink *sink);
/* Finds each key's option and judges its value: unknown keys, aliases; types, words, bounds and null are
 * kept. */
void nxc_binding_read(nxc_binding *binding);
/* Reads a Hugging Face config.json into the model options. False (reported) when it cannot be read. One that
 * a command line asks for may be a pipe. */
bool nxc_binding_read_model_config(nxc_binding *binding, const char *path, bool asked);
bool nxc_binding_read_model_text(nxc_binding *binding, const nxc_source *text);
/* What options say together: which are inactive, what does not fit (a warning where it is inactive), which
 * required ones lack, what nxrun refuses; then sets settings. */
void nxc_binding_apply(nxc_binding *binding);

/* The repair that is known for a value that does not fit. What an interpolation gives is written elsewhere.
 */
nxc_repair nxc_misfit_repair(nxc_arena *arena, const nxc_node *node, const nxc_verdict *verdict);
/* What mostly stands for an option, as it is written: its default, or what says nothing in particular. NULL:
 * each file has its own. */
const char *nxc_binding_usual(const nxc_binding *binding, const nxc_option_row *row);
/* Whether a key that is no option has the last step of this one: it stands in the wrong place. */
bool nxc_binding_has_elsewhere(const nxc_binding *binding, const char *name);
/* Of it, the required ones that lack (dialect_required.c). */
void nxc_binding_check_required(nxc_binding *binding);

/* The code that grew out of the system which the document is for: told by an option, or a word, that it alone
 * has. NULL: none. */
const nxc_relative *nxc_relative_of(nxc_arena *arena, const nxc_dialect *dialect,
                                    const nxc_document *document);
/* The system as it was before its oldest version that is known here: the document has options that it lost
 * before, and none that is younger. NULL: it is for none of those. */
const nxc_relative *nxc_past_system(nxc_arena *arena, const nxc_dialect *dialect, const char *oldest,
                                    const nxc_document *document);
/* Sets what options of its own say, as far as that is known: for estimates. */
void nxc_binding_take_relative(nxc_binding *binding);
/* What it has of its own, as one finding. */
void nxc_binding_report_relative(nxc_binding *binding);
/* An option that the system had once, as an unknown key. False: it never had it. */
bool nxc_binding_report_past(nxc_binding *binding, const nxc_node *node, const char *name, bool open);

/* Reports the n-th unknown key, unless an interpolation reads it. An option that was meant is unknown
 * afterwards; a section that was meant is returned, so that it can be read (NULL: none). */
const char *nxc_binding_report_unknown(nxc_binding *binding, size_t index);
/* A repair: the key becomes that of another option beside it, or its line goes to that option's section. None
 * where that option is given already. */
nxc_repair nxc_binding_rename(nxc_binding *binding, const nxc_node *node, const char *name, const char *meant,
                              bool safe);
/* Options below a section that are not given, and might have been, are unknown. */
void nxc_binding_doubt_section(nxc_binding *binding, const char *section, const nxc_node *node);

nxc_bound *nxc_binding_find(const nxc_binding *binding, const char *name);
/* Whether an option of this name, or one below it, is given. */
bool nxc_binding_is_given(const nxc_binding *binding, const char *name);
const nxc_bound *nxc_binding_find_model(const nxc_binding *binding, const char *name);
/* The scope in which expressions see this binding and its settings. */
nxc_scope nxc_binding_scope(nxc_binding *binding);
/* NULL: unknown. A failed expression is unknown too. */
const nxc_value *nxc_binding_evaluate(nxc_binding *binding, const nxc_bound *current, const char *expression);
/* Whether a condition is known and holds. */
bool nxc_binding_is_true(nxc_binding *binding, const nxc_bound *current, const char *condition);
/* The option's value that would make this of it, as nxc_expression_invert finds it. */
const nxc_value *nxc_binding_invert(nxc_binding *binding, const char *expression, const nxc_value *result);
/* Whether a key of this name may be one of the users' own: their modules read it. "data." asks about the
 * section. */
bool nxc_section_is_open(const char *const *strict_sections, const char *name);
/* Options of a dialect whose names start with `section` and a dot: [*first, return value). */
size_t nxc_dialect_section(const nxc_dialect *dialect, const char *section, size_t *first);
bool nxc_dialect_has_section(const nxc_dialect *dialect, const char *name);
/* The dotted name of a key of a section; "" is the top. */
const char *nxc_name_below(nxc_arena *arena, const char *section, const char *key);
/* What stands behind the last dot. */
const char *nxc_name_last(const char *name);
/* The provenance that a node's place means. */
nxc_provenance_kind nxc_origin_kind(const nxc_origin *origin, nxc_span at);

#endif
