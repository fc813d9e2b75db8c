/**
 * Swaps a restored folder with a data directory, only by renames.
 *
 * Usually the folder is created next to the data directory and the two swap names. If the directory cannot be renamed
 * (a mount point, or a parent of another user), the folder is created inside it, and the entries are renamed.
 */

import { accessSync, constants, existsSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { chmod, mkdir, rename, rm, rmdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { syncFolder } from "../journal/disk.ts";
import { onInterrupt } from "../lib/cancellation.ts";
import { acquireLock, DirectoryInUseError } from "../lock.ts";
import { paths } from "../paths.ts";

export interface SwapPlan {
  target: string;
  kind: "sibling" | "inside";
  /** Where the restored folder is created. */
  staging: string;
  /** Where the current contents are moved. */
  before: string;
}

/** They belong to the machine rather than to the data, and stay. */
const machineNames = ["lost+found"];

/** @param now names the folder of the old contents. */
export function planSwap(target: string, now: Date): SwapPlan {
  const time = now.toISOString().slice(0, 19).replaceAll(":", "-");
  const kind = canBeRenamed(target) ? "sibling" : "inside";
  const [from, dot] = kind === "sibling" ? [`${target}.`, ""] : [`${target}/`, "."];
  return {
    target,
    kind,
    staging: `${from}${dot}restoring-${crypto.randomUUID().slice(0, 8)}`,
    before: `${from}${dot}before-restore-${time}`,
  };
}

/** Entries of a directory, without those that a restore or the machine creates. */
export function getEntries(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder).filter(
    (name) => !machineNames.includes(name) && !/^\.(restoring|before-restore)-/.test(name),
  );
}

/** Deletes leftovers of killed restores; running ones hold the lock of their folder. */
export async function removeLeftovers({ target, kind }: SwapPlan): Promise<void> {
  const folder = kind === "sibling" ? dirname(target) : target;
  const start = kind === "sibling" ? `${basename(target)}.restoring-` : ".restoring-";
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    if (!name.startsWith(start)) continue;
    const path = join(folder, name);
    try {
      acquireLock(paths(path).lock, path).release();
    } catch (error) {
      if (error instanceof DirectoryInUseError) continue;
      // A folder in which no lock can be created.
    }
    await rm(path, { recursive: true, force: true });
  }
}

/**
 * Swaps the folders; on an error everything stays as it was.
 *
 * @param carried entries of the old directory that move into the new one.
 * @returns the path of the old contents; null if the directory was empty.
 */
export async function swap(plan: SwapPlan, carried: readonly string[]): Promise<string | null> {
  const { target, kind, staging, before } = plan;
  const old = getEntries(target);
  const done: [from: string, to: string][] = [];
  const move = async (from: string, to: string) => {
    await rename(from, to);
    done.push([from, to]);
  };
  const hasOld = old.length > 0;
  const stop = onInterrupt(undefined);
  try {
    if (kind === "sibling") {
      if (hasOld) await move(target, before);
      // Renaming over an empty directory replaces it.
      await move(staging, target);
    } else {
      if (hasOld) await mkdir(before, { mode: 0o700 });
      for (const name of old) await move(join(target, name), join(before, name));
      for (const name of readdirSync(staging)) await move(join(staging, name), join(target, name));
    }
    for (const name of carried) {
      if (old.includes(name) && !existsSync(join(target, name)))
        await move(join(before, name), join(target, name));
    }
  } catch (error) {
    for (const [from, to] of done.reverse()) await rename(to, from);
    if (kind === "inside" && hasOld) await rmdir(before).catch(() => undefined);
    stop();
    throw error;
  }
  if (kind === "inside") {
    await rmdir(staging);
    await chmod(target, 0o700);
  }
  await syncFolder(target);
  await syncFolder(dirname(target));
  stop();
  return hasOld ? before : null;
}

function canBeRenamed(target: string): boolean {
  if (existsSync(target) && mountPoints().has(realpathSync(target))) return false;
  let parent = dirname(target);
  while (!existsSync(parent)) parent = dirname(parent);
  try {
    accessSync(parent, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function mountPoints(): Set<string> {
  try {
    const lines = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
    // Spaces in names are written as octal numbers.
    const unescaped = (text: string) =>
      text.replaceAll(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8)));
    return new Set(lines.map((line) => unescaped(line.split(" ")[4] ?? "")));
  } catch {
    return new Set();
  }
}
