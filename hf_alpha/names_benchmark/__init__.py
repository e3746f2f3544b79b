"""How much does a model care about names? Suites of questions that are asked under many names.

`questions` says what a question is, `suites` has the suites, `scores` the measures, and `run` asks
models.
"""
