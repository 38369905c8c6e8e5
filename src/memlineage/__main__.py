"""`python -m memlineage`: the command line."""

from memlineage.cli import main

if __name__ == "__main__":
    main()
