"""`python -m hf_alpha.cli`, for launchers such as accelerate's that start a module."""

from hf_alpha.cli import main

if __name__ == "__main__":
    main()
