# SPDX-License-Identifier: Apache-2.0
"""The operations of a Gaudi's own kernels, in plain torch code. The operations run on any device. Those that training
needs are differentiable."""
