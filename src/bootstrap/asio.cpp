// SPDX-License-Identifier: Apache-2.0
// Compiles the non-template code of Asio in this one file.
#include <asio/impl/src.hpp>
