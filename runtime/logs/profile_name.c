/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/logs/profile.h"

#include "schema/ops.h"

bool nxr_profile_is_copy(const nxr_profile_event *event) {
  return event->item == NX_NONE;
}

const char *nxr_profile_name(const nx_plan *plan, const nxr_profile_event *event) {
  if (nxr_profile_is_copy(event))
    return event->lane == NXR_LANE_QUEUES + NXK_COPIES_OUT ? "copy to the host" : "copy to the device";
  if (event->op != NX_NONE) return nx_op_find(plan->operators[event->op].op)->name;
  static const char *const names[] = {
      [NX_ITEM_SEND] = "send", [NX_ITEM_RECV] = "receive", [NX_ITEM_WAIT] = "wait"};
  return names[plan->items[event->item].kind];
}
