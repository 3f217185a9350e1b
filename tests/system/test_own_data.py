# SPDX-License-Identifier: Apache-2.0
"""From a CSV file to a measured model: test_own_data.py SGPD SGPCTL. `data describe`, `config new`, and two nodes."""
import contextlib
import json
import os
import pty
import random
import select
import subprocess
import sys
import tempfile

import fleet
import tap

SGPD, SGPCTL = map(os.path.abspath, sys.argv[1:])
COLUMNS = ["id", "name", "age", "sex", "weight", "unit", "empty", "diagnosis"]


def ctl(*arguments, status=0, cwd=None):
    """Run sgpctl without a terminal; returns standard output and standard error."""
    done = subprocess.run([SGPCTL, *map(str, arguments)], text=True, timeout=60, cwd=cwd, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
    return done.stdout, done.stderr


def refused(*arguments, status=6):
    """The one line of an error, told to a person and as JSON alike."""
    out, err = ctl(*arguments, status=status)
    assert out == "" and err.startswith("sgpctl: ") and err.count("\n") == 1, (out, err)
    error = json.loads(ctl("--json", *arguments, status=status)[0])["error"]
    assert err == f"sgpctl: {error['message']}\n", (err, error)
    return error["message"]


def write(path, header, rows):
    with open(path, "w", encoding="utf-8") as file:
        for row in [header, *rows]:
            file.write(",".join(map(str, row)) + "\n")
    return path


def two_ports():
    """The first of two ports in a row that nobody listens on."""
    while True:
        first, second = fleet.free_ports(2)
        if second == first + 1:
            return first


@contextlib.contextmanager
def folder():
    """A folder with rows of each kind of column, and a topology file of two nodes."""
    with tempfile.TemporaryDirectory() as home:
        drawn = random.Random(3)
        rows = []
        for number in range(1, 301):
            age, weight = drawn.gauss(50, 12), drawn.gauss(70, 9)
            rows.append((number, "P%d" % drawn.randrange(10 ** 9), "%.1f" % age, drawn.choice("fm"),
                         "" if number % 50 == 7 else "%.2f" % weight, "kg", "NA", "yes" if age + weight > 122 else "no"))
        write(home + "/rows.csv", COLUMNS, rows)
        port = two_ports()
        with open(home + "/fleet.dot", "w", encoding="ascii") as file:
            file.write(ctl("topology", "generate", "ring", 2, "--address", f"127.0.0.1:{port}+")[0])
        yield home


def new(home, *more, data="rows.csv", label="diagnosis", name="n0", file="n0.conf", status=0, json_too=False):
    return ctl(*(["--json"] if json_too else []), "-n", name, "config", "new", f"{home}/{file}", "--data", f"{home}/{data}",
               "--label", label, "--topology", home + "/fleet.dot", "--state-directory", f"{home}/{name}",
               "--socket", f"{home}/{name}.sock", *more, status=status)


def check(home, file="n0.conf"):
    done = subprocess.run([SGPD, "--check", "-c", f"{home}/{file}"], text=True, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), (done.stdout, done.stderr)
    assert "warning" not in done.stdout, done.stdout
    return done.stdout


def test_describe_names_kinds_values_and_oddities():
    with folder() as home:
        answer = json.loads(ctl("--json", "data", "describe", home + "/rows.csv", "--label", "diagnosis")[0])
        columns = {column["name"]: column for column in answer["columns"]}
        assert list(columns) == COLUMNS and answer["rows"] == 300
        assert {name: column["kind"] for name, column in columns.items()} == {
            "id": "identifier", "name": "identifier", "age": "number", "sex": "category", "weight": "number",
            "unit": "constant", "empty": "empty", "diagnosis": "category"}, columns
        assert [name for name, column in columns.items() if column["feature"]] == ["age", "sex", "weight"]
        assert columns["weight"]["missing"] == 6 and columns["weight"]["present"] == 294
        with open(home + "/rows.csv", encoding="ascii") as file:
            rows = [line.rstrip("\n").split(",") for line in file][1:]
        ages = [float(row[2]) for row in rows]
        assert (columns["age"]["least"], columns["age"]["most"]) == (min(ages), max(ages))
        assert abs(columns["age"]["mean"] - sum(ages) / 300) < 1e-9
        labels = [row[7] for row in rows]
        assert columns["diagnosis"]["values"] == [{"value": v, "rows": labels.count(v)} for v in ("no", "yes")]
        assert answer["outputs"] == 2 and answer["refused"] is None
        assert [oddity["column"] for oddity in answer["oddities"]] == ["id", "name", "unit", "empty"]
        told = ctl("data", "describe", home + "/rows.csv", "--label", "diagnosis")[0]
        assert told.endswith(answer["data"]) and answer["scaling_command"] in told, told


def test_the_command_of_describe_makes_the_scaling_file():
    with folder() as home:
        answer = json.loads(ctl("--json", "data", "describe", home + "/rows.csv", "--label", "diagnosis")[0])
        done = subprocess.run(answer["scaling_command"].replace("sgpctl", SGPCTL, 1), shell=True, cwd=home, text=True,
                              capture_output=True, check=False, timeout=60)
        assert (done.returncode, done.stderr) == (0, ""), done
        with open(home + "/scale.json", encoding="utf-8") as file:
            assert [column["name"] for column in json.load(file)["columns"]] == ["age", "sex", "weight"]


def test_describe_refuses_bad_files_with_a_line():
    with tempfile.TemporaryDirectory() as home:
        path = home + "/t.csv"
        write(path, ["a", "b"], [(1, 2), (3,)])
        assert refused("data", "describe", path) == f"{path}:3: 1 fields, but the first line names 2 columns"
        write(path, ["a;b"], [("1;2",)])
        assert refused("data", "describe", path).startswith(f"{path}:1: one column, called 'a;b'; write the file with commas")
        write(path, ["a", "b"], [(1, 2), (3, 4)])
        assert refused("data", "describe", path, "--label", "c") == f"{path}:1: there is no column 'c'; the columns are a, b"
        assert refused("data", "describe", path, "--label", "a", "--ignore", "a").endswith("ignore other columns")
        assert refused("data", "describe", home + "/none.csv") == f"{home}/none.csv: No such file or directory"
        write(path, ["1", "2"], [(3, 4), (5, 6)])
        [oddity] = json.loads(ctl("--json", "data", "describe", path)[0])["oddities"]
        assert oddity["line"] == 1 and oddity["column"] is None, oddity


def test_stray_text_is_named_with_its_line():
    with folder() as home:
        write(home + "/rows.csv", ["a", "b", "y"], [(r * 0.5, "12 mm" if r == 20 else r % 7, r * 1.5) for r in range(40)])
        answer = json.loads(ctl("--json", "data", "describe", home + "/rows.csv", "--label", "y")[0])
        assert answer["oddities"] == [{"column": "b", "line": 22, "text": "'12 mm' is the first of 1 texts among 39 numbers"}]
        message = (f"{home}/rows.csv:22: column 'b': '12 mm' is no number, but 39 values are; correct it, or leave the column "
                   "out with --ignore")
        assert answer["refused"] == message and answer["data"] is None
        assert new(home, label="y", status=6)[1] == f"sgpctl: {message}\n"
        assert not os.path.exists(home + "/n0.conf") and not os.path.exists(home + "/scale.json")
        new(home, "--ignore", "b", label="y")
        check(home)


def test_a_label_of_numbers_is_scaled():
    """The written scaling file scales it. A file that scales no label stays, and Adam is taken; one of another label is refused."""
    with folder() as home:
        def rule(file):
            with open(home + "/" + file, encoding="utf-8") as text:
                return [line.strip() for line in text if line.startswith(("kind", "weight_decay", "schedule", "learning_rate"))]
        def momentum(decay):
            return ["kind = nesterov", "weight_decay = " + decay, "schedule = cosine", "learning_rate = 0.02"]
        adam = ["kind = adam", "learning_rate = 0.005"]
        new(home, label="age")
        with open(home + "/scale.json", encoding="utf-8") as file:
            scale = json.load(file)
        [target] = scale["targets"]
        assert scale["sgp_scaling"] == 2 and target["name"] == "age" and 48 < target["mean"] < 52, scale
        assert rule("n0.conf") == momentum("0.021")  # 10 / (240 rows of each of 2 nodes)
        assert "label      (age - " in check(home), check(home)
        scale["targets"][0]["name"] = "weight"
        with open(home + "/other.json", "w", encoding="utf-8") as file:
            json.dump(scale, file)
        _, err = new(home, "--scale", home + "/other.json", label="age", file="n9.conf", status=6)
        assert err == f"sgpctl: {home}/other.json scales the label weight, and --label is age; name another scaling file with --scale\n", err
        assert not os.path.exists(home + "/n9.conf")
        scale["targets"][0]["name"] = "age"
        scale["sgp_scaling"] = 1
        with open(home + "/scale.json", "w", encoding="utf-8") as file:
            json.dump(scale, file)
        new(home, "--force", label="age")
        assert rule("n0.conf") == adam
        new(home, "--scale", "none", "--ignore", "sex", label="age", file="n1.conf")
        assert rule("n1.conf") == adam
        new(home, "--scale", "fleet", label="age", file="n2.conf")
        assert rule("n2.conf") == momentum("0.021")
        new(home, "--scale", "fleet", "--shards", "round-robin", "--holdout", "0.5", label="age", file="n3.conf")
        assert rule("n3.conf") == momentum("0.05")  # all nodes train on 150 rows
        write(home + "/many.csv", ["a", "y"], [(r % 7, r * 0.5) for r in range(2000)])
        new(home, "--scale", "fleet", data="many.csv", label="y", file="n4.conf")
        assert rule("n4.conf") == momentum("0.01")
        new(home, "--scale", "fleet", file="n5.conf")
        assert rule("n5.conf") == momentum("0.01")  # classes


def test_a_new_configuration_passes_the_check():
    with folder() as home:
        told, silent = new(home)
        assert silent == "" and "scale.json: computed from the rows of this node" in told, told
        assert "left out of the features: id,name,unit,empty;" in told, told
        shown = check(home)
        assert "240 rows of 4 features to train on, 60 to test on" in shown, shown
        assert "dense 32 relu, dense 2" in shown, shown
        with open(home + "/scale.json", "rb") as file:
            scale = file.read()
        answer = json.loads(new(home, name="n1", file="n1.conf", json_too=True)[0])
        assert answer == {"file": home + "/n1.conf", "scale": home + "/scale.json", "scale_made": False,
                          "left_out": ["id", "name", "unit", "empty"]}, answer
        with open(home + "/scale.json", "rb") as file:
            assert file.read() == scale
        check(home, "n1.conf")


def test_numbers_many_classes_and_odd_names_pass_the_check():
    with folder() as home:
        write(home + "/numbers.csv", ["a", "b", "price"], [(r * 0.37, r % 5, r * 2.5 + 1) for r in range(200)])
        new(home, data="numbers.csv", label="price")
        assert "dense 32 relu, dense 1" in check(home)
        names = ['"New York, %d"' % i for i in range(60)] + ['"say ""hi"""', "Bern"]
        write(home + "/towns.csv", ["a", '"the town, now"'], [(r * 0.5, names[r % 62]) for r in range(620)])
        new(home, "--force", "--scale", home + "/towns.json", data="towns.csv", label="the town, now")
        assert "dense 32 relu, dense 62" in check(home)
        write(home + "/digits.csv", ["a", "y"], [(r * 0.5, "%.1f" % (r % 10)) for r in range(100)])
        new(home, "--force", "--scale", home + "/digits.json", "--layers", "dense 10", "--holdout", "0.5", data="digits.csv",
            label="y")
        assert "50 rows of 1 features to train on, 50 to test on" in check(home)
        write(home + "/short.csv", ["a", "y"], [(r, "no" if r % 2 else "") for r in range(20)] + [(4, "yes"), (3, "")])
        new(home, "--force", "--scale", "none", data="short.csv", label="y")
        assert "11 rows" in check(home)


def test_owners_get_a_method_that_their_file_takes():
    with folder() as home:
        port = two_ports()
        with open(home + "/fleet.dot", "w", encoding="ascii") as file:
            file.write(ctl("topology", "generate", "owner", 3, "--address", f"127.0.0.1:{port}+")[0])
        told, _ = new(home, name="n1")
        with open(home + "/n0.conf", encoding="utf-8") as file:
            assert "algorithm = backup\n" in file.read(), told
        check(home)


@contextlib.contextmanager
def two_daemons(home):
    """Daemons of n0.conf and n1.conf that have finished their training."""
    daemons = []
    for index in range(2):
        with open(f"{home}/n{index}.log", "wb") as log:
            daemons.append(subprocess.Popen([SGPD, "-c", f"{home}/n{index}.conf"], stderr=log))
    try:
        for index in range(2):
            ctl("-s", f"{home}/n{index}.sock", "wait", "--for", "finished", "--timeout", "60")
        yield
    except AssertionError:
        for index in range(2):
            with open(f"{home}/n{index}.log", encoding="utf-8", errors="replace") as log:
                print(f"# n{index}:", "# ".join(log.readlines()[-20:]), daemons[index].poll())
        raise
    finally:
        for daemon in daemons:
            daemon.kill()
            daemon.wait()


def test_two_nodes_train_with_the_new_configurations_and_are_measured():
    with folder() as home:
        with open(home + "/rows.csv", encoding="ascii") as file:
            header, *rows = file.read().splitlines()
        for index in range(2):
            with open(f"{home}/part{index}.csv", "w", encoding="ascii") as file:
                file.write("\n".join([header, *rows[index::2]]) + "\n")
            new(home, name=f"n{index}", file=f"n{index}.conf", data=f"part{index}.csv")
        with two_daemons(home):
            answer = json.loads(ctl("-s", home + "/n0.sock", "evaluate", "--json")[0])
            measures = answer["measures"]
            assert measures["rows"] == answer["samples"] == 30 and measures["accuracy"] > 0.85, measures
            assert [c["class"] for c in measures["classes"]] == ["no", "yes"]
            assert sum(map(sum, measures["confusion"])) == 30
            told = dict(line.split() for line in ctl("-s", home + "/n0.sock", "evaluate")[0].splitlines())
            assert {"accuracy", "log_loss", "macro_f1", "macro_auc", "calibration_error"} <= set(told), told
            status, said = converse(["-s", home + "/n0.sock", "evaluate"], [], home)
            assert status == 0 and "precision" in said and "rows of a class, by the class that the model says" in said, said
        out, err = ctl("predict", "--model", home + "/n0/model.safetensors", home + "/rows.csv", "--json")
        last = json.loads(out.splitlines()[-1])
        assert err == "" and last["scored_rows"] == 300 and last["measures"]["accuracy"] > 0.85, last
        assert last["measures"]["macro_auc"] > 0.9


def test_a_class_that_would_begin_a_comment_is_refused():
    with folder() as home:
        for name in ("#1", ";1"):
            write(home + "/marks.csv", ["a", "y"], [(r * 0.5, name if r % 2 else "x") for r in range(40)])
            _, err = new(home, data="marks.csv", label="y", status=6)
            assert err == (f"sgpctl: {home}/marks.csv: column 'y': the class '{name}' cannot be written into a configuration; "
                           "rename it\n"), err


def test_two_nodes_agree_on_the_scaling_of_tables_of_their_own():
    tables = [(["id", "age", '"town, now"', "weight", "note", "diagnosis"], ["Bern", "Basel"]),
              (["weight", "diagnosis", "id", '"town, now"', "age", "note"], ["Basel", '"Chur; old"', "Aarau"])]
    with folder() as home:
        for index, (header, towns) in enumerate(tables):
            drawn, rows = random.Random(index), []
            for number in range(1, 201):
                age, weight = drawn.gauss(40 + 20 * index, 12), drawn.gauss(70, 9)
                row = {"id": number, "age": "%.1f" % age, "weight": "%.2f" % weight, "note": "%s" % drawn.random(),
                       '"town, now"': towns[number % len(towns)], "diagnosis": "yes" if age + weight > 120 else "no"}
                rows.append([row[name] for name in header])
            write(f"{home}/part{index}.csv", header, rows)
            told, _ = new(home, "--scale", "fleet", "--ignore", "note", name=f"n{index}", file=f"n{index}.conf",
                          data=f"part{index}.csv")
            assert "the nodes agree on the scaling when they start; no file has to be copied\n" in told, told
            assert "left out of the features: id,note;" in told, told
            assert "scaling    of these rows alone" in check(home, f"n{index}.conf")
        assert not os.path.exists(home + "/scale.json")
        with open(home + "/n0.conf", encoding="utf-8") as file:
            text = file.read()
        for line in ("scale = fleet\n", 'categories = "town, now"\n', "ignore = id, note\n"):
            assert line in text, (line, text)
        answer = json.loads(new(home, "--force", "--scale", "fleet", "--ignore", "note", data="part0.csv", json_too=True)[0])
        assert answer == {"file": home + "/n0.conf", "scale": "fleet", "scale_made": False, "left_out": ["id", "note"]}, answer
        with two_daemons(home):
            measures = json.loads(ctl("-s", home + "/n0.sock", "evaluate", "--json")[0])["measures"]
            assert measures["accuracy"] > 0.8, measures
        agreed = []
        for index in range(2):
            with open(f"{home}/n{index}/scale.json", "rb") as file:
                agreed.append(file.read())
        assert agreed[0] == agreed[1], agreed
        scaling = json.loads(agreed[0])
        assert scaling["rows"] == 400, scaling
        assert [column["name"] for column in scaling["columns"]] == ["age", "town, now", "weight"], scaling
        assert scaling["columns"][1]["values"] == ["Aarau", "Basel", "Bern", "Chur; old"], scaling


def test_a_site_of_one_class_whose_columns_do_not_vary():
    """What is constant or empty at one site varies at the other, which has classes that the first lacks."""
    with folder() as home:
        for index in range(2):
            drawn = random.Random(index)
            rows = [("%.2f" % drawn.gauss(3 * (number % 3 if index else 0), 1), "7" if index == 0 else number % 5,
                     "" if index == 0 else "%.1f" % drawn.random(), "x" if index == 0 else "xy"[number % 2],
                     "abc"[number % 3 if index else 0]) for number in range(90)]
            write(f"{home}/part{index}.csv", ["size", "kind", "gap", "word", "class"], rows)
        whole = ("--scale", "fleet", "--classes", "a b c")
        assert "is of kind constant" in new(home, "--scale", "fleet", data="part0.csv", label="class", status=6)[1]
        assert new(home, "--scale", "fleet", "--classes", "b c", data="part0.csv", label="class", status=6)[1] == (
            f"sgpctl: --classes: {home}/part0.csv has rows of the class 'a' in column 'class'; name it, too\n")
        for index in range(2):
            new(home, *whole, name=f"n{index}", file=f"n{index}.conf", data=f"part{index}.csv", label="class")
        with open(home + "/n0.conf", encoding="utf-8") as file:
            text = file.read()
        for line in ("classes = a b c\n", "categories = word\n", "dense 3\n", "epochs = 334\n"):
            assert line in text, (line, text)
        assert "ignore" not in text, text
        with two_daemons(home):
            assert json.loads(ctl("-s", home + "/n1.sock", "evaluate", "--json")[0])["accuracy"] > 0.7


def test_a_scaling_of_the_fleet_is_refused_before_anything_is_written():
    with folder() as home:
        fleet_of = ("--scale", "fleet")
        write(home + "/odd.csv", ["a", '"b ;c"', "y"], [(r * 0.37, "uv"[r % 2], r % 3) for r in range(60)])
        assert new(home, *fleet_of, data="odd.csv", label="y", status=6)[1] == (
            f"sgpctl: {home}/odd.csv:1: the name of column 'b ;c' cannot be written into a configuration; rename it\n")
        with open(home + "/fleet.dot", "w", encoding="ascii") as file:
            file.write(ctl("topology", "generate", "owner", 3, "--members", "--address", "127.0.0.1:7311+")[0])
        _, err = new(home, *fleet_of, status=6)
        assert err.startswith("sgpctl: --scale fleet does not go with ") and "give a scaling file" in err, err
        assert sorted(os.listdir(home)) == ["fleet.dot", "odd.csv", "rows.csv"]


def test_the_best_model_instead_of_the_last():
    with folder() as home:
        new(home, "--keep-best", "log_loss")
        with open(home + "/n0.conf", encoding="utf-8") as file:
            text = file.read()
        for line in ("keep_best = log_loss\n", "evaluate_every = 10\n", "best_patience = 10\n"):
            assert line in text, (line, text)
        assert "best       by log_loss of all nodes, every 10 rounds, 1 of them without steps; stops after 10 " in check(home)
        for wrong, status, expected in (
                (("--best-patience", "3"), 2, "--evaluate-every and --best-patience are for --keep-best"),
                (("--keep-best", "squared_error"), 6,
                 "--keep-best squared_error does not go with the label diagnosis; choose accuracy or log_loss"),
                (("--keep-best", "loss"), 2, "--keep-best is one of accuracy|log_loss|absolute_error|squared_error, and not 'loss'"),
                (("--keep-best", "accuracy", "--evaluate-every", "1"), 2, "--evaluate-every is a whole number from 2 to"),
                (("--keep-best", "accuracy", "--algorithm", "agp"), 6,
                 "--keep-best: with algorithm agp each node keeps its own pace, so the models of all nodes are never those of one "
                 "round; choose sgp or dpsgd")):
            _, err = new(home, "--force", *wrong, status=status)
            assert expected in err and err.count("\n") == 1, err


def test_layers_that_stay():
    with folder() as home:
        new(home)
        with open(home + "/n0.conf", encoding="utf-8") as file:
            assert "\n;local = head\n" in file.read()
        assert "local  " not in check(home)
        new(home, "--force", "--layers", "dense 8, norm layer relu, dense 2", "--local", "head")
        assert "local      layers.2: 18 parameters, which stay on this node\n" in check(home)
        for wrong, expected in (("hed", "--local: 'hed' names no layers; write head, a kind such as norm, or a layer such as layers.0, "
                                 "as a model file names it"),
                                ("dense", "--local: all layers that learn are local, so the nodes would have nothing to share; leave "
                                 "one out")):
            _, err = new(home, "--force", "--local", wrong, status=6)
            assert err == f"sgpctl: {expected}\n", err


def test_no_file_is_overwritten_without_force():
    with folder() as home:
        with open(home + "/n0.conf", "w", encoding="ascii") as file:
            file.write("mine\n")
        _, err = new(home, status=1)
        assert err == f"sgpctl: {home}/n0.conf is there already; --force replaces it, another name keeps it\n", err
        with open(home + "/n0.conf", encoding="ascii") as file:
            assert file.read() == "mine\n"
        assert sorted(os.listdir(home)) == ["fleet.dot", "n0.conf", "rows.csv"]
        new(home, "--force")
        check(home)
        assert sorted(os.listdir(home)) == ["fleet.dot", "n0.conf", "rows.csv", "scale.json"]


def test_wrong_options_have_one_line_and_write_nothing():
    with folder() as home:
        base = ("-n", "n0", "config", "new", home + "/n0.conf")
        rows, fleet = ("--data", home + "/rows.csv", "--label", "diagnosis"), ("--topology", home + "/fleet.dot")
        hint = "; see sgpctl config new --help"
        assert refused(*base, status=2) == "--data is missing: the CSV file with the rows of this node" + hint
        assert refused(*base, *rows[:2], status=2) == ("--label is missing: the column to predict, one of "
                                                       + ", ".join(COLUMNS) + hint)
        assert refused(*base, *rows, status=2) == "--topology is missing: the topology file" + hint
        assert refused(*base[2:], *rows, *fleet, status=2) == "-n NAME is missing: the name of this node, one of n0, n1" + hint
        assert refused("-n", "n9", *base[2:], *rows, *fleet) == (
            f"{home}/fleet.dot: no node is called 'n9'; give the name of this node, one of n0, n1")
        assert refused(*base, *rows[:3], "nosuch", *fleet) == (
            f"{home}/rows.csv:1: there is no column 'nosuch'; the columns are " + ", ".join(COLUMNS))
        assert refused(*base, *rows[:3], "unit", *fleet) == (
            f"{home}/rows.csv: column 'unit' cannot be the label, because it is of kind constant; name another with --label")
        assert refused(*base, *rows, *fleet, "--epochs", "0", status=2).startswith("--epochs is a whole number from 1 to")
        assert "[data] shards" in refused(*base, *rows, *fleet, "--shards", "some")
        said = refused(*base, *rows, *fleet, "--listen", "127.0.0.1:1\n[train]\nalgorithm = x", status=2)
        assert "--listen: '127.0.0.1:1?[train]?algorithm = x' cannot be written into a configuration" in said
        assert sorted(os.listdir(home)) == ["fleet.dot", "rows.csv"]


def converse(arguments, answers, cwd):
    """Run sgpctl on a terminal of its own, and answer its questions; returns its exit status and all that it said."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(cwd)
        os.execv(SGPCTL, [SGPCTL, *arguments])
    said, answers = "", list(answers)
    while select.select([terminal], [], [], 60)[0]:
        try:
            more = os.read(terminal, 4096).decode()
        except OSError:  # the terminal ends with the program
            break
        if not more:
            break
        said += more
        if answers and said.endswith(": "):
            os.write(terminal, (answers.pop(0) + "\n").encode())
            said += "\n"
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


def test_a_terminal_is_asked_for_what_is_missing():
    with folder() as home:
        status, said = converse(["config", "new", "n1.conf", "--state-directory", home + "/n1", "--socket", home + "/s"],
                                ["rows.csv", "diagnosis", "fleet.dot", "n1"], home)
        assert status == 0, said
        assert "the column to predict, one of id, name, age, sex, weight, unit, empty, diagnosis: " in said, said
        assert "the name of this node, one of n0, n1: " in said, said
        check(home, "n1.conf")


tap.run(dict(vars()))
