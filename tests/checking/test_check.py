"""What `check` finds in tables that are wrong in one way each, and that it finds nothing in tables that are right."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramfold as gf
from gramfold.checking import NOTICE, SERIOUS, ClientTable, check_site, check_statistics, check_tables, tables_of
from gramfold.checking.beside import STRANGE
from gramfold.checking.units import UNITS
from gramfold.sources import Cells, TableEncoder, TableStatistics
from planted import MARK, write_tables

SITES = ("north", "south", "west", "east")
N = 120


def hospital(seed: int) -> dict[str, np.ndarray]:
    """A clean table: hospitals differ a little."""
    rng = np.random.default_rng(seed)
    shift = rng.normal(0, 1, 3)
    age = rng.normal(55 + 3 * shift[0], 11, N)
    return {
        "age": np.round(age), "chol": np.round(rng.normal(5.3 + 0.1 * shift[1], 1.0, N), 1),
        "weight": np.round(rng.normal(76 + 2 * shift[2], 13, N), 1), "temperature": np.round(rng.normal(37.2, 0.8, N), 1),
        "pain": rng.integers(0, 4, N).astype(float), "visits": rng.poisson(1.5, N).astype(float),
        "sex": rng.choice(["f", "m"], N).astype(object),
        "ward": rng.choice(["icu", "er", "day"], N, p=[0.2, 0.3, 0.5]).astype(object),
        "ill": np.where(age + rng.normal(0, 8, N) > 57, "yes", "no"),
    }  # fmt: skip


def clients(**changed: object) -> list[ClientTable]:
    """The hospitals, with columns of the first one changed or added by a function of its own table."""
    made = []
    for seed, site in enumerate(SITES):
        columns = hospital(seed)
        for name, change in changed.items():
            everywhere = name.startswith("all_")
            if seed == 0 or everywhere:
                columns[name.removeprefix("all_")] = change(columns)
        labels = columns.pop("ill")
        made.append(ClientTable(site, {name: Cells(np.asarray(values)) for name, values in columns.items()}, labels))
    return made


def with_column(table: ClientTable, name: str, values: np.ndarray) -> ClientTable:
    return replace(table, cells={**table.cells, name: Cells(values)})


def found(tables: list[ClientTable], **more: object) -> list[tuple[str, str, str | None, str | None]]:
    return [(each.kind, each.level, each.client, each.column) for each in check_tables(tables, **more).findings]


def test_nothing_is_wrong_with_clean_tables():
    assert found(clients()) == []
    for seeds in range(0, 40, 4):
        tables = [ClientTable(str(i), {k: Cells(v) for k, v in hospital(i + seeds).items() if k != "ill"}) for i in range(4)]
        assert found(tables) == []


WRONG = {
    "cholesterol in mg/dl": ({"chol": lambda t: t["chol"] * 38.67}, ("units", SERIOUS, "north", "chol")),
    "grams": ({"weight": lambda t: t["weight"] * 1000}, ("units", SERIOUS, "north", "weight")),
    "Fahrenheit": ({"temperature": lambda t: t["temperature"] * 1.8 + 32}, ("units", SERIOUS, "north", "temperature")),
    "age in months": ({"age": lambda t: t["age"] * 12}, ("units", SERIOUS, "north", "age")),
    "gaps as 0": ({"chol": lambda t: np.where(np.arange(N) % 5 == 0, 0, t["chol"])}, ("gaps", SERIOUS, "north", "chol")),
    "nothing but 0": ({"chol": lambda t: np.zeros(N)}, ("gaps", SERIOUS, "north", "chol")),
    "gaps as -9": ({"age": lambda t: np.where(np.arange(N) % 5 == 0, -9, t["age"])}, ("gaps", SERIOUS, "north", "age")),
    "gaps as 999": ({"weight": lambda t: np.where(np.arange(N) < 12, 999, t["weight"])}, ("gaps", SERIOUS, "north", "weight")),
    "a few of them": ({"age": lambda t: np.where(np.arange(N) < 2, 0, t["age"])}, ("gaps", NOTICE, "north", "age")),
    "a gap among codes": ({"pain": lambda t: np.where(np.arange(N) < 20, 99, t["pain"])}, ("gaps", SERIOUS, "north", "pain")),
    "1 and 2 for f and m": ({"sex": lambda t: np.where(t["sex"] == "f", 1.0, 2.0)}, ("codes", SERIOUS, "north", "sex")),
    "other words": ({"sex": lambda t: np.array(["fm".index(word) * "fe" + "male" for word in t["sex"]], dtype=object)},
                    ("codes", SERIOUS, "north", "sex")),
    "other numbers": ({"pain": lambda t: t["pain"] + 4}, ("codes", SERIOUS, "north", "pain")),
    "slips": ({"age": lambda t: np.array([*t["age"][:-2], "old", "n.k."], dtype=object)}, ("mixed", SERIOUS, "north", "age")),
    "a date among numbers": ({"age": lambda t: np.array([*t["age"][:-1], "2024-01-03"], dtype=object)},
                             ("mixed", SERIOUS, "north", "age")),
    "dates for numbers": ({"age": lambda t: np.array([f"20{i % 60 + 20}-03-1{i % 9}" for i in range(N)], dtype=object)},
                          ("codes", SERIOUS, "north", "age")),
    "a column that is empty": ({"age": lambda t: np.full(N, np.nan)}, ("missing", NOTICE, "north", "age")),
    "one value": ({"ward": lambda t: np.full(N, "day", dtype=object)}, ("constant", NOTICE, "north", "ward")),
    "one value everywhere": ({"all_site": lambda t: np.full(N, 7.0)}, ("constant", NOTICE, None, "site")),
    "an ID": ({"all_id": lambda t: 7000 + np.arange(N)}, ("id", NOTICE, None, "id")),
    "names": ({"all_name": lambda t: np.array([f"Meier {i}" for i in range(N)], dtype=object)}, ("id", NOTICE, None, "name")),
    "dates": ({"all_born": lambda t: np.array([f"19{i % 60 + 20}-03-1{i % 9}" for i in range(N)], dtype=object)},
              ("date", NOTICE, None, "born")),
    "dates as text": ({"all_born": lambda t: np.array([f"1{i % 9}.3.19{i % 60 + 20}" for i in range(N)], dtype=object)},
                      ("date", NOTICE, None, "born")),
    "a leak": ({"all_cause": lambda t: np.where(t["ill"] == "yes", 3.0, np.nan)}, ("leak", SERIOUS, None, "cause")),
    "a leak of words": ({"all_letter": lambda t: np.where(t["ill"] == "yes", "sent", "none").astype(object)},
                        ("leak", SERIOUS, None, "letter")),
    "one class": ({"ill": lambda t: np.full(N, "yes")}, ("labels", SERIOUS, "north", None)),
    "other classes": ({"ill": lambda t: np.where(t["ill"] == "yes", "Yes", "no")}, ("labels", SERIOUS, None, None)),
    "another mix": ({"ill": lambda t: np.where(np.arange(N) < 5, "no", "yes")}, ("labels", NOTICE, "north", None)),
    "copies": ({name: lambda t, name=name: np.concatenate([t[name][:60]] * 2) for name in hospital(0)},
               ("duplicates", SERIOUS, None, None)),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_found_and_nothing_else(what):
    changed, wanted = WRONG[what]
    assert found(clients(**changed)) == [wanted]


@pytest.mark.parametrize("times", [38.67, 88.42, 18.02, 10.0, 0.1, 100.0, 1000.0, 0.001, 12.0, 7.501, 1 / 18.02])
@pytest.mark.parametrize("column", ["age", "chol", "weight"])
def test_the_factor_of_a_unit_is_told(times, column):
    (finding,) = check_tables(clients(**{column: lambda table: table[column] * times})).findings
    assert (finding.kind, finding.level, finding.client, finding.column) == ("units", SERIOUS, "north", column)
    assert finding.factor in [unit.factor for unit in UNITS]
    assert abs(np.log(finding.factor / times)) < 0.3
    assert 0.9 < finding.confidence <= 1


def test_of_two_clients_either_may_be_the_odd_one():
    two = clients(chol=lambda table: table["chol"] * 38.67)[:2]
    (finding,) = check_tables(two).findings
    assert finding.column == "chol"
    assert "find out which of the two is right" in finding.do


def test_half_of_the_clients_in_another_unit_are_all_told():
    tables = clients(all_chol=lambda table: table["chol"])
    tables = [with_column(table, "chol", table.cells["chol"].values * 38.67) for table in tables[:2]] + tables[2:]
    assert {each[2] for each in found(tables)} in ({"north", "south"}, {"west", "east"})


def test_what_is_the_same_at_many_is_said_once():
    tables = clients(all_ward=lambda table: np.full(N, "day", dtype=object))
    tables[3] = with_column(tables[3], "ward", np.array(["day", "er"] * (N // 2), dtype=object))
    assert found(tables) == [("constant", NOTICE, "north, south, west", "ward")]


def test_test_samples_that_are_training_samples():
    (table, *others) = clients()
    cells = {name: Cells(np.concatenate([column.values[:90], column.values[:30]])) for name, column in table.cells.items()}
    train = np.arange(N) < 90
    copied = [ClientTable("north", cells, table.labels, train), *(ClientTable(t.name, t.cells, t.labels, train) for t in others)]
    (finding,) = check_tables(copied).findings
    assert (finding.kind, finding.level) == ("duplicates", SERIOUS)
    assert finding.what.startswith("30 of 120 test samples are equal to training samples")


@pytest.mark.parametrize(("targets", "level"), [(np.arange(480) * 3, SERIOUS), (np.arange(480) % 20, None)])
def test_prices_as_classes(targets, level):
    tables = [ClientTable(t.name, t.cells, part) for t, part in zip(clients(), np.split(targets, 4), strict=True)]
    said = [finding for finding in check_tables(tables).findings if finding.kind == "target"]
    assert [finding.level for finding in said] == ([] if level is None else [level])
    assert all("--regression" in finding.do for finding in said)


def test_a_leak_of_values():
    tables = [ClientTable(t.name, t.cells, t.cells["weight"].values[:, None] * 2.5) for t in clients()]
    assert ("leak", SERIOUS, None, "weight") in found(tables, regression=True)


def test_no_word_that_would_not_leave_is_quoted(tmp_path):
    write_tables(tmp_path, split=False)
    for label in ("sick", "age"):
        source = gf.sources.open_source(str(tmp_path / "all.csv"), gf.Columns(label=label, regression=label == "age"))
        report = gf.checking.check_source(source)
        assert {finding.column for finding in report.findings} >= {"patient", "number", "phone", "note", "born"}
        assert MARK not in repr(report)


CELLS = st.one_of(
    st.none(), st.text(max_size=4), st.integers(), st.floats(allow_infinity=True), st.booleans(),
    st.sampled_from(["1", "2.5", "2020-01-01", "-9", "x"]),
)  # fmt: skip


@given(st.lists(st.tuples(CELLS, CELLS, st.integers(0, 2), st.integers(0, 2), st.booleans()), min_size=1, max_size=40))
def test_any_table_is_checked_without_an_error(rows):
    source = gf.sources.base.Source(
        "t", "columns", {name: np.array([row[i] for row in rows] + [None], dtype=object)[:-1] for i, name in enumerate("ab")},
        np.array([row[2] for row in rows]), np.array([row[3] for row in rows]), np.array([row[4] for row in rows]),
    )  # fmt: skip
    report = check_tables(tables_of(source))
    assert repr(report).startswith(report.summary)
    check_tables(tables_of(source), regression=False, release_words=1)
    statistics = [TableStatistics.of({name: table.cells[name].values for name in "ab"}) for table in tables_of(source)]
    check_statistics({str(i): each for i, each in enumerate(statistics)})


# --- where nobody sees all tables ---


def of_all() -> tuple[TableEncoder, dict[str, TableStatistics]]:
    statistics = {
        table.name: TableStatistics.of({name: cells.values for name, cells in table.cells.items()}) for table in clients()
    }
    total = TableStatistics()
    for each in statistics.values():
        total += each
    return TableEncoder.of(total), statistics


AT_A_SITE = (
    "cholesterol in mg/dl",
    "grams",
    "age in months",
    "gaps as 0",
    "nothing but 0",
    "gaps as -9",
    "gaps as 999",
    "other words",
)


@pytest.mark.parametrize("what", AT_A_SITE)
def test_a_site_beside_the_agreed_encoder(what):
    changed, (kind, level, _, column) = WRONG[what]
    encoder, _ = of_all()
    findings = check_site(clients(**changed)[0], encoder, regression=False).findings
    assert (kind, level, "north", column) in [(each.kind, each.level, each.client, each.column) for each in findings]
    assert check_site(clients()[0], encoder, regression=False).findings == ()
    assert 0 < STRANGE < 1


def test_a_site_that_lacks_a_column():
    table = clients()[0]
    cells = {name: cells for name, cells in table.cells.items() if name != "chol"}
    (finding,) = check_site(ClientTable("north", cells, table.labels), of_all()[0], regression=False).findings
    assert (finding.kind, finding.column) == ("missing", "chol")


@pytest.mark.parametrize("what", ["cholesterol in mg/dl", "grams", "age in months", "nothing but 0"])
def test_a_server_sees_it_in_the_sums(what):
    changed, (kind, _, _, column) = WRONG[what]
    statistics = of_all()[1]
    assert check_statistics(statistics) == []
    statistics["north"] = TableStatistics.of({name: cells.values for name, cells in clients(**changed)[0].cells.items()})
    assert [(each.kind, each.client, each.column) for each in check_statistics(statistics)] == [(kind, "north", column)]
