"""Model cards: what a model is, how it was made and what it reaches, from files that say so."""

from pathlib import Path

from huggingface_hub import EvalResult, ModelCard, ModelCardData
from transformers import PreTrainedConfig

from hf_alpha.evaluation.report import Report, table
from hf_alpha.loading import load_checkpoint
from hf_alpha.recipe import RECIPE_FILE
from hf_alpha.tasks import get_task, name_of
from hf_alpha.tasks.registry import DEFAULT_TASK

TEMPLATE = """---
{data}
---
# {name}

{description}

| | |
|---|---|
| symbol encoding | `{encoding}` |
| parameters | {parameters:,} |
| size | {size} |
| vocabulary | {base} base tokens, symbols: {symbols} |

## Use
```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
model = AutoModelForSeq2SeqLM.from_pretrained(folder, trust_remote_code=True)
batch = tokenizer(["{example}"], return_tensors="pt", padding=True)
tokenizer.batch_decode(model.generate(**batch, num_beams={num_beams}), names=batch.names)
```
With hf_alpha installed no trust flag is needed, and `{solve} --model {name}` {solves}.

## Results
`{command}` wrote this
({date}); percent, by number of symbols. {notes}
```
{table}
```
{training}"""

RENAMINGS = {
    "none": "",
    "random": " Each sample was renamed at random in training (alpha-renaming).",
    "random_per_batch": " Samples were renamed at random in training, anew in each step.",
    "first_occurrence": (
        " Inside the model, symbols are renamed by order of first occurrence: renaming a problem "
        "renames its answer and changes nothing else."
    ),
}
METRICS = {
    "correct": ("accuracy", "correct answers"),
    "edit_distance": ("edit_distance", "mean edit distance"),
}
NEW = (
    "Problems that are drawn are not in training data made by the same version of hf_alpha, up to "
    "renaming and the order of operands."
)


def write_card(
    folder: Path, report: Report, baseline: Report, command: str, date: str
) -> ModelCard:
    """Write README.md beside a model.

    Args:
        folder: a checkpoint; its `recipe.yaml`, if there is one, is quoted.
        report: of this model.
        baseline: of the random assignment on the same problems.
        command: that made the report.
        date: of the report.
    """
    model, tokenizer = load_checkpoint(folder)
    config, task = model.config, get_task(report.settings["task"])
    recipe = folder / RECIPE_FILE
    training = ""
    if recipe.is_file():
        training = f"## Training\n```yaml\n{recipe.read_text().strip()}\n```\n"
    text = TEMPLATE.format(
        data=_metadata(folder.name, report, config).to_yaml(),
        name=folder.name,
        description=_description(config),
        encoding=config.symbol_encoding,
        parameters=model.num_parameters(),
        size=config.size_text,
        base=config.num_base_tokens,
        symbols=", ".join(f"{count} {name}" for name, count in tokenizer.symbol_classes.items()),
        example=task.example,
        num_beams=task.num_beams,
        solve="hf-alpha solve" + f" --task {name_of(task)}" * (task.name != DEFAULT_TASK),
        solves="checks\nevery answer" if task.has_check else "answers\nyour texts",
        notes=" ".join([NEW] * (task.held_out and not task.own_data) + [task.random_note]),
        command=command,
        date=date,
        table=table([report, baseline]),
        training=training,
    )
    card = ModelCard(text, ignore_metadata_errors=False)
    card.save(folder / "README.md")
    return card


def _description(config: PreTrainedConfig) -> str:
    """Return what a model is: what its encoding does, and what it was made from."""
    said: str = config.encoding.description + RENAMINGS[config.symbol_renaming]
    if backbone_type(config) is not None:
        said += (
            f" It is a `{backbone_type(config)}` of Transformers with a layer for names around it "
            "(`hf-alpha convert`); the licence of that model holds for it too."
        )
    return said


def backbone_type(config: PreTrainedConfig) -> str | None:
    """Return the type of the model of Transformers inside a converted one; None for any other."""
    backbone = getattr(config, "backbone_config", None)
    return None if backbone is None else backbone.model_type


def _metadata(name: str, report: Report, config: PreTrainedConfig) -> ModelCardData:
    task = get_task(report.settings["task"])
    metric, title = METRICS[task.measure]
    results = [
        EvalResult(
            task_type="other",
            task_name=task.name,
            dataset_type=f"hf_alpha/{task.name}",
            dataset_name=f"{task.problems} with {count} symbol{'s' * (count != 1)}",
            # Part of a result's identity: without it the metadata would merge all rows into one.
            dataset_config=f"{count}-symbols",
            metric_type=metric,
            metric_name=title,
            metric_value=round(rates.rate(task.measure), 4),
        )
        for count, rates in report.by_num_symbols.items()
        if not rates.is_outside
    ]
    return ModelCardData(
        license="apache-2.0" if backbone_type(config) is None else None,  # the backbone has its own
        library_name="transformers",
        tags=["hf_alpha", "alpha-equivalence", "logic", task.name],
        model_name=name,
        eval_results=results,
    )


__all__ = ["RENAMINGS", "backbone_type", "write_card"]
