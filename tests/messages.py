"""What a run's messages weigh when they are really serialised."""

from collections import defaultdict


def really_serialised(kind, monkeypatch):
    """Bytes up and down by client, counted while a method of this kind runs after this."""
    up: dict[str, int] = defaultdict(int)
    down: dict[str, int] = defaultdict(int)

    def record(name, count):
        original = getattr(kind, name)

        def recorded(self, *args):
            out = original(self, *args)
            count(args, out)
            return out

        monkeypatch.setattr(kind, name, recorded)

    def uploaded(args, upload):
        up[args[0].name] += len(upload.pack().to_bytes())
        down[args[0].name] += len(args[1].to_bytes())

    def personalised(args, head):
        down[args[0].name] += len(args[1].to_bytes())

    record("local", uploaded)
    record("personalize", personalised)
    return up, down
