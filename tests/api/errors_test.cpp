// SPDX-License-Identifier: Apache-2.0
// Tests the calls that explain result codes and return the last error.
#include <hccl.h>
#include <synapse_api.h>

#include <array>
#include <cstring>
#include <set>
#include <string>
#include <thread>

#include <gtest/gtest.h>

TEST(ResultTexts, ExistForEveryCodeAndDiffer) {
  std::set<std::string> texts;
  for (int code = hcclUninitialized; code <= hcclPortDown; ++code) {
    const char* text = hcclGetErrorString(static_cast<hcclResult_t>(code));
    ASSERT_NE(text, nullptr) << code;
    EXPECT_STRNE(text, "") << code;
    EXPECT_TRUE(texts.insert(text).second) << code << " shares its text: " << text;
  }
}

TEST(ResultTexts, ExistForUnknownCodes) {
  EXPECT_NE(hcclGetErrorString(static_cast<hcclResult_t>(31)), nullptr);
  EXPECT_NE(synGetErrorString(static_cast<synStatus>(63)), nullptr);
}

TEST(StatusTexts, ExistForEveryCodeDifferAndFit) {
  std::set<std::string> texts;
  for (int code = synSuccess; code <= synFailTpcKernels; ++code) {
    const auto status = static_cast<synStatus>(code);
    EXPECT_TRUE(texts.insert(synGetErrorString(status)).second) << code << " shares its text";
    std::array<char, STATUS_DESCRIPTION_MAX_SIZE> buffer{};
    EXPECT_EQ(synStatusGetBriefDescription(status, buffer.data(), buffer.size()), synSuccess);
    EXPECT_STREQ(buffer.data(), synGetErrorString(status));
  }
}

TEST(StatusTexts, AreTruncatedToTheBuffer) {
  std::array<char, 8> buffer;
  buffer.fill('#');
  EXPECT_EQ(synStatusGetBriefDescription(synInvalidArgument, buffer.data(), 5), synSuccess);
  EXPECT_STREQ(buffer.data(), "inva");
  EXPECT_EQ(buffer[5], '#');
  EXPECT_EQ(synStatusGetBriefDescription(synSuccess, nullptr, 56), synInvalidArgument);
  EXPECT_EQ(synStatusGetBriefDescription(synSuccess, buffer.data(), 0), synInvalidArgument);
}

TEST(Version, MatchesTheHeaders) {
  int version = 0;
  EXPECT_EQ(hcclGetVersion(&version), hcclSuccess);
  EXPECT_EQ(version, HCCL_VERSION_CODE);
  EXPECT_EQ(hcclGetLastErrorMessage(), nullptr);
}

TEST(Version, RefusesANullPointer) {
  EXPECT_EQ(hcclGetVersion(nullptr), hcclInvalidArgument);
  ASSERT_NE(hcclGetLastErrorMessage(), nullptr);
  EXPECT_NE(std::strstr(hcclGetLastErrorMessage(), "hcclGetVersion"), nullptr);
}

TEST(LastError, PersistsUntilTheNextCallOfItsApi) {
  EXPECT_NE(hcclGroupEnd(), hcclSuccess);  // no group was started
  EXPECT_NE(synErrorDestroy(nullptr), synSuccess);
  (void)hcclGetErrorString(hcclUnsupported);
  (void)synGetErrorString(synUnsupported);
  std::array<char, STATUS_DESCRIPTION_MAX_SIZE> buffer{};
  (void)synStatusGetBriefDescription(synUnsupported, buffer.data(), buffer.size());
  EXPECT_NE(hcclGetLastErrorMessage(), nullptr);
  EXPECT_EQ(synGetLastError(), synUnsupported);

  int version = 0;
  EXPECT_EQ(hcclGetVersion(&version), hcclSuccess);
  EXPECT_EQ(hcclGetLastErrorMessage(), nullptr);
  EXPECT_EQ(synGetLastError(), synUnsupported) << "an hccl call must not clear a syn error";
  EXPECT_STRNE(synGetLastErrorMessage(), "");
}

TEST(LastError, IsPerThread) {
  EXPECT_NE(hcclGroupEnd(), hcclSuccess);  // no group was started
  EXPECT_NE(synErrorDestroy(nullptr), synSuccess);
  std::thread([] {
    EXPECT_EQ(hcclGetLastErrorMessage(), nullptr);
    EXPECT_EQ(synGetLastError(), synSuccess);
    EXPECT_STREQ(synGetLastErrorMessage(), "");
  }).join();
  EXPECT_NE(hcclGetLastErrorMessage(), nullptr);
}
