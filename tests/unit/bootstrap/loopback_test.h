// SPDX-License-Identifier: Apache-2.0
// Fixtures for tests whose ranks connect over the loopback interface.
#pragma once

#include "base/config.h"
#include "bootstrap/server_registry.h"
#include "bootstrap/unique_id.h"
#include "scoped_environment.h"

#include <gtest/gtest.h>

namespace hccl::bootstrap::test {

class LoopbackTest : public testing::Test {
 protected:
  LoopbackTest() {
    environment_.set("HCCL_SOCKET_IFNAME", "lo");
    environment_.remove("HCCL_COMM_ID");
    load_config();
  }

 private:
  hccl::test::ScopedEnvironment environment_;
};

// Runs a root server until the end of the test.
class ServerTest : public LoopbackTest {
 public:
  ~ServerTest() override { retire_unique_id(id_); }

 protected:
  [[nodiscard]] const hcclUniqueId& id() const { return id_; }
  [[nodiscard]] const UniqueId& server() const { return server_; }

 private:
  hcclUniqueId id_ = create_unique_id();
  UniqueId server_ = decode(id_);
};

}  // namespace hccl::bootstrap::test
