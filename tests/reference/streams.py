"""Algorithms 1-5 of 2601.23169 (Appendix A), loop by loop, for one sample and no batch.

Slow and plain on purpose: every stream, head, position and token has its loop. It reads the weights
of a model by their names and shares no code with it.
"""

import math

import torch


class ReferenceModel:
    """The symbol-invariant encoder-decoder from a state dict and a configuration."""

    def __init__(self, state: dict[str, torch.Tensor], config):
        self.state, self.config = state, config

    def w(self, name: str) -> torch.Tensor:
        return self.state[name]

    # -- embedding -------------------------------------------------------------------------------
    def rows(self) -> list[torch.Tensor]:
        table = self.w("model.shared.weight")
        if not self.config.normalize_embeddings:
            return list(table)
        return [row / row.norm() for row in table]

    def class_of(self, token: int) -> int | None:
        for index, ranges in enumerate(self.config.symbol_ranges.values()):
            if any(start <= token < stop for start, stop in ranges):
                return index
        return None

    def actual(self, cls: int) -> int:
        return self.config.num_base_tokens + 2 * cls

    def embed(self, ids: list[int], symbols: list[int | None]):
        """Algorithm 1: (k, L, d) embeddings and (k, L) masks of each symbol's own positions."""
        rows = self.rows()
        scale = math.sqrt(self.config.d_model) if self.config.scale_embedding else 1.0
        embedded, masks = [], []
        for symbol in symbols:
            stream, mask = [], []
            for token in ids:
                cls = self.class_of(token)
                if cls is None:
                    row = token
                elif token == symbol:
                    row = self.actual(cls)
                else:
                    row = self.actual(cls) + 1
                stream.append(rows[row] * scale)
                mask.append(cls is not None and token == symbol)
            embedded.append(torch.stack(stream))
            masks.append(mask)
        return embedded, masks

    # -- positions -------------------------------------------------------------------------------
    def tree_position(self, number: int) -> torch.Tensor:
        """Path from the node up to the root, two numbers a step."""
        path: list[float] = []
        while number > 1:
            path += [0.0, 1.0] if number % 2 else [1.0, 0.0]
            number //= 2
        path = path[: self.config.d_model] + [0.0] * max(0, self.config.d_model - len(path))
        return torch.tensor(path)

    def sinusoidal_position(self, position: int) -> torch.Tensor:
        d = self.config.d_model
        half = (d + 1) // 2
        angles = [position / 10000 ** (i / half) for i in range(half)]
        return torch.tensor(([math.sin(a) for a in angles] + [math.cos(a) for a in angles])[:d])

    def rotate(self, vector: torch.Tensor, position: int) -> torch.Tensor:
        """RoPE: coordinates i and i + K/2 turn by position * theta^(-2i/K)."""
        width = len(vector)
        out: list[torch.Tensor] = [vector[0]] * width
        for i in range(width // 2):
            angle = position * self.config.rope_theta ** (-2 * i / width)
            c, s = math.cos(angle), math.sin(angle)
            out[i] = vector[i] * c - vector[i + width // 2] * s
            out[i + width // 2] = vector[i + width // 2] * c + vector[i] * s
        return torch.stack(out)

    # -- building blocks -------------------------------------------------------------------------
    def linear(self, name: str, x: torch.Tensor) -> torch.Tensor:
        return self.w(name + ".weight") @ x + self.w(name + ".bias")

    def norm(self, name: str, x: torch.Tensor) -> torch.Tensor:
        mean = x.mean()
        variance = ((x - mean) ** 2).mean()
        scaled = (x - mean) / torch.sqrt(variance + self.config.layer_norm_eps)
        return scaled * self.w(name + ".weight") + self.w(name + ".bias")

    def attention(self, name, queries, keys, causal, rope, heads, relations=()):
        """Multi-head attention of one sequence (list of d-vectors) to another.

        Where relation r holds between query t and key m (`relations[r][t][m]`), a score gets what
        the query's state says for that relation and head.

        Returns:
            The states, and the weights: [head][position of the query][of the key].
        """
        width = self.config.d_model // heads
        q = [self.linear(name + ".q_proj", x) for x in queries]
        k = [self.linear(name + ".k_proj", x) for x in keys]
        v = [self.linear(name + ".v_proj", x) for x in keys]
        gates = [self.linear(name + ".gates", x) for x in queries] if relations else []
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

    def aggregate(self, hidden, masks):
        """Algorithm 2: mean over the streams, the true state restored at symbols' positions."""
        view = []
        for position in range(len(hidden[0])):
            vector = sum(stream[position] for stream in hidden) / len(hidden)
            for stream, mask in zip(hidden, masks, strict=True):
                if mask[position]:
                    vector = stream[position]
            view.append(vector)
        return view

    def add_and_norm(self, name, hidden, update):
        return [
            [self.norm(name, x + y) for x, y in zip(stream, new, strict=True)]
            for stream, new in zip(hidden, update, strict=True)
        ]

    def self_block(self, name, hidden, causal, rope, heads, relations):
        """Attention of each stream to itself."""
        update = [self.attention(name, s, s, causal, rope, heads, relations)[0] for s in hidden]
        return self.add_and_norm(name + "_layer_norm", hidden, update)

    def aggregated_block(self, name, hidden, masks, causal, rope, heads, relations):
        """Attention to the aggregated view, in the paper's post-norm or the no-op pre-norm form."""
        norm_name, is_pre = name + "_layer_norm", self.config.aggregated_attention_norm == "pre"

        def normed(states):
            return [self.norm(norm_name, x) for x in states] if is_pre else states

        view, update = normed(self.aggregate(hidden, masks)), []
        for stream in hidden:
            queries = normed(stream)
            found, _ = self.attention(name, queries, view, causal, rope, heads, relations)
            update.append(found)
        if not is_pre:
            return self.add_and_norm(norm_name, hidden, update)
        return [
            [x + y for x, y in zip(stream, new, strict=True)]
            for stream, new in zip(hidden, update, strict=True)
        ]

    def feed_forward(self, name, hidden):
        activate = (
            torch.relu if self.config.activation_function == "relu" else torch.nn.functional.gelu
        )
        update = [
            [self.linear(name + ".fc2", activate(self.linear(name + ".fc1", x))) for x in stream]
            for stream in hidden
        ]
        return self.add_and_norm(name + ".final_layer_norm", hidden, update)

    # -- encoder, decoder, projection ------------------------------------------------------------
    def encode(self, hidden, masks, paths: list[int], relations=()):
        """Algorithm 3, layer after layer."""
        config, heads = self.config, self.config.encoder_attention_heads
        rope = config.encoder_position == "rope"
        if config.encoder_position == "tree":
            places = [self.tree_position(number) for number in paths]
            hidden = [[x + y for x, y in zip(s, places, strict=True)] for s in hidden]
        if config.encoder_position == "sinusoidal":
            hidden = [[x + self.sinusoidal_position(t) for t, x in enumerate(s)] for s in hidden]
        for i in range(config.encoder_layers):
            name = f"model.encoder.layers.{i}"
            if config.encoder_per_stream_attention:
                hidden = self.self_block(name + ".self_attn", hidden, False, rope, heads, relations)
            if config.encoder_aggregated_attention:
                hidden = self.aggregated_block(
                    name + ".aggregated_attn", hidden, masks, False, rope, heads, relations
                )
            hidden = self.feed_forward(name, hidden)
        return hidden

    def decode(self, hidden, masks, encoded, encoder_masks, within=(), across=()):
        """Algorithm 4, layer after layer; relations hold within the answer and to the source.

        Returns:
            Last states, and of each stream the weights of the last layer's first attention to the
            source.
        """
        config, heads = self.config, self.config.decoder_attention_heads
        rope = config.decoder_position == "rope"
        cross_rope = rope and config.cross_attention_rope
        if config.decoder_position == "sinusoidal":
            hidden = [[x + self.sinusoidal_position(t) for t, x in enumerate(s)] for s in hidden]
        weights = None
        for i in range(config.decoder_layers):
            name = f"model.decoder.layers.{i}"
            if config.decoder_per_stream_attention:
                hidden = self.self_block(name + ".self_attn", hidden, True, rope, heads, within)
            if config.decoder_aggregated_attention:
                hidden = self.aggregated_block(
                    name + ".aggregated_attn", hidden, masks, True, rope, heads, within
                )
            for number, mode in enumerate(config.cross_attention):
                block, keys = name + ".encoder_attn", encoded
                if mode == "aggregated":
                    block = name + ".encoder_aggregated_attn"
                    keys = [self.aggregate(encoded, encoder_masks)] * len(encoded)
                found = [
                    self.attention(block, s, k, False, cross_rope, heads, across)
                    for s, k in zip(hidden, keys, strict=True)
                ]
                hidden = self.add_and_norm(
                    block + "_layer_norm", hidden, [update for update, _ in found]
                )
                weights = [each for _, each in found] if number == 0 else weights
            hidden = self.feed_forward(name, hidden)
        return hidden, weights

    def project(self, hidden, symbols: list[int | None]) -> torch.Tensor:
        """Algorithm 5: (T, V) logits; columns of symbols without a stream are NaN."""
        config, rows = self.config, self.rows()
        out = []
        for t in range(len(hidden[0])):
            scores = []
            for stream in hidden:
                feature = stream[t]
                if config.normalize_features:
                    feature = feature / feature.norm()
                scale = self.w("logit_scale.scale")
                scores.append([scale * (feature @ row) for row in rows])
            logits = [torch.tensor(float("nan"))] * config.vocab_size
            for token in range(config.num_base_tokens):
                logits[token] = sum(score[token] for score in scores) / len(scores)
            for score, symbol in zip(scores, symbols, strict=True):
                if symbol is not None:
                    logits[symbol] = score[self.actual(self.class_of(symbol))]
            out.append(torch.stack(logits))
        return torch.stack(out)

    def symbols_of(self, ids: list[int]) -> list[int]:
        """The symbols of a text by first occurrence."""
        return list(dict.fromkeys(i for i in ids if self.class_of(i) is not None))

    def __call__(self, ids: list[int], paths: list[int], decoder_ids: list[int]) -> torch.Tensor:
        """Logits (T, V) of one sample."""
        symbols = self.symbols_of(ids) or [None]  # one stream that belongs to no symbol
        embedded, masks = self.embed(ids, symbols)
        encoded = self.encode(embedded, masks, paths)
        hidden, _ = self.decode(*self.embed(decoder_ids, symbols), encoded, masks)
        return self.project(hidden, symbols)
