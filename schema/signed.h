/* SPDX-License-Identifier: Apache-2.0 */
/* Signed plans and folders on disk: what is made of them to be signed, and whether they are what was signed.
 * See schema/signature.h. Faults are whole sentences, with what to do. */
#ifndef NX_SIGNED_H
#define NX_SIGNED_H

#include "schema/plan.h"
#include "schema/signature.h"

/* A small text file, to be freed; NULL with errno. */
char *nx_text_read(const char *path);
/* From a file of keys; false with a fault. */
bool nx_trusted_open(const char *path, nx_trusted_keys *keys, nx_fault *fault);

/* Whether `path`.sig is a signature of these bytes by one of the keys. */
bool nx_plan_is_signed(const char *path, const void *bytes, uint64_t n_bytes, const nx_trusted_keys *keys,
                       nx_fault *fault);
/* The list of sums of a folder, to be freed; NULL with a fault. */
char *nx_folder_sums(const char *folder, nx_fault *fault);
/* Whether the folder has exactly the files of its list, and one of the keys has signed that. Of the files
 * every `stride`-th is read, from the `first`: whoever shares the work asks what the others found. */
bool nx_folder_is_signed(const char *folder, const nx_trusted_keys *keys, uint32_t first, uint32_t stride,
                         void (*beat)(void), nx_fault *fault);

#endif
