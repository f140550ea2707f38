/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/commands/tune_report.h"

#include "compiler/commands/estimate.h"

#include "compiler/render/screen.h"
#include "compiler/show/plan_dump.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

static const char *const recompute_words[] = {"none", "selective", "full"};

static const char *recompute_of(const nxc_tune_report *r, const nxc_tuned *tuned) {
  return recompute_words[nxc_choice_value(&r->result->space, &tuned->choice, NXC_KNOB_RECOMPUTE).first];
}

static int64_t zero_of(const nxc_tune_report *r, const nxc_tuned *tuned) {
  return nxc_choice_value(&r->result->space, &tuned->choice, NXC_KNOB_ZERO).first;
}

/* Of the tokens that the file's steps have; 0 where nobody says how many steps there are. */
static double device_hours(const nxc_tune_report *r, const nxc_tuned *tuned) {
  const nxc_settings *settings = r->request->compiled->settings;
  bool assumed = nxc_settings_from(settings, NX_SETTING_SCHEDULE_MAX_STEPS)->kind == NXC_FROM_ASSUMED;
  if (assumed || !nxc_has(settings, NX_SETTING_SCHEDULE_MAX_STEPS)) return 0;
  const nxc_training *training = r->request->training;
  int64_t samples =
      nxc_batch_samples_before(&training->batch, nxc_int(settings, NX_SETTING_SCHEDULE_MAX_STEPS));
  double tokens = (double)samples * (double)training->model.sequence;
  return tokens / tuned->tokens_per_s * tuned->layout.world / 3600;
}

/* ---- what a layout loses ---- */

typedef struct loss {
  const char *part;
  double share; /* of the time that the best takes for as many tokens */
} loss;

static double seconds_per_token(const nxc_tuned *tuned) {
  return 1 / tuned->tokens_per_s;
}

static double loss_of(const nxc_tuned *best, const nxc_tuned *tuned) {
  return seconds_per_token(tuned) / seconds_per_token(best) - 1;
}

