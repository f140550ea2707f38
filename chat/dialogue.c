/* SPDX-License-Identifier: Apache-2.0 */
#include "chat/dialogue.h"

#include <stdlib.h>
#include <string.h>

/* -- turns ----------------------------------------------------------------------------------------------- */

typedef struct dialogue {
  const nxj_style *style;
  json_t *messages, *tools;
} dialogue;

static bool render(const dialogue *of, json_t *messages, bool prompt, nxj_text *rendered, nxr_fault *fault) {
  const nxj_named more[] = {{"messages", messages},
                            {"tools", of->tools ? of->tools : json_null()},
                            {"documents", json_null()},
                            {"add_generation_prompt", prompt ? json_true() : json_false()}};
  const nxj_input input = {.names = of->style->names,
                           .more = more,
                           .n_more = sizeof more / sizeof *more,
                           .limits = NXJ_LIMITS_USUAL};
  return nxj_template_render(of->style->template, &input, rendered, fault);
}

/* The text of the first n messages, and the prompt behind it. */
static bool render_first(const dialogue *of, size_t n, bool prompt, nxj_text *rendered, nxr_fault *fault) {
  json_t *first = json_array();
  bool good = first != NULL;
  for (size_t i = 0; i < n && good; i++)
    good = json_array_append(first, json_array_get(of->messages, i)) == 0;
  if (!good) nxr_fault_set(fault, "out of memory");
  good = good && render(of, first, prompt, rendered, fault);
  json_decref(first);
  return good;
}

static bool begins_with(const nxj_text *text, const nxj_text *beginning) {
  return text->n_bytes >= beginning->n_bytes && memcmp(text->text, beginning->text, beginning->n_bytes) == 0;
}

/* What the template adds for message i: from behind the prompt for it to where it ends. */
static bool span_of(const dialogue *of, size_t i, const nxj_text *whole, nxj_span *span, nxr_fault *fault) {
  nxj_text before, with = {0};
  if (!render_first(of, i, true, &before, fault)) return false;
  bool good = render_first(of, i + 1, false, &with, fault);
  bool told = good && begins_with(&with, &before) && begins_with(whole, &with);
  if (told) *span = (nxj_span){before.n_bytes, with.n_bytes};
  nxj_text_free(&before);
  nxj_text_free(&with);
  if (good && !told)
    nxr_fault_set(
        fault,
        "the template writes message %zu another way where the dialogue goes on, so that what the assistant "
        "said cannot be told: use a template with a generation tag",
        i + 1);
  return told;
}

static bool is_assistant(const json_t *message) {
  const char *role = json_string_value(json_object_get(message, "role"));
  return role != NULL && strcmp(role, "assistant") == 0;
}

static bool mark_turns(const dialogue *of, nxj_text *whole, nxr_fault *fault) {
  size_t n = json_array_size(of->messages);
  nxj_span *spans = calloc(n + 1, sizeof *spans);
  if (spans == NULL) return nxr_fault_set(fault, "out of memory");
  free(whole->spans);
  whole->spans = spans, whole->n_spans = 0;
  for (size_t i = 0; i < n; i++) {
    if (!is_assistant(json_array_get(of->messages, i))) continue;
    if (!span_of(of, i, whole, &spans[whole->n_spans++], fault)) return false;
  }
  return true;
}

/* What is odd of a message; NULL: nothing that is known. */
static const char *oddity_of(const json_t *message) {
  const json_t *content = json_object_get(message, "content");
  if (!json_is_object(message)) return "no object with role and content";
  if (json_object_get(message, "from")) return "written with from and value: rename them to role and content";
  if (!json_object_get(message, "role")) return "without a role";
  if (content == NULL) return "without content";
  if (json_is_null(content)) return "of content that is null";
  if (json_is_array(content)) return "of content that is a list";
  return json_is_string(content) ? NULL : "of content that is no text";
}

/* Says of the message that is odd first that it is, where a template failed. */
static bool explain(json_t *messages, nxr_fault *fault) {
  const nxr_fault why = *fault;
  const json_t *message;
  size_t i;
  json_array_foreach(messages, i, message) {
    const char *oddity = oddity_of(message);
    if (oddity == NULL) continue;
    fault->text[0] = '\0';
    return nxr_fault_set(fault, "%.700s; message %zu is %s", why.text, i + 1, oddity);
  }
  return false;
}

bool nxj_dialogue_render(const nxj_style *style, json_t *messages, json_t *tools, bool marked,
                         nxj_text *rendered, nxr_fault *fault) {
  const dialogue of = {style, messages, tools};
  if (!json_is_array(messages) || json_array_size(messages) == 0)
    return nxr_fault_set(fault, "its messages are no list of them");
  if (!render(&of, messages, false, rendered, fault)) return explain(messages, fault);
  if (!marked || nxj_template_has_generation(style->template) || mark_turns(&of, rendered, fault))
    return true;
  nxj_text_free(rendered);
  return false;
}

/* A list of the messages of both. */
static json_t *joined(json_t *prompt, json_t *answer) {
  json_t *all = json_array();
  if (all && json_array_extend(all, prompt) == 0 && json_array_extend(all, answer) == 0) return all;
  json_decref(all);
  return NULL;
}

bool nxj_dialogue_answer(const nxj_style *style, json_t *prompt, json_t *answer, nxj_text *rendered,
                         size_t *begin, nxr_fault *fault) {
  const dialogue of = {style, NULL, NULL};
  size_t n = json_array_size(prompt);
  bool awaited = n > 0 && !is_assistant(json_array_get(prompt, n - 1));
  nxj_text asked = {0};
  json_t *all = joined(prompt, answer);
  if (all == NULL) return nxr_fault_set(fault, "out of memory");
  bool good =
      (n == 0 || render(&of, prompt, awaited, &asked, fault)) && render(&of, all, false, rendered, fault);
  json_decref(all);
  for (*begin = 0; good && *begin < asked.n_bytes && *begin < rendered->n_bytes;) {
    if (asked.text[*begin] != rendered->text[*begin]) break;
    ++*begin;
  }
  nxj_text_free(&asked);
  return good;
}
