// SPDX-License-Identifier: Apache-2.0
// Uses /dev/udmabuf, which creates a dma-buf from pages of a memory file.
#include "device/dma_buffer.h"

#include "base/error.h"
#include "base/text.h"

#include <cerrno>

#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>

namespace hccl::device {

FileDescriptor export_dma_buffer(Arena& arena, DeviceAddress address, std::uint64_t bytes) {
  if (bytes == 0) throw Error(hcclInvalidArgument, "size is 0; pass the number of bytes to export");
  const MemoryRange range = arena.resolve(address, bytes, "addr");
  const FileDescriptor maker(open("/dev/udmabuf", O_RDWR | O_CLOEXEC));
  if (!maker.valid()) {
    throw Error(
        hcclUnsupported,
        text("cannot export device memory as a dma-buf: /dev/udmabuf: ", system_error_text(errno),
             "; load the kernel module udmabuf and give this user access to the file, or copy "
             "the data to the host"));
  }
  // Whole pages may be exported, because no two allocations share a page.
  const std::uint64_t first = range.file_offset / kPageBytes * kPageBytes;
  udmabuf_create request{};
  request.memfd = static_cast<__u32>(arena.view()->file().get());
  request.flags = UDMABUF_FLAGS_CLOEXEC;
  request.offset = first;
  request.size = round_up(range.file_offset + bytes - first, kPageBytes);
  FileDescriptor buffer(ioctl(maker.get(), UDMABUF_CREATE, &request));
  if (!buffer.valid()) {
    throw Error(hcclUnsupported, text("the kernel cannot make a dma-buf of ", request.size,
                                      " bytes: ", system_error_text(errno),
                                      "; raise size_limit_mb of the kernel module udmabuf"));
  }
  return buffer;
}

}  // namespace hccl::device
