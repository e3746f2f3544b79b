"""Encoding `learned`: one trained vector for each symbol, as for any token.

    logit(t, i) = h_t . w_i

The vanilla model. In a host, symbols are tokens of the host as they are.
"""

from .encoding import SymbolEncoding


class LearnedEncoding(SymbolEncoding):
    """One trained vector per symbol: the vanilla model."""

    name = "learned"
    description = (
        "A vanilla Transformer with one trained vector per symbol: the baseline that "
        "`hf-alpha convert` starts from. It knows the symbols of its training only."
    )
    no_extension = (
        "symbol_encoding 'learned' has one trained vector per symbol, and none for new ones; "
        "convert the model to 'streams' or 'relational' first (hf-alpha convert), or, if it is a "
        "decoder, train one with more symbols"
    )
