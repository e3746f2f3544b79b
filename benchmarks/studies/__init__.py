"""The papers' tables measured again.

`python -m benchmarks.studies TABLE`, in the root of a checkout. Two commands make models of trained
ones, as recipes in training/ say: `python -m benchmarks.studies.grow` a larger one, and
`python -m benchmarks.studies.mean` the mean of two. formats.py reads benchmarks' files for recipes.
Imports in here are relative, since the scripts beside this folder know it as `studies`.

A `Table` (table.py) has rows and says how a row is measured. A `Row` may have a `Model`
(models.py): a recipe and changes to it, perhaps other data, perhaps a conversion. `reproduce`
(run.py) trains the model of each row once for each seed, at a `Size` (sizes.py), has the table
measure it (measures.py), and adds the numbers to the store (results.py, store.py), a result for
each table and size. document.py writes a page of all tables and pictures from these alone. The
papers' numbers are in papers.yaml, each block with its source, and nowhere else.

To add a table, write a subclass of `Table` in a module of its own and name it in `TABLES`
(tables.py). `rows(size)` lists its rows, the tasks one after the other; a row's name begins with
the task and never changes, since files, `--only` and papers.yaml use it. Give a row the same
`Model` as another table where it is the same: what is trained is found by `Model.name`. Recipes are
named without `-small`, which the size adds, and sizes of models or steps are never set by a table:
`Size` does that, so that a test can run all of it in seconds. A row without a model, such as random
answers or a released model, is measured once.

`measure(row, folder, size, runs)` returns numbers under keys, with `None` for what cannot be
measured; answers are to come from `measures.answers`, which counts timeouts as wrong and goes on
where it was killed. `tested(size)` has every setting of the test, so that numbers of different
tests never stand in one table. `blocks(size)` says which keys are columns and which block of
papers.yaml stands beside them: its `rows` go by row name, its `columns` are their heads. `text`
says in plain words what is measured, `findings` turns numbers into sentences, `pictures` into
figures. `tests/tiny_studies.py` has a size that takes seconds.
"""

from pathlib import Path

FOLDER = Path("benchmarks/results")
"""The store of results, by default."""

__all__ = ["FOLDER"]
