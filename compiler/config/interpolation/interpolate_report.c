/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong while formulas run, with the chain of references that led there. */
#include "compiler/document/buffer.h"
#include "compiler/config/interpolation/interpolate_machine.h"

#include <stdarg.h>
#include <string.h>

enum { REMARKS_MAX = 64, PATHS_IN_MESSAGE_MAX = 12, WARNINGS_MAX = 100 };

/* The place of what a frame is doing; a decoded formula's place is the call that decodes it. */
static nxc_span frame_place(const nxc_evaluator *m, size_t index) {
  const nxc_frame *frame = &m->frames[index];
  if (frame->completing) {
    bool inside = frame->position < frame->node->n_children;
    return nxc_node_span(inside ? frame->node->children[frame->position] : frame->node);
  }
  if (frame->decoded && index > 0) return frame_place(m, index - 1);
  if (frame->position >= frame->formula->n_ops) return nxc_node_span(frame->node);
  const nxc_op *op = &frame->formula->ops[frame->position];
  return nxc_node_span_inside(frame->node, op->offset, op->length);
}

const nxc_op *nxc_machine_operation(const nxc_evaluator *m) {
  const nxc_frame *frame = nxc_machine_top(m);
  while (frame->decoded) frame--;
  return &frame->formula->ops[frame->position];
}

nxc_span nxc_machine_place(const nxc_evaluator *m) {
  return frame_place(m, m->n_frames - 1);
}

const char *nxc_machine_show(const nxc_evaluator *m, const nxc_node *node, const nxc_value *value) {
  if (node == NULL && m->n_frames > 0) node = nxc_machine_top(m)->node;
  return node && nxc_node_is_secret(node) ? "(not shown)" : nxc_value_show(m->arena, value);
}

/* Frames that show in a chain: formulas of their own, and lists and maps that a formula needs whole. */
static bool shows(const nxc_evaluator *m, size_t index) {
  const nxc_frame *frame = &m->frames[index];
  if (frame->decoded) return false;
  if (!frame->completing) return true;
  for (size_t i = 0; i < index; i++)
    if (!m->frames[i].completing) return true;
  return false;
}

static const char *path_of(nxc_evaluator *m, const nxc_node *node) {
  const char *path = nxc_node_path(m->arena, node);
  return *path ? path : "the document";
}

/* Shorter values are no secrets, and stand in too many words. */
enum { HIDDEN_MIN = 3 };

static const char *without(nxc_evaluator *m, const char *text, const char *hidden, size_t n_hidden) {
  const nxc_node *node = m->n_frames > 0 ? nxc_machine_top(m)->node : NULL;
  bool known = node != NULL && node->raw != NULL && memmem(node->raw, node->raw_bytes, hidden, n_hidden);
  if (n_hidden < HIDDEN_MIN || known) return text; /* the file says it itself */
  nxc_buffer shown = {.arena = m->arena};
  const char *at;
  for (; (at = strstr(text, hidden)) != NULL; text = at + n_hidden) {
    nxc_buffer_put(&shown, text, (size_t)(at - text));
    nxc_buffer_puts(&shown, "(not shown)");
  }
  nxc_buffer_puts(&shown, text);
  return shown.bytes;
}

const char *nxc_machine_public(nxc_evaluator *m, const char *text) {
  if (text == NULL || m->options->omegaconf) return text;
  for (size_t i = 0; i < m->n_variables; i++)
    if (m->variables[i].value) text = without(m, text, m->variables[i].value, strlen(m->variables[i].value));
  const nxc_derivation *from = m->n_frames > 0 ? nxc_machine_top(m)->node->derivation : NULL;
  for (size_t i = 0; from != NULL && i < from->n_references; i++) {
    const nxc_node *read = from->references[i].node ? nxc_node_final(from->references[i].node) : NULL;
    if (read != NULL && nxc_node_is_secret(from->references[i].node) && read->value.kind == NXC_STRING)
      text = without(m, text, read->value.text, read->value.n_bytes);
  }
  return text;
}

