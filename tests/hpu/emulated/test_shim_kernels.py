# SPDX-License-Identifier: Apache-2.0
"""Tests the fused kernels' values and gradients against torch's own functions and plain
formulas."""
import math

import pytest
import torch
from torch.nn import functional

from habana_frameworks.torch.hpex.kernels import (CTCLoss, FusedSDPA, PySDPA, RotaryPosEmbeddingHelperV1,
                                                  RotaryPosEmbeddingHelperV2, RotaryPosEmbeddingHelperV3,
                                                  RotaryPosEmbeddingMode, apply_rotary_pos_emb)
from habana_frameworks.torch.hpex.normalization import FusedClipNorm, FusedRMSNorm


def gradients(result, *inputs):
    torch.manual_seed(1)
    weights = torch.randn(result.shape, dtype=result.dtype).to(result.device)
    return torch.autograd.grad((result * weights).sum(), inputs, retain_graph=True)


def check(result, reference, inputs, tolerance=1e-5):
    torch.testing.assert_close(result, reference, rtol=tolerance, atol=tolerance)
    for one, other in zip(gradients(result, *inputs), gradients(reference, *inputs)):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


def make_qkv(device, heads=4, kv_heads=4, queries=5, keys=5, dtype=torch.float32):
    shapes = (heads, queries), (kv_heads, keys), (kv_heads, keys)
    return [torch.randn(2, *shape, 8, dtype=dtype).to(device).requires_grad_() for shape in shapes]


def plain_attention(q, k, v, mask=None, scale=None):
    """Computes attention by its formula, with an additive mask."""
    repeat = q.size(1) // k.size(1)
    k, v = (one.repeat_interleave(repeat, dim=1) for one in (k, v))
    scores = q @ k.transpose(-1, -2) * (scale or 1 / math.sqrt(q.size(-1)))
    return torch.softmax(scores if mask is None else scores + mask, dim=-1) @ v


def causal(queries, keys, device):
    return torch.full((queries, keys), -math.inf, device=device).triu(1)


@pytest.mark.parametrize("kv_heads", [4, 2, 1])
@pytest.mark.parametrize("kind", ["none", "causal", "float", "bool", "float and causal", "scale"])
def test_attention(device, kv_heads, kind):
    q, k, v = make_qkv(device, kv_heads=kv_heads)
    added = torch.randn(2, 1, 5, 5).to(device)
    allowed = torch.rand(2, 1, 5, 5).to(device) > 0.3
    allowed[..., 0] = True
    mask, is_causal, scale, reference = {
        "none": (None, False, None, None), "causal": (None, True, None, causal(5, 5, device)),
        "float": (added, False, None, added),
        "bool": (allowed, False, None, torch.zeros_like(added).masked_fill(~allowed, -math.inf)),
        "float and causal": (added, True, None, added + causal(5, 5, device)), "scale": (None, False, 0.3, None)}[kind]
    for recompute in (None, True, False):
        result = FusedSDPA.apply(q, k, v, mask, 0.0, is_causal, scale, "fast", recompute, None, "left")
        check(result, plain_attention(q, k, v, reference, scale), (q, k, v))


def test_attention_matches_torch(device):
    q, k, v = make_qkv(device, queries=3, keys=7)
    check(FusedSDPA.apply(q, k, v), functional.scaled_dot_product_attention(q, k, v), (q, k, v))
    q, k, v = make_qkv(device)
    check(PySDPA.apply(q, k, v, True), functional.scaled_dot_product_attention(q, k, v, is_causal=True), (q, k, v))


@pytest.mark.parametrize("side", ["left", "right"])
def test_attention_ignores_padding(device, side):
    q, k, v = (one.detach() for one in make_qkv(device, kv_heads=2))
    lengths = torch.tensor([3, 5]).to(device)
    result = FusedSDPA.apply(q, k, v, None, 0.0, True, None, "None", True, lengths, side)
    for batch, length in enumerate((3, 5)):
        part = slice(5 - length, 5) if side == "left" else slice(0, length)
        one = [tensor[batch:batch + 1, :, part] for tensor in (q, k, v)]
        expected = plain_attention(*one, causal(length, length, device))
        torch.testing.assert_close(result[batch:batch + 1, :, part], expected)


