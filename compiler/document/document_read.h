/* SPDX-License-Identifier: Apache-2.0 */
/* One YAML text into a tree of nodes, whatever its root is. */
#ifndef NXC_CONFIG_DOCUMENT_READ_H
#define NXC_CONFIG_DOCUMENT_READ_H

#include "compiler/document/reader.h"

/* `text` is the cleaned text of reader->source. NULL when the text holds no node at all. */
nxc_node *nxc_document_read_tree(nxc_reader *reader, const char *text, size_t n_bytes);

#endif
