// SPDX-License-Identifier: Apache-2.0
// Exists so that the headers every test includes are compiled once (see tests/CMakeLists.txt).
int main() {}