def test_attention_returns_its_weights(device):
    q, k, v = (one.detach() for one in make_qkv(device))
    result, weights = FusedSDPA.apply(q, k, v, None, 0.0, True, None, "None", False, None, "left", False, True)
    torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))
    assert weights.triu(1).abs().max() == 0
    torch.testing.assert_close(weights @ v, result)


def test_attention_drops_weights(device):
    q, k, v = make_qkv(device, queries=64, keys=64)
    plain, dropped = FusedSDPA.apply(q, k, v), FusedSDPA.apply(q, k, v, None, 0.5)
    assert not torch.allclose(plain, dropped)
    mean = torch.stack([FusedSDPA.apply(q, k, v, None, 0.5).detach() for _ in range(200)]).mean(0)
    assert (mean - plain).abs().mean() < 0.05


def test_attention_refuses_what_gaudi_refuses(device):
    q, k, v = make_qkv(device)
    lengths = torch.tensor([3, 5]).to(device)
    with pytest.raises(ValueError, match="valid_seq_len is for causal inference"):
        FusedSDPA.apply(q, k, v, None, 0.0, True, None, "None", True, lengths, "left")
    with pytest.raises(ValueError, match="return_attn_probs is for inference"):
        FusedSDPA.apply(q, k, v, None, 0.0, True, None, "None", True, None, "left", False, True)
    with pytest.raises(NotImplementedError, match="return_dropout_mask.*use torch.nn.functional.dropout"):
        FusedSDPA.apply(q, k, v, None, 0.0, True, None, "None", True, None, "left", True)
    with pytest.raises(ValueError, match="seq_padding_type is 'top'"):
        FusedSDPA.apply(q, k, v, None, 0.0, True, None, "None", True, None, "top")


