# SPDX-License-Identifier: Apache-2.0
"""Tests optimizers against torch's, or against the formulas in their papers if torch lacks them."""
import copy

import pytest
import torch

from habana_frameworks.torch.hpex.movingavrg import FusedEMA
from habana_frameworks.torch.hpex.optimizers import (LARS, Adam, AdamW, FusedAdagrad, FusedAdamW, FusedLamb, FusedLars,
                                                     FusedResourceApplyMomentum, FusedSGD)

# For each case, the shim's optimizer and torch's optimizer with the same arguments.
PAIRS = {
    "adamw": (lambda p: FusedAdamW(p, lr=0.02, betas=(0.8, 0.95), eps=1e-12, weight_decay=0.1),
              lambda p: torch.optim.AdamW(p, lr=0.02, betas=(0.8, 0.95), eps=1e-12, weight_decay=0.1)),
    "sgd": (lambda p: FusedSGD(p, lr=0.1), lambda p: torch.optim.SGD(p, lr=0.1)),
    "sgd with momentum": (lambda p: FusedSGD(p, 0.1, 0.9, 0.01, 0.3), lambda p: torch.optim.SGD(p, 0.1, 0.9, 0.3,
                                                                                                0.01)),
    "nesterov": (lambda p: FusedSGD(p, 0.1, momentum=0.9, nesterov=True),
                 lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True)),
    "adagrad": (lambda p: FusedAdagrad(p, 0.1, 0.05, 0.01, 0.2, 1e-8),
                lambda p: torch.optim.Adagrad(p, 0.1, 0.05, 0.01, 0.2, 1e-8)),
}
# FusedResourceApplyMomentum expects gradients that are already multiplied by the learning rate, so
# it learns only inside LARS.
OTHERS = {
    "lamb": lambda p: FusedLamb(p, lr=0.02),
    "adamw with moments of 8 bits": lambda p: FusedAdamW(p, lr=0.02, moments_dtype=(torch.float8_e4m3fn,
                                                                                    torch.float8_e5m2)),
    "momentum": lambda p: FusedResourceApplyMomentum(p, lr=1.0, momentum=0.5),
    "lars": lambda p: FusedLars(FusedResourceApplyMomentum(p, lr=0.5, momentum=0.5, weight_decay=0.01), [1, 0, 1, 0]),
}


def make_model(device, seed=4):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).to(device)


def train(model, optimizer, steps, start=0):
    device = next(model.parameters()).device
    losses = []
    for number in range(start, start + steps):
        torch.manual_seed(number)
        x = torch.randn(6, 4).to(device)
        optimizer.zero_grad()
        loss = (model(x) - x[:, :2]).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("name", PAIRS)
def test_matches_torch(device, name):
    models = [make_model(device) for _ in range(2)]
    for model, make in zip(models, PAIRS[name]):
        train(model, make(model.parameters()), 10)
    for one, other in zip(*(model.parameters() for model in models)):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [*PAIRS, *OTHERS])
def test_resumes_from_its_state(device, name):
    make = PAIRS[name][0] if name in PAIRS else OTHERS[name]
    whole, parts = make_model(device), make_model(device)
    train(whole, make(whole.parameters()), 8)
    optimizer = make(parts.parameters())
    train(parts, optimizer, 4)
    state = copy.deepcopy(optimizer.state_dict())
    other = make(parts.parameters())
    other.load_state_dict(state)
    train(parts, other, 4, start=4)
    for one, two in zip(whole.parameters(), parts.parameters()):
        torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [one for one in (*PAIRS, *OTHERS) if one != "momentum"])
def test_learns(device, name):
    make = PAIRS[name][0] if name in PAIRS else OTHERS[name]
    model = make_model(device)
    losses = train(model, make(model.parameters()), 60)
    assert sum(losses[-10:]) < 0.9 * sum(losses[:10])


def test_adamw_adds_eps_before_the_correction(device):
    weight = torch.nn.Parameter(torch.tensor([1.0]).to(device))
    optimizer = FusedAdamW([weight], lr=0.1, betas=(0.9, 0.99), eps=0.5)
    weight.grad = torch.tensor([0.2]).to(device)
    optimizer.step()
    expected = 1.0 - 0.1 * (0.01 ** 0.5 / 0.1) * 0.02 / ((0.01 * 0.04) ** 0.5 + 0.5)
    assert weight.item() == pytest.approx(expected, rel=1e-6)


def test_adamw_without_correction_and_groups(device):
    weights = [torch.nn.Parameter(torch.ones(2).to(device)) for _ in range(3)]
    optimizer = FusedAdamW([{"params": weights[:1], "lr": 0.0}, {"params": weights[1:]}], lr=0.1, bias_correction=False,
                           betas=(0.0, 0.0), eps=0.0)
    weights[0].grad = weights[1].grad = torch.full((2,), 3.0).to(device)
    assert optimizer.step(lambda: 5.0) == 5.0
    assert [one.tolist() for one in weights] == [[1.0, 1.0], pytest.approx([0.9, 0.9]), [1.0, 1.0]]


