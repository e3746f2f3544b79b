"""Who answers problems: models, solvers and chance, all asked in one way."""
