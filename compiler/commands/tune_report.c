/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/tune_row.h"

#include "compiler/diagnostics/characters.h"
#include "compiler/render/screen.h"
#include "compiler/show/plan_dump.h"

#include <math.h>
#include <string.h>

/* ---- what a layout loses ---- */

typedef struct loss {
  const char *part;
  double share; /* of the time that the best takes for as many tokens */
} loss;

/* The parts in which it loses most, at most three; the largest first. */
static size_t find_losses(const nxc_tune_report *r, const nxc_tuned *best, const nxc_tuned *tuned,
                          loss losses[3]) {
  size_t n_parts, n = 0;
  const char *const *names = nxc_tune_parts(r->request->machine, &n_parts);
  for (size_t part = 0; part < n_parts; part++) {
    double share = tuned->parts[part] / tuned->step_s * nxc_tune_token_s(tuned) / nxc_tune_token_s(best) -
                   best->parts[part] / best->step_s;
    if (share < 0.001) continue;
    size_t at = n < 3 ? n++ : 2;
    if (n == 3 && at == 2 && losses[2].part != NULL && losses[2].share >= share) continue;
    while (at > 0 && losses[at - 1].share < share) {
      losses[at] = losses[at - 1];
      at--;
    }
    losses[at] = (loss){names[part], share};
  }
  return n;
}

/* ---- for people ---- */

enum { REASONS_SHOWN = 3, LEAST_OF_FILE = 24 };

static const char *show_stages(const nxc_tune_report *r, const nxc_layout *l) {
  if (l->n_chunks == l->pipeline) return nxc_arena_printf(r->arena, "%u", l->pipeline);
  return nxc_arena_printf(r->arena, "%ux%u", l->pipeline, l->n_chunks / l->pipeline);
}

static const char *show_seconds(const nxc_tune_report *r, double seconds) {
  if (seconds >= 1) return nxc_arena_printf(r->arena, "%.*f s", nxc_decimals(seconds), seconds);
  return seconds >= 1e-3 ? nxc_arena_printf(r->arena, "%.3g ms", seconds * 1e3)
                         : nxc_arena_printf(r->arena, "%.3g us", seconds * 1e6);
}

static const char *show_memory(const nxc_tune_report *r, double bytes) {
  return nxc_arena_printf(r->arena, bytes < 0x1p30 ? "%.3f GiB" : "%.1f GiB", bytes / 0x1p30);
}

/* "8sp" with sequence parallelism. */
static const char *show_tensor(const nxc_tune_report *r, const nxc_layout *l) {
  bool divided = l->tensor > 1 && l->sequence_parallel;
  return nxc_arena_printf(r->arena, "%u%s", l->tensor, divided ? "sp" : "");
}

/* "8/1" where each expert is divided otherwise than the rest. */
static const char *show_experts(const nxc_tune_report *r, const nxc_layout *l) {
  if (l->expert_tensor == l->tensor) return nxc_arena_printf(r->arena, "%u", l->expert);
  return nxc_arena_printf(r->arena, "%u/%u", l->expert, l->expert_tensor);
}

static void print_row(const nxc_tune_report *r, const char *label, const nxc_tuned *t, FILE *out) {
  const nxc_layout *l = &t->layout;
  fprintf(out, "%3s %4s %6s %4u %4s %6u %5d %4d %-9s %10s %8s %4.1f %%\n", label, show_tensor(r, l),
          show_stages(r, l), l->context, show_experts(r, l), l->data,
          (int)nxc_tune_samples(r, t->batch.micro), (int)nxc_tune_zero(r, t), nxc_tune_recompute(r, t),
          show_memory(r, t->memory_bytes), show_seconds(r, t->step_s), 100 * t->utilisation);
}

