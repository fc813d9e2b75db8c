/**
 * Prints which tests this machine cannot run, and why.
 *
 * `FLAGKEEP_TEST_WITHOUT=postgres,chromium` runs the tests as on a machine without these components.
 */

import { test } from "bun:test";

/** What a machine can lack, apart from other users, volumes and packages of registries. */
const components = [
  "postgres",
  "clickhouse",
  "chromium",
  "libfaketime",
  "nginx",
  "caddy",
  "haproxy",
  "openssl",
  "curl",
  "python3",
  "go",
  "ruby",
  "php",
  "composer",
  "gem",
  "java",
  "mvn",
  "cargo",
  "script",
  "setpriv",
  "dpkg-deb",
  "systemd-analyze",
  "kubectl",
  "mount",
] as const;
export type Component = (typeof components)[number];

const leftOut = (process.env.FLAGKEEP_TEST_WITHOUT ?? "").split(",").filter(Boolean);
for (const name of leftOut)
  if (!components.includes(name as Component))
    throw new Error(`FLAGKEEP_TEST_WITHOUT: unknown component ${name}; known are ${components.join(", ")}.`);

/** False for a component that is to be treated as missing. */
export const isAllowed = (component: Component): boolean => !leftOut.includes(component);

/** The path of a program; undefined where it is not installed. */
export function installedProgram(name: Component): string | undefined {
  if (!isAllowed(name)) return undefined;
  return Bun.which(name, { PATH: `${process.env.PATH}:/usr/sbin:/usr/local/go/bin` }) ?? undefined;
}

/**
 * `test`, or when something is missing a `test.skip` after a line that says so.
 *
 * Hooks run all the same: those of a file have to ask for themselves what is there.
 */
export function testWhen(isThere: boolean, what: string, missing: string): typeof test {
  if (isThere) return test;
  console.log(`SKIPPED ${what}: ${missing}`);
  return test.skip as typeof test;
}
