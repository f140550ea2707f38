/* SPDX-License-Identifier: Apache-2.0 */
/* Branches and loops. Where a condition cannot be told both ways are followed. */
#include "compiler/config/front/shell/shell.h"

#include <string.h>

/* What runs in a shell of its own leaves its output and its status alone. */
void nxc_shell_run_apart(nxc_shell *s, const nxc_shell_command *command) {
  nxc_shell_state before = nxc_shell_snapshot(s);
  nxc_shell_frame frame = {.outer = s->frame};
  s->frame = &frame;
  nxc_shell_run(s, command);
  nxc_shell_join(s, &frame.leaves);
  nxc_shell_take(s, &frame.leaves);
  nxc_shell_come_back(s, before);
  s->ended = false;
  s->frame = frame.outer;
}

/* Follows a part that may not be followed at all. */
static void run_perhaps(nxc_shell *s, const nxc_shell_command *command) {
  nxc_shell_ways ways = {0};
  nxc_shell_state before = nxc_shell_snapshot(s);
  nxc_shell_run(s, command);
  nxc_shell_join(s, &ways);
  s->state = before;
  s->ended = false;
  nxc_shell_join(s, &ways);
  nxc_shell_take(s, &ways);
}

/* Whether the script ends for want of what its caller would give. */
static bool gives_up(nxc_shell *s, const nxc_shell_command *command) {
  bool up = s->ended && s->gave_up && s->assumes && !s->failed;
  if (up)
    nxc_shell_note(s, command->at, "called as it is here the script ends at this test; it is judged as if it "
                                   "went on");
  return up;
}

/* Behind a test at which the script would end here, what it found empty was given: as what, nothing tells. */
static void doubt_tested(nxc_shell *s, const nxc_shell_command *test) {
  for (size_t i = 0; i < test->n_words; i++)
    for (size_t k = 0; k < test->words[i].n_parts; k++) {
      const nxc_shell_part *part = &test->words[i].parts[k];
      if (part->kind != NXC_PART_PARAMETER) continue;
      const nxc_shell_value *value = nxc_shell_find(s, part->parameter->name);
      if (value != NULL && value->kind == NXC_SHELL_TEXT && value->text.n_bytes == 0)
        nxc_shell_set_unknown(s, part->parameter->name, value->at);
    }
  for (size_t i = 0; i < test->n_children; i++) doubt_tested(s, test->children[i]);
}

/* The tests of a command that branches. */
static void doubt_tests(nxc_shell *s, const nxc_shell_command *command) {
  nxc_shell_command word = {.words = command->words, .n_words = command->n_words};
  size_t n_tests = command->kind == NXC_COMMAND_IF ? command->n_children : 1;
  if (command->kind == NXC_COMMAND_CASE) doubt_tested(s, &word);
  else
    for (size_t i = 0; i < n_tests; i += 2)
      if (i + 1 < command->n_children) doubt_tested(s, command->children[i]);
}

typedef void branching(nxc_shell *s, const nxc_shell_command *command, bool doubts);

/* Follows what is certain; where the script ends there, every way. */
static void branch(nxc_shell *s, const nxc_shell_command *command, branching *run) {
  nxc_shell_state before = nxc_shell_snapshot(s);
  size_t n_launches = nxc_shell_n_launches(s);
  run(s, command, false);
  if (!gives_up(s, command)) return;
  nxc_shell_forget_launches(s, n_launches);
  s->state = before, s->ended = false;
  doubt_tests(s, command);
  run(s, command, true);
}

static nxc_truth leads_on(const nxc_shell_command *command) {
  return command->kind == NXC_COMMAND_AND ? NXC_YES : NXC_NO;
}

static void run_second(nxc_shell *s, const nxc_shell_command *command, bool doubts) {
  if (doubts) s->state.status = nxc_truth_not(leads_on(command));
  else nxc_shell_run(s, command->children[1]);
}

void nxc_shell_run_either(nxc_shell *s, const nxc_shell_command *command) {
  nxc_shell_run(s, command->children[0]);
  if (s->ended || s->failed) return;
  if (s->state.status == leads_on(command)) {
    branch(s, command, run_second);
  } else if (s->state.status == NXC_MAYBE) {
    run_second(s, command, true); /* the way that leaves it out */
    run_perhaps(s, command->children[1]);
  }
}