/* ", optimizer on the host", where the file's own choice is another. */
static const char *show_offload(const nxc_tune_report *r, const nxc_tuned *t) {
  static const struct {
    nxc_knob knob;
    const char *name;
  } kinds[] = {{NXC_KNOB_OFFLOAD_OPTIMIZER, "optimizer"}, {NXC_KNOB_OFFLOAD_ACTIVATIONS, "activations"}};
  const char *text = "";
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    int64_t share = nxc_choice_value(&r->result->space, &t->choice, kinds[i].knob).first;
    if (t->choice.at[kinds[i].knob] == 0) continue;
    text = nxc_arena_printf(r->arena, "%s, %s%s on the %s", text, share == 500 ? "half of the " : "",
                            kinds[i].name, share ? "host" : "device");
  }
  return text;
}

static void print_rest(const nxc_tune_report *r, const nxc_tuned *best, const nxc_tuned *t, FILE *out) {
  double hours = nxc_tune_device_hours(r, t), lost = nxc_tune_loss(best, t);
  loss losses[3] = {{0}};
  fputs("       ", out);
  nxc_print_quantity(out, t->tokens_per_s, "tokens/s");
  if (hours > 0) fprintf(out, ", %s device-hours", nxc_in_words(r->arena, hours));
  if (t->batch.global != r->request->training->batch.global)
    fprintf(out, ", global batch %lld", (long long)nxc_tune_samples(r, t->batch.global));
  if (r->result->space.n_values[NXC_KNOB_ORDER] > 1 && t->layout.pipeline > 1)
    fprintf(out, ", schedule %s", nxc_order_name(t->layout.pipeline_order));
  if (t->choice.at[NXC_KNOB_REPLICATE] != 0)
    fprintf(out, ", %u groups of data parallelism", t->layout.replicate);
  fputc('\n', out);
  const char *offload = show_offload(r, t);
  if (*offload != '\0') fprintf(out, "       %s\n", offload + strlen(", "));
  if (t == best) return;
  const char *line = "       as fast";
  if (fabs(lost) >= 0.0005)
    line = nxc_arena_printf(r->arena, "       %.1f %% %s", fabs(100 * lost), lost > 0 ? "slower" : "faster");
  size_t n = lost > 0 ? find_losses(r, best, t, losses) : 0;
  for (size_t i = 0; i < n; i++) {
    const char *longer = nxc_arena_printf(r->arena, "%s%s %s %.1f %%", line, i ? "," : ":", losses[i].part,
                                          100 * losses[i].share);
    if (strlen(longer) <= (size_t)nxc_screen_columns(out)) line = longer;
  }
  fprintf(out, "%s\n", line);
  if (r->request->memory_bytes > 0 && t->memory_bytes > r->request->memory_bytes)
    fputs("       it does not fit\n", out);
}

/* In lines of a screen, each behind the first two columns in. */
static void print_words(FILE *out, const char *label, const char *text) {
  nxc_print_paragraph(out, 2, label, text);
}

static void print_elsewhere(const nxc_tune_result *result, FILE *out) {
  bool any = false;
  for (size_t knob = 0; knob < NXC_N_KNOBS; knob++) {
    if (!result->elsewhere[knob]) continue;
    fprintf(out, "%s%s", any ? ", " : "not all values tried: ", nxc_knob_name((nxc_knob)knob));
    any = true;
  }
  if (any) fputs(" (another text gives them)\n", out);
}

/* With how many layouts it refuses, where there are other reasons too. */
static const char *show_reason(const nxc_tune_report *r, const nxc_reason *reason) {
  if (r->result->n_reasons == 1) return reason->message;
  return nxc_arena_printf(r->arena, "%zu: %s", reason->n_layouts, reason->message);
}

/* What would have to change, where no layout is accepted. */
static void print_reasons(const nxc_tune_report *r, FILE *out) {
  const nxc_tune_result *result = r->result;
  for (size_t i = 0; i < result->n_reasons && i < REASONS_SHOWN; i++) {
    const nxc_reason *reason = &result->reasons[i];
    print_words(out, "refused: ", show_reason(r, reason));
    if (reason->remedy != NULL) print_words(out, "  fix: ", reason->remedy);
  }
  if (result->n_reasons > REASONS_SHOWN)
    fprintf(out, "%zu further reasons (--format json has them)\n", result->n_reasons - REASONS_SHOWN);
}

