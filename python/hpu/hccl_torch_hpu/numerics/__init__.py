# SPDX-License-Identifier: Apache-2.0
"""The operations of a Gaudi's own kernels, in plain torch code. They run on any device, and autograd differentiates
them if training needs it."""
