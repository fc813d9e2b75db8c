/**
 * Puts a restored folder in the place of a data directory, by renames alone.
 *
 * Usually the folder is made beside the data directory and the two change names. Where the directory cannot be renamed (it
 * is a mount point, or its parent belongs to somebody else) it is made inside, and the entries are renamed.
 */

import { accessSync, constants, existsSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { chmod, mkdir, rename, rm, rmdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { syncFolder } from "../journal/disk.ts";
import { onInterrupt } from "../lib/interrupt.ts";
import { DirectoryInUse, takeLock } from "../lock.ts";
import { paths } from "../paths.ts";

export interface SwapPlan {
  target: string;
  kind: "beside" | "inside";
  /** Where the restored folder is made. */
  staging: string;
  /** Where what is there now goes. */
  before: string;
}

/** They belong to the machine rather than to the data, and stay. */
const machineNames = ["lost+found"];

/** @param now names what is kept of the old directory. */
export function planSwap(target: string, now: Date): SwapPlan {
  const time = now.toISOString().slice(0, 19).replaceAll(":", "-");
  const kind = canBeRenamed(target) ? "beside" : "inside";
  const [from, dot] = kind === "beside" ? [`${target}.`, ""] : [`${target}/`, "."];
  return {
    target,
    kind,
    staging: `${from}${dot}restoring-${crypto.randomUUID().slice(0, 8)}`,
    before: `${from}${dot}before-restore-${time}`,
  };
}

/** What is in a directory, without what a restore itself or the machine puts there. */
export function entriesOf(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder).filter(
    (name) => !machineNames.includes(name) && !/^\.(restoring|before-restore)-/.test(name),
  );
}

/** Removes what restores that were killed have left; those that still run hold the lock of their folder. */
export async function removeLeftovers({ target, kind }: SwapPlan): Promise<void> {
  const folder = kind === "beside" ? dirname(target) : target;
  const start = kind === "beside" ? `${basename(target)}.restoring-` : ".restoring-";
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    if (!name.startsWith(start)) continue;
    const path = join(folder, name);
    try {
      takeLock(paths(path).lock, path).release();
    } catch (error) {
      if (error instanceof DirectoryInUse) continue;
      // Not even a lock could be made in it.
    }
    await rm(path, { recursive: true, force: true });
  }
}

/**
 * Swaps; on an error everything is as it was.
 *
 * @param carried entries of the old directory that move into the new one.
 * @returns where the old directory's content is now, null when there was none.
 */
export async function swap(plan: SwapPlan, carried: readonly string[]): Promise<string | null> {
  const { target, kind, staging, before } = plan;
  const old = entriesOf(target);
  const done: [from: string, to: string][] = [];
  const move = async (from: string, to: string) => {
    await rename(from, to);
    done.push([from, to]);
  };
  const hasOld = old.length > 0;
  const stop = onInterrupt(undefined);
  try {
    if (kind === "beside") {
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
    // Blanks in names are written as octal numbers.
    const unescaped = (text: string) =>
      text.replaceAll(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8)));
    return new Set(lines.map((line) => unescaped(line.split(" ")[4] ?? "")));
  } catch {
    return new Set();
  }
}
