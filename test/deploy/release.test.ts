/** `make release`: executables with checksums; what the registry has not got is left out, unless it is needed. */

import { afterAll, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { hasDpkg } from "../../deploy/debian.ts";
import { readExecutable } from "../../deploy/elf.ts";
import packageJson from "../../package.json";
import { executable, temporaryFolder } from "../support/server.ts";

const root = join(import.meta.dir, "../..");
const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const host = `linux-${process.arch}`;
const debName = `flagkeep_${packageJson.version}_${process.arch === "x64" ? "amd64" : process.arch}.deb`;
const fileName = `flagkeep-${packageJson.version}-${host}`;

/** Makes a release where no registry answers, so that only this machine's packages are there. */
async function release(name: string, targets: string) {
  const out = join(folder, name);
  const child = Bun.spawn(
    [process.execPath, join(root, "deploy/release.ts"), "--out", out, "--packages", join(folder, "packages")],
    {
      env: {
        PATH: process.env.PATH,
        RELEASE_TARGETS: targets,
        npm_config_registry: "http://127.0.0.1:9/",
        npm_config_fetch_retries: "0",
        npm_config_cache: join(folder, "npm"),
      },
      stdout: "pipe",
      stderr: "pipe",
    },
  );
  const [stderr, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  return { out, lines: stderr.split("\n").filter(Boolean), code };
}

test("makes the executable of this machine, and the same one again from the same sources", async () => {
  const other = host === "linux-x64" ? "linux-arm64" : "linux-x64";
  const [one, all] = await Promise.all([release("one", host), release("all", "")]);
  expect({ lines: one.lines, code: one.code }).toEqual({ lines: [], code: 0 });
  const sbomName = `flagkeep-${packageJson.version}.cdx.json`;
  const files = [
    "LICENSES.txt",
    "flagkeep.service",
    "install.sh",
    fileName,
    sbomName,
    ...(hasDpkg() ? [debName] : []),
  ];
  expect(readdirSync(one.out).sort()).toEqual([...files, "SHA256SUMS"].sort());
  const checked = Bun.spawnSync(["sha256sum", "-c", "SHA256SUMS"], { cwd: one.out });
  expect(checked.stdout.toString()).toBe(
    files
      .sort()
      .map((name) => `${name}: OK\n`)
      .join(""),
  );
  const version = Bun.spawnSync([join(one.out, fileName), "version", "--json"], { env: {} });
  expect(JSON.parse(version.stdout.toString())).toMatchObject({ version: packageJson.version });
  const licenses = readFileSync(join(one.out, "LICENSES.txt"), "utf8");
  expect(licenses).toStartWith("Flagkeep (MIT)\n");
  expect(licenses).toContain(readFileSync(join(import.meta.dir, "../../LICENSE"), "utf8").trim());
  for (const name of ["Bun ", "@duckdb/node-bindings ", "elysia ", "commander "])
    expect(licenses).toContain(`\n${name}`);
  expect(licenses).not.toContain("\ntypescript ");
  const sbom = JSON.parse(readFileSync(join(one.out, sbomName), "utf8"));
  expect([sbom.bomFormat, sbom.serialNumber, sbom.metadata.timestamp]).toEqual([
    "CycloneDX",
    undefined,
    undefined,
  ]);
  const components = sbom.components.map(({ name }: { name: string }) => name);
  expect(components).toEqual(expect.arrayContaining(["bun", "@duckdb/node-api", "elysia", "preact"]));
  expect(components).not.toContain("fast-check");

  expect(all.code).toBe(0);
  expect(all.lines).toHaveLength(3);
  expect(all.lines.join("\n")).toMatch(new RegExp(`^${other}: left out: \\S+ \\S+ cannot be fetched`, "m"));
  const sums = (path: string) => readFileSync(join(path, "SHA256SUMS"), "utf8");
  expect(sums(all.out)).toBe(sums(one.out));
}, 300_000);

test("fails when a target requested by name is unavailable", async () => {
  const { code, lines } = await release("musl", "linux-arm64-musl");
  expect({ code, lines: lines.length }).toEqual({ code: 1, lines: 1 });
  expect(lines[0]).toStartWith("linux-arm64-musl: failed: @oven/bun-linux-aarch64-musl");
  const unknown = await release("unknown", "windows");
  expect({ code: unknown.code, lines: unknown.lines.length }).toEqual({ code: 2, lines: 1 });
});

test("names the machine and C library of an executable", () => {
  expect(readExecutable(executable)).toEqual({ arch: process.arch as "x64", libc: "glibc" });
  mkdirSync(folder, { recursive: true });
  const path = join(folder, "other");
  const head = Buffer.from(readFileSync(executable).subarray(0, 64 * 1024));
  head.writeUInt16LE(183, 18);
  writeFileSync(
    path,
    head.toString("latin1").replace("/lib64/ld-linux-x86-64", "/lib/ld-musl-x86_64.so"),
    "latin1",
  );
  expect(readExecutable(path)).toEqual({ arch: "arm64", libc: "musl" });
  writeFileSync(path, "#!/bin/sh\n".repeat(20));
  expect(() => readExecutable(path)).toThrow("64-bit Linux");
});
