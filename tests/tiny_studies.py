"""A size at which a row takes seconds: made by changes of the recipes alone."""

from dataclasses import replace

from benchmarks.studies.sizes import CPU

COMMON = (
    "training.eval_strategy=no",
    "training.per_device_train_batch_size=8",
    "training.save_steps=1",
    "training.logging_steps=1",
    "model.d_model=40",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
)
LOGIC = ("data.generate.num_samples=300", *COMMON)

TINY = replace(
    CPU,
    name="tiny",
    text="Too small to learn anything.",
    length=7,
    most_names=4,
    grid_lengths=7,
    copy_lengths=5,
    samples=12,
    per_names=3,
    per_cell=2,
    covariance=2,
    steps=dict.fromkeys(("propositional", "ltl", "copying"), 2),
    changes={
        "propositional": LOGIC,
        "ltl": LOGIC,
        "copying": ("data.draw.num_samples=100", *COMMON),
    },
)
