"""Error messages of Flower's processes, and what to do about them."""

from gramfold.deploy.processes import error_line

KNOWN_ERRORS = {
    "address already in use": "its port is taken; choose another one",
    "CERTIFICATE_VERIFY_FAILED": (
        "it does not trust the server's certificate; give it the server's ca.crt, and the server's name as in the certificate"
    ),
    "Failed to activate SuperNode": "the server does not know its key; register its public key at the server",
    "Connection attempt failed": "it cannot reach the server; check the address and the port",
}
"""Advice by message. The last message also follows the others, so order matters."""


def diagnosis(text: str) -> str:
    """One line about what went wrong, from the output of a process."""
    known = [advice for sign, advice in KNOWN_ERRORS.items() if sign in text]
    return known[0] if known else error_line(text)
