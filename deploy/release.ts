/**
 * Builds the executables of a release with their checksums: `make release [RELEASE_TARGETS="linux-x64 linux-arm64"]`.
 *
 * Runtimes and libraries of other machines come from the npm registry. A target without packages there is reported
 * and omitted; this is an error for a target requested by name and for the current machine. With dpkg-deb, the
 * executables for glibc are also built as Debian packages.
 */

import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import packageJson from "../package.json";
import { hasDpkg, writeDebianPackage } from "./debian.ts";
import { readExecutable } from "./elf.ts";
import { licenseText } from "./licenses.ts";
import { PackageMissing, packageFolder } from "./packages.ts";
import { sbomText } from "./sbom.ts";

interface Target {
  arch: "x64" | "arm64";
  libc: "glibc" | "musl";
  runtime: string;
}

const targets: Record<string, Target> = {
  "linux-x64": { arch: "x64", libc: "glibc", runtime: "@oven/bun-linux-x64" },
  "linux-arm64": { arch: "arm64", libc: "glibc", runtime: "@oven/bun-linux-aarch64" },
  "linux-x64-musl": { arch: "x64", libc: "musl", runtime: "@oven/bun-linux-x64-musl" },
  "linux-arm64-musl": { arch: "arm64", libc: "musl", runtime: "@oven/bun-linux-aarch64-musl" },
};

const root = join(import.meta.dir, "..");
const { values } = parseArgs({
  options: {
    out: { type: "string", default: join(root, "dist/release") },
    packages: { type: "string", default: join(root, "dist/packages") },
  },
});
const out = resolve(values.out);
const store = resolve(values.packages);
const bunVersion = packageJson.devDependencies.bun;
const duckdbVersion = packageJson.dependencies["@duckdb/node-api"];

process.exit(release((process.env.RELEASE_TARGETS ?? "").split(/[\s,]+/).filter(Boolean)));

/** @returns the exit status. */
function release(asked: readonly string[]): number {
  const unknown = asked.find((name) => targets[name] === undefined);
  if (unknown !== undefined) {
    console.error(`There is no target ${unknown}; there are ${Object.keys(targets).join(", ")}.`);
    return 2;
  }
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const needed = asked.length > 0 ? asked : [hostTarget()];
  let status = 0;
  for (const name of asked.length > 0 ? asked : Object.keys(targets)) {
    try {
      const path = build(name, targets[name]!);
      console.log(`${name}: ${path} (${Math.round(Bun.file(path).size / 1e6)} MB)`);
      const { arch, libc } = targets[name]!;
      if (libc === "glibc" && hasDpkg()) {
        const debian = arch === "x64" ? "amd64" : "arm64";
        console.log(writeDebianPackage(path, { version: packageJson.version, arch: debian, out }));
      }
    } catch (error) {
      const isNeeded = needed.includes(name);
      if (!isNeeded && !(error instanceof PackageMissing)) throw error;
      console.error(`${name}: ${isNeeded ? "failed" : "left out"}: ${(error as Error).message}.`);
      if (isNeeded) status = 1;
    }
  }
  if (!hasDpkg()) console.log("The Debian packages are left out: dpkg-deb is missing.");
  copyFileSync(join(import.meta.dir, "install.sh"), join(out, "install.sh"));
  copyFileSync(join(import.meta.dir, "flagkeep.service"), join(out, "flagkeep.service"));
  writeFileSync(join(out, "LICENSES.txt"), licenseText(root, bunVersion));
  writeFileSync(join(out, `flagkeep-${packageJson.version}.cdx.json`), sbomText(root, bunVersion));
  writeFileSync(join(out, "SHA256SUMS"), checksums());
  return status;
}

function build(name: string, target: Target): string {
  const path = join(out, `flagkeep-${packageJson.version}-${name}`);
  // Bun's package for this machine is incomplete: its install step has moved the executable.
  const runtime =
    name === hostTarget() && Bun.version === bunVersion
      ? process.execPath
      : join(packageFolder(root, store, target.runtime, bunVersion), "bin/bun");
  const bindings = packageFolder(root, store, `@duckdb/node-bindings-${name}`, duckdbVersion);
  const created = Bun.spawnSync(
    [process.execPath, "build.ts", "--target", name, "--runtime", runtime].concat([
      "--bindings",
      bindings,
      "--outfile",
      path,
    ]),
    { cwd: root, stdout: "ignore", stderr: "inherit" },
  );
  if (!created.success) throw new Error("it could not be compiled");
  const { arch, libc } = readExecutable(path);
  if (arch !== target.arch || libc !== target.libc)
    throw new Error(`it came out as one for ${arch}, ${libc}`);
  if (name === hostTarget()) checkRuns(path);
  return path;
}

function checkRuns(path: string): void {
  const { stdout, success } = Bun.spawnSync([path, "version", "--json"], { env: {} });
  const version = success ? (JSON.parse(stdout.toString()) as { version: string }).version : undefined;
  if (version !== packageJson.version) throw new Error("it does not run on this machine");
}

function hostTarget(): string {
  const { arch, libc } = readExecutable(process.execPath);
  return `linux-${arch}${libc === "musl" ? "-musl" : ""}`;
}

/** In the form that `sha256sum -c` reads. */
function checksums(): string {
  const names = readdirSync(out).sort();
  return names.map((name) => `${sha256(join(out, name))}  ${name}\n`).join("");
}

function sha256(path: string): string {
  return new Bun.CryptoHasher("sha256").update(readFileSync(path)).digest("hex");
}
