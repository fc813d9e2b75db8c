/** Volumes that fill up: in memory, and from a gigabyte on a file system of their own, whose file takes only what is written. */

import { closeSync, openSync, rmSync, statSync, truncateSync, writeFileSync, writeSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { reservedBytes } from "../../src/journal/disk.ts";
import { temporaryFolder } from "./server.ts";
import { installedProgram } from "./skipped.ts";

const MiB = 1024 * 1024;

/** Those of some sizes, such as `133m` and `20g`, of which this machine lets us mount a volume. */
export function usableSizes(sizes: readonly string[]): string[] {
  return sizes.filter((size) => {
    using volume = Volume.mount(size);
    return volume !== undefined;
  });
}

export class Volume {
  private constructor(
    readonly folder: string,
    private readonly image: string | undefined,
  ) {}

  /** @returns undefined where this machine lets us mount none. */
  static mount(size: string): Volume | undefined {
    if (installedProgram("mount") === undefined) return undefined;
    const image = size.endsWith("g") ? createImage(size) : undefined;
    const folder = temporaryFolder();
    const options =
      image === undefined ? ["-t", "tmpfs", "-o", `size=${size}`, "tmpfs"] : ["-o", "loop", image];
    const isMounted = succeeds("mount", ...options, folder);
    const volume = new Volume(folder, image);
    if (isMounted) return volume;
    volume[Symbol.dispose]();
    return undefined;
  }

  async freeBytes(): Promise<number> {
    const { bavail, bsize } = await statfs(this.folder);
    return Number(bavail) * Number(bsize);
  }

  /** What Flagkeep keeps free of it, in bytes. */
  async reserve(): Promise<number> {
    const { blocks, bsize } = await statfs(this.folder);
    return reservedBytes(512 * MiB, Number(blocks) * Number(bsize));
  }

  /** Takes all of it but so much. @returns the file that took it, which a later call makes longer */
  async fill(leaving: number): Promise<string> {
    const filler = join(this.folder, "filler");
    const file = openSync(filler, "a");
    const more = (await this.freeBytes()) - leaving;
    if (this.image !== undefined && more > MiB)
      succeeds("fallocate", "-o", String(statSync(filler).size), "-l", String(more - MiB), filler);
    const zeros = Buffer.alloc(MiB);
    try {
      for (let left = (await this.freeBytes()) - leaving; left > 0; left -= zeros.length)
        writeSync(file, zeros, 0, Math.min(left, zeros.length));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    }
    closeSync(file);
    return filler;
  }

  [Symbol.dispose](): void {
    Bun.spawnSync(["umount", "-l", this.folder]);
    rmSync(this.folder, { recursive: true, force: true });
    if (this.image !== undefined) rmSync(this.image, { force: true });
  }
}

/** An empty file system without a share for root, in a file of which most does not exist. */
function createImage(size: string): string {
  const image = join(temporaryFolder(), "volume");
  writeFileSync(image, "");
  truncateSync(image, Number.parseInt(size, 10) * 1024 * MiB);
  succeeds("mkfs.ext4", "-q", "-F", "-m", "0", image);
  return image;
}

function succeeds(...command: string[]): boolean {
  try {
    return Bun.spawnSync(command, { stdout: "ignore", stderr: "ignore" }).exitCode === 0;
  } catch {
    // It is not installed.
    return false;
  }
}
