// SPDX-License-Identifier: Apache-2.0
// Connects to a port with `openssl s_client`, as a scanner of TLS servers would.
#pragma once

#include "check.h"

#include <array>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <sys/wait.h>

namespace hccl::test {

struct Finished {
  int status = -1;  // exit status
  std::string output;
};

// Runs a command of the shell.
inline Finished run_in_shell(const std::string& command) {
  Finished result;
  FILE* const pipe = popen(join("{ ", command, "; } </dev/null 2>&1").c_str(), "r");
  if (pipe == nullptr) return result;
  std::array<char, 4096> buffer{};
  while (const std::size_t count = fread(buffer.data(), 1, buffer.size(), pipe))
    result.output.append(buffer.data(), count);
  const int status = pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

class OpensslClient {
 public:
  // `address`: host and port. `key`: the pre-shared key in hexadecimal digits.
  OpensslClient(std::string address, std::string key)
      : address_(std::move(address)), key_(std::move(key)) {}

  [[nodiscard]] static bool is_installed() { return run_in_shell("openssl version").status == 0; }

  // Connects with these options, and disconnects after the handshake or, if `patient`, a second
  // later.
  [[nodiscard]] Finished connect(const std::string& options, bool patient = false) const {
    return run_in_shell(join(patient ? "sleep 1 | " : "", "timeout 20 openssl s_client -connect ",
                             address_, ' ', options));
  }

  // Connects with the key. Returns a description of what is wrong, or "".
  [[nodiscard]] std::string problem_with_key() const {
    const Finished probe = connect(join("-tls1_3", with_key(key_)), true);
    const auto shows = [&](const char* text) {
      return probe.output.find(text) != std::string::npos;
    };
    if (!shows("Reused, TLSv1.3, Cipher is TLS_")) return join("no session: ", probe.output);
    if (!shows("no peer certificate available")) return join("a certificate: ", probe.output);
    // A server may send tickets after the handshake. A ticket would allow a session without the
    // pre-shared key.
    return shows("New Session Ticket") ? join("a ticket: ", probe.output) : "";
  }

  // Connects in all ways that must be refused. Returns a description of what is wrong, or "".
  [[nodiscard]] std::string problem_otherwise() const {
    for (const std::string& options : refused_options()) {
      const Finished probe = connect(options);
      const auto shows = [&](const char* text) {
        return probe.output.find(text) != std::string::npos;
      };
      if (probe.status == 0 || !shows("CONNECTED") || !shows("Cipher is (NONE)") ||
          shows("BEGIN CERTIFICATE"))
        return join(options, ": ", probe.output);
    }
    return "";
  }

 private:
  [[nodiscard]] static std::string with_key(const std::string& key, const char* identity = "hccl") {
    return join(" -psk_identity ", identity, " -psk ", key);
  }
  [[nodiscard]] std::vector<std::string> refused_options() const {
    std::string wrong = key_;
    wrong.back() = wrong.back() == '0' ? '1' : '0';
    return {"-tls1_3",
            join("-tls1_3", with_key(wrong)),
            join("-tls1_3", with_key(key_, "Client_identity")),
            join("-tls1_3 -ciphersuites TLS_AES_256_GCM_SHA384", with_key(key_)),
            join("-tls1_3 -groups ffdhe2048", with_key(key_)),
            join("-tls1_2 -cipher PSK@SECLEVEL=0", with_key(key_)),
            "-tls1_1 -cipher ALL@SECLEVEL=0",
            "-tls1 -cipher ALL@SECLEVEL=0"};
  }

  std::string address_;
  std::string key_;
};

}  // namespace hccl::test
