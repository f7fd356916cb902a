"""What Flower's processes say when something goes wrong, and what to do about it."""

from gramfold.deploy.processes import last_words

TROUBLES = {
    "address already in use": "its port is taken; choose another one",
    "CERTIFICATE_VERIFY_FAILED": (
        "it does not trust the server's certificate; give it the server's ca.crt, and the server's name as in the certificate"
    ),
    "Failed to activate SuperNode": "the server does not know its key; register its public key at the server",
    "Connection attempt failed": "it cannot reach the server; check the address and the port",
}
"""What Flower says, and what to do about it. The last is said after the others, too."""


def diagnosis(text: str) -> str:
    """One line about what went wrong, from the output of a process."""
    known = [advice for sign, advice in TROUBLES.items() if sign in text]
    return known[0] if known else last_words(text)
