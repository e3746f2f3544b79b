"""The bugs that `mutation.py` plants are in the code as it is."""

import mutation


def test_every_planted_bug_names_text_that_is_there_once():
    mutation.check_texts(mutation.mutants())
