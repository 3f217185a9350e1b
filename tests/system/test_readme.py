# SPDX-License-Identifier: Apache-2.0
"""What pages give to copy, as somebody copies it: README's two machines, the lines of docs/MODELS.md; and scripts/demo."""
import contextlib
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import unittest

import fleet
import tls
from tls import TlsTest

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../README.md")


class TwoMachines(TlsTest):
    def setUp(self):
        with open(PAGE, encoding="utf-8") as file:
            section = file.read().split("## Two machines\n")[1].split("\n## ")[0]
        [self.topology] = re.findall(r"```dot\n(.*?)```", section, re.DOTALL)
        self.configurations = re.findall(r"```ini\n(; /etc/sgpd/(\w+)\.conf\n.*?)```", section, re.DOTALL)

    def test_the_files_pass_their_checks_and_the_pair_trains(self):
        f = self.fleet(2)  # for its directory, rows and ports
        home = f.directory + "/home"
        os.mkdir(home)
        fleet.write_rows(home + "/rows.csv", 200)
        with open(home + "/rows.csv", encoding="ascii") as file:
            rows = file.read().replace("neg", "no").replace("pos", "yes")
        with open(home + "/rows.csv", "w", encoding="ascii") as file:
            file.write(rows)
        names = [name for _, name in self.configurations]
        self.assertEqual(names, ["alice", "bob"])
        topology = self.topology
        for name, port in zip(names, f.ports):
            path = f"{home}/{name}.key"
            line = subprocess.run([tls.SGPCTL, "key", "generate", name, "--file", path], text=True, check=True,
                                  stdout=subprocess.PIPE, timeout=fleet.PATIENCE).stdout
            topology, count = re.subn(r'(%s +\[address=")[^"]*(",\s+key=")[^"]*' % name,
                                      lambda found, port=port, line=line: found[1] + "127.0.0.1:%d" % port + found[2]
                                      + line.split('"')[1], topology)
            self.assertEqual(count, 1)
        with open(home + "/fleet.dot", "w", encoding="ascii") as file:
            file.write(topology)
        checked = subprocess.run([tls.SGPCTL, "topology", "check", home + "/fleet.dot"], text=True, capture_output=True,
                                 check=False, timeout=fleet.PATIENCE)
        self.assertEqual((checked.returncode, checked.stderr, "warning" in checked.stdout), (0, "", False), checked.stdout)
        for (text, name), port in zip(self.configurations, f.ports):
            text = text.replace("/etc/sgpd/", home + "/").replace("/srv/sgpd/", home + "/").replace(":7311", ":%d" % port)
            text = text.replace("[node]\n", "[node]\nstate_directory = %s/%s\nkey = %s/%s.key\n" % (home, name, home, name))
            text += "[control]\nsocket = %s/%s.sock\n" % (home, name)
            with open(f"{home}/{name}.conf", "w", encoding="ascii") as file:
                file.write(text)
            run = subprocess.run([fleet.SGPD, "--check", "-c", f"{home}/{name}.conf"], text=True, capture_output=True,
                                 check=False, timeout=fleet.PATIENCE)
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            self.assertNotIn("warning", run.stdout)
        daemons = [subprocess.Popen([fleet.SGPD, "-c", f"{home}/{name}.conf"], stderr=subprocess.DEVNULL) for name in names]
        try:
            for name in names:
                done = subprocess.run([tls.SGPCTL, "-s", f"{home}/{name}.sock", "wait", "--for", "finished", "--timeout", "60"],
                                      check=False, capture_output=True, text=True, timeout=2 * fleet.PATIENCE)
                self.assertEqual(done.returncode, 0, done.stderr)
        finally:
            for daemon in daemons:
                daemon.kill()
                daemon.wait()


class Demo(TlsTest):
    def test_quiet_leaves_out_what_the_setup_says_unless_it_fails(self):
        """The script alone: beside it a setup that speaks on both streams, and a fleet that says with what it was called."""
        f = self.fleet(1)
        folder = f.directory + "/scripts"
        os.mkdir(folder)
        shutil.copy(os.path.join(os.path.dirname(PAGE), "scripts/demo"), folder)
        with open(folder + "/setup", "w", encoding="ascii") as file:
            file.write('#!/bin/sh\necho out; echo err >&2; exit "$SETUP"\n')
        os.chmod(folder + "/setup", 0o755)
        with open(folder + "/demo_fleet.py", "w", encoding="ascii") as file:
            file.write("import sys\nprint(sys.argv[1:])\n")

        def demo(setup, *arguments):
            done = subprocess.run([folder + "/demo", *arguments], env={**os.environ, "SETUP": setup}, capture_output=True,
                                  text=True, check=False, timeout=fleet.PATIENCE)
            return done.returncode, done.stdout, sorted(done.stderr.split())

        self.assertEqual(demo("0", "--nodes", "3"), (0, "['--nodes', '3']\n", ["err", "out"]))
        self.assertEqual(demo("0", "--quiet", "--nodes", "3"), (0, "['--nodes', '3']\n", []))
        self.assertEqual(demo("3", "--quiet"), (1, "", ["err", "out"]))


class ModelFile(TlsTest):
    @unittest.skipUnless(importlib.util.find_spec("numpy"), "numpy is not installed")
    def test_the_lines_of_the_page_predict_as_the_daemon_does(self):
        """docs/MODELS.md as it stands, on a model that a daemon exported: two layers, and classes with blanks."""
        with open(os.path.join(os.path.dirname(PAGE), "docs/MODELS.md"), encoding="utf-8") as file:
            # Before these come the lines of test_onnx.py, after them those of test_layers.py.
            _, code, units, _ = re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)
        f = self.fleet(2, options={"model.layers": "dense 5 tanh, dense 7 relu, dense 4 sigmoid, dense 2",
                                   "data.classes": '"the ""neg"" one" pos'})
        with open(f.rows, encoding="ascii") as file:
            lines = [line.rstrip("\n").rpartition(",") for line in file]
        with open(f.rows, "w", encoding="ascii") as file:
            file.writelines(row + "," + label.replace("neg", '"the ""neg"" one"') + "\n"
                            for row, _, label in lines)
        features = "".join(row + "\n" for row, _, _ in lines)
        with open(f.directory + "/features.csv", "w", encoding="ascii") as file:
            file.write(features)
        f.start()
        f.wait_state("finished")
        said = subprocess.run([tls.SGPCTL, "-s", f.nodes[0].socket, "export", f.directory + "/model.safetensors"], text=True,
                              check=True, capture_output=True, timeout=fleet.PATIENCE).stdout
        self.assertIn("8 tensors", said)
        answer = json.loads(f.nodes[0].get("/v1/predict", "POST", features)[1])
        here = {}
        printed = io.StringIO()
        with contextlib.chdir(f.directory), contextlib.redirect_stdout(printed):
            exec(compile(code, "docs/MODELS.md", "exec"), here)
        self.assertEqual(here["x"].shape, (400, 2))
        self.assertLess(abs(here["x"] - answer["outputs"]).max(), 1e-5)
        here["x"][:] = 2
        here["tags"] = {"targets": '[{"name": "a", "mean": 10, "deviation": 3}, {"name": "b", "mean": -1, "deviation": 0.5}]'}
        exec(compile(units, "docs/MODELS.md", "exec"), here)
        self.assertEqual(here["x"][0].tolist(), [16, 0])
        self.assertEqual(printed.getvalue().splitlines(), answer["labels"])
        self.assertEqual(set(answer["labels"]), {'the "neg" one', "pos"})


if __name__ == "__main__":
    tls.main()
