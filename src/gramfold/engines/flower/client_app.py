"""The ClientApp: every message to a site goes to `Site`, which does not depend on Flower."""

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from gramfold.engines.flower import records
from gramfold.remote.site import Site

__all__ = ["app"]

app = ClientApp()


def _answer(kind: str, message: Message, context: Context) -> Message:
    answer = Site(context.node_config).answer(kind, lambda: records.read(message.content))
    return Message(records.RecordBuilder().content(answer), reply_to=message)


@app.query("task")
def task(message: Message, context: Context) -> Message:
    """Describe the site's data."""
    return _answer("task", message, context)


@app.query()
def moments(message: Message, context: Context) -> Message:
    """The upload of a method of one round."""
    return _answer("local", message, context)


@app.query("secure")
def secure(message: Message, context: Context) -> Message:
    """A step of a secure sum."""
    return _answer("secure", message, context)


@app.train()
def round_of_many(message: Message, context: Context) -> Message:
    """The upload of one round of many."""
    return _answer("local", message, context)


@app.evaluate()
def personalize(message: Message, context: Context) -> Message:
    """The site computes its head, keeps it, and reports its figures."""
    return _answer("personalize", message, context)
