# SPDX-License-Identifier: Apache-2.0
"""Inference with 8-bit floats: measurements, and linear layers that use them."""
