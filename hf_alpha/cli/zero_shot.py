"""`hf-alpha zero-shot`: tasks of GLUE by a prompt."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from hf_alpha.cli.common import say
from hf_alpha.cli.options import Device, may_trust, row_names


@may_trust("model")
def zero_shot(
    model: Annotated[
        str, typer.Argument(help="Folder or Hub name: any masked language model of Transformers.")
    ],
    task: Annotated[
        str, typer.Option(help="Of GLUE: sst2, cola, mnli, qnli, rte, mrpc, qqp or stsb.")
    ],
    data: Annotated[
        str | None, typer.Option(help="File to use; by default GLUE's validation data of the Hub.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Its split, if it has several.")] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="Of texts and label, by default GLUE's: premise,hypothesis,label"),
    ] = None,
    data_format: Annotated[
        str | None, typer.Option("--format", help="How the file is written: cola, mrpc or sst2.")
    ] = None,
    template: Annotated[str | None, typer.Option(help="Another prompt: '{0}? {mask}, {1}'")] = None,
    words: Annotated[
        str | None,
        typer.Option(
            help="Other words for labels: entailment=Yes,not_entailment=No. Labels of your own are "
            "numbered in this order, where the data has numbers."
        ),
    ] = None,
    max_length: Annotated[
        int,
        typer.Option(min=1, help="Tokens in a prompt, or fewer if the model has fewer positions."),
    ] = 128,
    batch_size: Annotated[int, typer.Option(min=1, help="Rows in a batch.")] = 32,
    samples: Annotated[int | None, typer.Option(min=1, help="Only the first rows.")] = None,
    device: Device = "auto",
    out: Annotated[
        Path | None, typer.Option(help="Folder for metrics.json and predictions.jsonl.")
    ] = None,
) -> None:
    """Let a masked language model solve a task of GLUE by a prompt, without any training.

    Prompts and metrics are those of Gao et al. (2021).
    """
    from hf_alpha.folders import alone
    from hf_alpha.objectives.evaluate import Scores, table
    from hf_alpha.objectives.zero_shot import label_words, read_task, solve_task
    from hf_alpha.processes import choose_device

    prompt, rows = read_task(
        task,
        data,
        split=split,
        columns=columns.split(",") if columns else None,
        data_format=data_format,
        template=template,
        words=label_words(words) if words else None,
        most=samples,
    )
    where = choose_device(device)
    with nullcontext() if out is None else alone(out):
        scores: Scores = solve_task(model, prompt, rows, max_length, batch_size, where)
        if out is not None:
            scores.save(out)
    say(table({row_names([model])[0]: scores}))


__all__ = ["zero_shot"]
