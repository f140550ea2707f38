/* SPDX-License-Identifier: Apache-2.0 */
/* Independent items worked on by several threads, and handed over in order.
 *
 * Each item is worked on once, by any thread, and then delivered once, by the calling thread, in the order of
 * the indices: what is printed does not depend on the threads. Work may touch nothing that other items' work
 * touches. No more items wait for delivery than a small multiple of the threads. */
#ifndef NXC_COMMANDS_PARALLEL_H
#define NXC_COMMANDS_PARALLEL_H

#include <stddef.h>

typedef void nxc_item_function(void *context, size_t index);

/* As many threads as this process may use at once, at most one an item. */
void nxc_parallel(size_t n_items, nxc_item_function *work, nxc_item_function *deliver, void *context);

#endif
