/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/checkpoint/checkpoint_agree.h"

#include "runtime/files/fault.h"
#include "schema/scheduled.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEX_BYTES = 65 };

/* Steps behind which the decay is over, whatever steps there are. */
static double decay_of(const json_t *settings) {
  return json_number_value(json_object_get(settings, "schedule.max_steps")) -
         json_number_value(json_object_get(settings, "schedule.constant_steps"));
}

/* Its index in the plan; NX_NONE: the plan does not know it. */
static uint32_t setting_of(const nx_plan *plan, const char *path) {
  for (uint32_t i = 0; i < plan->n[NX_SECTION_SETTINGS]; i++)
    if (strcmp(nx_plan_text(plan, plan->settings[i].path), path) == 0) return i;
  return NX_NONE;
}

/* A setting that this plan does not know binds. Where the dataset lies does not, if another is welcome. */
static bool binds(const nxr_manifest_run *run, const char *path) {
  const nx_plan *plan = run->plan;
  if (run->new_dataset && strcmp(path, "data.path") == 0) return false;
  uint32_t setting = setting_of(plan, path);
  return setting == NX_NONE || plan->settings[setting].bound;
}

/* Whether nobody chose its value. */
static bool is_default(const nx_plan *plan, const char *path) {
  uint32_t setting = setting_of(plan, path);
  for (uint32_t i = 0; i < plan->n[NX_SECTION_PROVENANCES]; i++)
    if (plan->provenances[i].setting == setting)
      return strcmp(nx_plan_text(plan, plan->provenances[i].kind), "default") == 0;
  return false;
}

/* Settings that differ: a few of them as text, and how many there are. */
typedef struct differences {
  char text[600];
  size_t n_used, n;
} differences;

static void add_difference(differences *to, const char *path, const json_t *there, const json_t *here) {
  enum { MOST = 5 };
  const size_t SHORT = JSON_ENCODE_ANY | JSON_REAL_PRECISION(16); /* 0.003 is 0.003 */
  if (++to->n > MOST || to->n_used + 1 >= sizeof to->text) return;
  char *was = there ? json_dumps(there, SHORT) : NULL;
  char *is = here ? json_dumps(here, SHORT) : NULL;
  to->n_used +=
      (size_t)snprintf(to->text + to->n_used, sizeof to->text - to->n_used, "\n  %s: %.60s there, %.60s here",
                       path, was ? was : "not set", is ? is : "not set");
  free(was);
  free(is);
}

static void end_differences(differences *to) {
  enum { MOST = 5 };
  if (to->n_used >= sizeof to->text) to->n_used = sizeof to->text - 1;
  if (to->n > MOST)
    snprintf(to->text + to->n_used, sizeof to->text - to->n_used, "\n  and %zu more", to->n - MOST);
}

/* Those that bind a run, and those that do not. A default that an earlier nxcfg did not have is what it did.
 * Whether the schedule is all that binds. */
static bool compare_settings(const json_t *manifest, const nxr_manifest_run *run, differences *bound,
                             differences *free_ones) {
  json_t *old = json_object_get(manifest, "settings"), *new = nxr_manifest_settings(run->plan), *value;
  json_t *merged = json_copy(old);
  const char *path;
  bool scheduled = true;
  json_object_update_missing(merged, new);
  bool same_decay = decay_of(old) == decay_of(new),
       keeps = run->plan->run_names->schedule != NX_SCHEDULE_OF_PLAN;
  json_object_foreach(merged, path, value) {
    const json_t *there = json_object_get(old, path), *here = json_object_get(new, path);
    bool always = binds(run, path), binding = always || (keeps && nx_is_scheduled(path, same_decay));
    if ((there == NULL && is_default(run->plan, path)) || json_equal(there, here)) continue;
    add_difference(binding ? bound : free_ones, path, there, here);
    scheduled &= !always;
  }
  end_differences(bound);
  end_differences(free_ones);
  json_decref(merged);
  json_decref(new);
  return scheduled;
}

