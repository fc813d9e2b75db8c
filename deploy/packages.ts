/** Packages for other machines, which `npm install` leaves out on this one: fetched from the npm registry by version. */

import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import lock from "../package-lock.json";

/** The registry has not got it, cannot be reached, or gave something else than what is pinned. */
export class PackageMissing extends Error {}

interface Packed {
  filename: string;
  integrity: string;
}

const pinned = lock.packages as Record<string, { integrity?: string } | undefined>;

/**
 * The folder of a package: installed, fetched before, or fetched now.
 *
 * @param store where fetched packages are kept for the next time.
 * @throws {PackageMissing}
 */
export function packageFolder(root: string, store: string, name: string, version: string): string {
  const installed = join(root, "node_modules", name);
  if (isVersion(installed, version)) return installed;
  const folder = join(store, `${name.replace(/^@/, "").replace("/", "-")}-${version}`);
  if (!existsSync(folder)) fetchPackage(folder, name, version);
  return folder;
}

function isVersion(folder: string, version: string): boolean {
  const path = join(folder, "package.json");
  return existsSync(path) && (require(path) as { version: string }).version === version;
}

function fetchPackage(folder: string, name: string, version: string): void {
  const fresh = `${folder}.${process.pid}`;
  mkdirSync(fresh, { recursive: true });
  try {
    const packed = pack(fresh, name, version);
    const expected = pinned[`node_modules/${name}`]?.integrity;
    if (expected !== undefined && packed.integrity !== expected) {
      throw new PackageMissing(`${name} ${version} is not the one in package-lock.json`);
    }
    const unpacked = Bun.spawnSync(["tar", "-xzf", packed.filename, "--strip-components=1"], { cwd: fresh });
    if (!unpacked.success) throw new PackageMissing(`${name} ${version} cannot be unpacked`);
    rmSync(join(fresh, packed.filename));
    renameSync(fresh, folder);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}

/** npm checks the file against what the registry says about it. */
function pack(folder: string, name: string, version: string): Packed {
  const { stdout, stderr, success } = Bun.spawnSync(["npm", "pack", `${name}@${version}`, "--json"], {
    cwd: folder,
  });
  if (success) return (JSON.parse(stdout.toString()) as Packed[])[0]!;
  const code = /npm error code (\S+)/.exec(stderr.toString())?.[1] ?? "npm failed";
  const reason = code === "E404" || code === "ETARGET" ? "the registry has not got it" : code;
  throw new PackageMissing(`${name} ${version} cannot be fetched (${reason})`);
}
