# SPDX-License-Identifier: Apache-2.0
"""FP8 inference: measures the inputs of linear layers, and makes these layers round their inputs
and weights to scaled 8-bit floats."""
