"""The tables, by name."""

from hf_alpha.reproduce.ablation import Ablation
from hf_alpha.reproduce.conversion import Conversion
from hf_alpha.reproduce.copying import Copying
from hf_alpha.reproduce.cost import Cost
from hf_alpha.reproduce.covariance import Covariance
from hf_alpha.reproduce.draws import Draws
from hf_alpha.reproduce.encodings import Encodings
from hf_alpha.reproduce.heatmaps import Heatmaps
from hf_alpha.reproduce.normalization import Normalization
from hf_alpha.reproduce.specifications import Specifications
from hf_alpha.reproduce.table import Table
from hf_alpha.reproduce.top_n import TopN

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        Encodings(),
        Heatmaps(),
        Ablation(),
        Conversion(),
        TopN(),
        Draws(),
        Cost(),
        Copying(),
        Normalization(),
        Specifications(),
        Covariance(),
    )
}
"""In the order of the document."""

__all__ = ["TABLES"]
