"""Multiply-adds of `learned` and `relational` models on paper, derived from hf_alpha/modeling.

A count is of one sample and of the forward direction; a training step takes about three times as
many. What is not a product is left out: norms, softmax, activations, comparisons of ids, copies.

Shapes: S names of the sample, L source length, T queries, M keys (cached ones included), D model
width, H heads, F width of the feed-forward block, V vocabulary.
"""

from collections import Counter

from hf_alpha import AlphaConfig
from hf_alpha.modeling.relations import SLOTS

LEARNED = "learned"
ADDED = ("gates", "scores", "memory", "rows", "pointer")
"""What `relational` adds to `learned`: see `encoder` and `decoder`."""
ELEMENTWISE = ("scores",)
"""Those that are no products of matrices."""


def slots(names: int) -> int:
    """Returns how many slots a relation has for so many names."""
    return names + -names % SLOTS


def encoder(config: AlphaConfig, names: int, length: int) -> Counter[str]:
    """Encode one input.

    `relational` adds the relation, a comparison of indices for each query and key, and in each
    layer its gates, D H a token (`RelationGates`), and their products with it, H for each query and
    key. (With more scores than here, slots have other products.) After the last layer come the
    means over the positions of each name, S L D, and two projections of each, 2 S D D
    (`SymbolMemory`).
    """
    d, f, heads = config.d_model, config.encoder_ffn_dim, config.encoder_attention_heads
    layers = config.encoder_layers
    return Counter({
        LEARNED: layers * (4 * length * d * d + 2 * length**2 * d + 2 * length * d * f),
        "gates": layers * length * d * heads,
        "scores": layers * length**2 * heads,
        "memory": names * length * d + 2 * names * d * d,
    })  # fmt: skip


def source(config: AlphaConfig, length: int) -> Counter[str]:
    """Keys and values of the source for all layers of the decoder: once for all beams."""
    return Counter({LEARNED: 2 * config.decoder_layers * length * config.d_model**2})


def decoder(config: AlphaConfig, names: int, length: int, queries: int, keys: int) -> Counter[str]:
    """Decode T tokens, among M of the answer so far, and compare with the vocabulary.

    `relational` adds one relation to the answer and two to the source, comparisons of indices, and
    in each layer their gates, D H a token each, and the products of these with the relations, H for
    each query and key. To the embedded tokens it adds rows of the memory, found by a product
    with the one-hot table of names, S D a token. The pointer adds up the weights of each head of
    the last cross-attention by name, H L S, and weighs the heads, H S, and what was written, 2 S
    (elementwise; under `scores`).
    """
    d, f, heads = config.d_model, config.decoder_ffn_dim, config.decoder_attention_heads
    layers, pairs = config.decoder_layers, keys + length
    blocks = 6 * d * d + 2 * pairs * d + 2 * d * f
    return Counter({
        LEARNED: queries * (layers * blocks + d * config.vocab_size),
        "gates": queries * layers * 3 * d * heads,
        "scores": queries * (layers * heads * (keys + 2 * length) + (heads + 2) * names),
        "rows": queries * names * d,
        "pointer": queries * heads * slots(names) * length,
    })  # fmt: skip


def forward(config: AlphaConfig, names: int, length: int, target: int) -> Counter[str]:
    """Encode, and decode a whole answer of so many tokens."""
    return (
        encoder(config, names, length)
        + source(config, length)
        + decoder(config, names, length, target, target)
    )


def generation(
    config: AlphaConfig, names: int, length: int, new_tokens: int, beams: int
) -> Counter[str]:
    """Encode, and decode token by token with a cache."""
    total = encoder(config, names, length) + source(config, length)
    for keys in range(1, new_tokens + 1):
        for part, count in decoder(config, names, length, 1, keys).items():
            total[part] += beams * count
    return total
