# SPDX-License-Identifier: Apache-2.0
"""PyTorch's distributed backend "hccl".

``import torch`` registers the backend; nothing else needs to be imported:

    torch.distributed.init_process_group("hccl")
"""
import warnings

__all__: list[str] = []


def _create_process_group(options, backend_options):
    """Makes the group's backend. Loads the extension and joins the other ranks, so it blocks."""
    from hccl_torch import _C

    return _C.ProcessGroupHccl(
        options.store,
        options.group_rank,
        options.group_size,
        options.timeout,
        options.group_id,
        list(options.global_ranks_in_group),
    )


def _autoload() -> None:
    """Registers the backend with torch.distributed. Called by ``import torch``, so it raises nothing, starts no thread
    and loads no library."""
    try:
        import torch.distributed as dist

        if not dist.is_available():
            return
        if "hccl" in dist.Backend.backend_list:
            warnings.warn("hccl_torch: another package has registered the backend \"hccl\"; it stays", stacklevel=2)
            return
        dist.Backend.register_backend("hccl", _create_process_group, extended_api=True, devices=["cpu"])
    except Exception as error:  # import torch must go on
        warnings.warn(f"hccl_torch: cannot register the backend \"hccl\": {error}", stacklevel=2)