static void run_if(nxc_shell *s, const nxc_shell_command *command, bool doubts) {
  nxc_shell_ways ways = {0};
  size_t i = 0;
  bool open = true;
  for (; open && i + 1 < command->n_children && !s->ended && !s->failed; i += 2) {
    nxc_shell_run(s, command->children[i]);
    if (doubts) s->state.status = NXC_MAYBE;
    if (s->ended || s->state.status == NXC_NO) continue;
    open = s->state.status == NXC_MAYBE;
    if (open && !doubts)
      nxc_shell_note(s, command->at, "nothing here tells whether this test holds: both ways are followed");
    nxc_shell_state before = {0};
    if (open) before = nxc_shell_snapshot(s);
    nxc_shell_run(s, command->children[i + 1]);
    nxc_shell_join(s, &ways);
    if (open) s->state = before, s->ended = false;
  }
  if (open && !s->ended) {
    s->state.status = NXC_YES;
    if (i < command->n_children) nxc_shell_run(s, command->children[i]);
    nxc_shell_join(s, &ways);
  }
  nxc_shell_take(s, &ways);
}

void nxc_shell_run_if(nxc_shell *s, const nxc_shell_command *command) {
  branch(s, command, run_if);
}

static nxc_truth clause_fits(nxc_shell *s, const nxc_shell_clause *clause, const nxc_text *subject) {
  nxc_truth fits = NXC_NO;
  for (size_t i = 0; i < clause->n_patterns && fits != NXC_YES; i++) {
    nxc_text pattern = nxc_shell_expand_one(s, &clause->patterns[i]);
    fits = nxc_truth_or(fits, nxc_shell_fits(s, &pattern, subject));
  }
  return fits;
}

static void run_case(nxc_shell *s, const nxc_shell_command *command, bool doubts) {
  nxc_shell_ways ways = {0};
  s->testing = true;
  nxc_text word = nxc_shell_expand_one(s, &command->words[0]), subject = nxc_shell_known_text(s, &word);
  s->testing = false;
  bool open = true, noted = doubts;
  for (size_t i = 0; i < command->n_clauses && open && !s->failed; i++) {
    const nxc_shell_clause *clause = &command->clauses[i];
    nxc_truth fits = clause_fits(s, clause, &subject);
    if (doubts && fits == NXC_NO) fits = NXC_MAYBE; /* what fits is where it ended */
    if (fits == NXC_NO) continue;
    open = fits == NXC_MAYBE;
    if (open && !noted)
      nxc_shell_note(s, command->at, "nothing here tells which part of this case is meant: each is followed");
    noted = noted || open;
    nxc_shell_state before = {0};
    if (open) before = nxc_shell_snapshot(s);
    nxc_shell_run(s, clause->body);
    while (clause->goes_on == '&' && i + 1 < command->n_clauses && !open) {
      clause = &command->clauses[++i];
      nxc_shell_run(s, clause->body);
    }
    if (clause->goes_on == ';' && !open) {
      open = true;
      continue;
    }
    nxc_shell_join(s, &ways);
    if (open) s->state = before, s->ended = false;
  }
  if (open) nxc_shell_join(s, &ways);
  nxc_shell_take(s, &ways);
}

void nxc_shell_run_case(nxc_shell *s, const nxc_shell_command *command) {
  branch(s, command, run_case);
}

/* -- loops ----------------------------------------------------------------------------------------------- */

static void enter_loop(nxc_shell *s, nxc_shell_frame *frame) {
  *frame = (nxc_shell_frame){.outer = s->frame, .loop = true};
  s->frame = frame;
}

static void leave_loop(nxc_shell *s, nxc_shell_frame *frame) {
  nxc_shell_join(s, &frame->leaves);
  nxc_shell_take(s, &frame->leaves);
  s->frame = frame->outer;
}

static void run_body(nxc_shell *s, nxc_shell_frame *frame, const nxc_shell_command *body) {
  frame->again = (nxc_shell_ways){0};
  nxc_shell_run(s, body);
  nxc_shell_join(s, &frame->again);
  nxc_shell_take(s, &frame->again);
}

/* A body that is followed nobody knows how often: what a turn changes is unknown, and a second turn begins
 * with that. */
static void run_unknown(nxc_shell *s, nxc_shell_frame *frame, const nxc_shell_command *test,
                        const nxc_shell_command *body, const char *name) {
  size_t n_launches = nxc_shell_n_launches(s);
  nxc_shell_note(s, body->at, "nothing here tells how often this loop turns: what it changes is unknown");
  for (int turn = 0; turn < 2 && !s->failed; turn++) {
    nxc_shell_ways ways = {0};
    nxc_shell_state before = nxc_shell_snapshot(s);
    nxc_shell_forget_launches(s, n_launches);
    if (name != NULL) nxc_shell_set_unknown(s, name, body->at);
    run_body(s, frame, body);
    if (test != NULL && !s->ended) nxc_shell_run(s, test);
    nxc_shell_join(s, &ways);
    s->state = before;
    s->ended = false;
    nxc_shell_join(s, &ways);
    nxc_shell_take(s, &ways);
  }
}

