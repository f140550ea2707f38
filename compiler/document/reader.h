/* SPDX-License-Identifier: Apache-2.0 */
/* The YAML reader's own parts: cleaning the text, typing scalars, and the event loop (document_read.c).
 *
 * libyaml sees a cleaned copy of the text with the same lines and columns, so one bad character does not end
 * the reading. Everything here reports to the reader's sink and goes on. */
#ifndef NXC_CONFIG_READER_H
#define NXC_CONFIG_READER_H

#include "compiler/document/document.h"

typedef struct nxc_reader {
  nxc_arena *arena;
  const nxc_source *source;
  const nxc_source *mended; /* the text with the slips undone that were found, line for line; NULL: none */
  const char *clean; /* the source's text, as long, as libyaml is given it; NULL: it reads something else */
  const nxc_reading *reading;
  nxc_sink *sink;
  bool ok;           /* no error so far after which it is not known what the text says */
  bool stand_ins;    /* the text has some in place of characters that cannot stand in it */
  bool in_flow;      /* inside [...] or {...} */
  bool secret;       /* the key names a secret: findings do not show the value */
  nxc_remark *homes; /* texts that begin with $HOME: one finding names them all */
  size_t n_homes;
} nxc_reader;

/* Reports an error and notes that it is not known what the text says. fix may be NULL. */
void nxc_reader_error(nxc_reader *reader, const char *id, nxc_span at, const char *fix, const char *format,
                      ...) __attribute__((format(printf, 5, 6)));
void nxc_reader_warn(nxc_reader *reader, const char *id, nxc_span at, const char *fix, const char *format,
                     ...) __attribute__((format(printf, 5, 6)));
/* Reports libyaml's problem in our words; `context` may be NULL. The text, with *n_bytes, that
 * its repair makes of libyaml's, line for line; NULL: nothing is known that mends it. */
const char *nxc_reader_syntax(nxc_reader *reader, const char *problem, nxc_span at, const char *context,
                              nxc_span opened, size_t *n_bytes);
/* The line at `line` or a few above it that keeps the text from being YAML by its indentation alone, what
 * that is, and what would mend it; .line 0: there is none. */
typedef struct nxc_misindented {
  uint32_t line;
  size_t is, indent;
} nxc_misindented;
nxc_misindented nxc_misindented_line(const nxc_source *source, uint32_t line, bool further);
/* One slip in one line, undone, that would make the text YAML; or, where `further` is true, that would let
 * reading end well behind that line only, at another slip. The line that reading ends at is tried first,
 * then the one that opened what is open there (0: none), then those above. False: there is none, or the text
 * is larger than NXC_MENDED_BYTES_MAX. needless: the slip is the line itself. */
typedef struct nxc_line_mend {
  nxc_span at;
  nxc_edit edit;
  const char *message, *fix;
} nxc_line_mend;
enum { NXC_MENDED_BYTES_MAX = 1 << 15 };
bool nxc_find_line_mend(nxc_reader *reader, uint32_t line, uint32_t opened, bool needless, bool further,
                        nxc_line_mend *found);
/* The line at which reading ends too early; 0: it does not, the text is YAML. */
uint32_t nxc_yaml_ends_at(const char *text, size_t n_bytes);
/* Whether that is good enough where a slip in this line, or above, was undone. */
bool nxc_yaml_goes_on(const char *text, size_t n_bytes, uint32_t line, bool further);
/* `length` 0: to the end of the line. */
nxc_span nxc_reader_span(const nxc_reader *reader, size_t line, size_t column, size_t length);

/* The source's text for libyaml, one character for one: bad bytes become '_', unknown directives comments.
 * NULL (reported) when it is not UTF-8 at all or too large. */
char *nxc_reader_clean(nxc_reader *reader);
/* Reports tabs outside quotes, block text and comments, which the original loaders reject. `texts` are the
 * places of quoted and block scalars, in order, as pairs of byte offsets. */
void nxc_reader_check_tabs(nxc_reader *reader, const size_t *texts, size_t n_texts);
/* Byte offset of a character of a line (both 0-based, as libyaml counts). */
size_t nxc_reader_offset(const nxc_reader *reader, size_t line, size_t column);

/* Types the node's raw text: `tag` as libyaml gives it (NULL: none). */
void nxc_reader_type(nxc_reader *reader, nxc_node *node, const char *tag, bool is_key);
/* Reports what was gathered for findings that name several places. */
void nxc_reader_finish(nxc_reader *reader);
/* What a list's or a map's tag demands. False (reported): not to be read. *pairs: an ordered map. */
bool nxc_reader_collection_tag(nxc_reader *reader, const char *tag, nxc_node_kind kind, nxc_span at,
                               bool *pairs);

#endif
