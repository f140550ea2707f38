/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/guard.h"

#include "schema/signed.h"

static bool open_trust(nxr_guard *guard, nxr_options *options, nxr_fault *fault) {
  nx_fault why = {""};
  if (guard->trust == NULL) return true;
  if (!nx_trusted_open(guard->trust, &guard->of_file, &why)) return nxr_fault_set(fault, "%s", why.text);
  guard->keys = &guard->of_file;
  if (guard->weights) options->trusted = guard->keys;
  return true;
}

static bool open_fence(const nxr_guard *guard, const nxr_options *options, nxr_fault *fault) {
  const char *own[] = {options->directory, options->metrics, options->dump_gradients, options->checkpoint};
  if (guard->n_allowed == 0) return true;
  for (int i = 0; i < guard->n_allowed; i++)
    if (!nxr_fence_add(guard->allowed[i], true, fault)) return false;
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    if (own[i] && !nxr_fence_add(own[i], false, fault)) return false;
  return true;
}

bool nxr_guard_open(nxr_guard *guard, nxr_options *options, nxr_fault *fault) {
  return open_trust(guard, options, fault) && open_fence(guard, options, fault);
}