/* `while [ $# -gt 0 ]`: a script is read as if it had no arguments. */
static bool asks_arguments(nxc_shell *s, const nxc_shell_command *test) {
  if (s->state.arguments_known) return false;
  for (size_t i = 0; i < test->n_words; i++)
    for (size_t k = 0; k < test->words[i].n_parts; k++) {
      const nxc_shell_part *part = &test->words[i].parts[k];
      if (part->kind == NXC_PART_PARAMETER && part->parameter->name[1] == '\0' &&
          strchr("#1@*", *part->parameter->name))
        return nxc_shell_ask(s, 1);
      if (part->kind == NXC_PART_TEXT && part->text.n_bytes == 2 && memcmp(part->text.bytes, "$#", 2) == 0)
        return nxc_shell_ask(s, 1);
    }
  for (size_t i = 0; i < test->n_children; i++)
    if (asks_arguments(s, test->children[i])) return true;
  return false;
}

void nxc_shell_run_for(nxc_shell *s, const nxc_shell_command *command) {
  nxc_shell_fields fields = {0};
  nxc_shell_frame frame;
  bool unknown = !command->listed && !s->state.arguments_known;
  asks_arguments(s, command);
  for (size_t i = 0; i < command->n_words; i++) nxc_shell_expand(s, &command->words[i], &fields);
  const nxc_text *items = command->listed ? fields.items : s->state.arguments;
  size_t n_items = command->listed ? fields.n_items : s->state.n_arguments;
  for (size_t i = 0; i < n_items; i++)
    unknown = unknown || nxc_text_any(&items[i], NXC_MARK_UNKNOWN | NXC_MARK_MANY);
  unknown = unknown || n_items > NXC_SHELL_TURNS_MAX;
  s->state.status = NXC_YES;
  enter_loop(s, &frame);
  if (unknown) run_unknown(s, &frame, NULL, command->children[0], command->name);
  for (size_t i = 0; !unknown && i < n_items && !s->ended && !s->failed; i++) {
    nxc_text item = nxc_text_copy(s->arena, &items[i]);
    for (size_t k = 0; k < item.n_bytes; k++) item.marks[k] &= (unsigned char)~NXC_MARK_QUOTED;
    nxc_shell_set_text(s, command->name, item, command->at);
    run_body(s, &frame, command->children[0]);
  }
  leave_loop(s, &frame);
}

static nxc_truth judge_sum(nxc_shell *s, const nxc_shell_word *word) {
  int64_t value;
  nxc_text sum = nxc_shell_expand_one(s, word);
  if (sum.n_bytes == 0) return NXC_YES;
  if (!nxc_shell_sum(s, &sum, word->at, &value)) return NXC_MAYBE;
  return value ? NXC_YES : NXC_NO;
}

void nxc_shell_run_count(nxc_shell *s, const nxc_shell_command *command) {
  nxc_shell_frame frame;
  nxc_truth goes_on;
  judge_sum(s, &command->words[0]);
  enter_loop(s, &frame);
  for (size_t turn = 0; !s->ended && !s->failed; turn++) {
    goes_on = judge_sum(s, &command->words[1]);
    if (goes_on == NXC_NO) break;
    if (goes_on == NXC_MAYBE || turn == NXC_SHELL_TURNS_MAX) {
      run_unknown(s, &frame, NULL, command->children[0], NULL);
      break;
    }
    run_body(s, &frame, command->children[0]);
    if (!s->ended) judge_sum(s, &command->words[2]);
  }
  leave_loop(s, &frame);
}

void nxc_shell_run_while(nxc_shell *s, const nxc_shell_command *command) {
  nxc_shell_frame frame;
  const nxc_shell_command *test = command->children[0], *body = command->children[1];
  enter_loop(s, &frame);
  for (size_t turn = 0; !s->ended && !s->failed; turn++) {
    nxc_shell_state before = nxc_shell_snapshot(s);
    nxc_shell_run(s, test);
    if (s->ended) break;
    nxc_truth goes_on = command->until ? nxc_truth_not(s->state.status) : s->state.status;
    s->state.status = NXC_YES;
    if (goes_on == NXC_MAYBE && asks_arguments(s, test)) {
      nxc_shell_note(s, command->at, "the script is judged as if it were called without arguments");
      s->assumes = true;
      break;
    }
    if (goes_on == NXC_NO) break;
    if (goes_on == NXC_MAYBE || turn == NXC_SHELL_TURNS_MAX) {
      run_unknown(s, &frame, test, body, NULL);
      break;
    }
    run_body(s, &frame, body);
    if (!s->ended && nxc_shell_same(&before, &s->state)) s->ended = true; /* it turns for ever, or breaks */
  }
  leave_loop(s, &frame);
}