def half_turned(x):
    return torch.cat((-x[..., x.size(-1) // 2:], x[..., :x.size(-1) // 2]), dim=-1)


def pair_turned(x):
    return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).reshape(x.shape)


@pytest.mark.parametrize("offset", [0, 3])
def test_rotary_v1(device, offset):
    p = torch.randn(8, 2, 3, 8).to(device).requires_grad_()
    cos, sin = (torch.randn(8, 1, 1, 8 + offset).to(device) for _ in range(2))
    used = [one[..., offset:offset + 8] for one in (cos, sin)]
    check(RotaryPosEmbeddingHelperV1.apply(p, cos, sin, offset), p * used[0] + half_turned(p) * used[1], (p,))


@pytest.mark.parametrize("table", ["2d", "3d", "4d", "heads"])
def test_rotary_v2(device, table):
    p = torch.randn(2, 3, 5, 8).to(device).requires_grad_()
    positions = torch.randint(0, 9, (2, 5)).to(device)
    shape = {"2d": (9, 8), "3d": (1, 9, 8), "4d": (1, 1, 9, 8), "heads": (1, 3, 9, 8)}[table]
    cos, sin = (torch.randn(shape).to(device) for _ in range(2))
    if table == "heads":
        rows = [torch.stack([one[0][:, index] for index in positions]) for one in (cos, sin)]
    else:
        rows = [one.reshape(9, 8)[positions][:, None] for one in (cos, sin)]
    check(RotaryPosEmbeddingHelperV2.apply(p, cos, sin, positions), p * rows[0] + half_turned(p) * rows[1], (p,))


@pytest.mark.parametrize("shape", [(8, 4, 2), (4, 1, 4, 2), (8, 2, 2)])
def test_rotary_v3(device, shape):
    p = torch.randn(4, 2, 3, 8).to(device).requires_grad_()
    cache = torch.randn(shape).to(device)
    size = 2 * shape[-2]
    pairs = p[..., :size].reshape(4, 2, 3, size // 2, 2)
    cos, sin = (cache[:4].reshape(4, -1, 1, size // 2, 2)[..., part] for part in (0, 1))
    turned = torch.stack((pairs[..., 0] * cos - pairs[..., 1] * sin, pairs[..., 1] * cos + pairs[..., 0] * sin), dim=-1)
    expected = torch.cat((turned.reshape(4, 2, 3, size), p[..., size:]), dim=-1)
    check(RotaryPosEmbeddingHelperV3.apply(p, cache), expected, (p,))
    check(apply_rotary_pos_emb(p, cache), expected, (p,))


@pytest.mark.parametrize("width", [8, 4])
def test_rotary_pairwise(device, width):
    p = torch.randn(2, 5, 3, 8).to(device).requires_grad_()
    cos, sin = (torch.randn(1, 5, 1, width).to(device) for _ in range(2))
    full = [one if width == 8 else one.repeat_interleave(2, dim=-1) for one in (cos, sin)]
    result = apply_rotary_pos_emb(p, cos, sin, None, 0, RotaryPosEmbeddingMode.PAIRWISE)
    check(result, p * full[0] + pair_turned(p) * full[1], (p,))


@pytest.mark.parametrize("mode", [0, 1])
def test_rotary_backward_is_the_gradient(device, mode):
    p = torch.randn(2, 3, 5, 8).to(device).requires_grad_()
    cos, sin = (torch.randn(1, 1, 5, 8).to(device) for _ in range(2))
    weights = torch.randn(p.shape).to(device)
    result = torch.ops.hpu.rotary_pos_embedding(p, sin, cos, None, 0, mode)
    expected = torch.autograd.grad(result, p, weights)[0]
    torch.testing.assert_close(torch.ops.hpu.rotary_pos_embedding_backward(weights, sin, cos, None, 0, mode), expected)


def test_rotary_computes_in_float32_with_a_float32_table(device):
    p = torch.randn(2, 3, 5, 8).to(device, torch.bfloat16)
    wide = [torch.randn(5, 8).to(device) for _ in range(2)]
    positions = torch.arange(5).expand(2, 5).to(device)
    assert RotaryPosEmbeddingHelperV2.apply(p, *wide, positions).dtype == torch.float32
    assert RotaryPosEmbeddingHelperV2.apply(p, *(one.bfloat16() for one in wide), positions).dtype == torch.bfloat16


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
def test_rms_norm(device, dtype, tolerance):
    x = torch.randn(3, 4, 16).to(device, dtype).requires_grad_()
    gamma = torch.randn(16).to(device, dtype).requires_grad_()
    expected = functional.rms_norm(x, (16,), gamma, 1e-5)
    for options in ((), (True, 0), (False, 1, True)):
        result = FusedRMSNorm.apply(x, gamma, 1e-5, *options)
        assert result.dtype == dtype
        check(result, expected, (x, gamma), tolerance)


@pytest.mark.parametrize("limit", [0.1, 1000.0])
def test_clip_norm_matches_torch(device, limit):
    def parameters():
        torch.manual_seed(2)
        made = [torch.nn.Parameter(torch.zeros(shape).to(device)) for shape in ((3, 4), (5,))]
        for one in made:
            one.grad = torch.randn(one.shape).to(device)
        return made + [torch.nn.Parameter(torch.zeros(2).to(device))]

    ours, theirs = parameters(), parameters()
    norm = FusedClipNorm(ours, limit).clip_norm(ours)
    torch.testing.assert_close(norm, torch.nn.utils.clip_grad_norm_(theirs, limit))
    for one, other in zip(ours[:2], theirs):
        torch.testing.assert_close(one.grad, other.grad)
    assert FusedClipNorm(ours, limit).clip_norm([ours[2]]) == 0


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("is_flat", [False, True])
def test_ctc_loss_matches_torch(device, reduction, is_flat):
    scores = torch.randn(12, 2, 6).to(device).requires_grad_()
    logarithms = scores.log_softmax(-1)
    targets, lengths = torch.tensor([[1, 2, 3, 4], [5, 2, 1, 0]]), torch.tensor([4, 3])
    given = torch.cat([one[:length] for one, length in zip(targets, lengths)]) if is_flat else targets
    inputs = torch.tensor([12, 9])
    result = CTCLoss.apply(logarithms, given.to(device), inputs, lengths, 0, reduction, True)
    expected = functional.ctc_loss(logarithms.cpu(), targets, inputs, lengths, 0, reduction, True)
    torch.testing.assert_close(result.cpu(), expected)
    ours = torch.autograd.grad(result.sum(), scores, retain_graph=True)[0]
    theirs = torch.autograd.grad(expected.sum(), scores)[0]
    torch.testing.assert_close(ours, theirs)