static const char *remedy_of(uint32_t schedule) {
  static const char *const remedies[] = {
      [NX_SCHEDULE_OF_PLAN] =
          "A run goes on only where these are the same; to start a new run from these weights, set "
          "run.init_from to that folder",
      [NX_SCHEDULE_SAME] =
          "A run goes on only where these are the same, by checkpoint.schedule the schedule too: plan "
          "takes that of this plan; to start a new run from these weights, set run.init_from to that "
          "folder",
      [NX_SCHEDULE_OF_CHECKPOINT] =
          "The run is to have the checkpoint's schedule, and a plan holds its own: make the "
          "plan with what stands there, as with --set nx:NAME=VALUE"};
  return remedies[schedule];
}

static bool check_plan(const json_t *manifest, const char *folder, const nxr_manifest_run *run,
                       nxr_fault *fault) {
  char hex[HEX_BYTES];
  differences bound = {"", 0, 0}, others = {"", 0, 0};
  const char *recorded = json_string_value(json_object_get(manifest, "plan_id"));
  long long version = json_integer_value(json_object_get(manifest, "version"));
  if (version != NXR_MANIFEST_VERSION)
    return nxr_fault_set(fault, "%s has version %lld of the format, and this nxrun reads %d", folder, version,
                         NXR_MANIFEST_VERSION);
  nx_hex(run->plan->header->plan_id, hex);
  if (strcmp(recorded, hex) == 0) return true;
  bool scheduled = compare_settings(manifest, run, &bound, &others);
  if (bound.n == 0 && others.n == 0) {
    nxr_print(
        stderr,
        "nxrun: another version of nxcfg made the plan of %s. No setting differs, so the run goes on; its "
        "sums may round otherwise\n",
        folder);
    return true;
  }
  if (bound.n == 0) {
    nxr_print(stderr, "nxrun: %s was made by another plan, from which this run may go on. What differs:%s\n",
            folder, others.text);
    return true;
  }
  return nxr_fault_set(fault, "%s is of another plan: %.12s…, and this one is %.12s…. What differs:%s\n%s",
                       folder, recorded, hex, bound.text,
                       remedy_of(scheduled ? run->plan->run_names->schedule : NX_SCHEDULE_OF_PLAN));
}

/* Another dataset is refused, unless it is welcome. */
static bool judge_dataset(const nxr_fingerprint *there, const char *folder, const nxr_manifest_run *run,
                          nxr_fault *fault) {
  const nxr_fingerprint *here = run->dataset;
  char was[HEX_BYTES], is[HEX_BYTES], what[300];
  nx_hex(there->sha256, was);
  nx_hex(here->sha256, is);
  snprintf(what, sizeof what,
           "of another dataset: %" PRIu64 " documents of %" PRIu64 " tokens there (SHA-256 %.12s…), %" PRIu64
           " of %" PRIu64 " here (%.12s…)",
           there->n_documents, there->n_tokens, was, here->n_documents, here->n_tokens, is);
  if (run->new_dataset) nxr_print(stderr, "nxrun: %s is %s\n", folder, what);
  return run->new_dataset ||
         nxr_fault_set(fault,
                       "%s is %s; put the first one back, or give --new-dataset to go on with this one",
                       folder, what);
}

/* Manifests of older versions do not say what the run was trained on. */
static bool check_dataset(const json_t *manifest, const char *folder, const nxr_manifest_run *run,
                          nxr_fault *fault) {
  nxr_fingerprint there;
  bool known = nxr_manifest_dataset(manifest, &there);
  if (run->dataset == NULL || (known && nxr_fingerprint_equal(&there, run->dataset))) return true;
  if (known) return judge_dataset(&there, folder, run, fault);
  nxr_print(stderr, "nxrun: %s does not say on which dataset it was trained: this one is taken to be it\n",
          folder);
  return true;
}

bool nxr_manifest_agrees(const json_t *manifest, const char *folder, const nxr_manifest_run *run,
                         nxr_fault *fault) {
  return check_plan(manifest, folder, run, fault) && check_dataset(manifest, folder, run, fault);
}
