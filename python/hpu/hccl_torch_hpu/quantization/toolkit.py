# SPDX-License-Identifier: Apache-2.0
"""Quantizes a model in two runs. The first run measures the inputs of the model's linear layers. In
the second run, these layers round their inputs and weights to 8-bit floats, with scales that are
computed from the measurements."""
from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.nn import functional

from hccl_torch_hpu.devices import device_type, fp8_max, synDeviceType

CONFIG_VARIABLE = "QUANT_CONFIG"
_TYPE = torch.float8_e4m3fn

# A Gaudi 2 multiplies by these scales at no cost; other scales need a separate operation.
_SCALES_OF_GAUDI2 = tuple(2.0 ** exponent for exponent in (-8, -4, 0, 4))
_METHODS = ("unit_scale", "maxabs_hw", "maxabs_pow2", "maxabs_arbitrary")


def prep_model(model: torch.nn.Module, config_path: str | None = None) -> torch.nn.Module:
    """Prepares the model's linear layers, in place, for measurements or for computing with 8-bit floats, as a JSON file
    requests.

    The file has "mode" (MEASURE or QUANTIZE), "dump_stats_path" (the path prefix of the measurements), "scale_method"
    (unit_scale, maxabs_hw, maxabs_pow2 or maxabs_arbitrary), and "allowlist" and "blocklist", each with the "types" and
    "names" (or parts of names) of modules; the older "whitelist" and "blacklist" mean the same. Other entries are
    ignored.

    Args:
        config_path: the path of the file; the value of ``QUANT_CONFIG`` if it is None.

    Raises:
        ValueError: no file is named, or an entry has an unknown value.
        FileNotFoundError: there is no such file, or there are no measurements yet.

    Returns:
        The model.
    """
    path = config_path or os.environ.get(CONFIG_VARIABLE)
    if not path:
        raise ValueError(f"prep_model: set {CONFIG_VARIABLE} to the path of a JSON file with mode MEASURE or QUANTIZE")
    config = json.loads(Path(path).read_text(encoding="utf-8"))
    mode = config.get("mode", "QUANTIZE").upper()
    modules = {name: one for name, one in model.named_modules() if _is_chosen(name, one, config)}
    if mode == "MEASURE":
        model._hqt_measured = {name: _Measurement(one) for name, one in modules.items()}
        model._hqt_file = _file(config)
    elif mode == "QUANTIZE":
        _quantize(modules, config)
    else:
        raise ValueError(f"prep_model: mode is '{mode}' in {path}; it must be MEASURE or QUANTIZE")
    return model


def finish_measurements(model: torch.nn.Module) -> None:
    """Writes the measurements to the file that the configuration names, and stops measuring. Does nothing for a model
    that is not being measured."""
    measured = model.__dict__.pop("_hqt_measured", None)
    if measured is None:
        return
    file = model.__dict__.pop("_hqt_file")
    file.parent.mkdir(parents=True, exist_ok=True)
    values = {name: {"input": one.end(), "weight": float(one.module.weight.detach().abs().amax())}
              for name, one in measured.items()}
    file.write_text(json.dumps({"modules": values}, indent=1), encoding="utf-8")


class _Measurement:
    """Stores the largest magnitude of a module's inputs."""

    def __init__(self, module: torch.nn.Module) -> None:
        self.module = module
        self._largest = 0.0
        self._hook = module.register_forward_pre_hook(self._measure)

    def _measure(self, module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        self._largest = max(self._largest, float(inputs[0].detach().abs().amax()))

    def end(self) -> float:
        self._hook.remove()
        return self._largest


def _is_chosen(name: str, module: torch.nn.Module, config: dict[str, Any]) -> bool:
    if not isinstance(module, torch.nn.Linear):
        return False
    allowed = config.get("allowlist") or config.get("whitelist") or {}
    blocked = config.get("blocklist") or config.get("blacklist") or {}
    types, names = allowed.get("types") or [], allowed.get("names") or []
    if (types or names) and type(module).__name__ not in types and not any(one in name for one in names):
        return False
    return type(module).__name__ not in (blocked.get("types") or []) and (
        not any(one in name for one in blocked.get("names") or []))


def _file(config: dict[str, Any]) -> Path:
    rank = f"_{dist.get_rank()}_{dist.get_world_size()}" if dist.is_available() and dist.is_initialized() else ""
    return Path(f"{config.get('dump_stats_path', './hqt_output/measure')}_hooks_maxabs{rank}.json")


def _quantize(modules: dict[str, torch.nn.Module], config: dict[str, Any]) -> None:
    method = config.get("scale_method", "maxabs_hw")
    if method not in _METHODS:
        raise ValueError(f"prep_model: scale_method is '{method}'; it must be one of {', '.join(_METHODS)}")
    file = _file(config)
    if not file.is_file():
        raise FileNotFoundError(f"prep_model: there are no measurements in {file}; run the model with mode MEASURE "
                                "first, and call finish_measurements")
    measured = json.loads(file.read_text(encoding="utf-8"))["modules"]
    for name, module in modules.items():
        if name in measured:
            _replace_forward(module, *(scale_of(measured[name][one], method) for one in ("input", "weight")))


def scale_of(amax: float, method: str) -> float:
    """Returns the factor by which values are multiplied before they are cast to 8 bits."""
    if method == "unit_scale" or amax == 0.0:
        return 1.0
    exact = fp8_max(_TYPE) / amax
    if method == "maxabs_arbitrary":
        return exact
    if method == "maxabs_hw" and device_type() == synDeviceType.synDeviceGaudi2:
        return max([one for one in _SCALES_OF_GAUDI2 if one <= exact], default=_SCALES_OF_GAUDI2[0])
    return 2.0 ** math.floor(math.log2(exact))


def _round(tensor: torch.Tensor, scale: float) -> torch.Tensor:
    limit = fp8_max(_TYPE)
    return ((tensor.float() * scale).clamp(-limit, limit).to(_TYPE).float() / scale).to(tensor.dtype)


def _replace_forward(module: torch.nn.Module, input_scale: float, weight_scale: float) -> None:
    with torch.no_grad():
        module.weight.copy_(_round(module.weight, weight_scale))
    module.forward = lambda x: functional.linear(_round(x, input_scale), module.weight, module.bias)
