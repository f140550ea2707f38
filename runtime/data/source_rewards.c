/* SPDX-License-Identifier: Apache-2.0 */
/* Rewards of answers: the first number of each document of a dataset beside them, or of the dataset's own
 * file of rewards. */
#include "runtime/data/data_source.h"

#include <math.h>

/* Of all documents, whatever part they are in. */
static double reward_of(const nxr_data_source *source, uint64_t document) {
  if (source->dataset == NULL) return document % 2 == 0 ? 1 : -1;
  return source->rewards ? nxr_dataset_number(source->rewards, document)
                         : nxr_dataset_reward(source->dataset, document);
}

double nxr_data_source_reward(const nxr_data_source *source, uint64_t document) {
  return reward_of(source, source->first_document + document);
}

static bool check_number(const nxr_data_source *source, nxr_fault *fault) {
  const nxr_dataset *rewards = source->rewards, *dataset = source->dataset;
  if (rewards == NULL && dataset->rewards.n_bytes == 0)
    return nxr_fault_set(
        fault,
        "dataset %s does not say which of its answers are wanted: name a dataset of rewards by "
        "data.reward_path, or prepare it with data.reward",
        source->name);
  if (rewards && rewards->n_documents != dataset->n_documents)
    return nxr_fault_set(fault, "dataset %s has %llu documents, and %s has rewards of %llu", dataset->prefix,
                         (unsigned long long)dataset->n_documents, rewards->prefix,
                         (unsigned long long)rewards->n_documents);
  for (uint64_t i = 0; rewards && i < rewards->n_documents; i++)
    if (nxr_dataset_document_tokens(rewards, i) == 0)
      return nxr_fault_set(fault, "document %llu of dataset %s has no reward", (unsigned long long)i,
                           rewards->prefix);
  return true;
}

bool nxr_source_check_rewards(const nxr_data_source *source, nxr_fault *fault) {
  if (!nx_objective_find(source->run->objective)->has_rewards) return true;
  if (!check_number(source, fault)) return false;
  for (uint64_t i = 0; i < source->dataset->n_documents; i++) {
    double reward = reward_of(source, i);
    if (!isfinite(reward) || reward == 0)
      return nxr_fault_set(fault,
                           "the reward of document %llu of dataset %s is %g: an answer is wanted above 0 and "
                           "unwanted below (where 0 says unwanted, make rewards with --binary-reward)",
                           (unsigned long long)i,
                           source->rewards ? source->rewards->prefix : source->dataset->prefix, reward);
  }
  return true;
}
