/* SPDX-License-Identifier: Apache-2.0 */
/* Opens any text as a chat template and renders a dialogue by it. */
#include "chat/template.h"
#include "tests/fuzz/replay.h"

#include <assert.h>

static const char names_text[] =
    "{\"messages\": [{\"role\": \"system\", \"content\": \"Be brief.\"}, {\"role\": \"user\", \"content\": "
    "\"2+2?\"},"
    "{\"role\": \"assistant\", \"content\": \"\\u00fc 4\", \"tool_calls\": [{\"function\": {\"name\": \"f\","
    "\"arguments\": {\"a\": 1.5, \"b\": [null, true]}}}]}], \"tools\": null, \"add_generation_prompt\": true,"
    "\"bos_token\": \"<s>\", \"eos_token\": \"</s>\", \"n\": 7, \"s\": \"a b\", \"l\": [3, 1, 2], \"d\": "
    "{\"k\": 1}}";

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
  static json_t *names;
  const nxj_limits limits = {.steps = 20000, .bytes = 4 << 20};
  if (names == NULL) names = json_loads(names_text, 0, NULL);
  nxr_fault fault = {""};
  nxj_template *opened = nxj_template_open("input", (const char *)bytes, n_bytes, limits, &fault);
  assert((opened == NULL) == (fault.text[0] != '\0'));
  if (opened == NULL) return 0;
  nxj_text text;
  const nxj_input input = {.names = names, .has_clock = true, .clock = (int64_t)n_bytes, .limits = limits};
  bool rendered = nxj_template_render(opened, &input, &text, &fault);
  assert(rendered == (fault.text[0] == '\0'));
  for (size_t i = 0; i < text.n_spans; i++)
    assert(text.spans[i].begin <= text.spans[i].end && text.spans[i].end <= text.n_bytes);
  nxj_text_free(&text);
  nxj_template_close(opened);
  return 0;
}
