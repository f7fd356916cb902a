"""`python -m gramfold`."""

from gramfold.cli.main import main

main()
