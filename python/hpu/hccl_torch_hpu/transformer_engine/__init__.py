# SPDX-License-Identifier: Apache-2.0
"""Training with 8-bit floats, emulated: values are rounded to 8 bits as a Gaudi rounds them, products are computed in
higher precision."""
