# SPDX-License-Identifier: Apache-2.0
"""Tests 8-bit floats in casts, products and training: error bounds, scales, and falling losses."""
import copy

import pytest
import torch
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import habana_frameworks.torch.hpex.experimental.transformer_engine as te
from habana_frameworks.torch.hpex.experimental.transformer_engine import fp8, recipe
from habana_frameworks.torch.hpex.kernels.Fp8Ops import cast_from_fp8, cast_to_fp8_v2, fp8_gemm_v2

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2

# The largest relative rounding error: half of the distance between neighbouring values.
ERROR = {E4M3: 2.0 ** -4, E5M2: 2.0 ** -3}


@pytest.mark.parametrize("dtype", [E4M3, E5M2])
@pytest.mark.parametrize("scale", [None, 8.0, "tensor", "list"])
def test_cast_and_back(device, dtype, scale):
    x = (torch.rand(5, 4) + 0.5).to(device)
    x[0, 0] = -3.0
    given = {"tensor": torch.tensor(8.0).to(device), "list": [8.0, 4.0, 2.0, 1.0]}.get(scale, scale)
    back = {"list": [0.125, 0.25, 0.5, 1.0], "tensor": torch.tensor(0.125).to(device), 8.0: 0.125}.get(scale)
    values, amax = cast_to_fp8_v2(x, given, False, True, dtype)
    assert values.dtype == dtype and amax.item() == 3.0 and values.device == x.device
    result = cast_from_fp8(values, back, torch.float32)
    assert ((result - x).abs() <= ERROR[dtype] * x.abs()).all() and not torch.equal(result, x)


def test_cast_saturates_like_the_device(device, monkeypatch):
    x = torch.tensor([1e6, -1e6, 300.0]).to(device)
    assert cast_to_fp8_v2(x, None, False, False, E4M3)[0].float().tolist() == [240.0, -240.0, 240.0]
    assert cast_to_fp8_v2(x, dtype=E5M2)[0].float().tolist() == [57344.0, -57344.0, 320.0]
    monkeypatch.setenv("HCCL_DEVICE_TYPE", "gaudi3")
    assert cast_to_fp8_v2(x, None, False, False, E4M3)[0].float().tolist() == [448.0, -448.0, 288.0]


@pytest.mark.parametrize("dtype, neighbours", [(E4M3, (18.0, 20.0)), (E5M2, (16.0, 20.0))])
def test_stochastic_rounding_keeps_the_mean(device, dtype, neighbours):
    x = torch.full((20000,), 18.5).to(device)
    values = cast_to_fp8_v2(x, 1.0, True, False, dtype)[0].float()
    assert set(values.unique().tolist()) == set(neighbours)
    assert values.mean().item() == pytest.approx(18.5, abs=0.05)
    tiny = torch.full((20000,), -0.3 * 2.0 ** -9).to(device)
    mean = cast_to_fp8_v2(tiny, 1.0, True, False, E4M3)[0].float().mean().item()
    assert mean == pytest.approx(-0.3 * 2.0 ** -9, rel=0.1)


@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("scales", ["none", "numbers", "one each", "rows and columns", "lists"])
def test_product(device, trans_a, trans_b, scales):
    a, b = torch.randn(3, 8).to(device), torch.randn(8, 5).to(device)
    a8, b8 = (cast_to_fp8_v2(one, dtype=E4M3)[0] for one in (a, b))
    a_scale, b_scale = {
        "none": (None, None), "numbers": (0.5, 2.0), "one each": (torch.tensor([0.5]), torch.tensor(2.0)),
        "rows and columns": (torch.rand(3, 1), torch.rand(5)), "lists": ([0.5], [1.0, 2.0, 3.0, 4.0, 5.0])}[scales]
    if isinstance(a_scale, torch.Tensor):
        a_scale, b_scale = a_scale.to(device), b_scale.to(device)
    bias, d = torch.randn(5).to(device), torch.randn(3, 5).to(device)
    given = [one.t().contiguous() if turned else one for one, turned in ((a8, trans_a), (b8, trans_b))]
    expected = (a8.float() * _tensor(a_scale, device)) @ (b8.float() * _tensor(b_scale, device))
    arguments = (given[0], trans_a, given[1], trans_b)
    result = fp8_gemm_v2(*arguments, None, torch.float32, a_scale, b_scale)
    torch.testing.assert_close(result, expected)
    result = fp8_gemm_v2(*arguments, d, torch.bfloat16, a_scale, b_scale, bias, True)
    torch.testing.assert_close(result, (expected + bias + d).bfloat16(), rtol=1e-2, atol=1e-2)


def _tensor(scale, device):
    return torch.tensor(1.0) if scale is None else torch.as_tensor(scale, device=device)


