"""FOLNet for one sample without padding: Table 2 of Chen (ICLR 2023), written as sums.

Letters of the sums: x, y, a are tokens, h heads, s and w places in a head, d dimensions of atoms.
A decoder's rows are the tokens of the target, and its columns those of source and target.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

Weights = dict[str, Tensor]
ACTIVATIONS = {"gelu": torch.nn.functional.gelu, "relu": torch.relu}
IMPLICATIONS = {
    "none": lambda z: z,
    "softplus": lambda z: torch.log(1 + 2 * torch.exp(z)),
    "relu": lambda z: torch.relu(z + torch.log(torch.tensor(2.0, dtype=z.dtype))),
}
UNARY = {"j": "join", "m": "mu", "c": "cjoin"}
BINARY = {"a": "assoc", "t": "trans", "p": "prod"}


@dataclass
class View:
    """What the operators of a stack see besides the atoms.

    Attributes:
        allowed_xy: Table 5's mask: the binary atoms (x, y) that are there.
        decoder: whether the stack is a decoder.
        keys_xys, values_xys: Shaw's static vectors, or None.
        source_ad, source_abd: the encoder's final atoms, or None.
        relations_rxy: where the same symbol stands, or None: within a text; in a decoder also
            across to the source, and whether a symbol of the source was written up to x.
    """

    allowed_xy: Tensor
    decoder: bool = False
    keys_xys: Tensor | None = None
    values_xys: Tensor | None = None
    source_ad: Tensor | None = None
    source_abd: Tensor | None = None
    relations_rxy: Tensor | None = None


def masked_softmax(scores_xac: Tensor, allowed_xa: Tensor) -> Tensor:
    """Softmax over a, with minus infinity before it where an atom is not there."""
    return scores_xac.masked_fill(~allowed_xa[:, :, None], -torch.inf).softmax(1)


def clipped_distances(length: int, most: int) -> Tensor:
    """Rows of the table for distances y - x, each clipped to less than `most`."""
    table = torch.zeros(length, length, dtype=torch.long)
    for x in range(length):
        for y in range(length):
            d = max(1 - most, min(y - x, most - 1))
            table[x, y] = d if d >= 0 else 2 * most + d
    return table


def encoder_distances(types: list[int], most: int, cls_atoms: bool) -> Tensor:
    """Appendix A.4: other sequences and [CLS] have rows of their own."""
    table = clipped_distances(len(types), most)
    for x, one in enumerate(types):
        for y, other in enumerate(types):
            if one != other:
                table[x, y] = most
            if cls_atoms and x == 0 and y > 0:
                table[x, y] = 2 * most
            if cls_atoms and x > 0 and y == 0:
                table[x, y] = 2 * most + 1
    return table


class FolnetReference:
    """FOLNet from its weights by name and its configuration; no dropout."""

    def __init__(self, config: Any, weights: Weights) -> None:
        self.config, self.weights = config, weights

    # -- parts ---------------------------------------------------------------------------------

    def linear(self, name: str, x: Tensor) -> Tensor:
        out = x @ self.weights[name + ".weight"].T
        return out + self.weights[name + ".bias"] if name + ".bias" in self.weights else out

    def norm(self, name: str, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        variance = (centred * centred).mean(-1, keepdim=True)
        out = centred / torch.sqrt(variance + self.config.layer_norm_eps)
        return out

    def heads(self, name: str, x_xd: Tensor) -> Tensor:
        """A projection of unary atoms, split into heads: (x, h, s)."""
        sizes = (self.config.num_attention_heads, self.config.head_size)
        return self.linear(name, x_xd).unflatten(-1, sizes)

    def deduced(self, name: str, z: Tensor) -> Tensor:
        """Appendix D's activation, and what is written to the residual stream."""
        return self.linear(name + ".output", IMPLICATIONS[self.config.implication](z))

    def gated(self, name: str, u_xd: Tensor, view: View) -> Tensor | float:
        """What relations add to a kernel's scores: sum_r gate_rh(x) relation_r(x, y)."""
        if view.relations_rxy is None:
            return 0.0
        gates = self.linear(name + ".gates", u_xd).unflatten(-1, (len(view.relations_rxy), -1))
        return torch.einsum("xrh,rxy->xyh", gates, view.relations_rxy)

    def scale(self) -> float:
        return self.config.head_size**0.5

    # -- operators that deduce unary atoms --------------------------------------------------------

    def join(self, name: str, u_xd: Tensor, u_xyd: Tensor, view: View) -> Tensor:
        """u_hs(x) = sum_a K_h(x, a) v_hs(a)"""
        scores = self.linear(name + ".kernel", u_xyd) + self.gated(name, u_xd, view)
        kernel = masked_softmax(scores, view.allowed_xy)
        premise = self.heads(name + ".premise", u_xd)
        if view.source_ad is not None:
            premise = torch.cat((self.heads(name + ".source_premise", view.source_ad), premise))
        out = torch.einsum("xah,ahs->xhs", kernel, premise)
        if view.values_xys is not None:
            out = out + torch.einsum("xah,xas->xhs", kernel, view.values_xys)
        return self.deduced(name, out.flatten(1))

    def mu(self, name: str, u_xd: Tensor, u_xyd: Tensor, view: View) -> Tensor:
        """u_hs(x) = sum_a K_h(x, a) v_s(x, a)"""
        kernel = masked_softmax(self.linear(name + ".kernel", u_xyd), view.allowed_xy)
        premise = self.linear(name + ".premise", u_xyd)
        return self.deduced(name, torch.einsum("xah,xas->xhs", kernel, premise).flatten(1))

    def cjoin(self, name: str, u_xd: Tensor, u_xyd: Tensor, view: View) -> Tensor:
        """u_hs(x) = sum_a K_hs(a) v_h(x, a), or the code's sum_a K_hs(a) v_s(a, x)"""
        scores = self.linear(name + ".kernel", u_xd)
        if view.source_ad is not None:
            scores = torch.cat((self.linear(name + ".source_kernel", view.source_ad), scores))
        rows = len(view.allowed_xy)
        kernel = masked_softmax(scores.expand(rows, -1, -1), view.allowed_xy)
        premise = self.linear(name + ".premise", u_xyd)
        if self.config.cjoin_premise == "heads":
            sizes = (self.config.num_attention_heads, self.config.head_size)
            out = torch.einsum("xahs,xah->xhs", kernel.unflatten(-1, sizes), premise)
        else:
            sizes = (self.config.head_size, self.config.num_attention_heads)
            out = torch.einsum("xash,axs->xsh", kernel.unflatten(-1, sizes), premise)
        return self.deduced(name, out.flatten(1))

    # -- operators that deduce binary atoms -------------------------------------------------------

    def assoc(self, name: str, u_xd: Tensor, u_xyd: Tensor, view: View) -> Tensor:
        """u_h(x, y) = sum_w K_hw(x) v_hw(y)"""
        kernel = self.heads(name + ".kernel", u_xd)
        premise = self.heads(name + ".premise", u_xd)
        if view.source_ad is not None:
            premise = torch.cat((self.heads(name + ".source_premise", view.source_ad), premise))
        out = torch.einsum("xhw,yhw->xyh", kernel, premise)
        if view.keys_xys is not None:
            out = out + torch.einsum("xhw,xyw->xyh", kernel, view.keys_xys)
        return self.deduced(name, out / self.scale())

    def prod(self, name: str, u_xd: Tensor, u_xyd: Tensor, view: View) -> Tensor:
        """u_h(x, y) = sum_w K_hw(x) v_w(x, y)"""
        kernel = self.heads(name + ".kernel", u_xd)
        premise = self.linear(name + ".premise", u_xyd)
        return self.deduced(name, torch.einsum("xhw,xyw->xyh", kernel, premise) / self.scale())

    def trans(self, name: str, u_xd: Tensor, u_xyd: Tensor, view: View) -> Tensor:
        """u_h(x, y) = sum_a K_h(x, a) v_h(a, y), a and y in source and target."""
        kernel = masked_softmax(self.linear(name + ".kernel", u_xyd), view.allowed_xy)
        premise = self.linear(name + ".premise", u_xyd) * view.allowed_xy[:, :, None]
        if view.source_abd is not None:
            source = self.linear(name + ".source_premise", view.source_abd)
            nothing = source.new_zeros(len(source), premise.shape[0], source.shape[-1])
            premise = torch.cat((torch.cat((source, nothing), 1), premise))
        return self.deduced(name, torch.einsum("xac,ayc->xyc", kernel, premise))

    # -- boolean operators ------------------------------------------------------------------------

    def boolean(self, name: str, x: Tensor) -> Tensor:
        clause = ACTIVATIONS[self.config.hidden_act](self.linear(name + ".fc1", x))
        return self.linear(name + ".fc2", clause)

    def binary_boolean(self, name: str, u_xyd: Tensor, view: View) -> Tensor:
        if not self.config.transposed_boolean or view.decoder:
            return self.boolean(name, u_xyd)
        other = u_xyd.transpose(0, 1)
        both = self.boolean(name, torch.cat((u_xyd, other), -1))
        return both + self.linear(name + ".skip", other)

    # -- stacks -----------------------------------------------------------------------------------

    def layer(self, name: str, u1: Tensor, u2: Tensor, view: View) -> tuple[Tensor, Tensor]:
        n1, n2 = self.norm(name + ".unary_norm", u1), self.norm(name + ".binary_norm", u2)
        new1, new2 = u1, u2
        for letter in self.config.unary_operators:
            operator = UNARY[letter]
            new1 = new1 + getattr(self, operator)(f"{name}.{operator}", n1, n2, view)
        for letter in self.config.binary_operators:
            operator = BINARY[letter]
            new2 = new2 + getattr(self, operator)(f"{name}.{operator}", n1, n2, view)
        if self.config.boolean_cascade:
            n1 = self.norm(name + ".unary_bool_norm", new1)
            n2 = self.norm(name + ".binary_bool_norm", new2)
        new1 = new1 + self.boolean(name + ".unary_bool", n1)
        return new1, new2 + self.binary_boolean(name + ".binary_bool", n2, view)

    def stack(self, name: str, u1: Tensor, u2: Tensor, view: View) -> tuple[Tensor, Tensor]:
        layers = self.config.num_hidden_layers
        if view.source_ad is not None and self.config.decoder_layers is not None:
            layers = self.config.decoder_layers
        for number in range(layers):
            u1, u2 = self.layer(f"{name}.layers.{number}", u1, u2, view)
        u1 = self.norm(name + ".final_unary_norm", u1)
        u2 = self.norm(name + ".final_binary_norm", u2)
        return u1, u2 * view.allowed_xy[:, :, None]

    def embed(
        self, stack: str, ids: Tensor, types: Tensor | None, distances: Tensor, view: View
    ) -> tuple[Tensor, Tensor]:
        """Base atoms of the tokens and of their relations, before the norms."""
        name, config = f"{stack}.embeddings", self.config
        # All symbols of the only class, which come last, are one row.
        rows = ids.clamp(max=config.num_base_tokens) if view.relations_rxy is not None else ids
        u1 = self.weights["folnet.shared.weight"][rows]
        if view.source_ad is not None and view.relations_rxy is not None:
            u1 = u1 + self.remembered(view)
        if types is not None:
            u1 = u1 + self.weights[f"{name}.token_type_embeddings.weight"][types]
        if config.position_scheme == "absolute":
            u1 = u1 + self.weights[f"{name}.position_embeddings.weight"][: len(ids)]
        if config.position_scheme == "relative":
            u2 = self.weights[f"{name}.distance_embeddings.weight"][distances]
        else:
            u2 = u1.new_zeros(*distances.shape, config.binary_hidden_size)
        if view.relations_rxy is not None:
            u2 = u2 + self.linear(f"{name}.relations", view.relations_rxy.permute(1, 2, 0))
        return u1, u2

    def remembered(self, view: View) -> Tensor:
        """What the encoder found about the symbol at each token of the target: (x, d)."""
        assert view.source_ad is not None and view.relations_rxy is not None
        name = "folnet.symbol_memory.input"
        across = view.relations_rxy[1, :, : len(view.source_ad)]
        mean = across @ view.source_ad / across.sum(1, keepdim=True).clamp(min=1)
        known = self.linear(f"{name}_proj", mean)
        eps = torch.finfo(known.dtype).eps
        known = known / torch.sqrt((known * known).mean(-1, keepdim=True) + eps)
        return known * self.weights[f"{name}_norm.weight"]

    def same(self, ids: Tensor, others: Tensor) -> Tensor:
        """1 where two texts hold the same symbol: (x, y)."""
        found = (ids[:, None] == others[None]) & (ids >= self.config.num_base_tokens)[:, None]
        return found.to(self.weights["folnet.shared.weight"].dtype)

    def run(
        self, stack: str, ids: Tensor, types: Tensor | None, distances: Tensor, view: View
    ) -> tuple[Tensor, Tensor]:
        u1, u2 = self.embed(stack, ids, types, distances, view)
        name = f"{stack}.embeddings"
        if self.config.position_scheme == "shaw":
            view = replace(
                view,
                keys_xys=self.weights[f"{name}.key_distances.weight"][distances],
                values_xys=self.weights[f"{name}.value_distances.weight"][distances],
            )
        u1, u2 = self.norm(f"{name}.unary_norm", u1), self.norm(f"{name}.binary_norm", u2)
        return self.stack(stack, u1, u2, view)

    def encode(self, ids: Tensor, types: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Final atoms of an encoder: (x, d) and (x, y, d)."""
        types = torch.zeros_like(ids) if types is None else types
        distances = encoder_distances(
            types.tolist(), self.config.max_distance, self.config.cls_atoms
        )
        view = View(torch.ones(len(ids), len(ids), dtype=torch.bool))
        if self.config.symbol_encoding == "relational":
            view = replace(view, relations_rxy=self.same(ids, ids)[None])
        return self.run("folnet.encoder", ids, types, distances, view)

    def decode_alone(self, ids: Tensor, prefix: int = 0) -> tuple[Tensor, Tensor]:
        """Final atoms of a causal LM, or of one whose first tokens see each other."""
        view = View(causal(len(ids), prefix), decoder=True)
        distances = clipped_distances(len(ids), self.config.max_distance)
        return self.run("folnet.decoder", ids, None, distances, view)

    def decode(
        self, source: Tensor, target: Tensor, types: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Final atoms of an encoder-decoder's decoder: (x, d) and (x, y in source + target, d)."""
        source_ad, source_abd = self.encode(source, types)
        seen = torch.ones(len(target), len(source), dtype=torch.bool)
        most = self.config.max_distance
        distances = torch.cat(
            (seen * most, clipped_distances(len(target), most)), 1
        )  # the source is another sequence
        view = View(
            torch.cat((seen, causal(len(target))), 1),
            decoder=True,
            source_ad=source_ad,
            source_abd=source_abd,
        )
        if self.config.symbol_encoding == "relational":
            view = replace(view, relations_rxy=self.relations(source, target))
        return self.run("folnet.decoder", target, None, distances, view)

    def relations(self, source: Tensor, target: Tensor) -> Tensor:
        """Of a target: the same symbol in it, in the source, and one that it has up to x."""
        within, across = self.same(target, target), self.same(target, source)
        written = torch.stack([across[: x + 1].amax(0) for x in range(len(target))])
        nothing = torch.zeros_like
        return torch.stack(
            (
                torch.cat((nothing(across), within), 1),
                torch.cat((across, nothing(within)), 1),
                torch.cat((written, nothing(within)), 1),
            )
        )

    # -- heads ------------------------------------------------------------------------------------

    def pooled(self, u_xd: Tensor) -> Tensor:
        return torch.tanh(self.linear("folnet.pooler.dense", u_xd[0]))

    def masked_lm(self, u_xd: Tensor) -> Tensor:
        name = "cls.predictions"
        x = ACTIVATIONS[self.config.hidden_act](self.linear(f"{name}.transform.dense", u_xd))
        return self.next_tokens(self.norm(f"{name}.transform.norm", x)) + self.weights[
            f"{name}.bias"
        ]  # fmt: skip

    def next_tokens(self, u_xd: Tensor) -> Tensor:
        return u_xd @ self.weights["folnet.shared.weight"].T


def causal(length: int, prefix: int = 0) -> Tensor:
    """Figure 4(b): y <= x, and everything within the prefix."""
    allowed = torch.zeros(length, length, dtype=torch.bool)
    for x in range(length):
        for y in range(length):
            allowed[x, y] = y <= x or (x < prefix and y < prefix)
    return allowed
