/* SPDX-License-Identifier: Apache-2.0 */
/* Repairs of a document's text, from its nodes (edit.h).
 *
 * Each gives none where the text is not plain enough to be changed without reading it again: a value of
 * several lines, a pair that shares its line with another, a node that no file says. Of a node that an alias
 * or a merge key repeats the repair is not safe: the other places change with it. */
#ifndef NXC_CONFIG_REPAIR_H
#define NXC_CONFIG_REPAIR_H

#include "compiler/diagnostics/nearest.h"
#include "compiler/document/document.h"

/* The last part of its key becomes `name`, where it is written in full. */
nxc_repair nxc_repair_key(nxc_arena *arena, const nxc_node *node, const char *name, bool safe);
/* The same of a key that is unknown; none where no name is near. */
nxc_repair nxc_repair_misspelt_key(nxc_arena *arena, const nxc_node *node, nxc_near near);
/* A scalar's text, quotes included, becomes `text`. */
nxc_repair nxc_repair_value(nxc_arena *arena, const nxc_node *node, const char *text, bool safe);
/* The same for a text: its quotes stay. */
nxc_repair nxc_repair_text(nxc_arena *arena, const nxc_node *node, const char *text, bool safe);
/* A list of one, in brackets in one line, becomes its item. */
nxc_repair nxc_repair_unwrap(nxc_arena *arena, const nxc_node *list, bool safe);
/* Its line goes; of a command line, the option with its value, where they have a line of their own. */
nxc_repair nxc_repair_remove(nxc_arena *arena, const nxc_node *node, bool safe);
/* Words of a command line go with the blanks in front of them, or behind where they begin a line; a line that
 * goes on goes as a whole where it has no others. */
nxc_repair nxc_repair_remove_words(nxc_arena *arena, const nxc_source *source, size_t begin, size_t end,
                                   bool safe);
/* A line with this pair comes to the top of a section that is there; of a command line the option, a switch
 * where `text` is NULL, in front of the first one that begins a line. */
nxc_repair nxc_repair_add(nxc_arena *arena, const nxc_node *section, const char *key, const char *text);
/* A script of this option exports a variable, above all that it does. */
nxc_repair nxc_repair_export(nxc_arena *arena, const nxc_node *root, const char *name, const char *text);
/* Its line goes to the top of a section that is there, under another key. */
nxc_repair nxc_repair_move(nxc_arena *arena, const nxc_node *node, const nxc_node *section, const char *key,
                           bool safe);

#endif
