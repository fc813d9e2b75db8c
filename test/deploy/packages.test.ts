/** The Debian package and the install script, used as an operator would, on a root and a server of the test's own. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { writeDebianPackage } from "../../deploy/debian.ts";
import packageJson from "../../package.json";
import { executable, temporaryFolder } from "../support/server.ts";
import { installedProgram, testWhen } from "../support/skipped.ts";

const hasDpkg = installedProgram("dpkg-deb") !== undefined;

const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const { version } = packageJson;
const arch = process.arch === "x64" ? "amd64" : "arm64";

function run(command: string[], env: Record<string, string> = {}) {
  const { stdout, stderr, exitCode } = Bun.spawnSync(command, { env: { PATH: process.env.PATH!, ...env } });
  return { stdout: stdout.toString(), stderr: stderr.toString(), code: exitCode };
}

testWhen(hasDpkg, "the Debian package", "no dpkg-deb")(
  "the package is installed, started from, upgraded, removed and purged; settings stay until then",
  () => {
    const build = (as: string) =>
      writeDebianPackage(executable, { version: as, arch, out: folder, level: 1 });
    const package1 = build(version);
    const root = join(folder, "root");
    for (const path of ["info", "updates", "triggers", "parts"]) {
      mkdirSync(join(root, "var/lib/dpkg", path), { recursive: true });
    }
    writeFileSync(join(root, "var/lib/dpkg/status"), "");
    // What it depends on is on the machine and not in this root, which belongs to whoever runs the test.
    const dpkg = (...args: string[]) =>
      run(
        [
          "dpkg",
          `--root=${root}`,
          "--force-script-chrootless",
          "--force-not-root",
          "--force-depends",
          "--force-confold",
          `--log=${join(folder, "dpkg.log")}`,
          ...args,
        ],
        { PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
      );
    const installed = dpkg("-i", package1);
    expect(installed).toMatchObject({ code: 0 });
    const binary = join(root, "usr/bin/flagkeep");
    expect(run([binary, "version"]).stdout).toContain(version);
    const unit = readFileSync(join(root, "lib/systemd/system/flagkeep.service"), "utf8");
    expect(unit).toContain("ExecStart=/usr/bin/flagkeep serve --data-dir %S/flagkeep");
    expect(unit).not.toContain("/usr/local/bin");
    const settings = join(root, "etc/flagkeep.env");
    expect(statSync(settings).mode & 0o777).toBe(0o600);
    const status = run([
      "dpkg-query",
      `--admindir=${join(root, "var/lib/dpkg")}`,
      "-W",
      "-f",
      `$\{Status} $\{Version}`,
      "flagkeep",
    ]);
    expect(status.stdout).toBe(`install ok installed ${version}`);
    writeFileSync(settings, "FLAGKEEP_PORT=8001\n");
    expect(dpkg("-i", build("99.0.0"))).toMatchObject({ code: 0 });
    expect(readFileSync(settings, "utf8")).toBe("FLAGKEEP_PORT=8001\n");
    expect(dpkg("-r", "flagkeep")).toMatchObject({ code: 0 });
    expect([existsSync(binary), existsSync(settings)]).toEqual([false, true]);
    expect(dpkg("-P", "flagkeep")).toMatchObject({ code: 0 });
    expect(existsSync(settings)).toBe(false);
  },
  120_000,
);

testWhen(hasDpkg, "what dpkg says of the package", "no dpkg-deb")(
  "files belong to root, settings are a configuration file, and the same files make the same package",
  () => {
    const build = (name: string) => {
      mkdirSync(join(folder, name), { recursive: true });
      return writeDebianPackage(executable, { version, arch, out: join(folder, name), level: 1 });
    };
    const one = build("one");
    const two = build("two");
    expect(Bun.hash(readFileSync(one))).toBe(Bun.hash(readFileSync(two)));
    const lines = run(["dpkg-deb", "--contents", one]).stdout.trim().split("\n");
    for (const line of lines) expect(line).toContain(" root/root ");
    expect(run(["dpkg-deb", "--field", one, "Package", "Architecture"]).stdout).toBe(
      `Package: flagkeep\nArchitecture: ${arch}\n`,
    );
    mkdirSync(join(folder, "control"));
    run(["dpkg-deb", "--control", one, join(folder, "control")]);
    expect(readFileSync(join(folder, "control/conffiles"), "utf8")).toBe("/etc/flagkeep.env\n");
    for (const name of ["postinst", "prerm", "postrm"]) {
      expect(run(["sh", "-n", join(folder, "control", name)])).toMatchObject({ code: 0, stderr: "" });
    }
  },
  120_000,
);

describe("the install script", () => {
  const release = join(folder, "release");
  const name = `flagkeep-${version}-linux-${process.arch}`;
  const script = join(import.meta.dir, "../../deploy/install.sh");
  let server: ReturnType<typeof Bun.serve>;
  const sums = () =>
    writeFileSync(
      join(release, "SHA256SUMS"),
      run(["sh", "-c", `cd ${release} && sha256sum flagkeep-*`]).stdout,
    );
  const install = (...args: string[]) => {
    const child = Bun.spawn(["sh", script, ...args], {
      stdout: "pipe",
      stderr: "pipe",
      env: { PATH: process.env.PATH },
    });
    return Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]).then(([stdout, stderr, code]) => ({ stdout, stderr, code }));
  };
  const bin = (of: string) => join(folder, of);

  beforeAll(() => {
    mkdirSync(release);
    copyFileSync(executable, join(release, name));
    sums();
    server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: (request) => {
        const file = Bun.file(join(release, new URL(request.url).pathname.replace(/^\/0\.1\//, "")));
        return file.size === 0 ? new Response("", { status: 404 }) : new Response(file);
      },
    });
  });
  afterAll(() => server.stop(true));
  const address = () => `http://127.0.0.1:${server.port}/0.1`;

  test("downloads the executable for this machine and replaces an older one", async () => {
    mkdirSync(bin("bin"));
    writeFileSync(join(bin("bin"), "flagkeep"), "an older one");
    const { stdout, stderr, code } = await install(`${address()}/`, "--bin-dir", bin("bin"));
    expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
    expect(stdout).toContain(`${bin("bin")}/flagkeep`);
    expect(run([join(bin("bin"), "flagkeep"), "version"]).stdout).toContain(version);
    expect(readdirSync(bin("bin"))).toEqual(["flagkeep"]);
  });

  test("from a folder", async () => {
    expect(await install(release, "--bin-dir", bin("from-folder"))).toMatchObject({ code: 0 });
  });

  test("any error installs nothing and prints one sentence", async () => {
    const rejected = async (says: string, ...args: string[]) => {
      const target = bin("refused");
      const { stdout, stderr, code } = await install(...args, "--bin-dir", target);
      expect({ says, stdout, code }).toEqual({ says, stdout: "", code: 1 });
      expect(stderr).toContain(says);
      expect(existsSync(join(target, "flagkeep"))).toBe(false);
      expect(existsSync(target) ? readdirSync(target) : []).toEqual([]);
    };
    await rejected("SHA256SUMS cannot be fetched", `${address()}/none`);
    await rejected("SHA256SUMS cannot be fetched", "http://127.0.0.1:9/");
    writeFileSync(join(release, name), Buffer.concat([readFileSync(executable), Buffer.from("x")]));
    await rejected("is not what SHA256SUMS says", address());
    writeFileSync(join(release, name), "#!/bin/sh\nexit 1\n");
    sums();
    await rejected("does not run on this machine", address());
    writeFileSync(join(release, "SHA256SUMS"), `${"0".repeat(64)}  flagkeep-${version}-linux-mips\n`);
    await rejected(`no executable for linux-${process.arch}`, address());
    expect((await install()).stderr).toContain("usage: install.sh ADDRESS");
    expect((await install(address(), "--nonsense")).stderr).toContain("usage: install.sh ADDRESS");
  }, 30_000);
});
