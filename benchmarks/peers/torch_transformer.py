# SPDX-License-Identifier: Apache-2.0
"""The transformer of `troupe train` by PyTorch, from the same variables in the same order."""

import torch
from torch.nn.functional import cross_entropy, embedding, gelu, layer_norm

try:
    from torch.nn.functional import scaled_dot_product_attention
except ImportError:  # PyTorch 1

    def scaled_dot_product_attention(queries, keys, values, is_causal):
        assert is_causal
        scores = queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5
        later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        return scores.masked_fill(later, -torch.inf).softmax(-1) @ values


BYTES = 256


def initial_parameters(context, layers, width):
    def normal(*extents):
        return torch.nn.Parameter(0.02 * torch.randn(*extents))

    def norm():
        return [torch.nn.Parameter(torch.ones(width)), torch.nn.Parameter(torch.zeros(width))]

    def linear(inputs, outputs):
        return [normal(inputs, outputs), torch.nn.Parameter(torch.zeros(outputs))]

    parameters = [normal(BYTES, width), normal(context, width)]
    for _ in range(layers):
        parameters += [*norm(), *linear(width, 3 * width), *linear(width, width),
                       *norm(), *linear(width, 4 * width), *linear(4 * width, width)]
    return parameters + norm()


def mean_loss(parameters, heads, contexts, following):
    """Of windows and the byte after each of their positions: [windows, positions] and as many labels."""
    given = iter(parameters)
    windows, positions = contexts.shape
    table = next(given)
    h = (embedding(contexts, table) + next(given)).flatten(0, 1)
    width = table.shape[1]

    def norm(x):
        return layer_norm(x, (width,), next(given), next(given))

    def linear(x):
        weights, bias = next(given), next(given)
        return torch.addmm(bias, x, weights)

    for _ in range((len(parameters) - 4) // 12):
        packed = linear(norm(h)).view(windows, positions, 3, heads, width // heads)
        queries, keys, values = packed.permute(2, 0, 3, 1, 4)
        attended = scaled_dot_product_attention(queries, keys, values, is_causal=True)
        h = h + linear(attended.transpose(1, 2).reshape(windows * positions, width))
        h = h + linear(gelu(linear(norm(h)), approximate='tanh'))
    return cross_entropy(norm(h) @ table.T, following)
