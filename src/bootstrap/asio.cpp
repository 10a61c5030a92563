// SPDX-License-Identifier: Apache-2.0
// Compiles Asio's non-template code.
#include <asio/impl/src.hpp>
