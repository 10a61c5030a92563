# SPDX-License-Identifier: Apache-2.0
"""Names of a Gaudi's media engine, which the emulated device lacks. Programs can import the classes and derive from
them. Creating a pipeline or a pipeline step raises an error that names an alternative."""
from __future__ import annotations

import enum
from typing import Any

_INSTEAD = ("the emulated device has no media engine: decode images with torchvision.transforms, and load them with "
            "torch.utils.data.DataLoader")


class _Absent:
    """A class that programs can import and derive from, but not instantiate."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"{type(self).__module__}.{type(self).__qualname__}: {_INSTEAD}")


class MediaPipe(_Absent):
    """A pipeline. Programs derive their own pipelines from it."""


class media_function(_Absent):  # noqa: N801 (the name that programs use)
    """A pipeline step that the program itself computes. Programs derive from it."""


class HPUGenericPytorchIterator(_Absent):
    """Iterates over the batches of a pipeline."""


class HPUResnetPytorchIterator(_Absent):
    """Iterates over the batches of a pipeline of images and labels."""


class CPUHPUResnetPytorchIterator(_Absent):
    """Iterates over the batches of a pipeline of images and labels."""


def node(module: str, name: str) -> type:
    """Returns the class of a pipeline step. The class cannot be instantiated.

    Raises:
        AttributeError: there is no class of this name.
    """
    if not name[:1].isupper():
        raise AttributeError(f"{module}.{name} is not part of this emulation of Gaudi (hccl-torch-hpu); {_INSTEAD}",
                             name=name)
    return type(name, (_Absent,), {"__module__": module, "__doc__": "A step of a pipeline."})


class dtype(str, enum.Enum):  # noqa: N801 (the names programs use, here and below)
    """Types of elements, named as in numpy."""

    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"


def _constants(kind: str, names: str) -> type[enum.Enum]:
    made = enum.Enum(kind, names)
    made.__module__ = __name__
    return made


decoderStage = _constants("decoderStage", "ENABLE_ALL_STAGES ENABLE_SINGLE_STAGE")
ftype = _constants("ftype", "LINEAR LANCZOS NEAREST BI_LINEAR BICUBIC SPLINE BOX")
imgtype = _constants("imgtype", "RGB_I RGB_P YUV_SP YUV_P YUV_I YUV_400")
layout = _constants("layout", "NA NHWC NCHW FHWC")
randomCropType = _constants("randomCropType", "NO_RANDOM_CROP RANDOMIZED_AREA_AND_ASPECT_RATIO_CROP "
                            "RANDOMIZED_ASPECT_RATIO_CROP CENTER_CROP")
readerOutType = _constants("readerOutType", "FILE_LIST BUFFER_LIST ADDRESS_LIST")
