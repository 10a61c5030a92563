// SPDX-License-Identifier: Apache-2.0
// A preloaded library that fails the n-th call to one function in one phase of a rank's program, or
// counts the calls. It ignores calls that do not come from libSynapse.so, except for calls of
// pthread_create.
//
//   INJECT=<phase>/<function>/<n>/<errno>   fails call n, counted from 1, with this errno
//   INJECT_COUNTS=<path>                    writes lines "<phase> <function> <calls>" at exit
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

constexpr int kPhases = 3;
constexpr std::array<const char*, kPhases> kPhaseNames{"start", "call", "end"};

// Every function that can be made to fail.
// clang-format off
#define HCCL_FUNCTIONS(X) \
  X(accept4) X(bind) X(close) X(connect) X(dup3) X(epoll_create1) X(epoll_ctl) \
  X(epoll_wait) X(eventfd) X(fallocate) X(fcntl) X(fstat) X(ftruncate) X(getifaddrs) \
  X(getpeername) X(getrandom) X(getsockname) X(getsockopt) X(ioctl) X(listen) X(lseek) \
  X(madvise) X(memfd_create) X(mmap) X(munmap) X(open) X(pidfd_open) X(poll) X(ppoll) \
  X(pread) X(pthread_create) X(pwrite) X(read) X(recv) X(recvmsg) X(send) X(sendmsg) \
  X(setsockopt) X(socket) X(timerfd_create) X(timerfd_settime) X(write) X(writev)
// clang-format on
#define HCCL_ENUMERATOR(name) f_##name,
#define HCCL_NAME(name) #name,

enum Function : int { HCCL_FUNCTIONS(HCCL_ENUMERATOR) f_end };
constexpr int kFunctions = f_end;
constexpr std::array<const char*, kFunctions> kFunctionNames{HCCL_FUNCTIONS(HCCL_NAME)};

struct Wanted {
  int phase = -1;
  int function = -1;
  long number = 0;
  int error = 0;
};

std::atomic<int> phase{0};
std::array<std::array<std::atomic<long>, kFunctions>, kPhases> calls{};
std::atomic<std::uintptr_t> text_begin{0};
std::atomic<std::uintptr_t> text_end{0};

template <std::size_t kCount>
int index_of(const std::array<const char*, kCount>& names, const char* name) {
  for (std::size_t i = 0; i < kCount; ++i) {
    if (std::strcmp(names[i], name) == 0) return static_cast<int>(i);
  }
  return -1;
}

Wanted read_wanted() {
  Wanted wanted;
  const char* const value = std::getenv("INJECT");
  std::array<char, 16> phase_name{};
  std::array<char, 32> function_name{};
  if (value == nullptr || std::sscanf(value, "%15[^/]/%31[^/]/%ld/%d", phase_name.data(),
                                      function_name.data(), &wanted.number, &wanted.error) != 4) {
    return wanted;
  }
  wanted.phase = index_of(kPhaseNames, phase_name.data());
  wanted.function = index_of(kFunctionNames, function_name.data());
  return wanted;
}

const Wanted& wanted() {
  static const Wanted value = read_wanted();
  return value;
}

int note_library(dl_phdr_info* info, std::size_t, void*) {
  if (std::strstr(info->dlpi_name, "libSynapse.so") == nullptr) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    text_end = info->dlpi_addr + header.p_vaddr + header.p_memsz;
    text_begin = info->dlpi_addr + header.p_vaddr;
  }
  return 1;
}

// Finds the address range of the library's code. Until this constructor has run, only calls of
// pthread_create are counted.
__attribute__((constructor)) void find_library() {
  static_cast<void>(wanted());
  dl_iterate_phdr(note_library, nullptr);
}

__attribute__((destructor)) void write_counts() {
  const char* const path = std::getenv("INJECT_COUNTS");
  if (path == nullptr) return;
  std::FILE* const file = std::fopen(path, "w");
  if (file == nullptr) return;
  for (int at = 0; at < kPhases; ++at) {
    for (int function = 0; function < kFunctions; ++function) {
      const long count = calls[static_cast<std::size_t>(at)][static_cast<std::size_t>(function)];
      if (count > 0)
        std::fprintf(file, "%s %s %ld\n", kPhaseNames[static_cast<std::size_t>(at)],
                     kFunctionNames[static_cast<std::size_t>(function)], count);
    }
  }
  std::fclose(file);
}

bool is_of_library(const void* caller) {
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  return address >= text_begin.load(std::memory_order_relaxed) &&
         address < text_end.load(std::memory_order_relaxed);
}

