/* SPDX-License-Identifier: Apache-2.0 */
/* How xorl's files are read: YAML sections that become arguments, over which arguments behind `--` win.
 *
 * The real parser turns each value into text, --section.key TEXT, and argparse reads that by the option's
 * type. So 3e-4 is a number although YAML says text, 2.0 is no integer, and null is the text "null" where a
 * text is wanted. What it takes silently for something else than is written (a beginning of a key, a bare
 * switch at the end, null) is a finding here. Entries of data.datasets are checked key by key before options
 * are judged. */
#ifndef NXC_CONFIG_FRONT_XORL_H
#define NXC_CONFIG_FRONT_XORL_H

#include "compiler/config/binding/dialect.h"
#include "compiler/config/front/front.h"

extern const char *const nxc_xorl_versions[];

nxc_document *nxc_xorl_read(const nxc_front_texts *texts);
void nxc_xorl_prepare(nxc_binding *binding);
/* The type of a tree's values by their options: part of nxc_xorl_read. */
void nxc_xorl_type(nxc_document *document, nxc_sink *sink);

/* -- files of other programs (xorl_server.c) -- */

/* Whether it is such a file: of the server, or of an export. */
bool nxc_xorl_claims(const nxc_source *text);
/* Puts the keys of a server's file into their sections; what the server does not know is reported. */
void nxc_xorl_take_server(nxc_document *document, const nxc_source *text, nxc_sink *sink);

#endif
