"""What docs/privacy.md says in words of the attack."""

from benchmarks.claims import claim
from benchmarks.kept import load

PAGE = "docs/privacy.md"


@claim(PAGE)
def samples_come_back_from_a_plain_upload_alone() -> str:
    found = load("attack")
    plain, *hidden = found["modes"]
    assert plain["with_label"] > 0.9 * found["samples"]
    assert all(row["with_label"] == 0 and row["median_error"] > found["guess_error"] for row in hidden)
    return (
        f"From the plain upload {plain['with_label']} of {found['samples']} samples come back; from a sum, or with noise, what comes "
        "back is no closer than that guess."
    )


@claim(PAGE)
def only_noise_hides_the_only_sample_of_a_class() -> str:
    found = load("attack")
    assert found["modes"][0]["single_sample_error"] < 1e-6
    assert found["only_sample_in_a_sum_of_3"] < 1e-6
    noisy = [row for row in found["modes"] if "noise" in row["mode"]]
    assert noisy
    assert all(row["single_sample_error"] > 0.99 * found["single_sample_guess"] for row in noisy)
    return (
        "The single sample is read off a plain upload; in a sum of three clients of which no other has the class it would be read off "
        f"too (error {found['only_sample_in_a_sum_of_3']:.0e}): only noise hides it there."
    )


@claim(PAGE)
def a_small_sum_gives_its_samples_back() -> str:
    small = load("attack")["small_sum_of_3"]
    assert small["with_label"] > 0.9 * small["samples"]
    return (
        f"And a sum of three clients with {small['samples']} samples in all, fewer than the features, gives {small['with_label']} of "
        "them back, though not whose they are."
    )