/* The parts in which it loses most, at most three; the largest first. */
static size_t find_losses(const nxc_tune_report *r, const nxc_tuned *best, const nxc_tuned *tuned,
                          loss losses[3]) {
  size_t n_parts, n = 0;
  const char *const *names = nxc_tune_parts(r->request->machine, &n_parts);
  for (size_t part = 0; part < n_parts; part++) {
    double share = tuned->parts[part] / tuned->step_s * seconds_per_token(tuned) / seconds_per_token(best) -
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

enum { COLUMNS = 80 };

static const char *show_stages(const nxc_tune_report *r, const nxc_layout *l) {
  if (l->n_chunks == l->pipeline) return nxc_arena_printf(r->arena, "%u", l->pipeline);
  return nxc_arena_printf(r->arena, "%ux%u", l->pipeline, l->n_chunks / l->pipeline);
}

static const char *show_seconds(const nxc_tune_report *r, double seconds) {
  if (seconds >= 1) return nxc_arena_printf(r->arena, "%.3g s", seconds);
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

/* As the file counts them: pairs, where a sample has two sequences. */
static int64_t samples(const nxc_tune_report *r, int64_t sequences) {
  return sequences / r->request->training->batch.rows;
}

static void print_row(const nxc_tune_report *r, const char *label, const nxc_tuned *t, FILE *out) {
  const nxc_layout *l = &t->layout;
  fprintf(out, "%3s %4s %6s %4u %4u %6u %5d %4d %-9s %10s %8s %4.1f %%\n", label, show_tensor(r, l),
          show_stages(r, l), l->context, l->expert, l->data, (int)samples(r, t->batch.micro),
          (int)zero_of(r, t), recompute_of(r, t), show_memory(r, t->memory_bytes), show_seconds(r, t->step_s),
          100 * t->utilisation);
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
  double hours = device_hours(r, t), lost = loss_of(best, t);
  loss losses[3] = {{0}};
  fputs("       ", out);
  nxc_print_quantity(out, t->tokens_per_s, "tokens/s");
  if (hours > 0) fprintf(out, hours < 100 ? ", %.3g device-hours" : ", %.0f device-hours", hours);
  if (t->batch.global != r->request->training->batch.global)
    fprintf(out, ", global batch %lld", (long long)samples(r, t->batch.global));
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
    if (strlen(longer) <= COLUMNS) line = longer;
  }
  fprintf(out, "%s\n", line);
  if (r->request->memory_bytes > 0 && t->memory_bytes > r->request->memory_bytes)
    fputs("       it does not fit\n", out);
}

/* In lines of a screen, each behind the first two columns in. */
static void print_words(const nxc_tune_report *r, FILE *out, const char *label, const char *file,
                        const char *text) {
  nxc_print_paragraph(out, COLUMNS, 2, label, nxc_arena_printf(r->arena, "%s%s", file, text));
}

static void print_elsewhere(const nxc_tune_result *result, FILE *out) {
  static const char *const names[] = {
#define KNOB(id, name, group) name,
      NXC_KNOBS(KNOB)
#undef KNOB
  };
  bool any = false;
  for (size_t knob = 0; knob < NXC_N_KNOBS; knob++) {
    if (!result->elsewhere[knob]) continue;
    fprintf(out, "%s%s", any ? ", " : "not all values tried: ", names[knob]);
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
  enum { SHOWN = 3 };
  const nxc_tune_result *result = r->result;
  for (size_t i = 0; i < result->n_reasons && i < SHOWN; i++) {
    const nxc_reason *reason = &result->reasons[i];
    print_words(r, out, "refused: ", "", show_reason(r, reason));
    if (reason->remedy != NULL) print_words(r, out, "  fix: ", "", reason->remedy);
  }
  if (result->n_reasons > SHOWN)
    fprintf(out, "%zu further reasons (--format json has them)\n", result->n_reasons - SHOWN);
}

static void print_counts(const nxc_tune_report *r, FILE *out) {
  const nxc_tune_result *result = r->result;
  uint32_t world = r->request->training->layout.world;
  print_words(r, out, "", r->file,
              nxc_arena_printf(r->arena, " on %s, %u rank%s", r->request->machine->name, world,
                               world == 1 ? "" : "s"));
  double size = nxc_space_size(&result->space);
  const char *limit = r->request->memory_bytes > 0
                          ? nxc_arena_printf(r->arena, " in %s", show_memory(r, r->request->memory_bytes))
                          : "";
  print_words(
      r, out, "", "",
      nxc_arena_printf(r->arena, "%.0f combination%s, %zu divide, %zu fit%s; %zu judged, %zu refused%s", size,
                       size == 1 ? "" : "s", result->n_divide, result->n_fit, limit, result->n_judged,
                       result->n_refused, result->cut_short ? "; stopped by the deadline" : ""));
  if (result->n_best > 0 && result->n_reasons > 0)
    print_words(r, out, "refused: ", "", show_reason(r, &result->reasons[0]));
  print_elsewhere(result, out);
}

/* What is wrong with the file whatever its layout is, and stays so. */
static void print_errors(const nxc_tune_report *r, FILE *out) {
  const nxc_sink *findings = r->request->findings;
  bool judged = r->result->own_refused == NULL || r->result->n_best > 0;
  for (size_t i = 0; judged && findings != NULL && i < nxc_sink_n_findings(findings); i++) {
    const nxc_finding *finding = nxc_sink_finding(findings, i);
    if (finding->severity == NXC_SEVERITY_ERROR)
      print_words(r, out, "the file has an error: ", "",
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

static void print_assumed(const nxc_tune_report *r, FILE *out) {
  if (r->assumed->defaults) fputs("assumed: defaults of what other texts may give\n", out);
  if (r->assumed->model != NULL) fprintf(out, "assumed: the shape of %s\n", r->assumed->model);
  for (size_t i = 0; i < r->assumed->n_items; i++) {
    const nxc_assumption *one = &r->assumed->items[i];
    print_words(
        r, out, "assumed: ", "",
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
    print_words(r, out, "the file as it is: ", "", result->own_refused);
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
  if (r->written != NULL) fprintf(out, "written: %s\n", r->written);
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

/* ---- for programs ---- */

static json_t *options_json(const nxc_tune_report *r, const nxc_tuned *t) {
  json_t *options = json_array();
  for (size_t i = 0; i < t->n_edits; i++) {
    const nxc_value *value = nxc_option_change_value(&t->edits[i]);
    json_t *option = json_pack("{s:s}", "name", t->edits[i].bound->row->name);
    json_object_set_new(option, "value", json_loads(nxc_value_json(r->arena, value), JSON_DECODE_ANY, NULL));
    json_object_set_new(option, "taken_out", json_boolean(t->edits[i].value == NULL));
    json_array_append_new(options, option);
  }
  return options;
}

static json_t *tuned_json(const nxc_tune_report *r, const nxc_tuned *best, const nxc_tuned *t) {
  const nxc_layout *l = &t->layout;
  size_t n_parts;
  const char *const *names = nxc_tune_parts(r->request->machine, &n_parts);
  json_t *object =
      json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:b}", "tensor", (int)l->tensor, "pipeline", (int)l->pipeline,
                "chunks", (int)(l->n_chunks / l->pipeline), "context", (int)l->context, "expert",
                (int)l->expert, "data", (int)l->data, "sequence_parallel", (int)l->sequence_parallel);
  json_object_set_new(object, "micro_batch", json_integer(samples(r, t->batch.micro)));
  json_object_set_new(object, "micro_batches", json_integer(t->batch.n_micro));
  json_object_set_new(object, "global_batch", json_integer(samples(r, t->batch.global)));
  json_object_set_new(object, "zero_stage", json_integer(zero_of(r, t)));
  json_object_set_new(object, "recompute", json_string(recompute_of(r, t)));
  json_object_set_new(object, "memory_bytes", json_real(t->memory_bytes));
  json_object_set_new(object, "step_seconds", json_real(t->step_s));
  json_t *seconds = json_object();
  for (size_t part = 0; part < n_parts; part++)
    json_object_set_new(seconds, names[part], json_real(t->parts[part]));
  json_object_set_new(object, "seconds", seconds);
  json_object_set_new(object, "tokens_per_second", json_real(t->tokens_per_s));
  json_object_set_new(object, "utilisation", json_real(t->utilisation));
  double hours = device_hours(r, t);
  json_object_set_new(object, "device_hours", hours > 0 ? json_real(hours) : json_null());
  json_object_set_new(object, "slower", best ? json_real(loss_of(best, t)) : json_null());
  json_object_set_new(object, "options", options_json(r, t));
  return object;
}

static json_t *reasons_json(const nxc_tune_result *result) {
  json_t *reasons = json_array();
  for (size_t i = 0; i < result->n_reasons; i++) {
    const nxc_reason *one = &result->reasons[i];
    json_array_append_new(reasons, json_pack("{s:s?, s:s, s:s?, s:I}", "id", one->id, "message", one->message,
                                             "fix", one->remedy, "layouts", (json_int_t)one->n_layouts));
  }
  return reasons;
}

void nxc_tune_print_json(const nxc_tune_report *r, FILE *out) {
  const nxc_tune_result *result = r->result;
  const nxc_tuned *first = result->n_best ? &result->best[0] : NULL;
  json_t *best = json_array(),
         *object = json_pack("{s:s, s:s, s:i}", "file", r->file, "machine", r->request->machine->name,
                             "ranks", (int)r->request->training->layout.world);
  for (size_t i = 0; i < result->n_best; i++)
    json_array_append_new(best, tuned_json(r, first, &result->best[i]));
  json_object_set_new(object, "assumed", nxc_assumed_json(r->assumed));
  json_object_set_new(object, "combinations", json_real(nxc_space_size(&result->space)));
  json_object_set_new(object, "divide", json_integer((json_int_t)result->n_divide));
  json_object_set_new(object, "fit", json_integer((json_int_t)result->n_fit));
  json_object_set_new(object, "judged", json_integer((json_int_t)result->n_judged));
  json_object_set_new(object, "refused", json_integer((json_int_t)result->n_refused));
  json_object_set_new(object, "reasons", reasons_json(result));
  json_object_set_new(object, "cut_short", json_boolean(result->cut_short));
  json_object_set_new(object, "least_bytes", json_real(result->least_bytes));
  json_object_set_new(object, "best", best);
  json_object_set_new(object, "file_layout",
                      result->own_refused ? json_null() : tuned_json(r, first, &result->own));
  json_object_set_new(object, "file_refused",
                      result->own_refused ? json_string(result->own_refused) : json_null());
  json_dumpf(object, out, JSON_INDENT(2));
  fputc('\n', out);
  json_decref(object);
}