static void report(nxc_evaluator *m, const char *id, nxc_severity severity, const char *fix,
                   nxc_repair repair, const char *message, const char *about) {
  nxc_finding finding = {.id = id, .severity = severity, .about = about, .repair = repair};
  finding.message = nxc_machine_public(m, message);
  finding.fix = nxc_machine_public(m, fix);
  if (m->n_frames == 0) {
    finding.at = nxc_node_span(m->document->root);
    nxc_sink_report(m->sink, &finding);
    return;
  }
  size_t top = m->n_frames - 1, n = 0;
  nxc_remark remarks[REMARKS_MAX];
  while (top > 0 && !shows(m, top)) top--;
  finding.at = frame_place(m, m->n_frames - 1);
  for (size_t i = top; i-- > 0 && n < REMARKS_MAX;) {
    if (!shows(m, i)) continue;
    const char *text = nxc_arena_printf(m->arena, "needed by %s", path_of(m, m->frames[i].node));
    remarks[n++] = (nxc_remark){frame_place(m, i), text};
  }
  finding.remarks = remarks;
  finding.n_remarks = n;
  nxc_sink_report(m->sink, &finding);
}

nxc_step nxc_machine_fail(nxc_evaluator *m, const char *id, const char *fix, const char *format, ...) {
  va_list args;
  va_start(args, format);
  report(m, id, NXC_SEVERITY_ERROR, fix, (nxc_repair){0}, nxc_arena_vprintf(m->arena, format, args), NULL);
  va_end(args);
  m->ok = false;
  return NXC_STEP_FAILED;
}

nxc_step nxc_machine_miss(nxc_evaluator *m, const char *path, const char *fix, nxc_repair repair,
                          const char *message) {
  report(m, "NX1202", NXC_SEVERITY_ERROR, fix, repair, message, path);
  m->ok = false;
  return NXC_STEP_FAILED;
}

void nxc_machine_warn(nxc_evaluator *m, const char *id, const char *fix, const char *format, ...) {
  if (m->n_warnings++ >= WARNINGS_MAX) return; /* each takes time in proportion to its text */
  va_list args;
  va_start(args, format);
  report(m, id, NXC_SEVERITY_WARNING, fix, (nxc_repair){0}, nxc_arena_vprintf(m->arena, format, args), NULL);
  va_end(args);
}

nxc_step nxc_machine_cycle(nxc_evaluator *m, const nxc_node *node) {
  size_t first = 0, n = 0, n_hops = 0;
  while (first < m->n_frames && (m->frames[first].node != node || m->frames[first].decoded)) first++;
  nxc_remark remarks[REMARKS_MAX];
  nxc_buffer chain = {.arena = m->arena};
  for (size_t i = first; i < m->n_frames; i++) {
    const nxc_frame *frame = &m->frames[i];
    if (frame->decoded) continue;
    bool next_below = i + 1 < m->n_frames;
    size_t next = i + 1;
    while (next_below && next < m->n_frames && m->frames[next].decoded) next++;
    const nxc_node *to = next < m->n_frames ? m->frames[next].node : node;
    const char *from_path = path_of(m, frame->node), *to_path = path_of(m, to);
    if (n_hops++ < PATHS_IN_MESSAGE_MAX) {
      nxc_buffer_puts(&chain, from_path);
      nxc_buffer_puts(&chain, " -> ");
    } else if (n_hops == PATHS_IN_MESSAGE_MAX + 1) {
      nxc_buffer_puts(&chain, "... -> ");
    }
    if (n < REMARKS_MAX) {
      const char *text =
          nxc_arena_printf(m->arena, frame->completing ? "%s holds %s" : "%s needs %s", from_path, to_path);
      remarks[n++] = (nxc_remark){frame_place(m, i), text};
    }
  }
  nxc_buffer_puts(&chain, path_of(m, node));
  const char *message = nxc_arena_printf(m->arena, "a circle of %zu reference%s: %s", n_hops,
                                         n_hops == 1 ? "" : "s", chain.bytes);
  nxc_sink_report(m->sink, &(nxc_finding){.id = "NX1206",
                                          .severity = NXC_SEVERITY_ERROR,
                                          .message = message,
                                          .at = frame_place(m, m->n_frames - 1),
                                          .fix = "write the value itself in one of these places",
                                          .remarks = remarks,
                                          .n_remarks = n});
  m->ok = false;
  return NXC_STEP_FAILED;
}
