import math

import torch
from torch.nn import functional

from lumctl.training.example.model import SIZES, Attention, Llama, RMSNorm, Rotary, Size, SwiGLU

SMALLEST = Size(width=8, layers=2, heads=4, key_heads=2, context=6, sequences=4, vocabulary=11)


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_each_size_keeps_the_published_ratios():
    for size in SIZES.values():
        assert (size.heads / size.key_heads, size.feed_forward / size.width) == (32 / 8, 8192 / 2048)
        assert size.heads * size.head_width == size.width
        assert (size.rotary_base, size.epsilon) == (500_000, 1e-5)


def test_a_model_gives_each_position_a_value_for_each_token():
    assert Llama(SMALLEST, seed=1)(torch.zeros(3, 5, dtype=torch.long)).shape == (3, 5, 11)


def test_weights_follow_from_the_seed():
    one, same, other = (Llama(SMALLEST, seed=seed) for seed in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), same.parameters(), strict=True))
    assert not torch.equal(one.ends.embedding, other.ends.embedding)


def test_an_untrained_model_knows_nothing():
    size = SIZES["tiny"]
    tokens = torch.randint(size.vocabulary, (4, size.context + 1), generator=torch.Generator().manual_seed(3))
    mean = Llama(size, seed=1).loss(tokens).item() / (4 * size.context)
    assert math.isclose(mean, math.log(size.vocabulary), rel_tol=0.01)


def test_no_position_sees_what_comes_after_it():
    model = Llama(SMALLEST, seed=1)
    tokens = torch.arange(6).unsqueeze(0)
    changed = tokens.clone()
    changed[0, 4] = 9
    before, after = model(tokens), model(changed)
    assert torch.equal(before[0, :4], after[0, :4])
    assert not torch.allclose(before[0, 4:], after[0, 4:])


def test_rotary_turns_each_pair_by_its_angle():
    x = numbers(SMALLEST.context, SMALLEST.head_width)
    turned = Rotary(SMALLEST)(x)
    half = SMALLEST.head_width // 2
    for position in range(SMALLEST.context):
        for pair in range(half):
            angle = position * SMALLEST.rotary_base ** (-2 * pair / SMALLEST.head_width)
            before = complex(x[position, pair], x[position, pair + half])
            after = complex(turned[position, pair], turned[position, pair + half])
            assert abs(after - before * complex(math.cos(angle), math.sin(angle))) < 1e-6


def test_rotary_makes_products_depend_on_the_distance_only():
    rotary = Rotary(SMALLEST)
    query, key = (numbers(SMALLEST.head_width, seed=seed).expand(SMALLEST.context, -1) for seed in (1, 2))
    products = rotary(query) @ rotary(key).T
    for distance in range(-5, 6):
        diagonal = products.diagonal(distance)
        assert torch.allclose(diagonal, diagonal[0].expand_as(diagonal), atol=1e-5)


def test_a_norm_scales_to_a_root_mean_square_of_one():
    assert torch.allclose(RMSNorm(8, 1e-5)(7 * numbers(4, 8)).square().mean(-1), torch.ones(4), atol=1e-4)


def test_attention_equals_a_naive_one():
    attention, x = Attention(SMALLEST), numbers(1, 5, 8)
    width, group = SMALLEST.head_width, 2
    query, key, value = attention.query(x)[0], attention.key(x)[0], attention.value(x)[0]
    heads = []
    for head in range(SMALLEST.heads):
        shared = slice(width * (head // group), width * (head // group + 1))
        q = attention.rotary(query[:, width * head : width * (head + 1)])
        k, v = attention.rotary(key[:, shared]), value[:, shared]
        rows = []
        for position in range(5):
            weights = torch.softmax(k[: position + 1] @ q[position] / width**0.5, 0)
            rows.append(weights @ v[: position + 1])
        heads.append(torch.stack(rows))
    assert torch.allclose(attention(x)[0], attention.out(torch.cat(heads, -1)), atol=1e-6)


def test_the_feed_forward_is_gated():
    feed, x = SwiGLU(SMALLEST), numbers(3, 8)
    gate, up = x @ feed.gate.weight.T, x @ feed.up.weight.T
    assert torch.allclose(feed(x), (gate * torch.sigmoid(gate) * up) @ feed.down.weight.T, atol=1e-6)


def test_gradients_are_those_of_the_loss():
    model = Llama(SMALLEST, seed=1).double()
    tokens = torch.tensor([[1, 5, 3, 10], [0, 2, 2, 7]])
    names = [
        "ends.embedding",
        "blocks.0.attention.key.weight",
        "blocks.1.feed.gate.weight",
        "blocks.0.feed_norm.weight",
    ]
    parameters = dict(model.named_parameters())

    def loss(*chosen):
        logits = torch.func.functional_call(model, dict(zip(names, chosen, strict=True)), (tokens[:, :-1],))
        return functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())

    assert torch.autograd.gradcheck(loss, tuple(parameters[name] for name in names))
