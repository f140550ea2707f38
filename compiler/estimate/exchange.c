/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/estimate/exchange.h"

#include <math.h>

/* Members of a group within one domain. */
static double members_near(const nxc_machine *machine, nxc_ranks group) {
  return fmax(1, fmin(group.size, floor(machine->device->domain / group.stride)));
}

static double rate(const nxc_link *link, double bytes) {
  return nxc_rate_at(&link->bandwidth, bytes);
}

/* Those axes of a torus that a group lies along, as degrees are laid over a mesh whose axes are equally
 * long. */
static double axes_of(const nxc_device *device, nxc_ranks group) {
  double axes = round(device->axes * log(group.size) / log(device->domain));
  return fmin(device->axes, fmax(1, axes));
}

/* A group has the links of its axes; a ring that is not closed is as fast as its end. */
static double share_of_torus(const nxc_device *device, nxc_ranks group) {
  if (device->axes == 0) return 1;
  return axes_of(device, group) / device->axes * (device->domain < device->closed ? 0.5 : 1);
}

/* Where each two devices of a host have links of their own a group has those between its members. */
static double share_of_pairs(const nxc_device *device, double near) {
  return device->pairs > 1 ? fmin(1, (near - 1) / (device->pairs - 1)) : 1;
}

static double inside_rate(const nxc_machine *machine, double near, double bytes) {
  return share_of_pairs(machine->device, near) * rate(&machine->inside, bytes);
}

/* Steps of a ring over all members, or of one along each axis of a torus after the other. */
static double steps_of(const nxc_device *device, nxc_ranks group) {
  if (device->axes == 0 || device->rings > 0) return group.size - 1;
  double axes = axes_of(device, group);
  return axes * (pow(group.size, 1 / axes) - 1);
}

double nxc_gather_s(const nxc_machine *machine, nxc_ranks group, double bytes) {
  if (group.size <= 1 || bytes <= 0) return 0;
  double near = members_near(machine, group), domains = ceil(group.size / near);
  double inside = near > 1 ? bytes * (near - 1) / near / inside_rate(machine, near, bytes) : 0;
  if (domains <= 1)
    return inside / share_of_torus(machine->device, group) + machine->inside.start_s +
           steps_of(machine->device, group) * machine->inside.latency_s;
  double between = bytes * (domains - 1) / domains / (near * rate(&machine->between, bytes));
  double steps_s = (domains - 1) * machine->between.latency_s +
                   (group.size - domains) * machine->inside.latency_s;
  return fmax(inside, between) + machine->between.start_s + steps_s;
}

static double once_s(const nxc_link *link) {
  return link->start_s + link->latency_s;
}

double nxc_places_of(double places, double copies) {
  return places * (1 - pow(1 - 1 / places, copies)) / copies;
}

double nxc_all_to_all_s(const nxc_machine *machine, nxc_ranks group, double bytes, double copies) {
  if (group.size <= 1 || bytes <= 0) return 0;
  double near = members_near(machine, group), domains = ceil(group.size / near);
  double there = bytes * nxc_places_of(group.size, copies) * (near - 1) / near;
  double inside = there > 0 ? there / inside_rate(machine, near, bytes) + once_s(&machine->inside) : 0;
  if (domains <= 1) return inside;
  double far = bytes * nxc_places_of(domains, copies) * (domains - 1) / domains;
  return inside + far / rate(&machine->between, bytes) + once_s(&machine->between);
}

double nxc_send_s(const nxc_machine *machine, nxc_ranks group, double bytes) {
  if (group.size <= 1 || bytes <= 0) return 0;
  if (group.size * group.stride <= machine->device->domain)
    return bytes / inside_rate(machine, 2, bytes) + once_s(&machine->inside);
  return bytes / rate(&machine->between, bytes) + once_s(&machine->between);
}
