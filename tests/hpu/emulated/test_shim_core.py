# SPDX-License-Identifier: Apache-2.0
"""Tests steps, switches, metrics, compilation, data loading, model measurement, and hl-smi."""
import json
import os
import re
import subprocess
import sys

import pytest
import torch

import habana_frameworks.torch as ht
import habana_frameworks.torch.core as htcore
from conftest import HAS_DEVICE, SHIM
from hccl_torch_hpu import lazy


def test_closures_run_once_at_the_end_of_the_step():
    seen = []
    before = lazy.step_count()
    htcore.add_step_closure(seen.append, args=(1,))
    htcore.step_closure.add_step_closure(lambda: seen.append(2))
    assert seen == []
    htcore.mark_step()
    htcore.mark_step(sync=True)
    htcore.iter_mark_step()
    assert seen == [1, 2] and lazy.step_count() == before + 3
    htcore.add_step_closure(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        htcore.mark_step("hpu:0")
    htcore.mark_step()


@pytest.mark.parametrize("value, expected", [(None, False), ("0", False), ("1", True)])
def test_mode(monkeypatch, value, expected):
    from habana_frameworks.torch.utils.internal import Timer, is_lazy, lazy_only

    monkeypatch.delenv("PT_HPU_LAZY_MODE", raising=False)
    if value is not None:
        monkeypatch.setenv("PT_HPU_LAZY_MODE", value)
    assert is_lazy() == htcore.is_lazy() == expected
    assert lazy_only(lambda: 3)() == (3 if expected else None)
    before = lazy.step_count()
    htcore.step_closure._mark_step_if_lazy()
    assert lazy.step_count() == before + expected
    with Timer() as timer:
        assert timer.elapsed() >= 0.0
    assert timer.elapsed() == timer.elapsed()


def test_switches_are_remembered():
    hpu = ht.hpu
    for name, is_on in (("dynamic_shape", hpu.get_dynamic_shape_status), ("quantization", hpu.is_quantization_enabled),
                        ("inference_mode", hpu.is_inference_mode)):
        getattr(hpu, f"enable_{name}")()
        assert is_on()
        getattr(hpu, f"disable_{name}")()
        assert not is_on()
    assert hpu.recompute_sdp_enabled()
    with hpu.sdp_kernel(enable_recompute=False):
        assert not hpu.recompute_sdp_enabled()
        with hpu.sdp_kernel(True):
            assert hpu.recompute_sdp_enabled()
    assert hpu.recompute_sdp_enabled()
    hpu.set_sync_debug_mode("warn")
    assert hpu.get_sync_debug_mode() == 1
    hpu.set_sync_debug_mode(0)
    hpu.setDeterministic(True)
    assert hpu.getDeterministic() and torch.are_deterministic_algorithms_enabled()
    hpu.setDeterministic(False)


def test_preparing_for_inference_keeps_the_model():
    model = torch.nn.Linear(2, 2)
    assert htcore.hpu_set_env(model) is model and htcore.quantization.hpu_set_inference_env() is None
    htcore.hpu_initialize(model, mark_only_scales_as_const=True)
    htcore.quantization.hpu_inference_initialize(model)
    assert ht.hpu.is_inference_mode()
    htcore.quantization.hpu_teardown_inference_env()
    htcore.hpu_reset_env()
    assert not ht.hpu.is_inference_mode()


def test_metrics_count(tmp_path):
    metrics = ht.hpu.metrics
    compiled = ht.hpu.metric_global("graph_compilation")
    compiled.reset()
    with ht.hpu.metric_localcontext("recipe_cache") as local:
        recording = ht.hpu.HPUGraph()
        with ht.hpu.graph(recording):
            torch.ones(2)
        recording.replay()
        recording.replay()
    recording.replay()
    assert dict(compiled.stats())["TotalNumber"] == 1
    assert dict(local.stats())["TotalHit"] == 2 and dict(local.stats())["TotalMiss"] == 1
    assert dict(ht.hpu.metric_global("cpu_fallback").stats())["TotalNumber"] == 0
    with pytest.raises(metrics.MetricNotFound, match="nothing; the metrics are .*graph_compilation"):
        metrics.metric_global("nothing")
    with pytest.raises(metrics.MetricNotFound), ht.hpu.metric_localcontext("nothing"):
        pass
    ht.hpu.metrics_dump(str(tmp_path / "m.json"))
    names = [one["metric_name"] for one in json.loads((tmp_path / "m.json").read_text())]
    assert sorted(names) == ["cpu_fallback", "graph_compilation", "memory_defragmentation", "recipe_cache"]
    with pytest.raises(ValueError, match="format 'xml'"):
        ht.hpu.metrics_dump(str(tmp_path / "m.xml"), "xml")


def test_compile_backend(device):
    import habana_frameworks.torch.dynamo.compile_backend as backend
    from hccl_torch_hpu import compile_backend

    compile_backend.register()
    compile_backend.register()
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()).to(device)
    x = torch.randn(3, 4).to(device)
    for options in ({}, {"options": {"use_graph_freezing": True}}):
        torch._dynamo.reset()
        before = dict(ht.hpu.metric_global("graph_compilation").stats())["TotalNumber"]
        compiled = torch.compile(model, backend="hpu_backend", **options)
        model.zero_grad()
        compiled(x).sum().backward()
        slope = model[0].weight.grad.clone()
        model.zero_grad()
        model(x).sum().backward()
        assert torch.equal(slope, model[0].weight.grad) and torch.equal(compiled(x), model(x))
        assert dict(ht.hpu.metric_global("graph_compilation").stats())["TotalNumber"] > before
    assert backend.config.use_graph_freezing is False
    backend.config.configuration_flags["use_eager_fallback"] = True
    assert backend.config.use_eager_fallback is True


