/** Operating system users; environment variables are not trusted for identity. */

import { readFileSync } from "node:fs";

/** Undefined for a uid without a name, as in a container. */
export function userName(uid: number): string | undefined {
  try {
    for (const line of readFileSync("/etc/passwd", "utf8").split("\n")) {
      const [name, , id] = line.split(":");
      if (name && id === String(uid)) return name;
    }
  } catch {
    // A container may contain only the executable.
  }
  return undefined;
}
