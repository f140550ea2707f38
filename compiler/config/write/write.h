/* SPDX-License-Identifier: Apache-2.0 */
/* Values as configuration texts, which the loader of the dialect reads back as the same values.
 *
 * A writer takes the whole tree of a file (a map) and gives its text, without comments. Scalars are written
 * so that YAML 1.1 and OmegaConf agree on them: 0.0003 and 1.0e-05 are numbers to both, and a text that
 * either would take for something else stands in quotes. What only the reader's machine can fill in
 * (NXC_MISSING with a text) stays as it was written. */
#ifndef NXC_CONFIG_WRITE_H
#define NXC_CONFIG_WRITE_H

#include "compiler/document/buffer.h"

typedef void nxc_writer(nxc_buffer *text, const nxc_value *root);

/* For nx and nxdt: a `${` or `$<` of resolved text is written with a backslash before it. */
nxc_writer nxc_write_yaml;
/* For OmegaConf itself, to which $< is plain text. */
nxc_writer nxc_write_yaml_omegaconf;
/* For PyYAML, to which ${ is plain text too. */
nxc_writer nxc_write_yaml_plain;
/* GPT-NeoX's form: one mapping in braces with quoted keys. */
nxc_writer nxc_write_flow;
/* Megatron's: a line for each option; a script, where the file says how the training is launched, or that
 * launch.program is another than that of a decoder. */
nxc_writer nxc_write_arguments;
/* A word as a shell reads it; $NAME stays for the shell to fill in where `expands`. */
void nxc_write_shell_word(nxc_buffer *text, const char *word, bool expands);

#endif
