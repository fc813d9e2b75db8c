/** The users of the operating system, as it knows them: no variable of the environment says who somebody is. */

import { readFileSync } from "node:fs";

/** A user's name; undefined for a number that has none, as in a container. */
export function userName(uid: number): string | undefined {
  try {
    for (const line of readFileSync("/etc/passwd", "utf8").split("\n")) {
      const [name, , id] = line.split(":");
      if (name && id === String(uid)) return name;
    }
  } catch {
    // A container may hold nothing but the executable.
  }
  return undefined;
}
