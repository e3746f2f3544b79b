"""`python -m hf_alpha`: the command line."""

from hf_alpha.cli import main

if __name__ == "__main__":
    main()
