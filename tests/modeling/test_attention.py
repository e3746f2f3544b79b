import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import make_model, seeds

from hf_alpha.modeling.attention import AlphaAttention


def attention(implementation: str = "sdpa") -> AlphaAttention:
    model = make_model(d_model=16, attn_implementation=implementation)
    return model.model.encoder.layers[0].self_attn


def written_out(block, hidden_BSTD, source_BSLD, scores):
    """Softmax attention of each sample, stream and head by itself; `scores` are (B, H, T, M)."""
    out = torch.zeros_like(hidden_BSTD)
    width, heads = block.head_dim, block.num_heads
    for b, (hidden, source) in enumerate(zip(hidden_BSTD, source_BSLD, strict=True)):
        for s, x in enumerate(hidden):
            y = source[min(s, len(source) - 1)]
            parts = []
            for h in range(heads):
                query, key, value = (
                    projection(z)[:, h * width : (h + 1) * width]
                    for projection, z in ((block.q_proj, x), (block.k_proj, y), (block.v_proj, y))
                )
                weights = (query @ key.T * width**-0.5 + scores[b, h]).softmax(-1)
                parts.append(weights @ value)
            out[b, s] = block.out_proj(torch.cat(parts, -1))
    return out


@given(
    seed=seeds,
    batch=st.integers(1, 3),
    streams=st.integers(1, 4),
    aggregated=st.booleans(),
    implementation=st.sampled_from(["sdpa", "eager"]),
    long=st.booleans(),
)
def test_scores_of_any_kind_are_added(seed, batch, streams, aggregated, implementation, long):
    """Additive masks, and scores for each head, such as those of a relation between positions."""
    torch.manual_seed(seed)
    block, length = attention(implementation), 70 if long else 5
    hidden = torch.randn(batch, streams, 4, 16)
    source = torch.randn(batch, 1 if aggregated else streams, length, 16)
    scores = torch.randn(batch, block.num_heads, 4, length)
    scores[..., -2:] = torch.finfo(scores.dtype).min
    with torch.no_grad():
        found, weights, _ = block(
            hidden, source, mask=scores, output_weights=implementation == "eager"
        )
        expected = written_out(block, hidden, source, scores)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    if weights is not None:
        assert weights.shape == (batch, streams * block.num_heads, 4, length)
        assert not weights[..., -2:].any()
