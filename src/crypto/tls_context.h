// SPDX-License-Identifier: Apache-2.0
// The settings that all TLS sessions of the process share: TLS 1.3 only, pre-shared keys with an
// ephemeral key exchange, no certificates, no session tickets, no early data.
#pragma once

#include <openssl/types.h>

namespace hccl::crypto {

// Returns the process's context. Call it only while an OpensslCall exists. Throws
// Error(hcclSystemError) or std::bad_alloc. Thread safety: any thread.
[[nodiscard]] SSL_CTX* tls_context();

}  // namespace hccl::crypto
