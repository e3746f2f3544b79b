"""The tables, by name."""

from .ablation import Ablation
from .conversion import Conversion
from .copying import Copying
from .cost import Cost
from .covariance import Covariance
from .draws import Draws
from .encodings import Encodings
from .heatmaps import Heatmaps
from .normalization import Normalization
from .published import Published
from .specifications import Specifications
from .table import Table
from .top_n import TopN

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
        Published(),
        Covariance(),
    )
}
"""In the order of the document."""

__all__ = ["TABLES"]