// Counts the call. Returns the errno with which the call must fail, or 0.
int verdict(Function function) {
  const int now = phase.load(std::memory_order_relaxed);
  const long number = 1 + calls[static_cast<std::size_t>(now)][function].fetch_add(1);
  const Wanted& it = wanted();
  return it.phase == now && it.function == function && it.number == number ? it.error : 0;
}

template <class Signature>
Signature* next(const char* name) {
  return reinterpret_cast<Signature*>(dlsym(RTLD_NEXT, name));
}

// Returns `failed` and sets errno if the call must fail; otherwise makes the call.
template <class Result, class Call>
Result interpose(Function function, const void* caller, Result failed, Call call) {
  const int error = is_of_library(caller) ? verdict(function) : 0;
  if (error == 0) return call();
  errno = error;
  return failed;
}

}  // namespace

#define HCCL_CALLER __builtin_return_address(0)
#define HCCL_EXPORT extern "C" __attribute__((visibility("default")))
// Defines a function under libc's symbol name without redeclaring libc's function.
// NOLINTBEGIN(bugprone-macro-parentheses): types and lists of parameters
#define HCCL_DEFINE(result, name, parameters)                     \
  HCCL_EXPORT result interposed_##name parameters __asm__(#name); \
  result interposed_##name parameters
