/* SPDX-License-Identifier: Apache-2.0 */
/* What only emulated devices offer: kernels that are functions of the program, and device memory
 * seen from the host. A program that is to run on real devices too launches its recipes there
 * (synLaunch) and keeps its calls of this header in one place. C99 and C++. */
#ifndef HCCL_EMULATION_H_
#define HCCL_EMULATION_H_

#include <hccl_types.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

// Queues `kernel(arguments)` on a stream, in order with its copies, events and collectives, and
// returns at once. It runs on a thread of the library or on one that waits for the stream, so it
// must neither throw nor call the library; memory it uses it gets from hcclEmulationHostView
// beforehand. `arguments` stay the caller's and must live until it has run. After a failure on the
// stream it runs all the same. Errors: hcclInvalidArgument for an unknown stream or a null kernel.
hcclResult_t hcclEmulationLaunch(void* stream_handle, void (*kernel)(void* arguments),
                                 void* arguments);

// Gives in `*view` where `size` bytes of device memory, inside one allocation, lie in the host's
// address space. The same for every call, valid until the memory is freed, also when the library
// moves the pages behind it after a failure. Writes are seen by work that is ordered after them.
// Does not block. Errors: hcclInvalidArgument if the range is in no allocation, hcclOutOfMemory if
// it cannot be mapped.
hcclResult_t hcclEmulationHostView(uint64_t device_address, uint64_t size, void** view);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif  // HCCL_EMULATION_H_
