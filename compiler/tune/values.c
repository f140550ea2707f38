/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/tune/values.h"

static uint32_t common_multiple(uint32_t a, uint32_t b) {
  uint32_t x = a, y = b;
  while (y != 0) {
    uint32_t rest = x % y;
    x = y;
    y = rest;
  }
  return a / x * b;
}

/* As few ranks as the value needs, so that there are many micro-batches; hosts divide them. */
static bool choose_world(const nxc_space *space, const nxc_choice *choice, nxc_training *training) {
  enum { ATTEMPTS = 64 };
  nxc_space trial = *space;
  nxc_training chosen;
  nxc_choice_read(space, choice, &chosen);
  const nxc_layout *l = &chosen.layout;
  uint64_t replica = (uint64_t)l->tensor * l->pipeline * l->context;
  if (replica > INT32_MAX / ATTEMPTS / l->nodes) return false;
  uint32_t unit = common_multiple((uint32_t)replica, l->nodes);
  trial.training = training;
  for (uint32_t times = 1; times <= ATTEMPTS; times++) {
    training->layout.world = times * unit;
    if (nxc_choice_divides(&trial, choice)) return true;
  }
  return false;
}

/* Whether an option that would change stands in another text than the file's. */
static bool stands_elsewhere(const nxc_values *s, const nxc_said *said) {
  const nxc_source *first = s->compiled->binding->origin.first;
  for (size_t i = 0; i < said->n_edits; i++) {
    const nxc_bound *bound = said->edits[i].bound;
    if (bound->given && bound->node != NULL && bound->node->at.source != first) return true;
  }
  return false;
}

static const char *copy(const nxc_values *s, const char *text) {
  return text == NULL ? NULL : nxc_arena_strdup(s->arena, text);
}

/* Whether the system takes the layout on the ranks of a training; else *why tells, where it tells nothing
 * yet. */
static bool takes(const nxc_values *s, const nxc_choice *choice, const nxc_training *training,
                  bool *elsewhere, nxc_left_out *why) {
  nxc_space probe = *s->space;
  probe.training = training;
  nxc_arena_mark mark = nxc_arena_mark_now(s->scratch);
  const nxc_said said = nxc_say(s->speaker, &probe, choice, s->scratch);
  const nxc_refusal *by = &said.refused;
  bool accepted = by->message == NULL;
  if (!accepted && why->message == NULL)
    *why = (nxc_left_out){.id = by->id != NULL && nxc_rule_find(by->id) != NULL ? copy(s, by->id) : NULL,
                          .message = copy(s, by->message),
                          .remedy = copy(s, by->remedy)};
  *elsewhere = *elsewhere || (said.text == NULL && stands_elsewhere(s, &said));
  nxc_arena_rewind(s->scratch, mark);
  return accepted;
}

/* On all ranks, or on as many as are good for it. */
static bool is_accepted(const nxc_values *s, const nxc_choice *choice, bool *elsewhere, nxc_left_out *why) {
  nxc_training training = *s->space->training;
  if (nxc_choice_divides(s->space, choice) && takes(s, choice, &training, elsewhere, why)) return true;
  return choose_world(s->space, choice, &training) && takes(s, choice, &training, elsewhere, why);
}

/* ZeRO 3 and a pipeline may exclude each other; an order may ask for two chunks on a stage. */
static bool may_help(const nxc_space *space, nxc_knob knob, int other, size_t place) {
  nxc_knob_value value = space->values[other][place];
  bool two_chunks = knob == NXC_KNOB_ORDER && other == NXC_KNOB_STAGES && value.second == 2;
  return value.first <= 1 || two_chunks;
}

/* The value alone, or where another knob stands where it may help. */
static bool is_known(const nxc_values *s, nxc_knob knob, size_t place, nxc_left_out *why) {
  const nxc_space *space = s->space;
  nxc_choice choice = {{0}};
  bool *elsewhere = &s->elsewhere[knob];
  choice.at[knob] = (uint16_t)place;
  if (is_accepted(s, &choice, elsewhere, why)) return true;
  for (int other = 0; other < NXC_N_KNOBS; other++)
    for (size_t low = 1; other != (int)knob && other != NXC_KNOB_GLOBAL && low < space->n_values[other];
         low++) {
      nxc_choice both = choice;
      both.at[other] = (uint16_t)low;
      if (may_help(space, knob, other, low) && is_accepted(s, &both, elsewhere, why)) return true;
    }
  return false;
}

/* Of two values of a degree, of which one divides sequences too, that one is better; of two names of the same
 * the first that the system knows is enough. */
static bool is_worse(const nxc_space *space, nxc_knob knob, size_t place) {
  nxc_knob_value value = space->values[knob][place];
  for (size_t i = 0; i < place; i++) {
    nxc_knob_value other = space->values[knob][i];
    if (other.first != value.first) continue;
    if (knob == NXC_KNOB_STAGES && other.second == value.second) return true; /* its own way to divide them */
    if (knob == NXC_KNOB_RECOMPUTE || (knob == NXC_KNOB_TENSOR && other.second > value.second)) return true;
  }
  return false;
}

static void leave_out(const nxc_values *s, nxc_left_out *what, nxc_knob knob, size_t place) {
  nxc_left_outs *out = s->left_out;
  if (what->id == NULL) return; /* no rule does: the system has no word for it */
  what->knob = knob;
  what->value = s->space->values[knob][place];
  out->list = nxc_arena_grow(s->arena, out->list, out->n, sizeof *out->list);
  out->list[out->n++] = *what;
}

static bool is_in(const nxc_space *space, const nxc_left_out *one) {
  bool found = false;
  for (size_t place = 0; place < space->n_values[one->knob]; place++)
    found |= space->values[one->knob][place].first == one->value.first;
  return found;
}

/* From `begin` on: a degree that there is in another form is not out, and one is out once. */
static void name_once(const nxc_values *s, size_t begin) {
  nxc_left_outs *out = s->left_out;
  size_t n = begin;
  for (size_t i = begin; i < out->n; i++) {
    bool again = n > begin && out->list[n - 1].value.first == out->list[i].value.first;
    if (!again && !is_in(s->space, &out->list[i])) out->list[n++] = out->list[i];
  }
  out->n = n;
}

void nxc_values_drop_unknown(const nxc_values *s, nxc_knob knob) {
  nxc_space *space = s->space;
  size_t begin = s->left_out->n;
  for (size_t place = 1; place < space->n_values[knob] && !s->is_late(s->context);) {
    nxc_left_out why = {0};
    bool worse = is_worse(space, knob, place);
    if (!worse && is_known(s, knob, place, &why)) {
      place++;
      continue;
    }
    if (!worse) leave_out(s, &why, knob, place);
    nxc_space_drop(space, knob, place);
  }
  name_once(s, begin);
}
