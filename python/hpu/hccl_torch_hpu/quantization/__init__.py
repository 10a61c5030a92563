# SPDX-License-Identifier: Apache-2.0
"""FP8 inference: measures the inputs of linear layers, and makes these layers compute with scaled 8-bit floats."""