def test_device_type(monkeypatch):
    import habana_frameworks.torch.utils.experimental as experimental

    kinds = experimental.synDeviceType
    for value, expected in ((None, kinds.synDeviceGaudi2), ("gaudi3", kinds.synDeviceGaudi3)):
        monkeypatch.delenv("HCCL_DEVICE_TYPE", raising=False)
        if value:
            monkeypatch.setenv("HCCL_DEVICE_TYPE", value)
        assert experimental._get_device_type() == expected and experimental._is_fp16_supported()
    x = torch.ones(2)
    assert experimental._data_ptr(x) == x.data_ptr() and experimental.hpu is ht.hpu


def test_collectives_module(monkeypatch):
    from habana_frameworks.torch.distributed.hccl import initialize_distributed_hpu
    from habana_frameworks.torch.utils import distributed_utils

    for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "ID", "HLS_MODULE_ID"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "3")
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1")
    assert initialize_distributed_hpu() == (4, 3, 1) and os.environ["RANK"] == "3"
    assert distributed_utils.initialize_distributed_hpu is initialize_distributed_hpu
    assert torch.distributed.is_backend_available("hccl")


def test_loader_and_dataset(tmp_path):
    from habana_dataloader import HabanaDataLoader
    from habana_dataloader.habana_dataset import ImageFolderWithManifest

    for name in ("b/1.png", "a/2.png", "a/1.png", "a/note.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    options = {"loader": lambda path: path[-7:], "transform": str.upper, "target_transform": lambda number: number * 10}
    dataset = ImageFolderWithManifest(str(tmp_path), **options)
    assert [dataset[index] for index in range(len(dataset))] == [("A/1.PNG", 0), ("A/2.PNG", 0), ("B/1.PNG", 10)]
    assert dataset.classes == ["a", "b"] and dataset.targets == [0, 0, 1]
    (tmp_path / "manifest").write_text("b/1.png\na/2.png\n")
    for manifest in (str(tmp_path / "manifest"), ["b/1.png", "a/2.png"]):
        chosen = ImageFolderWithManifest(str(tmp_path), manifest=manifest, **options)
        assert [image for image, _ in chosen] == ["B/1.PNG", "A/2.PNG"]
    with pytest.raises(FileNotFoundError, match="no images"):
        ImageFolderWithManifest(str(tmp_path), manifest=[])
    batches = list(HabanaDataLoader(torch.utils.data.TensorDataset(torch.arange(5)), batch_size=2, drop_last=True))
    assert [one[0].tolist() for one in batches] == [[0, 1], [2, 3]]


@pytest.mark.parametrize("method", ["unit_scale", "maxabs_hw", "maxabs_pow2", "maxabs_arbitrary"])
def test_measuring_then_quantizing(device, tmp_path, monkeypatch, method):
    import habana_quantization_toolkit as toolkit

    def configure(mode, **more):
        file = tmp_path / f"{mode}.json"
        file.write_text(json.dumps({"method": "HOOKS", "mode": mode, "observer": "maxabs", "scale_method": method,
                                    "dump_stats_path": str(tmp_path / "out/measure"),
                                    "blacklist": {"types": [], "names": ["lm_head"]}, **more}))
        monkeypatch.setenv("QUANT_CONFIG", str(file))

    model = torch.nn.ModuleDict({"body": torch.nn.Linear(16, 16), "lm_head": torch.nn.Linear(16, 4)}).to(device)
    x = torch.randn(8, 16).to(device)

    def run():
        with torch.no_grad():
            return model["lm_head"](torch.relu(model["body"](x)))

    exact = run()
    configure("QUANTIZE")
    with pytest.raises(FileNotFoundError, match="run the model with mode MEASURE first"):
        toolkit.prep_model(model)
    configure("MEASURE")
    assert toolkit.prep_model(model) is model
    assert torch.equal(run(), exact)
    toolkit.finish_measurements(model)
    stored = json.loads((tmp_path / "out/measure_hooks_maxabs.json").read_text())["modules"]
    assert set(stored) == {"body"} and stored["body"]["input"] == pytest.approx(x.abs().max().item())
    head = model["lm_head"].weight.detach().clone()
    configure("QUANTIZE")
    toolkit.prep_model(model)
    rounded = run()
    assert 1e-4 < ((rounded - exact).norm() / exact.norm()).item() < 0.08 and torch.equal(head, model["lm_head"].weight)
    toolkit.finish_measurements(model)
    configure("GUESS")
    with pytest.raises(ValueError, match="mode is 'GUESS'"):
        toolkit.prep_model(model)
    monkeypatch.delenv("QUANT_CONFIG")
    with pytest.raises(ValueError, match="set QUANT_CONFIG"):
        toolkit.prep_model(model)


def hl_smi(*arguments, **variables):
    own = ("HABANA_VISIBLE_MODULES", "HCCL_DEVICE_COUNT", "HCCL_DEVICE_TYPE")
    environment = {name: value for name, value in os.environ.items() if name not in own}
    return subprocess.run([sys.executable, SHIM / "bin/hl-smi", *arguments], capture_output=True, text=True, timeout=60,
                          env=environment | variables)


def test_hl_smi_prints_the_version_that_frameworks_parse():
    line = hl_smi("-v").stdout
    assert re.search(r"hl-([\d\.]+)", line).group(1) == "1.24.0" and re.search(r"fw-([\d\.]+)", line)
    assert "emulated" in line
    third = hl_smi().stdout.split("\n")[2]
    assert third.replace(" ", "").split(":")[1][:-1].split("-")[0] == "1.24.0"


def test_hl_smi_prints_the_devices():
    table = hl_smi().stdout
    assert table.count("HL-225 (emulated)") == 8 and "hl-1.24.0-fw-" in table
    assert hl_smi(HCCL_DEVICE_COUNT="2", HCCL_DEVICE_TYPE="gaudi3").stdout.count("HL-325 (emulated)") == 2
    listed = hl_smi("-L", HABANA_VISIBLE_MODULES="3,5").stdout
    assert "(emulated)" in listed and re.findall(r"module_id +: (\d)", listed) == ["3", "5"]
    assert "-Q" in hl_smi("-h").stdout


def test_hl_smi_answers_queries():
    asked = ("-Q", "index,module_id,name,memory.used", "-f")
    shown = hl_smi(*asked, "csv", HABANA_VISIBLE_MODULES="3,5").stdout.splitlines()
    assert shown[0] == "index, module_id, name, memory.used [MiB]" and len(shown) == 3
    assert re.fullmatch(r"1, 5, HL-225 \(emulated\), \d+ MiB", shown[2])
    bare = hl_smi("--query-aip=memory.total,bus_id", "--format=csv,noheader,nounits", HABANA_VISIBLE_MODULES="0").stdout
    assert re.fullmatch(r"\d+, ffff:00:00.0\n", bare)
    for arguments, text in ((("-Q", "colour"), "unknown field colour"), ((*asked, "xml"), "unknown format xml")):
        result = hl_smi(*arguments)
        assert result.returncode == 1 and text in result.stderr and "emulated" in result.stderr


@pytest.mark.skipif(not HAS_DEVICE, reason="needs the installed emulation and HCCL_EMU_HPU=1")
def test_gaudi_program_runs():
    model = torch.nn.Linear(4, 2).to("hpu")
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    losses = []
    for _ in range(10):
        with torch.autocast("hpu", torch.bfloat16):
            loss = model(torch.ones(3, 4, device="hpu")).square().mean()
        loss.backward()
        htcore.mark_step()
        optimizer.step()
        htcore.mark_step()
        optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0] and ht.hpu.memory_stats()["InUse"] > 0
    htcore.hpu.set_device(0)
    with ht.hpu.stream(ht.hpu.Stream()):
        ht.hpu.default_stream().synchronize()
    ht.hpu.random.manual_seed_all(3)
    assert ht.hpu.is_initialized() and ht.hpu.hpu.memory_stats()["InUse"] > 0
    assert not ht.hpu.is_autocast_hpu_enabled() and ht.hpu.get_autocast_hpu_dtype() == torch.bfloat16
