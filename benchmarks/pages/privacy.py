"""The attack, the lying server, what the secure sum costs and what noise does: docs/privacy.md."""

from benchmarks.kept import load
from benchmarks.provenance import age
from gramfold.report.text import size


def privacy() -> str:
    """The attack, what the secure sum costs, and what noise does."""
    attack, secure, noise = load("attack"), load("secure"), load("dp")
    plain = attack["modes"][0]
    lines = [
        "| what the server sees | of samples | rebuilt | median error | single sample of a class: error | seconds |",
        "| --- |" + " ---: |" * 5,
    ]
    for row in attack["modes"]:
        errors = [f"{row[key]:.0e}" if row[key] < 1e-3 else f"{row[key]:.2f}" for key in ("median_error", "single_sample_error")]
        lines.append(
            f"| {row['mode']} | {row['samples']} | {row['with_label']} of {attack['samples']} | {errors[0]} | {errors[1]} | {row['seconds']:.0f} |"
        )
    parts = [
        f"### The attack\n\nA client of digits with {attack['samples']} samples among {attack['clients']}, PACE's kind of map (`{attack['features']}`, {attack['dim']} features), known to the server. "
        f"*Rebuilt*: to within 1 %, with the right label. Errors are relative to a sample's length; guessing the mean of the class from the sum of all has {attack['guess_error']:.2f}, "
        f"for the single sample {attack['single_sample_guess']:.2f}. `python -m benchmarks.attack`.",
        "\n".join(lines),
        f"From the plain upload {plain['with_label']} of {attack['samples']} samples come back; from a sum, or with noise, what comes back is no closer than that guess. The single sample is read off a plain upload; "
        f"in a sum of three clients of which no other has the class it would be read off too (error {attack['only_sample_in_a_sum_of_3']:.0e}): only noise hides it there. "
        f"And a sum of three clients with {attack['small_sum_of_3']['samples']} samples in all, fewer than the features, gives {attack['small_sum_of_3']['with_label']} of them back, though not whose they are.",
    ]
    liar = load("liar")
    lines = ["| the liar says | RMSE of the others | refused in |", "| --- | ---: | ---: |"]
    lines += [f"| {row['lie']} | {row['rmse']:.2f} | {row['refused']} rounds |" for row in liar["rows"]]
    parts += [
        f"### A client that lies about its columns\n\nFriedman's first function in units from 0.01 to 100, {liar['clients']} clients, PACE with learned features; one of them lies in every round, as far as the "
        "checks let it. `python -m benchmarks.liar`.",
        "\n".join(lines),
    ]
    parts += _lying_server()
    lines = [
        "| clients | neighbours | seconds, client | seconds, server | sent by a client | received | plain upload, many samples | plain, 400 samples |",
        "| ---: |" + " ---: |" * 7,
    ]
    for row in secure["runs"]:
        server = sum(row[f"server_{step}_seconds"] for step in ("adding", "confirming", "unmasking"))
        moved = [size(row[key]) for key in ("client_bytes", "client_received_bytes", "plain_bytes", "plain_bytes_few_samples")]
        lines.append(
            f"| {row['clients']} | {row['neighbours']} | {row['client_seconds']:.2f} | {server:.2f} | {' | '.join(moved)} |"
        )
    parts += [
        f"### What the secure sum costs\n\n{secure['features']} features, {secure['classes']} classes, processor's seconds on one core; a client's are those of all five steps, beside computing its moments. "
        "*Received* is without the broadcast, which is the plain run's. `python -m benchmarks.secure`.",
        "\n".join(lines),
    ]
    lines = ["| | eps 1 | eps 2 | eps 4 | eps 8 | no noise |", "| --- |" + " ---: |" * 5]
    for method in dict.fromkeys(row["method"] for row in noise["rows"]):
        for title, key, scale, digits in (
            ("accuracy %", "accuracy", 100, 1),
            ("shared model %", "shared_accuracy", 100, 1),
            ("calibration error", "calibration_error", 1, 3),
        ):
            values = [f"{scale * row[key]:.{digits}f}" for row in noise["rows"] if row["method"] == method]
            lines.append(f"| {method}, {title} | {' | '.join(values)} |")
    parts += [
        f"### Accuracy under noise\n\nCIFAR-100 as frozen DINOv2-small features, {noise['clients']} clients, Dirichlet 0.1, {noise['samples']} training samples, `bias+linear`, delta {noise['delta']:g}, noise shared under a secure sum "
        f"({noise['draws']} draws). `python -m benchmarks.dp FILE.npz`.",
        "\n".join(lines),
        age("attack", "lying_server", "liar", "secure", "dp"),
    ]
    return "\n\n".join(parts)


def _lying_server() -> list[str]:
    """What a server reads that lies: without what binds a sum, without a site's policies, and with them."""
    found = load("lying_server")
    rows = [
        (what, f"{found['unbound'][what]['read']} of {found['unbound'][what]['of']}", f"{found['bound'][what]['read']}")
        for what in found["unbound"]
    ]
    steps, small = found["steps"], found["small_table"]
    asked, ever, hospital = steps.values()
    ever_read = (
        f"{ever['read']} after {ever['sums']} sums with `release-features-ever = 1`; {hospital['read']} with what a hospital sets"
    )
    rows.append(
        (f"{asked['sums']} sums of all under step functions of its choice", f"{asked['read']} of {asked['of']}", ever_read)
    )
    before, after = small.values()
    fewer = f"{after['read']} ({after['features']} features)"
    rows.append(
        (f"a sum of {before['of']} samples under PACE's own map", f"{before['read']} ({before['features']} features)", fewer)
    )
    lines = ["| the server | rows read before, or of sites that ask for nothing | now |", "| --- | ---: | ---: |"]
    return [
        "### A server that lies\n\nReal sites and real sums, no network. The first two: digits, clients that know each other's keys, and the protocol with and without what binds it. Then five hospitals of 30 samples and 30 "
        "columns. *What a hospital sets* is in [the security model](security_model.md#what-a-hospital-sets). `python -m benchmarks.lying_server`.",
        "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]),
    ]
