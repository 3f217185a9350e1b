# SPDX-License-Identifier: Apache-2.0
"""A rehearsal of many sites on a table: test_rehearsal.py SGPCTL. Real learners and cores, in one process, without a daemon."""
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import threading

import tap

SGPCTL = os.path.abspath(sys.argv[1])
METHODS = ["pooled", "alone", "sgp", "osgp", "agp", "dpsgd", "adpsgd", "all-reduce", "local", "backup", "downpour"]
SENDS = METHODS[2:]
GIB = 1 << 30
# Of a site, by method: parameters, gradient and momentum of its learner; two snapshots; three receive buffers for whole shares, or
# parts of them and one for a whole estimate. With a server a copy, too; and the server, a node more, has buffers for all sites.
VECTORS = {"sgp": 8, "all-reduce": 8, "backup": 11.5}


def run(*arguments, status=0, timeout=300):
    """Run sgpctl compare; returns standard output, standard error and the greatest resident memory in bytes. Meson's
    MALLOC_PERTURB_ would write into memory that sgpctl never touches."""
    environment = {name: value for name, value in os.environ.items() if name != "MALLOC_PERTURB_"}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen([SGPCTL, "compare", *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                   env=environment)
        timer = threading.Timer(timeout, process.kill)
        timer.start()
        _, code, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(code)
        timer.cancel()
        told = []
        for stream in (out, err):
            stream.seek(0)
            told.append(stream.read().decode())
    assert process.returncode == status, (arguments, process.returncode, told)
    return told[0], told[1], usage.ru_maxrss * 1024


def compare(*arguments, status=0):
    out, err, _ = run("--json", *arguments, status=status)
    assert err == "", err
    answer = json.loads(out)
    assert [m["failure"] for m in answer["methods"] if m["failure"]] == [] or status, answer
    return answer


def figures(answer):
    return {method["method"]: method for method in answer["methods"]}


def refused(*arguments, status=2):
    """The one line of an error, told to a person and as JSON alike."""
    out, err, _ = run(*arguments, status=status)
    assert out == "" and err.startswith("sgpctl: ") and err.count("\n") == 1, (out, err)
    error = json.loads(run("--json", *arguments, status=status)[0])["error"]
    assert err == f"sgpctl: {error['message']}\n", (err, error)
    return error["message"]


@contextlib.contextmanager
def table(rows=600, classes=6, numbers=False):
    """A folder with rows.csv: blobs of several classes around a circle, with a word and an identifier; or a number to predict."""
    with tempfile.TemporaryDirectory(prefix="sgpd-") as home:
        drawn = random.Random(5)
        with open(home + "/rows.csv", "w", encoding="ascii") as file:
            file.write("id,a,b,c,word,label\n")
            for row in range(rows):
                kind = drawn.randrange(classes)
                place = [drawn.gauss(3.0 * (kind % 3), 1), drawn.gauss(3.0 * (kind // 3), 1), drawn.gauss(0, 1)]
                label = "%.3f" % (100 + 5 * place[0] - 3 * place[1] + drawn.gauss(0, 1)) if numbers else "k%d" % kind
                file.write("%d,%.3f,%.3f,%.3f,%s,%s\n" % (row, *place, drawn.choice("uv"), label))
        yield home


def test_every_method_trains_and_the_table_is_true():
    with table() as home:
        answer = compare(home + "/rows.csv", "--label", "label", "--nodes", 5, "--epochs", 40)
        assert (answer["rows"], answer["held_out_rows"], answer["features"], answer["measure"]) == (480, 120, 5, "accuracy")
        assert answer["parameters"] == 5 * 32 + 32 + 32 * 6 + 6 and answer["site_rows"] == [96] * 5, answer
        by_name = figures(answer)
        assert list(by_name) == METHODS
        for name, method in by_name.items():
            assert method["worst"] <= method["accuracy"] <= method["best"], method
            assert abs(method["best"] - method["worst"] - method["spread"]) < 1e-12, method
            assert method["accuracy"] > (0.5 if name == "alone" else 0.7), (name, method)
            assert (method["bytes_sent"] > 0) == (name in SENDS) == bool(method["topology"]), method
        # 96 rows make 3 steps of 32, 480 make 15
        assert by_name["alone"]["rounds"] == 120 and by_name["pooled"]["rounds"] == 600, by_name
        vector = 4 * answer["parameters"]
        for name in ("sgp", "dpsgd"):  # one vector a round at most, and what is said beside it
            method = by_name[name]
            assert 120 <= method["rounds"] <= 150, method
            assert 0.3 * method["rounds"] * vector < method["bytes_sent"] < 1.6 * method["rounds"] * vector, method
        assert by_name["backup"]["bytes_sent_most"] > 4 * by_name["backup"]["bytes_sent"], by_name["backup"]
        assert by_name["local"]["bytes_sent"] < by_name["all-reduce"]["bytes_sent"] / 5, by_name
        for name in ("sgp", "all-reduce", "local", "backup"):  # these end with one model
            assert by_name[name]["spread"] < 0.02, by_name[name]


def test_exchange_helps_where_each_site_has_few_classes():
    with table() as home:
        by_name = figures(compare(home + "/rows.csv", "--label", "label", "--nodes", 6, "--shards", "sorted", "--epochs", 100,
                                  "--methods", "pooled,alone,sgp,all-reduce"))
        assert by_name["alone"]["best"] < 0.5 < 0.7 < by_name["sgp"]["worst"], by_name
        assert by_name["sgp"]["accuracy"] > by_name["pooled"]["accuracy"] - 0.1, by_name


def test_a_seed_repeats_and_divides_rows():
    with table() as home:
        def sites(seed):
            return compare(home + "/rows.csv", "--label", "label", "--nodes", 12, "--shards", "dirichlet:0.1", "--seed", seed,
                           "--epochs", 3, "--methods", "agp,dpsgd")
        first = sites(4)
        assert first == sites(4)
        assert len(first["site_rows"]) == 12 and sum(first["site_rows"]) == 480 and min(first["site_rows"]) >= 1, first
        assert first["site_rows"] != sites(5)["site_rows"]
        assert max(first["site_rows"]) > 2 * min(first["site_rows"])


def test_a_site_of_few_rows_takes_as_many_steps_as_its_configuration_says():
    """Without --epochs, as `config new`: 20 passes, or as many as make 1000 steps of the site."""
    with table(rows=90) as home:
        answer = compare(home + "/rows.csv", "--label", "label", "--nodes", 3, "--shards", "contiguous", "--methods", "alone",
                         "--batch", 8)
        assert answer["site_rows"] == [24, 24, 24] and figures(answer)["alone"]["rounds"] == 1002, answer


def test_numbers_are_measured_by_their_squared_error():
    with table(numbers=True) as home:
        for how in ("iid", "sorted", "dirichlet:0.1"):
            answer = compare(home + "/rows.csv", "--label", "label", "--nodes", 4, "--shards", how, "--methods", "pooled,alone,sgp")
            by_name = figures(answer)
            assert answer["measure"] == "squared_error", answer
            # the noise has the variance 1, and the label some 60
            assert by_name["pooled"]["squared_error"] < 2 and by_name["sgp"]["squared_error"] < 4, (how, by_name)
            assert by_name["alone"]["worst"] >= by_name["alone"]["best"], by_name
            assert how != "sorted" or by_name["alone"]["squared_error"] > 2 * by_name["sgp"]["squared_error"], by_name


def test_a_table_for_a_person_whose_topologies_can_be_made():
    with table() as home:
        out, err, _ = run(home + "/rows.csv", "--label", "label", "--nodes", 9, "--epochs", 2)
        head, sites, empty, columns, *lines = out.splitlines()
        assert err == "" and empty == "", (out, err)
        assert head == home + "/rows.csv: 480 rows of 5 features, 120 more held out; a model of 390 parameters", head
        assert sites == "9 sites of 53 to 54 rows, by --shards iid --seed 1", sites
        assert columns.split() == ["method", "accuracy", "worst", "best", "spread", "rounds", "MB_sent", "MB_busiest", "topology"]
        assert [line.split()[0] for line in lines] == METHODS, lines
        for line in lines[2:]:
            words = line.split()[8:]
            made = subprocess.run([SGPCTL, "topology", "generate", *words], capture_output=True, text=True, check=False)
            assert made.returncode == 0 and made.stdout.startswith("digraph") or "digraph" in made.stdout, (line, made)


def test_a_method_that_diverges_is_named_and_the_others_are_told():
    with table() as home:
        answer = compare(home + "/rows.csv", "--label", "label", "--nodes", 3, "--epochs", 5, "--learning-rate", 1e6, "--methods",
                         "alone,sgp", status=1)
        for method in answer["methods"]:
            assert method["accuracy"] is None and method["failure"].endswith("give a smaller --learning-rate"), method
        out, err, _ = run(home + "/rows.csv", "--label", "label", "--nodes", 3, "--epochs", 5, "--learning-rate", 1e6, "--methods",
                          "sgp", status=1)
        assert "failed: sgp: " in out and err == "", (out, err)


def test_wrong_options_and_files_have_one_line():
    hint = "; see sgpctl compare --help"
    with table() as home:
        rows, label = home + "/rows.csv", ("--label", "label")
        assert refused(rows) == "--label is missing: the column to predict, one of id, a, b, c, word, label" + hint
        assert refused(rows, "--label", "x", status=6) == rows + ":1: there is no column 'x'; the columns are id, a, b, c, word, label"
        assert refused(rows, "--label", "id", status=6).endswith(
            "column 'id' cannot be the label, because it is of kind identifier; name another with --label")
        assert refused(home + "/none.csv", *label, status=6) == home + "/none.csv: No such file or directory"
        assert refused(rows, *label, "--nodes", 1).startswith("--nodes is a whole number from 2 to 65535, not '1'")
        assert refused(rows, *label, "--shards", "none") == (
            "--shards: 'none' is no way to divide rows; write iid, sorted, dirichlet:A with A from 1e-6 to 1e+6, round-robin or "
            "contiguous" + hint)
        assert refused(rows, *label, "--methods", "sgp,sdg") == (
            "--methods: there is no 'sdg'; name some of " + ", ".join(METHODS) + ", with commas" + hint)
        assert refused(rows, *label, "--nodes", 481, status=6) == (
            rows + ": 480 rows are left to train on, and each of 481 sites needs one; take fewer sites or hold out less")
        assert refused(rows, *label, "--holdout", 0).startswith("--holdout 0 leaves no rows to measure on; give a part")
        assert refused(rows, *label, "--epochs", 0).startswith("--epochs is a whole number from 1 to 1000000")
        assert refused(rows, *label, "--layers", "dense 5", status=6) == (
            "--layers: the last layer has 5 outputs, and the label needs 6; make it dense 6")
        assert refused(rows, *label, "--layers", "dance 5", status=6).startswith("--layers: ")
        assert refused(rows, *label, "--again").startswith(f"--again is for plans, and {rows} holds rows; leave it out")
        assert refused(home + "/plan.ini", *label).startswith(
            f"--label is for rows, and {home}/plan.ini is taken for a plan, because its name does not end in .csv or .csv.gz")
        with open(rows, "a", encoding="ascii") as file:
            file.write("1,2\n")
        assert refused(rows, *label, status=6) == rows + ":602: 2 fields, but the first line names 6 columns"


def test_fifty_sites_of_a_million_parameters_keep_to_their_vectors():
    """Beyond the vectors of all sites, whose sum is told, there is less than 1 GiB."""
    if "SGP_LONG" not in os.environ:
        raise tap.Skip("a part of scripts/check --long")
    sites, parameters = 50, 1000000
    with open("/proc/meminfo", encoding="ascii") as file:
        [left] = [int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:")]
    if left < 6 * GIB:
        raise tap.Skip("less than 6 GiB of memory are left")
    with table(rows=130) as home:
        for method, most_vectors in VECTORS.items():
            out, _, most = run("--json", home + "/rows.csv", "--label", "label", "--nodes", sites, "--epochs", 1, "--layers",
                               "dense 1000 relu, dense 987 relu, dense 6", "--methods", method, timeout=900)
            answer = json.loads(out)
            [told] = answer["methods"]
            assert told["failure"] is None and abs(answer["parameters"] - parameters) < 1000, answer
            each = told["vector_bytes"] / (4 * answer["parameters"] * sites)
            print(f"# {method}: {each:.2f} vectors a site, {told['vector_bytes'] / GIB:.2f} GiB, resident {most / GIB:.2f} GiB")
            assert most < told["vector_bytes"] + GIB, (method, told, most)
            assert each <= most_vectors, (method, each)


def test_sites_that_do_not_fit_into_memory_are_refused():
    """68 GiB for the learners alone."""
    with table() as home:
        answer = compare(home + "/rows.csv", "--label", "label", "--nodes", 450, "--methods", "all-reduce", "--layers",
                         "dense 65536 relu, dense 200 relu, dense 6", "--epochs", 1, status=1)
        [told] = answer["methods"]
        assert told["failure"].startswith("450 sites of 13501822 parameters take ") and told["failure"].endswith(
            " GiB are left; give fewer --nodes or smaller --layers"), told


if __name__ == "__main__":
    tap.run(vars())
