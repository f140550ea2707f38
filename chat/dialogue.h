/* SPDX-License-Identifier: Apache-2.0 */
/* Dialogues as text, and which of it the assistant said.
 *
 * A style is a chat template with the names of special tokens that a tokenizer's folder gives it. Where the
 * template has a generation tag that says which text is the assistant's. Elsewhere a turn's text is what the
 * template adds for it behind the prompt that it writes before an answer; a template that writes a turn
 * another way once the dialogue goes on (as those that drop earlier thoughts) cannot be told apart so, and is
 * refused with that dialogue. */
#ifndef NXJ_DIALOGUE_H
#define NXJ_DIALOGUE_H

#include "chat/template.h"

typedef struct nxj_style {
  nxj_template *template;
  json_t *names; /* bos_token and the like */
} nxj_style;

/* `folder` is the tokenizer's, or a file in it. `path` names a file with a template; NULL or "": the folder's
 * own, chat_template.jinja or in tokenizer_config.json. On failure there is nothing to close. */
bool nxj_style_open(const char *folder, const char *path, nxj_style *style, nxr_fault *fault);
void nxj_style_close(nxj_style *style);

/* `tools` may be NULL. Spans are the assistant's text, where `marked` asks for it. Several threads may share
 * a style; messages and tools are the thread's own. */
bool nxj_dialogue_render(const nxj_style *style, json_t *messages, json_t *tools, bool marked,
                         nxj_text *rendered, nxr_fault *fault);

/* Of a prompt and the answer behind it (lists of messages): the text of both, and where it goes on
 * differently from that of the prompt, after which an answer is awaited. */
bool nxj_dialogue_answer(const nxj_style *style, json_t *prompt, json_t *answer, nxj_text *rendered,
                         size_t *begin, nxr_fault *fault);

#endif
