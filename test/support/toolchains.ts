/** SDKs of other languages, installed once into the folder for temporary files; without network or tools they are not there. */

import { cpSync, existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installedProgram } from "./skipped.ts";

/** A folder in which a command was run once; undefined when it failed. */
export function preparedFolder(name: string, command: string[]): string | undefined {
  return prepared(name, (fresh) => succeeds(command, fresh));
}

/** Runs a program to its end; false when it is missing or fails. */
function succeeds(command: string[], cwd: string): boolean {
  try {
    return Bun.spawnSync(command, { cwd, stdout: "ignore", stderr: "ignore" }).success;
  } catch {
    return false;
  }
}

/** A folder that is either ready or not there; `build` fills another one, which takes its place at the end. */
function prepared(name: string, build: (folder: string) => boolean): string | undefined {
  const folder = join(tmpdir(), name);
  if (existsSync(folder)) return folder;
  const fresh = `${folder}.${process.pid}`;
  mkdirSync(fresh, { recursive: true });
  if (build(fresh)) {
    // Another user may have been faster.
    if (!existsSync(folder)) renameSync(fresh, folder);
    return folder;
  }
  rmSync(fresh, { recursive: true, force: true });
  return undefined;
}

/** A folder for `PYTHONPATH` with a package of this version; an earlier run may have filled it. */
export function pythonPackage(name: string, version: string): string | undefined {
  if (installedProgram("python3") === undefined) return undefined;
  return prepared(`flagkeep-test-${name}-python-${version}`, (fresh) =>
    // Not a virtual environment, whose programs know only the folder they were made in.
    succeeds(["python3", "-m", "pip", "install", "--quiet", "--target", fresh, `${name}==${version}`], fresh),
  );
}

/** The executable of a Go program in a folder of this repository, built against the posthog-go of its `go.mod`. */
export function goProgram(source: string, name: string): string | undefined {
  const folder = prepared(name, (fresh) => {
    cpSync(source, fresh, { recursive: true });
    const go = installedProgram("go");
    return (
      go !== undefined &&
      succeeds([go, "mod", "tidy"], fresh) &&
      succeeds([go, "build", "-o", "program", "."], fresh)
    );
  });
  return folder && join(folder, "program");
}
