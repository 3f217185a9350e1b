/* SPDX-License-Identifier: Apache-2.0 */
/* What sgpd@.service would refuse, seen by `sgpd --check` before. The user sgpd is one without rights. */
#include "setup/unit.h"

#include <criterion/criterion.h>
#include <assertions.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct passwd nobody = {.pw_name = "nobody", .pw_uid = 65534, .pw_gid = 65534};
static bool is_there = true;

/* In the place of libc's. */
struct passwd *getpwnam(const char *name);
struct passwd *getpwnam(const char *name)
{
    return is_there && strcmp(name, "sgpd") == 0 ? &nobody : NULL;
}

static struct site site;

/* The configuration `file`, which need not exist, with these paths. */
static void look(const char *file, const char *topology, const char *data, const char *rest)
{
    char text[1024];
    struct sgp_error error = {0};
    struct config config;
    (void)snprintf(text, sizeof text,
        "[node]\nname = n0\n[topology]\nfile = %s\n[model]\nlayers = dense 2\n[network]\n"
        "listen = 127.0.0.1:7311\n[data]\ntrain = %s\n%s",
        topology, data, rest);
    cr_assert(
        eq(int, config_parse(file, text, strlen(text), &error, &config), 0), "%s", error.text);
    site = (struct site){.warning_count = 0};
    unit_check(&config, &site);
    config_finish(&config);
}

static void expect(uint32_t index, const char *text)
{
    cr_assert(lt(u32, index, site.warning_count));
    cr_assert(eq(str, site.warnings[index], (char *)text));
}

#define NOT_SEEN " sgpd@.service does not see it (ProtectHome=); keep it in /srv or /var/lib"

Test(unit, what_it_sees_and_may_read_is_fine)
{
    look("/etc/sgpd/n0.conf", "/etc/passwd", "/usr/bin/env", "scale = none");
    cr_assert(eq(u32, site.warning_count, 0), "%s", site.warnings[0]);
}

Test(unit, homes_and_temporary_directories_are_hidden)
{
    look("/etc/sgpd/n0.conf", "/home/me/fleet.dot", "/root/rows.csv",
        "test = /homes/rows.csv\nscale = /run/user/1000/scale.json");
    cr_assert(eq(u32, site.warning_count, 3));
    expect(0, "/etc/sgpd/n0.conf:4: [topology] file: /home/me/fleet.dot:" NOT_SEEN);
    expect(1, "/etc/sgpd/n0.conf:10: [data] train: /root/rows.csv:" NOT_SEEN);
    expect(2, "/etc/sgpd/n0.conf:12: [data] scale: /run/user/1000/scale.json:" NOT_SEEN);
    char link[] = "/tmp/test_unit.XXXXXX";
    cr_assert(mkdtemp(link) != NULL);
    char path[64];
    (void)snprintf(path, sizeof path, "%s/link", link);
    cr_assert(eq(int, symlink("/root", path), 0));
    look("/etc/sgpd/n0.conf", "/etc/passwd", path, "");
    (void)unlink(path);
    expect(0, "/etc/sgpd/n0.conf:10: [data] train: /root:" NOT_SEEN);
    look("/etc/sgpd/n0.conf", "/etc/passwd", link, "");
    (void)rmdir(link);
    cr_assert(eq(u32, site.warning_count, 1));
    cr_assert(strstr(site.warnings[0], "does not see it (PrivateTmp=)") != NULL);
}

Test(unit, bf16_needs_a_drop_in)
{
    look("/etc/sgpd/n0.conf", "/etc/passwd", "/usr/bin/env", "[train]\nprecision = float32");
    cr_assert(eq(u32, site.warning_count, 0), "%s", site.warnings[0]);
    look("/etc/sgpd/n0.conf", "/etc/passwd", "/usr/bin/env", "[train]\nprecision = bf16");
    cr_assert(eq(u32, site.warning_count, 1));
    expect(0,
        "/etc/sgpd/n0.conf:12: [train] precision: sgpd@.service does not let oneDNN run the code "
        "that it makes; unless you have done so, write MemoryDenyWriteExecute=no into a drop-in: "
        "systemctl edit sgpd@.service");
}

Test(unit, a_configuration_that_no_unit_reads_is_left_alone)
{
    look("/srv/n0.conf", "/home/me/fleet.dot", "/root/rows.csv", "[control]\nsocket = /srv/s");
    cr_assert(eq(u32, site.warning_count, 0));
    look("/etc/sgpd/n0.conf.old", "/home/me/fleet.dot", "/root/rows.csv", "");
    cr_assert(eq(u32, site.warning_count, 0));
}

Test(unit, only_its_own_directories_may_be_written_to)
{
    look("/etc/sgpd/n0.conf", "/etc/passwd", "/usr/bin/env", "[control]\nsocket = /run/sgpd/n00/s");
    cr_assert(eq(u32, site.warning_count, 1));
    expect(0,
        "/etc/sgpd/n0.conf:12: [control] socket: /run/sgpd/n00/s: sgpd@n0.service may write to "
        "/run/sgpd/n0 alone (ProtectSystem=); give a place there");
    look("/etc/sgpd/other.conf", "/etc/passwd", "/usr/bin/env",
        "[control]\nsocket = /run/sgpd/other/s");
    cr_assert(eq(u32, site.warning_count, 1));
    expect(0,
        "/etc/sgpd/other.conf: [node] state_directory: /var/lib/sgpd/n0: sgpd@other.service may "
        "write to /var/lib/sgpd/other alone (ProtectSystem=); give a place there");
}

Test(unit, what_root_may_read_and_its_user_may_not)
{
    if (geteuid() != 0)
        cr_skip_test("only root can become another user");
    struct stat status;
    cr_assert(eq(int, stat("/etc/shadow", &status), 0));
    cr_assert(eq(u32, status.st_mode & S_IROTH, 0));
    look("/etc/sgpd/n0.conf", "/etc/shadow", "/usr/bin/env", "");
    cr_assert(eq(u32, site.warning_count, 1));
    expect(0,
        "/etc/sgpd/n0.conf:4: [topology] file: /etc/shadow: the user sgpd of sgpd@.service may "
        "not read it; let its group, or everybody, and let them through the directories above it");
    cr_assert(eq(u32, geteuid(), 0), "root again");
    cr_assert(eq(u32, getegid(), 0));
    is_there = false;
    look("/etc/sgpd/n0.conf", "/etc/passwd", "/usr/bin/env", "");
    cr_assert(eq(u32, site.warning_count, 1));
    expect(0, "/etc/sgpd/n0.conf: there is no user sgpd for sgpd@.service to run as; run "
              "systemd-sysusers");
}
