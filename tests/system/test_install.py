# SPDX-License-Identifier: Apache-2.0
"""What is installed is found: the library by pkg-config and the loader, wherever meson was run. And the
programs are built as those should be that strangers may reach. test_install.py BUILD SOURCE CC PROGRAM..."""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import tap

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../walls"))
import prose

BUILD, SOURCE, COMPILER, *PROGRAMS = sys.argv[1:]
USER = r"""
#include <sgp/attach.h>
#include <sgp/generate.h>
#include <sgp/quadratic.h>
#include <sgp/sim.h>
#include <sgp/version.h>
#include <stdio.h>
static int trainer(void *context, uint32_t node, struct sgp_trainer **ret_trainer)
{
    const float centre[1] = {(float)node};
    (void)context;
    return sgp_quadratic_create(1, centre, NULL, 0.1, ret_trainer);
}
int main(void)
{
    struct sgp_generate_options ring = {.family = "ring", .nodes = 4};
    struct sgp_topology *topology;
    struct sgp_sim *sim;
    struct sgp_sim_options options;
    struct sgp_sim_summary summary;
    struct sgp_error error = {0};
    sgp_sim_options_init(&options);
    options.dimension = 1;
    options.trainer = trainer;
    if (sgp_generate(&ring, &error, &topology) < 0 || sgp_sim_create(topology, &options, &error, &sim) < 0 ||
        sgp_sim_run(sim, SGP_TIME_NEVER, &error) < 0)
        return fprintf(stderr, "%s\n", error.text), 1;
    sgp_sim_summary(sim, &summary);
    printf("%s %g\n", sgp_version(), summary.weight);
    sgp_sim_destroy(sim);
    sgp_topology_destroy(topology);
    return 0;
}
"""
# Of the library: attaching, the simulator with its topologies, versions, errors, random numbers.
EXPORTED_MOST = 60


def run(*command, **environment):
    """What a command printed; it has to end with 0. PKG_CONFIG_PATH and the like are not ours."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PKG_CONFIG")}
    result = subprocess.run(command, text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            env={**clean, **environment})
    assert result.returncode == 0, f"{command}: {result.returncode}\n{result.stdout}"
    return result.stdout


class Install(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="sgpd-")
        self.addCleanup(temporary.cleanup)
        self.directory = temporary.name

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def test_a_fresh_build_folder_installs_where_things_are_looked_for(self):
        """Also where meson cannot ask dpkg for the directory of libraries, and would take lib64."""
        os.mkdir(self.path("bin"))
        with open(self.path("bin", "dpkg-architecture"), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nexit 1\n")
        os.chmod(self.path("bin", "dpkg-architecture"), 0o755)
        run("meson", "setup", self.path("build"), SOURCE, "-Dtests=false", "--buildtype=release",
            PATH=self.path("bin") + ":" + os.environ["PATH"])
        installed = json.loads(run("meson", "introspect", "--installed", self.path("build"))).values()
        place = {os.path.basename(path): os.path.dirname(path) for path in installed}
        looked_in = run("pkg-config", "--variable", "pc_path", "pkg-config").strip().split(":")
        self.assertIn(place["sgp.pc"], looked_in)
        loaded_from = re.findall(r"^(/[^:]+):", run("/sbin/ldconfig", "-v", "-N", "-X"), re.MULTILINE)
        self.assertIn(place["libsgp.so"], loaded_from)

    def test_the_program_that_compares_is_found_where_it_is_installed(self):
        run("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", self.directory)
        [sgpctl] = glob.glob(self.path("**", "bin", "sgpctl"), recursive=True)
        with open(self.path("plan.ini"), "w", encoding="utf-8") as file:
            file.write("[compare]\nrun = simulated\n[ring]\nnodes = 3\ntopology = ring\n")
        libraries = os.path.dirname(glob.glob(self.path("**", "libsgp.so.0"), recursive=True)[0])
        told = run(sgpctl, "compare", self.path("plan.ini"), LD_LIBRARY_PATH=libraries)
        self.assertIn("comparison.svg", told)

    def test_links_of_installed_pages_lead_somewhere(self):
        run("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", self.directory)
        pages = glob.glob(self.path("**", "doc", "sgpd", "**", "*.md"), recursive=True)
        self.assertGreater(len(pages), 30)
        self.assertEqual([line for page in pages for line in prose.dead_links("", page)], [])

    def test_a_program_is_made_with_what_pkg_config_says(self):
        run("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", self.directory)
        [found] = glob.glob(self.path("**", "sgp.pc"), recursive=True)
        said = run("pkg-config", "--cflags", "--libs", "sgp", PKG_CONFIG_PATH=os.path.dirname(found),
                   PKG_CONFIG_SYSROOT_DIR=self.directory).split()
        with open(self.path("user.c"), "w", encoding="utf-8") as file:
            file.write(USER)
        run(*COMPILER.split(), self.path("user.c"), "-o", self.path("user"), *said)
        libraries = os.path.dirname(os.path.dirname(found))
        version, weight = run(self.path("user"), LD_LIBRARY_PATH=libraries).split()
        with open(os.path.join(SOURCE, "VERSION"), encoding="ascii") as file:
            self.assertTrue(version.startswith(file.read().strip()), version)
        self.assertEqual(float(weight), 4)

    def test_each_header_that_is_installed_compiles_alone(self):
        run("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", self.directory)
        [folder] = glob.glob(self.path("**", "include", "sgp"), recursive=True)
        for header in sorted(os.listdir(folder)):
            with open(self.path("one.c"), "w", encoding="ascii") as file:
                file.write("#include <sgp/%s>\n" % header)
            run(*COMPILER.split(), "-std=c11", "-Wall", "-Werror", "-fsyntax-only", "-I", os.path.dirname(folder), self.path("one.c"))

    def test_the_library_exports_what_it_promises_and_no_more(self):
        [library] = glob.glob(os.path.join(BUILD, "lib", "libsgp.so"))
        exported = re.findall(r" [TDB] (\w+)$", run("nm", "-D", "--defined-only", library), re.MULTILINE)
        self.assertLessEqual(len(exported), EXPORTED_MOST)
        self.assertIn("sgp_attach", exported)
        self.assertEqual([name for name in exported if not name.startswith("sgp_")], [])


@unittest.skipIf(not PROGRAMS, "without optimisation, or with a sanitizer, there are no guards")
class Guards(unittest.TestCase):
    def test_symbols_are_bound_at_the_start_and_then_read_only(self):
        for program in PROGRAMS:
            self.assertRegex(run("readelf", "-dW", program), r"\((FLAGS|FLAGS_1)\).*\b(BIND_NOW|NOW)\b", program)
            self.assertIn("GNU_RELRO", run("readelf", "-lW", program), program)

    def test_buffers_are_guarded(self):
        for program in PROGRAMS:
            symbols = set(re.findall(r"UND (\w+)", run("readelf", "--dyn-syms", "-W", program)))
            self.assertIn("__stack_chk_fail", symbols, program)
            checked = {name for name in symbols if re.fullmatch(r"__\w+_chk", name)}
            self.assertTrue({"__vsnprintf_chk", "__snprintf_chk"} & checked, (program, checked))


if __name__ == "__main__":
    tap.run_cases([])
