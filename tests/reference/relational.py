"""`relational` encoding for one sample, loop by loop; what is no part of it is as in `streams`.

There is one stream. "Own" of a position is the number of the symbol there, by first occurrence in
the input, None for a base token and for a symbol that the input has not got.
"""

import math

import torch

from .streams import ReferenceModel


def same(one: int | None, other: int | None) -> bool:
    return one is not None and one == other


class RelationalReferenceModel(ReferenceModel):
    """The encoder-decoder with relations from a state dict and a configuration."""

    # -- symbols ---------------------------------------------------------------------------------
    def row_of(self, token: int) -> torch.Tensor:
        """All symbols of a class share the row behind those of the base tokens."""
        cls = self.class_of(token)
        return self.rows()[token if cls is None else self.config.num_base_tokens + cls]

    def unit_rms(self, name: str, x: torch.Tensor) -> torch.Tensor:
        mean_square = sum(number * number for number in x) / len(x)
        return x / torch.sqrt(mean_square + torch.finfo(x.dtype).eps) * self.w(name + ".weight")

    def remember(self, encoded, own: list[int | None], symbols: list[int]):
        """For each symbol, what its row in the decoder's input gets, and what the head sees."""
        entered, rows = [], []
        for number, symbol in enumerate(symbols):
            states = [x for x, other in zip(encoded, own, strict=True) if other == number]
            mean, vectors = sum(states) / len(states), []
            for side in ("input", "output"):
                name = f"model.symbol_memory.{side}"
                vectors.append(self.unit_rms(name + "_norm", self.w(name + "_proj.weight") @ mean))
            row = self.row_of(symbol) + vectors[1]
            entered.append(vectors[0])
            rows.append(row / row.norm() if self.config.normalize_embeddings else row)
        return entered, rows

    # -- attention -------------------------------------------------------------------------------
    def related(self, name, queries, keys, relations, causal, rope, heads):
        """Multi-head attention, and its weights: [head][position of the query][of the key].

        Where relation r holds between query t and key m (`relations[r][t][m]`), a score gets what
        the query's state says for that relation and head.
        """
        width = self.config.d_model // heads
        q = [self.linear(name + ".q_proj", x) for x in queries]
        k = [self.linear(name + ".k_proj", x) for x in keys]
        v = [self.linear(name + ".v_proj", x) for x in keys]
        gates = [self.linear(name + ".gates", x) for x in queries]
        out, all_weights = [], [[] for _ in range(heads)]
        for t in range(len(queries)):
            visible = range(t + 1) if causal else range(len(keys))
            parts = []
            for h in range(heads):
                part = slice(h * width, (h + 1) * width)
                query = self.rotate(q[t][part], t) if rope else q[t][part]
                scores = []
                for m in visible:
                    key = self.rotate(k[m][part], m) if rope else k[m][part]
                    score = (query @ key) / math.sqrt(width)
                    for r, relation in enumerate(relations):
                        if relation[t][m]:
                            score = score + gates[t][r * heads + h]
                    scores.append(score)
                weights = torch.softmax(torch.stack(scores), 0)
                all_weights[h].append(weights)
                parts.append(sum(w * v[m][part] for w, m in zip(weights, visible, strict=True)))
            out.append(self.linear(name + ".out_proj", torch.cat(parts)))
        return out, all_weights

    def add_norm(self, name, hidden, update):
        return [self.norm(name, x + y) for x, y in zip(hidden, update, strict=True)]

    def second_block(self, name, hidden, relations, causal, rope, heads):
        """The block that aggregates streams: with one stream, attention to itself once more."""
        norm = name + "_layer_norm"
        if self.config.aggregated_attention_norm == "pre":
            view = [self.norm(norm, x) for x in hidden]
            update, _ = self.related(name, view, view, relations, causal, rope, heads)
            return [x + y for x, y in zip(hidden, update, strict=True)]
        update, _ = self.related(name, hidden, hidden, relations, causal, rope, heads)
        return self.add_norm(norm, hidden, update)

    # -- encoder, decoder, projection ------------------------------------------------------------
    def encode_one(self, ids: list[int], paths: list[int], own: list[int | None]):
        config, heads = self.config, self.config.encoder_attention_heads
        scale = math.sqrt(config.d_model) if config.scale_embedding else 1.0
        hidden = []
        for position, token in enumerate(ids):
            x = self.row_of(token) * scale
            if config.encoder_position == "tree":
                x = x + self.tree_position(paths[position])
            if config.encoder_position == "sinusoidal":
                x = x + self.sinusoidal_position(position)
            hidden.append(x)
        rope = config.encoder_position == "rope"
        relations = [[[same(one, other) for other in own] for one in own]]
        for i in range(config.encoder_layers):
            name = f"model.encoder.layers.{i}"
            if config.encoder_per_stream_attention:
                block = name + ".self_attn"
                update, _ = self.related(block, hidden, hidden, relations, False, rope, heads)
                hidden = self.add_norm(block + "_layer_norm", hidden, update)
            if config.encoder_aggregated_attention:
                block = name + ".aggregated_attn"
                hidden = self.second_block(block, hidden, relations, False, rope, heads)
            (hidden,) = self.feed_forward(name, [hidden])
        return hidden

    def decode_one(self, ids: list[int], own, entered, encoded, encoder_own):
        """Last states, and the weights of the last layer's first attention to the source."""
        config, heads = self.config, self.config.decoder_attention_heads
        scale = math.sqrt(config.d_model) if config.scale_embedding else 1.0
        hidden = []
        for position, (token, number) in enumerate(zip(ids, own, strict=True)):
            x = self.row_of(token) if number is None else self.row_of(token) + entered[number]
            x = x * scale
            if config.decoder_position == "sinusoidal":
                x = x + self.sinusoidal_position(position)
            hidden.append(x)
        rope = config.decoder_position == "rope"
        cross_rope = rope and config.cross_attention_rope
        within = [[[same(one, other) for other in own] for one in own]]
        written = [
            [any(same(number, before) for before in own[: t + 1]) for number in encoder_own]
            for t in range(len(own))
        ]
        across = [[[same(one, other) for other in encoder_own] for one in own], written]
        weights = None
        for i in range(config.decoder_layers):
            name = f"model.decoder.layers.{i}"
            if config.decoder_per_stream_attention:
                block = name + ".self_attn"
                update, _ = self.related(block, hidden, hidden, within, True, rope, heads)
                hidden = self.add_norm(block + "_layer_norm", hidden, update)
            if config.decoder_aggregated_attention:
                block = name + ".aggregated_attn"
                hidden = self.second_block(block, hidden, within, True, rope, heads)
            for number, mode in enumerate(config.cross_attention):
                kind = "encoder_aggregated_attn" if mode == "aggregated" else "encoder_attn"
                block = f"{name}.{kind}"
                update, found = self.related(
                    block, hidden, encoded, across, False, cross_rope, heads
                )
                hidden = self.add_norm(block + "_layer_norm", hidden, update)
                weights = found if number == 0 else weights
            (hidden,) = self.feed_forward(name, [hidden])
        return hidden, weights

    def pointer(self, t: int, number: int, own, encoder_own, weights) -> torch.Tensor:
        """What the head adds to the score of a symbol at a position."""
        written, last = self.w("model.symbol_memory.pointer.repeat")
        score = torch.zeros(())
        for h, share in enumerate(self.w("model.symbol_memory.pointer.attention")):
            for m, other in enumerate(encoder_own):
                if other == number:
                    score = score + share * weights[h][t][m]
        if number in own[: t + 1]:
            score = score + written
        if own[t] == number:
            score = score + last
        return score

    def __call__(self, ids: list[int], paths: list[int], decoder_ids: list[int]) -> torch.Tensor:
        """Logits (T, V) of one sample; columns of symbols that it has not got are NaN."""
        config = self.config
        symbols: list[int] = []
        for token in ids:
            if self.class_of(token) is not None and token not in symbols:
                symbols.append(token)

        def own(tokens):
            return [symbols.index(token) if token in symbols else None for token in tokens]

        encoded = self.encode_one(ids, paths, own(ids))
        entered, rows = self.remember(encoded, own(ids), symbols)
        decoder_own = own(decoder_ids)
        hidden, weights = self.decode_one(decoder_ids, decoder_own, entered, encoded, own(ids))
        scale, out = self.w("logit_scale.scale"), []
        for t, feature in enumerate(hidden):
            if config.normalize_features:
                feature = feature / feature.norm()
            logits = [torch.tensor(float("nan"))] * config.vocab_size
            for token in range(config.num_base_tokens):
                logits[token] = scale * (feature @ self.rows()[token])
            for number, symbol in enumerate(symbols):
                score = feature @ rows[number]
                score = score + self.pointer(t, number, decoder_own, own(ids), weights)
                logits[symbol] = scale * score
            out.append(torch.stack(logits))
        return torch.stack(out)