/* "2, 4, 8", of those behind `at` that are out for the same; *past is behind them. */
static const char *show_values(const nxc_tune_report *r, size_t at, size_t *past) {
  const nxc_left_outs *all = &r->result->left_out;
  const nxc_left_out *one = &all->list[at];
  const char *text = nxc_tune_value(r, one);
  for (*past = at + 1; *past < all->n; ++*past) {
    const nxc_left_out *next = &all->list[*past];
    if (next->knob != one->knob || strcmp(next->id, one->id) != 0) break;
    text = nxc_arena_printf(r->arena, "%s, %s", text, nxc_tune_value(r, next));
  }
  return text;
}

/* Values that no layout has, of each knob those together that a rule refuses. */
static void print_left_out(const nxc_tune_report *r, FILE *out) {
  const nxc_left_outs *all = &r->result->left_out;
  for (size_t i = 0, past, n = 0; i < all->n && n < REASONS_SHOWN; i = past, n++) {
    const nxc_left_out *one = &all->list[i];
    const char *values = show_values(r, i, &past);
    print_words(out, "not tried: ",
                nxc_arena_printf(r->arena, "%s %s: %s", nxc_knob_name(one->knob), values, one->message));
    if (one->remedy != NULL) print_words(out, "  fix: ", one->remedy);
  }
}

static void print_counts(const nxc_tune_report *r, FILE *out) {
  const nxc_tune_result *result = r->result;
  uint32_t world = r->request->training->layout.world;
  const char *where = nxc_arena_printf(r->arena, " on %s, %u rank%s", r->request->machine->name, world,
                                       world == 1 ? "" : "s");
  size_t columns = (size_t)nxc_screen_columns(out);
  size_t left = columns > strlen(where) + LEAST_OF_FILE ? columns - strlen(where) : LEAST_OF_FILE;
  const char *file = nxc_screen_shortened(r->arena, r->file, left);
  print_words(out, "", nxc_arena_printf(r->arena, "%s%s", file, where));
  double size = nxc_space_size(&result->space);
  const char *limit =
      result->room_bytes > 0 ? nxc_arena_printf(r->arena, " in %s", show_memory(r, result->room_bytes)) : "";
  print_words(
      out, "",
      nxc_arena_printf(r->arena, "%.0f combination%s, %zu divide, %zu fit%s; %zu judged, %zu refused%s", size,
                       size == 1 ? "" : "s", result->n_divide, result->n_fit, limit, result->n_judged,
                       result->n_refused, result->cut_short ? "; stopped by the deadline" : ""));
  if (result->n_best > 0 && result->n_reasons > 0)
    print_words(out, "refused: ", show_reason(r, &result->reasons[0]));
  print_left_out(r, out);
  print_elsewhere(result, out);
}

/* What is wrong with the file, and whether that stays so. */
static void print_errors(const nxc_tune_report *r, FILE *out) {
  const nxc_sink *findings = r->request->findings;
  bool judged = r->result->own_refused == NULL || r->result->n_best > 0;
  const bool *stays = r->result->n_best > 0 ? r->result->best[0].stays : NULL;
  for (size_t i = 0; judged && findings != NULL && i < nxc_sink_n_findings(findings); i++) {
    const nxc_finding *finding = nxc_sink_finding(findings, i);
    if (finding->severity == NXC_SEVERITY_ERROR)
      print_words(out,
                  stays == NULL || stays[i] ? "the file has an error: " : "1 mends an error of the file: ",
                  nxc_arena_printf(r->arena, "%s (%s)", finding->message, finding->id));
  }
}

/* Estimates of memory are not so near that what fits barely is sure to fit. */
static void print_margin(const nxc_tune_report *r, FILE *out) {
  double limit = r->request->memory_bytes, share = r->result->best[0].memory_bytes / limit;
  if (limit <= 0 || r->request->machine->device == NULL || share < 0.95) return;
  bool large = limit >= 0x10p30;
  fprintf(out, "\n1 leaves %.0f %% of the memory free, less than estimates may be wrong by; with\n",
          fmax(0, 100 * (1 - share)));
  fprintf(out, "--memory %.0f%s a tenth is left.\n", floor(0.9 * limit / (large ? 0x1p30 : 0x1p20)),
          large ? "GiB" : "MiB");
}

