"""Canonical spelling before any model: what reaches an address depends on no name.

`chat` spells requests in OpenAI's form and writes their answers back, `transport` does so on the
way of an HTTP client. Neither loads torch or Transformers.
"""