@pytest.mark.parametrize("limit", [0.3, None])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_lamb_formula(device, limit, decay):
    model = make_model(device)
    weights = [one.detach().clone() for one in model.parameters()]
    first, second = ([torch.zeros_like(one) for one in weights] for _ in range(2))
    optimizer = FusedLamb(model.parameters(), lr=0.1, weight_decay=decay, max_grad_norm=limit)
    for step in (1, 2, 3):
        slopes = [torch.randn(one.shape).to(device) for one in weights]
        for one, slope in zip(model.parameters(), slopes):
            one.grad = slope.clone()
        optimizer.step()
        norm = torch.cat([one.flatten() for one in slopes]).norm()
        divisor = max(1.0, norm / limit) if limit else 1.0
        for index, slope in enumerate(slopes):
            slope = slope / divisor
            first[index] = 0.9 * first[index] + 0.1 * slope
            second[index] = 0.999 * second[index] + 0.001 * slope * slope
            change = (first[index] / (1 - 0.9 ** step)) / ((second[index] / (1 - 0.999 ** step)).sqrt() + 1e-6)
            change = change + decay * weights[index]
            trust = weights[index].norm() / change.norm() if decay else 1.0
            weights[index] = weights[index] - 0.1 * trust * change
    for one, other in zip(model.parameters(), weights):
        torch.testing.assert_close(one.detach(), other, rtol=1e-4, atol=1e-5)


def test_lars_formula(device):
    weights = [torch.nn.Parameter(torch.tensor(one).to(device)) for one in ([3.0, 4.0], [1.0], [0.0])]
    for one, slope in zip(weights, ([0.6, 0.8], [0.5], [2.0])):
        one.grad = torch.tensor(slope).to(device)
    inner = FusedResourceApplyMomentum(weights, lr=0.5, momentum=0.9, weight_decay=0.1)
    optimizer = FusedLars(inner, [1, 0, 1], eeta=0.2)
    optimizer.step()
    trust = 0.2 * 5.0 / (1.0 + 0.1 * 5.0)
    expected = [[3.0 - 0.5 * trust * (0.6 + 0.3), 4.0 - 0.5 * trust * (0.8 + 0.4)], [1.0 - 0.5 * 0.5],
                [0.0 - 0.5 * 2.0]]
    for one, values in zip(weights, expected):
        assert one.tolist() == pytest.approx(values, rel=1e-5)
    assert inner.param_groups[0]["weight_decay"] == 0.1 and LARS is FusedLars


def test_failed_lars_step_keeps_weight_decay(device, monkeypatch):
    inner = FusedResourceApplyMomentum([torch.nn.Parameter(torch.ones(2).to(device))], lr=0.5, momentum=0.9,
                                       weight_decay=0.1)

    def fail():
        assert inner.param_groups[0]["weight_decay"] == 0
        raise RuntimeError("no memory")

    monkeypatch.setattr(inner, "step", fail)
    with pytest.raises(RuntimeError, match="no memory"):
        FusedLars(inner, [1]).step()
    assert inner.param_groups[0]["weight_decay"] == 0.1


def test_momentum_formula(device):
    weight = torch.nn.Parameter(torch.tensor([1.0]).to(device))
    optimizer = FusedResourceApplyMomentum([weight], lr=9.0, momentum=0.5, weight_decay=0.3)
    for slope, expected in ((0.1, 0.9), (0.2, 0.65), (0.0, 0.525)):
        weight.grad = torch.tensor([slope]).to(device)
        optimizer.step()
        assert weight.item() == pytest.approx(expected)


@pytest.mark.parametrize("make, text", [
    (lambda p: FusedAdamW(p, lr=-1), "lr is -1"), (lambda p: FusedAdamW(p, betas=(1.0, 0.9)), "betas are"),
    (lambda p: FusedSGD(p, 0.1, nesterov=True), "nesterov needs a momentum"), (lambda p: FusedAdagrad(p, eps=-1),
                                                                               "eps is -1"),
    (lambda p: FusedLamb(p, amsgrad=True), "amsgrad is not supported; use"),
    (lambda p: FusedResourceApplyMomentum(p, 0.1, 0.9, nesterov=True), "nesterov is not supported; use"),
    (lambda p: FusedEMA(torch.nn.Linear(1, 1), -0.5), "decay is -0.5"),
])
def test_wrong_arguments_are_refused(make, text):
    with pytest.raises((ValueError, RuntimeError, NotImplementedError), match=text):
        make([torch.nn.Parameter(torch.ones(1))])


def test_sparse_gradients_are_refused():
    table = torch.nn.Embedding(4, 2, sparse=True)
    table(torch.tensor([1])).sum().backward()
    with pytest.raises(RuntimeError, match="FusedAdamW does not support sparse gradients; use torch.optim.SparseAdam"):
        FusedAdamW(table.parameters()).step()


def test_moving_average(device):
    model = make_model(device)
    average = FusedEMA(model, decay=0.9)
    expected = [one.detach().clone() for one in model.parameters()]
    for update in (1, 2, 3):
        train(model, torch.optim.SGD(model.parameters(), 0.5), 1)
        average.update(model)
        share = average.decay(update)
        expected = [share * one + (1 - share) * other.detach() for one, other in zip(expected, model.parameters())]
    for one, other in zip(average.ema.parameters(), expected):
        torch.testing.assert_close(one, other)
    model.names = ["a"]
    average.update_attr(model)
    assert average.ema.names == ["a"] and Adam is torch.optim.Adam and AdamW is torch.optim.AdamW
