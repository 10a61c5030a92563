# SPDX-License-Identifier: Apache-2.0
"""The operations that Gaudi kernels implement, in plain torch code. They run on any device. Those that training needs
are differentiable."""
