/* SPDX-License-Identifier: Apache-2.0 */
/* Chat templates against what transformers made of the same dialogues (tests/parity/record_chat.py).
 *
 * usage: test_chat RECORD.json : a test for each template with all its dialogues, and for each snippet. */
#include "chat/template.h"
#include "tests/tap.h"

#include <string.h>

enum { NOW = 1730810096 /* as the recorder */ };

static bool same_spans(const json_t *expected, const nxj_text *text) {
  if (json_array_size(expected) != text->n_spans) return false;
  for (size_t i = 0; i < text->n_spans; i++) {
    const json_t *span = json_array_get(expected, i);
    if ((size_t)json_integer_value(json_array_get(span, 0)) != text->spans[i].begin ||
        (size_t)json_integer_value(json_array_get(span, 1)) != text->spans[i].end)
      return false;
  }
  return true;
}

static bool same_text(const json_t *expected, const nxj_text *text) {
  return json_string_length(expected) == text->n_bytes &&
         memcmp(json_string_value(expected), text->text, text->n_bytes) == 0;
}

static void tell(const char *text) {
  for (const char *end; *text != '\0'; text = *end ? end + 1 : end) {
    end = strchrnul(text, '\n');
    tap_note("  %.*s", (int)(end - text), text);
  }
}

static bool check_text(const json_t *record, const nxj_text *text, size_t index) {
  const json_t *expected = json_object_get(record, "text");
  bool same = same_text(expected, text), spans = same_spans(json_object_get(record, "spans"), text);
  if (!same) {
    tap_note("case %zu gives", index);
    tell(text->text);
    tap_note("and was recorded as");
    tell(json_string_value(expected));
  } else if (!spans) {
    tap_note("case %zu: other spans", index);
  }
  return same && spans;
}

/* Says what differs, and returns whether nothing does. */
static bool check_case(const nxj_template *opened, const json_t *names, const json_t *record, size_t index) {
  const nxj_input input = {.names = names, .has_clock = true, .clock = NOW, .limits = NXJ_LIMITS_USUAL};
  bool renders = json_is_string(json_object_get(record, "text"));
  nxr_fault fault = {""};
  nxj_text text;
  bool rendered = nxj_template_render(opened, &input, &text, &fault);
  bool good = rendered == renders && (!rendered || check_text(record, &text, index));
  if (rendered && !renders) tap_note("case %zu renders, and was refused", index);
  if (!rendered && renders) tap_note("case %zu is refused: %s", index, fault.text);
  if (rendered) nxj_text_free(&text);
  return good;
}

static nxj_template *open_text(const json_t *record, const char *name, nxr_fault *fault) {
  const json_t *text = json_object_get(record, "template");
  return nxj_template_open(name, json_string_value(text), json_string_length(text), NXJ_LIMITS_USUAL, fault);
}

static void check_template(const json_t *record, const json_t *dialogues) {
  const json_t *cases = json_object_get(record, "cases");
  const char *name = json_string_value(json_object_get(record, "name"));
  nxr_fault fault = {""};
  nxj_template *opened = open_text(record, name, &fault);
  if (opened == NULL) tap_note("%s", fault.text);
  bool good = opened != NULL && json_array_size(cases) > 0;
  for (size_t i = 0; opened && i < json_array_size(cases); i++)
    good = check_case(opened, json_array_get(dialogues, i), json_array_get(cases, i), i) && good;
  nxj_template_close(opened);
  tap_report(good, "template %s", name);
}

/* What transformers refuses may be refused when the snippet is opened. */
static void check_snippet(const json_t *record, const json_t *names, size_t index) {
  nxr_fault fault = {""};
  nxj_template *opened = open_text(record, "snippet", &fault);
  bool renders = json_is_string(json_object_get(record, "text"));
  bool good = opened ? check_case(opened, names, record, index) : !renders && fault.text[0] != '\0';
  if (opened == NULL && renders) tap_note("%s", fault.text);
  nxj_template_close(opened);
  tap_report(good, "snippet %zu", index);
}

int main(int n, char **arguments) {
  json_error_t error;
  json_t *record = n == 2 ? json_load_file(arguments[1], JSON_ALLOW_NUL, &error) : NULL;
  if (record == NULL) tap_bail("test_chat needs a record");
  const json_t *templates = json_object_get(record, "templates"),
               *snippets = json_object_get(record, "snippets");
  for (size_t i = 0; i < json_array_size(templates); i++)
    check_template(json_array_get(templates, i), json_object_get(record, "dialogues"));
  for (size_t i = 0; i < json_array_size(snippets); i++)
    check_snippet(json_array_get(snippets, i), json_object_get(record, "names"), i);
  json_decref(record);
  return tap_end();
}
