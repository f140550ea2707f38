/* SPDX-License-Identifier: Apache-2.0 */
/* The three queues, events between them, and when their commands ran. */
#include "kernels/opencl/opencl.h"

#include <stdlib.h>
#include <time.h>

bool ocl_queues_open(nxk_device *device, nxk_fault *fault) {
  cl_int error;
  for (int queue = 0; queue < NXK_N_QUEUES; queue++) {
    device->queues[queue] =
        clCreateCommandQueue(device->context, device->id, CL_QUEUE_PROFILING_ENABLE, &error);
    if (error != CL_SUCCESS) return ocl_fault(fault, "queue", error);
  }
  device->times.label = NXK_UNRECORDED;
  return true;
}

static void finish_all(nxk_device *device) {
  for (int queue = 0; queue < NXK_N_QUEUES; queue++)
    ocl_check(device, clFinish(device->queues[queue]), queue == NXK_KERNELS ? "kernels" : "copies");
}

void ocl_synchronize(nxk_device *device) {
  finish_all(device);
  ocl_read_status(device);
}

/* ---- events ---- */

nxk_event *ocl_event_open(nxk_device *device, nxk_fault *fault) {
  nxk_event *event = calloc(1, sizeof *event);
  if (!event) {
    ocl_fault(fault, "event", CL_OUT_OF_HOST_MEMORY);
    return NULL;
  }
  event->next = device->events;
  return device->events = event;
}

/* Another queue that waits does so only for what was handed to the device. */
void ocl_event_record(nxk_device *device, nxk_queue queue, nxk_event *event) {
  if (event->event) clReleaseEvent(event->event);
  ocl_check(device, clEnqueueMarkerWithWaitList(device->queues[queue], 0, NULL, &event->event), "event");
  ocl_check(device, clFlush(device->queues[queue]), "event");
}

void ocl_event_wait(nxk_device *device, nxk_queue queue, nxk_event *event) {
  if (!event->event) return;
  ocl_check(device, clEnqueueBarrierWithWaitList(device->queues[queue], 1, &event->event, NULL), "event");
}

bool ocl_event_done(nxk_device *device, nxk_event *event) {
  cl_int status = CL_COMPLETE;
  if (!event->event) return true;
  ocl_check(device,
            clGetEventInfo(event->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL),
            "event");
  if (status < 0) ocl_check(device, status, "what an event stands behind");
  return status == CL_COMPLETE;
}

/* ---- times ---- */

static double host_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double device_s(nxk_device *device, cl_event event, cl_profiling_info which) {
  cl_ulong ns = 0;
  ocl_check(device, clGetEventProfilingInfo(event, which, sizeof ns, &ns, NULL), "times of the device");
  return 1e-9 * (double)ns;
}

/* A small copy ends between two looks at the host's clock. */
static void compare_clocks(nxk_device *device) {
  cl_event event;
  cl_int word;
  double before_s = host_s();
  ocl_check(device,
            clEnqueueReadBuffer(device->queues[NXK_KERNELS], device->status, CL_TRUE, 0, sizeof word, &word,
                                0, NULL, &event),
            "times of the device");
  double middle_s = (before_s + host_s()) / 2;
  device->times.offset_s = middle_s - device_s(device, event, CL_PROFILING_COMMAND_END);
  clReleaseEvent(event);
}

bool ocl_record_open(nxk_device *device, uint64_t n, nxk_fault *fault) {
  free(device->times.commands);
  device->times.commands = calloc(n + 1, sizeof *device->times.commands);
  if (!device->times.commands) return ocl_fault(fault, "times of the device", CL_OUT_OF_HOST_MEMORY);
  device->times.room = n;
  compare_clocks(device);
  return true;
}

void ocl_record(nxk_device *device, uint32_t label) {
  device->times.label = label;
}

ocl_command *ocl_command_begin(nxk_device *device, nxk_queue queue, uint32_t label, uint64_t n_bytes) {
  ocl_times *times = &device->times;
  if (times->label == NXK_UNRECORDED || times->n == times->room) return NULL;
  ocl_command *command = &times->commands[times->n++];
  *command = (ocl_command){.span = {.queue = queue, .label = label, .n_bytes = n_bytes}};
  return command;
}

void ocl_command_add(ocl_command *command, cl_event event) {
  if (!command) return;
  if (!command->first) {
    command->first = event;
    clRetainEvent(event);
  } else {
    clReleaseEvent(command->last);
  }
  command->last = event;
}

uint64_t ocl_recorded(nxk_device *device, nxk_span *spans) {
  ocl_times *times = &device->times;
  uint64_t n = 0;
  finish_all(device);
  for (uint64_t i = 0; i < times->n; i++) {
    ocl_command *command = &times->commands[i];
    if (!command->first) continue; /* of an operator without work */
    spans[n] = command->span;
    spans[n].begin_s = times->offset_s + device_s(device, command->first, CL_PROFILING_COMMAND_START);
    spans[n++].end_s = times->offset_s + device_s(device, command->last, CL_PROFILING_COMMAND_END);
    clReleaseEvent(command->first);
    clReleaseEvent(command->last);
  }
  times->n = 0;
  return n;
}

void ocl_queues_close(nxk_device *device) {
  for (uint64_t i = 0; i < device->times.n; i++) {
    if (!device->times.commands[i].first) continue;
    clReleaseEvent(device->times.commands[i].first);
    clReleaseEvent(device->times.commands[i].last);
  }
  free(device->times.commands);
  while (device->events) {
    nxk_event *event = device->events;
    device->events = event->next;
    if (event->event) clReleaseEvent(event->event);
    free(event);
  }
  for (int queue = 0; queue < NXK_N_QUEUES; queue++)
    if (device->queues[queue]) clReleaseCommandQueue(device->queues[queue]);
}
