// SPDX-License-Identifier: Apache-2.0
// Asio's own code, compiled once here instead of in every file that uses it.
#include <asio/impl/src.hpp>