/* Forecasts of layouts are not so near each other that those are told apart. */
static void print_ties(const nxc_tune_result *result, FILE *out) {
  const double near = 0.03;
  size_t n = 0;
  while (n < result->n_best && nxc_tune_loss(&result->best[0], &result->best[n]) < near) n++;
  if (n > 1)
    fprintf(out, "\n%s%zu lie within %.0f %%, nearer than forecasts tell: train some steps of each.\n",
            n < result->n_best ? "1 to " : "All ", n, 100 * near);
}

static void print_assumed(const nxc_tune_report *r, FILE *out) {
  if (r->assumed->defaults) fputs("assumed: defaults of what other texts may give\n", out);
  if (r->assumed->arguments != NULL)
    print_words(out, "assumed: ",
                nxc_arena_printf(r->arena, "arguments of the script (as a comment of it shows): %s",
                                 r->assumed->arguments));
  if (r->assumed->model != NULL) fprintf(out, "assumed: the shape of %s\n", r->assumed->model);
  for (size_t i = 0; i < r->assumed->n_items; i++) {
    const nxc_assumption *one = &r->assumed->items[i];
    print_words(
        out, "assumed: ",
        nxc_arena_printf(r->arena, "%s = %s (%s)", nxc_setting_path(one->setting), one->value, one->why));
  }
}

static bool assumes(const nxc_tune_report *r, nxc_setting_id setting) {
  bool found = false;
  for (size_t i = 0; i < r->assumed->n_items; i++) found |= r->assumed->items[i].setting == setting;
  return found;
}

static void print_own(const nxc_tune_report *r, FILE *out) {
  const nxc_tune_result *result = r->result;
  if (result->own_refused != NULL) {
    print_words(out, "the file as it is: ", result->own_refused);
    return;
  }
  print_row(r, "now", &result->own, out);
  print_rest(r, result->n_best ? &result->best[0] : &result->own, &result->own, out);
}

static void print_edits(const nxc_tune_report *r, const nxc_tuned *best, FILE *out) {
  if (best->n_edits == 0) {
    fputs("\nThe file is the best already.\n", out);
    return;
  }
  fputs("\nThe best in the file's own options:\n", out);
  for (size_t i = 0; i < best->n_edits; i++)
    fprintf(out, "  %s\n", nxc_option_change_show(r->arena, &best->edits[i]));
  if (r->written == NULL) return;
  fprintf(out, "written: %s\n", nxc_characters_shown(r->arena, r->written));
  if (*r->assuming != '\0') print_words(out, "to plan it as here:", r->assuming);
}

void nxc_tune_print(const nxc_tune_report *r, FILE *out) {
  const nxc_tune_result *result = r->result;
  print_counts(r, out);
  print_errors(r, out);
  print_assumed(r, out);
  fputs("\n  #   TP     PP   CP   EP     DP micro ZeRO recompute     memory     step    MFU\n", out);
  for (size_t i = 0; i < result->n_best; i++) {
    print_row(r, nxc_arena_printf(r->arena, "%zu", i + 1), &result->best[i], out);
    print_rest(r, &result->best[0], &result->best[i], out);
  }
  print_own(r, out);
  if (result->n_best > 0) print_margin(r, out);
  print_ties(result, out);
  if (result->n_best > 0) print_edits(r, &result->best[0], out);
  else if (result->n_fit == 0 && result->least_bytes > 0)
    fprintf(out, "\nNo layout fits: each needs %s or more.%s\n", show_memory(r, result->least_bytes),
            assumes(r, NX_SETTING_MESH_WORLD) ? " --world-size N tells more ranks." : "");
  else if (result->cut_short && result->n_judged == 0)
    fputs("\nNo layout was judged before the deadline: give it more time.\n", out);
  else if (result->n_reasons == 0) fputs("\nThere is no other layout.\n", out);
  else {
    bool all = result->n_refused >= result->n_fit;
    fprintf(out, "\nNo layout is accepted%s:\n", all ? "" : "; the slowest were not judged");
    print_reasons(r, out);
  }
}
