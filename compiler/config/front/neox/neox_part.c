/* SPDX-License-Identifier: Apache-2.0 */
/* Files of GPT-NeoX that are meant to be given together: one that lacks a whole subject is a part. */
#include "compiler/config/front/neox/front_neox.h"

/* What a training cannot be without. A file that gives none of a subject's options leaves it to another. */
typedef struct subject {
  const char *name;
  const char *const *options; /* the last one NULL */
} subject;

static const char *const model[] = {"num_layers", "hidden_size", "num_attention_heads", "seq_length", NULL};
static const char *const training[] = {"train_iters", "train_epochs", "train_batch_size",
                                       "train_micro_batch_size_per_gpu", NULL};
static const subject subjects[] = {{"model", model}, {"length and batch of the training", training}};

static bool is_given(const nxc_binding *binding, const subject *one) {
  for (size_t i = 0; one->options[i] != NULL; i++)
    if (nxc_binding_find(binding, one->options[i])->given) return true;
  return false;
}

void nxc_neox_judge_as_part(nxc_binding *binding) {
  const char *missing = "";
  for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
    if (is_given(binding, &subjects[i])) continue;
    missing = nxc_arena_printf(binding->arena, "%s%s the %s", missing, *missing ? " and" : "",
                               subjects[i].name);
  }
  if (*missing == '\0' || binding->partial || binding->document->root->n_children == 0) return;
  nxc_report(binding->sink, "NX6911", NXC_SEVERITY_ERROR, binding->document->root->at,
             "give the other files with -l FILE, or judge this one with --partial",
             "this is a part of a configuration: it leaves%s to other files", missing);
  binding->elsewhere = binding->partial = true;
}