@pytest.mark.parametrize("shape", [(3, 8), (2, 3, 10)])
def test_each_block_has_its_own_scale(device, shape):
    x = torch.randn(shape).to(device)
    x[..., 4:] *= 1000
    values, factors = torch.ops.hpu.cast_to_fp8_just_in_time(x, [1, 4], out_dtype=E4M3, scale_dtype=torch.float32)
    assert values.shape == x.shape and factors.shape == (*shape[:-1], -(-shape[-1] // 4))
    back = values.float() * factors.repeat_interleave(4, -1)[..., :shape[-1]]
    block = torch.stack([one.abs().amax(-1) for one in x.split(4, -1)], -1).repeat_interleave(4, -1)[..., :shape[-1]]
    assert ((back - x).abs() <= ERROR[E4M3] * x.abs() + block * 2.0 ** -10 / 240).all()
    weight = torch.randn(6, shape[-1]).to(device)
    w8, w_factors = torch.ops.hpu.cast_to_fp8_just_in_time(weight, [2, 4], out_dtype=E4M3, scale_dtype=torch.float32)
    assert w_factors.shape == (3, factors.size(-1))
    result = torch.ops.hpu.fp8_gemm_v2(A=values, trans_A=False, B=w8, trans_B=True, D=None, out_dtype=torch.float32,
                                       A_scale_inv=factors, B_scale_inv=w_factors.t(), bias=None, accumulate=False)
    exact = functional.linear(x, weight)
    assert (result - exact).norm() < 0.06 * exact.norm()


def test_softmax(device):
    x, added = torch.randn(2, 3, 4, 6).to(device, torch.bfloat16), torch.randn(2, 1, 1, 6).to(device)
    heads = torch.tensor(0.1).to(device)
    plain = torch.ops.hpu.softmax_fp8(x, -1, None, None, heads)
    torch.testing.assert_close(plain, torch.softmax(x.float() * 0.1, -1).bfloat16())
    scales = [torch.tensor(one).to(device) for one in (0.5, 2.5)]
    for arguments in ((*scales, heads, added), (0.5, 2.5, heads, added),
                      (0.5, 2.5, 0.1, added)):
        result = torch.ops.hpu.softmax_fp8(x, -1, *arguments)
        assert result.dtype == E4M3
        expected = torch.softmax(x.float() * 0.05 + added, -1) * 2.5
        torch.testing.assert_close(result.float(), expected, rtol=ERROR[E4M3], atol=2.0 ** -9)


@pytest.mark.parametrize("zeros", ["none", "packed", "plain"])
@pytest.mark.parametrize("groups", [1, 2, 8])
def test_4_bit_integers(device, zeros, groups):
    values = torch.randint(0, 16, (8, 16))
    points = torch.randint(0, 16, (groups, 16))

    def pack(numbers):
        packed = torch.zeros(numbers.size(0), 2, dtype=torch.int64)
        for column in range(16):
            packed[:, column // 8] |= numbers[:, column] << (4 * (column % 8))
        return packed.to(torch.int32).to(device)

    scale = torch.rand(groups, 16).to(device)
    zero = {"none": None, "packed": pack(points), "plain": points.float().to(device)}[zeros]
    result = torch.ops.hpu.convert_from_uint4(pack(values), scale, zero, torch.float32)
    shifted = values - (0 if zeros == "none" else points.repeat_interleave(8 // groups, 0))
    torch.testing.assert_close(result.cpu(), shifted * scale.cpu().repeat_interleave(8 // groups, 0))


def make_pair(device, **options):
    torch.manual_seed(5)
    ours = te.Linear(16, 8, params_dtype=torch.float32, **options).to(device)
    theirs = torch.nn.Linear(16, 8, device=device)
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


def relative(one, other):
    return ((one - other).norm() / other.norm()).item()


@pytest.mark.parametrize("minimize_memory", [False, True])
@pytest.mark.parametrize("kind", ["HYBRID", "E4M3", "E5M2"])
def test_linear_error_stays_within_8_bits(device, minimize_memory, kind):
    ours, theirs = make_pair(device, minimize_memory=minimize_memory)
    settings = recipe.DelayedScaling(fp8_format=recipe.Format[kind], reduce_amax=False)
    x = torch.randn(32, 16).to(device).requires_grad_()
    other = x.detach().clone().requires_grad_()
    weights = torch.randn(32, 8).to(device) * 1e-6  # without a scale, these would be 0 in 8 bits
    for _ in range(2):
        ours.zero_grad()
        x.grad = None
        with te.fp8_autocast(enabled=True, fp8_recipe=settings):
            result = ours(x)
        (result * weights).sum().backward()
    expected = theirs(other)
    (expected * weights).sum().backward()
    forward, backward = ERROR[settings.fp8_format.forward_type], ERROR[settings.fp8_format.backward_type]
    assert 1e-3 < relative(result, expected) < forward * 1.5
    for one, two in ((x.grad, other.grad), (ours.weight.grad, theirs.weight.grad)):
        assert 1e-3 < relative(one, two) < (forward + backward)
    torch.testing.assert_close(ours.bias.grad, theirs.bias.grad)


def test_linear_matches_torch_outside_the_context(device):
    ours, theirs = make_pair(device)
    x = torch.randn(3, 16).to(device)
    assert torch.equal(ours(x), theirs(x))
    with te.fp8_autocast(enabled=False):
        assert torch.equal(ours(x), theirs(x))
    with te.fp8_autocast(enabled=True):
        assert fp8.FP8GlobalStateManager.is_fp8_enabled() and not torch.equal(ours(x), theirs(x))
        with te.fp8_autocast(enabled=False):
            assert torch.equal(ours(x), theirs(x))
    assert not fp8.FP8GlobalStateManager.is_fp8_enabled()


def test_minimize_memory_keeps_8_bits_of_the_weight(device):
    kept = {}
    for minimize_memory in (False, True):
        ours, _ = make_pair(device, minimize_memory=minimize_memory)
        x = torch.randn(3, 16).to(device)
        seen = kept.setdefault(minimize_memory, [])
        with te.fp8_autocast(enabled=True), torch.autograd.graph.saved_tensors_hooks(
                lambda tensor: seen.append((tensor.dtype, tuple(tensor.shape))) or tensor, lambda tensor: tensor):
            ours(x)
    assert (E4M3, (8, 16)) in kept[True] and (torch.float32, (8, 16)) not in kept[True]
    assert (torch.float32, (8, 16)) in kept[False] and (E4M3, (3, 16)) in kept[False]


def test_linear_without_its_own_parameters(device):
    plain = torch.nn.Linear(16, 8, device=device)
    made = te.Linear(16, 8, bias=True, params_dtype=plain.weight.dtype, skip_weight_param_allocation=True,
                     minimize_memory=True)
    made.weight, made.bias = plain.weight, plain.bias
    x = torch.randn(3, 16).to(device)
    assert torch.equal(made(x), plain(x)) and len(list(made.parameters())) == 2
    both = te.Linear(16, 8, return_bias=True, device=device)
    result, bias = both(x)
    torch.testing.assert_close(result + bias, functional.linear(x, both.weight, both.bias))
    assert te.Linear(2, 2, bias=False).bias is None
    with pytest.raises(NotImplementedError, match="parallel_mode is not supported; use "
                                                  "torch.distributed.tensor.parallel"):
        te.Linear(2, 2, parallel_mode="column")


def scales_of(settings, amaxes, device):
    """Returns the input's scale after each step. ``amaxes`` holds the input's largest magnitude in
    each step."""
    layer = te.Linear(4, 4, device=device)
    found = []
    for amax in amaxes:
        with te.fp8_autocast(enabled=True, fp8_recipe=settings), torch.no_grad():
            layer(torch.full((1, 4), amax).to(device))
        found.append(layer.scales.scale[0].item())
    return found


def test_scales_follow_the_recipe(device):
    amaxes = [1.0, 8.0, 2.0, 4.0, 1.0]
    recent = recipe.DelayedScaling(reduce_amax=False)
    assert scales_of(recent, amaxes, device) == [0.0, 240.0, 30.0, 120.0, 60.0]
    largest = recipe.DelayedScaling(reduce_amax=False, amax_history_len=2, amax_compute_algo="max", margin=1)
    assert scales_of(largest, amaxes, device) == [0.0, 120.0, 15.0, 15.0, 30.0]
    rare = recipe.DelayedScaling(reduce_amax=False, interval=2)
    assert scales_of(rare, amaxes, device) == [0.0, 0.0, 240.0, 240.0, 120.0]
    own = recipe.DelayedScaling(reduce_amax=False, amax_compute_algo=lambda history: history.amin(0),
                                amax_history_len=1)
    assert scales_of(own, amaxes, device) == [0.0, 240.0, 30.0, 120.0, 60.0]
    fixed = recipe.DelayedScaling(reduce_amax=False, scaling_factor_compute_algo=lambda amax, old, most, _: most / 16)
    assert scales_of(fixed, amaxes[:2], device) == [15.0, 15.0]


def test_measurement_can_be_forced_and_calibration_measures(device):
    layer = te.Linear(4, 4, device=device)
    x = torch.full((1, 4), 3.0).to(device)
    with te.fp8_autocast(enabled=False, calibrating=True), torch.no_grad():
        exact = layer(x)
        layer(x)
    assert torch.equal(exact, functional.linear(x, layer.weight, layer.bias)) and layer.scales.scale[0] == 80.0
    settings = recipe.DelayedScaling(reduce_amax=False)
    with te.fp8_autocast(enabled=True, force_measurement=False, fp8_recipe=settings), torch.no_grad():
        for amax in (3.0, 3.0, 30.0, 30.0):
            layer(torch.full((1, 4), amax).to(device))
    assert layer.scales.scale[0] == 80.0
    with te.fp8_autocast(enabled=True, force_measurement=True, fp8_recipe=settings), torch.no_grad():
        layer(torch.full((1, 4), 30.0).to(device))
        layer(torch.full((1, 4), 30.0).to(device))
    assert layer.scales.scale[0] == 8.0


def train(model, device, steps, **options):
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    torch.manual_seed(6)
    x = torch.randn(128, 16).to(device)
    y = x[:, :1] * x[:, 1:2]
    losses = []
    for _ in range(steps):
        with te.fp8_autocast(**options):
            loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_training_with_8_bits_learns_as_in_32(device):
    torch.manual_seed(7)
    model = torch.nn.Sequential(te.Linear(16, 64), torch.nn.GELU(), te.Linear(64, 1)).to(device)
    same = copy.deepcopy(model)
    settings = recipe.DelayedScaling(margin=0, interval=4, fp8_format=recipe.Format.HYBRID, amax_history_len=8,
                                     amax_compute_algo="max", reduce_amax=False)
    eight = train(model, device, 80, enabled=True, fp8_recipe=settings)
    exact = train(same, device, 80, enabled=False)
    assert eight[-1] < 0.1 * eight[0] and eight[0] == pytest.approx(exact[0], rel=0.05) and eight != exact


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointing_reuses_the_scales_of_the_first_run(device, reentrant):
    layers = [make_pair(device)[0] for _ in range(2)]
    settings = recipe.DelayedScaling(reduce_amax=False)
    slopes = []
    for layer, recomputes in zip(layers, (False, True)):
        for amax in (1.0, 5.0, 2.0):
            torch.manual_seed(8)
            x = (torch.randn(4, 16) * amax).to(device).requires_grad_()
            layer.zero_grad()
            function = te.distributed.activation_checkpointing()(layer.__call__)
            with te.fp8_autocast(enabled=True, fp8_recipe=settings):
                result = checkpoint(function, x, use_reentrant=reentrant) if recomputes else function(x)
            result.square().sum().backward()
        slopes.append((layer.weight.grad, x.grad, layer.scales.scale, layer.scales.history))
    for one, other in zip(*slopes):
        assert torch.equal(one, other)


def test_programs_find_layers_by_module_and_name_recipes(device):
    layer = te.Linear(4, 4, device=device)
    assert "habana_frameworks.torch.hpex.experimental.transformer_engine" in layer.__module__
    with te.fp8_autocast(enabled=True, fp8_recipe={"margin": 3, "reduce_amax": False}):
        assert fp8.FP8GlobalStateManager.get_fp8_recipe().margin == 3
        assert not fp8.FP8GlobalStateManager.is_fp8_calibration()
        assert torch.isfinite(layer(torch.ones(2, 4, device=device))).all()


def test_attention_in_8_bits(device):
    q, k, v = (torch.randn(2, 4, 6, 8).to(device).requires_grad_() for _ in range(3))
    module = te.FusedAttention(scale=None, attention_dropout=0.0, enable_recompute=True)
    exact = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert torch.equal(module(q, k, v, None, True, "fast"), exact)
    with te.fp8_autocast(enabled=True):
        rounded = module(q, k, v, None, True, "None")
    assert 1e-3 < relative(rounded, exact) < 0.1
    weights = torch.randn(exact.shape).to(device)
    ours, theirs = (torch.autograd.grad(one, (q, k, v), weights) for one in (rounded, exact))
    for one, other in zip(ours, theirs):
        assert 1e-3 < relative(one, other) < 0.25


def test_unsupported_operations_are_refused(monkeypatch):
    assert fp8.is_fp8_available() == (True, "")
    monkeypatch.setenv("HCCL_DEVICE_TYPE", "gaudi")
    available, reason = fp8.is_fp8_available()
    assert not available and "set HCCL_DEVICE_TYPE=gaudi2" in reason
    with pytest.raises(RuntimeError, match="fp8_autocast: .* has no 8-bit floats"), te.fp8_autocast(enabled=True):
        pass
    monkeypatch.setenv("HCCL_DEVICE_TYPE", "gaudi9")
    with pytest.raises(ValueError, match="gaudi9; it must be one of"):
        fp8.is_fp8_available()
    for options in ({"interval": 0}, {"amax_compute_algo": "mean"}):
        with pytest.raises(ValueError, match="DelayedScaling"):
            recipe.DelayedScaling(**options)
    with pytest.raises(NotImplementedError, match="override_linear_precision"):
        recipe.DelayedScaling(override_linear_precision=(True, False, False))
