/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/torch/torch_file.h"

#include "schema/plan_check.h"

#include <stdio.h>
#include <string.h>

static bool find_prefix(nx_torch_file *file) {
  static const char pickle[] = "/data.pkl";
  const size_t n_pickle = sizeof pickle - 1;
  for (size_t i = 0; i < file->zip.n_members; i++) {
    const nx_zip_member *member = &file->zip.members[i];
    size_t n_prefix = member->n_name < n_pickle ? 0 : member->n_name - n_pickle;
    if (n_prefix == 0 || n_prefix + 2 > sizeof file->prefix ||
        memcmp(member->name + n_prefix, pickle, n_pickle) != 0)
      continue;
    snprintf(file->prefix, sizeof file->prefix, "%.*s/", (int)n_prefix, member->name);
    return true;
  }
  return false;
}

const nx_zip_member *nx_torch_find(const nx_torch_file *file, const char *folder, const char *key) {
  char name[512];
  int n = snprintf(name, sizeof name, "%s%s%s", file->prefix, folder, key);
  return n < (int)sizeof name ? nx_zip_find(&file->zip, name) : NULL;
}

static bool open_pickle(nx_torch_file *file, nx_fault *fault) {
  const nx_zip_member *pickle = find_prefix(file) ? nx_torch_find(file, "data.pkl", "") : NULL;
  const nx_zip_member *order = pickle ? nx_torch_find(file, "byteorder", "") : NULL;
  if (pickle == NULL) return nx_fault_set(fault, 0, "%s: torch.save has not written it", file->path);
  if (order && (order->n_bytes != 6 || memcmp(order->bytes, "little", 6) != 0))
    return nx_fault_set(fault, 0, "%s: its numbers have their bytes in another order", file->path);
  return nx_pickle_read(file->path, pickle->bytes, pickle->n_bytes, &file->pickle, fault);
}

bool nx_torch_open(const char *path, const uint8_t *bytes, uint64_t n_bytes, nx_torch_file *file,
                   nx_fault *fault) {
  *file = (nx_torch_file){.path = path};
  if (!nx_is_zip(bytes, n_bytes))
    return nx_fault_set(fault, 0,
                        "%s is no zip file, as torch.save writes them since PyTorch 1.6: read it with "
                        "torch.load, and save it again",
                        path);
  if (!nx_zip_open(path, bytes, n_bytes, &file->zip, fault)) return false;
  if (open_pickle(file, fault)) return true;
  nx_torch_close(file);
  return false;
}

void nx_torch_close(nx_torch_file *file) {
  nx_zip_close(&file->zip);
  nx_pickle_close(&file->pickle);
  *file = (nx_torch_file){0};
}