// Defines a function that returns -1 on failure.
#define HCCL_INTERPOSE(result, name, parameters, arguments)                              \
  HCCL_DEFINE(result, name, parameters) {                                                \
    static auto* const real = next<result parameters>(#name);                            \
    return interpose(f_##name, HCCL_CALLER, result{-1}, [&] { return real arguments; }); \
  }
// NOLINTEND(bugprone-macro-parentheses)

// Starts the phase `name`. The program of the rank calls this function.
HCCL_EXPORT void inject_enter_phase(const char* name) { phase = index_of(kPhaseNames, name); }

HCCL_INTERPOSE(int, accept4, (int fd, sockaddr* where, socklen_t* length, int flags),
               (fd, where, length, flags))
HCCL_INTERPOSE(int, bind, (int fd, const sockaddr* where, socklen_t length), (fd, where, length))
HCCL_INTERPOSE(int, connect, (int fd, const sockaddr* where, socklen_t length), (fd, where, length))
HCCL_INTERPOSE(int, dup3, (int from, int to, int flags), (from, to, flags))
HCCL_INTERPOSE(int, epoll_create1, (int flags), (flags))
HCCL_INTERPOSE(int, epoll_ctl, (int epoll, int operation, int fd, epoll_event* event),
               (epoll, operation, fd, event))
HCCL_INTERPOSE(int, epoll_wait, (int epoll, epoll_event* events, int most, int timeout),
               (epoll, events, most, timeout))
HCCL_INTERPOSE(int, eventfd, (unsigned value, int flags), (value, flags))
HCCL_INTERPOSE(int, fallocate, (int fd, int mode, off_t offset, off_t length),
               (fd, mode, offset, length))
HCCL_INTERPOSE(int, fstat, (int fd, struct stat* status), (fd, status))
HCCL_INTERPOSE(int, ftruncate, (int fd, off_t length), (fd, length))
HCCL_INTERPOSE(int, getifaddrs, (ifaddrs * *list), (list))
HCCL_INTERPOSE(int, getpeername, (int fd, sockaddr* where, socklen_t* length), (fd, where, length))
HCCL_INTERPOSE(ssize_t, getrandom, (void* data, std::size_t size, unsigned flags),
               (data, size, flags))
HCCL_INTERPOSE(int, getsockname, (int fd, sockaddr* where, socklen_t* length), (fd, where, length))
HCCL_INTERPOSE(int, getsockopt, (int fd, int level, int name, void* value, socklen_t* length),
               (fd, level, name, value, length))
HCCL_INTERPOSE(int, listen, (int fd, int backlog), (fd, backlog))
HCCL_INTERPOSE(off_t, lseek, (int fd, off_t offset, int whence), (fd, offset, whence))
HCCL_INTERPOSE(int, madvise, (void* data, std::size_t size, int advice), (data, size, advice))
HCCL_INTERPOSE(int, memfd_create, (const char* name, unsigned flags), (name, flags))
HCCL_INTERPOSE(int, munmap, (void* data, std::size_t size), (data, size))
HCCL_INTERPOSE(int, poll, (pollfd * entries, nfds_t count, int timeout), (entries, count, timeout))
HCCL_INTERPOSE(int, ppoll,
               (pollfd * entries, nfds_t count, const timespec* limit, const sigset_t* signals),
               (entries, count, limit, signals))
HCCL_INTERPOSE(ssize_t, pread, (int fd, void* data, std::size_t size, off_t offset),
               (fd, data, size, offset))
HCCL_INTERPOSE(ssize_t, pwrite, (int fd, const void* data, std::size_t size, off_t offset),
               (fd, data, size, offset))
HCCL_INTERPOSE(ssize_t, read, (int fd, void* data, std::size_t size), (fd, data, size))
HCCL_INTERPOSE(ssize_t, recv, (int fd, void* data, std::size_t size, int flags),
               (fd, data, size, flags))
HCCL_INTERPOSE(ssize_t, recvmsg, (int fd, msghdr* message, int flags), (fd, message, flags))
HCCL_INTERPOSE(ssize_t, send, (int fd, const void* data, std::size_t size, int flags),
               (fd, data, size, flags))
HCCL_INTERPOSE(ssize_t, sendmsg, (int fd, const msghdr* message, int flags), (fd, message, flags))
HCCL_INTERPOSE(int, setsockopt, (int fd, int level, int name, const void* value, socklen_t length),
               (fd, level, name, value, length))
HCCL_INTERPOSE(int, socket, (int family, int type, int protocol), (family, type, protocol))
HCCL_INTERPOSE(int, timerfd_create, (clockid_t clock, int flags), (clock, flags))
HCCL_INTERPOSE(int, timerfd_settime,
               (int fd, int flags, const itimerspec* value, itimerspec* before),
               (fd, flags, value, before))
HCCL_INTERPOSE(ssize_t, write, (int fd, const void* data, std::size_t size), (fd, data, size))
HCCL_INTERPOSE(ssize_t, writev, (int fd, const iovec* parts, int count), (fd, parts, count))

// Closes the descriptor even if the call must fail, as the kernel does on an error.
HCCL_DEFINE(int, close, (int fd)) {
  static auto* const real = next<int(int)>("close");
  const int error = is_of_library(HCCL_CALLER) ? verdict(f_close) : 0;
  const int result = real(fd);
  if (error == 0) return result;
  errno = error;
  return -1;
}

HCCL_DEFINE(void*, mmap,
            (void* at, std::size_t size, int protection, int flags, int fd, off_t offset)) {
  static auto* const real = next<void*(void*, std::size_t, int, int, int, off_t)>("mmap");
  return interpose(f_mmap, HCCL_CALLER, MAP_FAILED,
                   [&] { return real(at, size, protection, flags, fd, offset); });
}

// Counts calls from any caller, because std::thread calls this function from libstdc++, not from
// the library.
HCCL_DEFINE(int, pthread_create,
            (pthread_t * thread, const pthread_attr_t* attributes, void* (*run)(void*),
             void* argument)) {
  static auto* const real =
      next<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  const int error = verdict(f_pthread_create);
  return error != 0 ? error : real(thread, attributes, run, argument);
}

HCCL_DEFINE(int, fcntl, (int fd, int command, ...)) {
  static auto* const real = next<int(int, int, ...)>("fcntl");
  va_list rest;
  va_start(rest, command);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  return interpose(f_fcntl, HCCL_CALLER, -1, [&] { return real(fd, command, argument); });
}

HCCL_DEFINE(int, ioctl, (int fd, unsigned long request, ...)) {
  static auto* const real = next<int(int, unsigned long, ...)>("ioctl");
  va_list rest;
  va_start(rest, request);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  return interpose(f_ioctl, HCCL_CALLER, -1, [&] { return real(fd, request, argument); });
}

HCCL_DEFINE(int, open, (const char* path, int flags, ...)) {
  static auto* const real = next<int(const char*, int, ...)>("open");
  va_list rest;
  va_start(rest, flags);
  const auto mode = va_arg(rest, mode_t);
  va_end(rest);
  return interpose(f_open, HCCL_CALLER, -1, [&] { return real(path, flags, mode); });
}

// Among the system calls that the library makes by number, only pidfd_open can be made to fail. A
// failed futex call would look like a spurious wake-up.
HCCL_DEFINE(long, syscall, (long number, ...)) {
  // A dynamically initialised static would call syscall() for its own guard.
  static constinit std::atomic<long (*)(long, ...)> known{nullptr};
  if (known.load() == nullptr) known = next<long(long, ...)>("syscall");
  auto* const real = known.load();
  std::array<long, 6> arguments{};
  va_list rest;
  va_start(rest, number);
  // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is two lines above
  for (long& argument : arguments) argument = va_arg(rest, long);
  va_end(rest);
  const auto call = [&] {
    return real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                arguments[5]);
  };
  if (number != SYS_pidfd_open) return call();
  return interpose(f_pidfd_open, HCCL_CALLER, -1L, call);
}
