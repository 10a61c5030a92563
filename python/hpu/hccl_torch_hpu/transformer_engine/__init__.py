# SPDX-License-Identifier: Apache-2.0
"""Training with emulated 8-bit floats: values are rounded to 8 bits as on a Gaudi, and products are computed in higher
precision."""
