/**
 * What each role of the executable reads when it starts: packages that it needs only now and then are imported where they are
 * used, with `await import()`, for every package takes time of each start and memory of each process.
 */

import { expect, test } from "bun:test";
import { dirname, join } from "node:path";

const root = join(import.meta.dir, "../..");
const program = ["cli/main.ts", "cli/program.ts", "cli/commands.ts"];
const stores = ["@sinclair/typebox", "drizzle-orm", "drizzle-orm/bun-sqlite", "drizzle-orm/sqlite-core"];
const settings = ["commander", "croner", "ipaddr.js"];

/** The files that a role begins with, and the packages that it reads at once. */
const roles: Record<string, { files: string[]; packages: string[] }> = {
  init: {
    files: [...program, "cli/commands/init.ts"],
    packages: [...stores, ...settings, "@sinclair/typebox/value"],
  },
  serve: {
    files: [...program, "cli/commands/serve.ts"],
    packages: [
      ...stores,
      ...settings,
      "@sinclair/typebox/value",
      "modern-tar",
      "pino",
      "semver/classes/semver.js",
      ...["counter", "defaultMetrics", "gauge", "registry"].map((name) => `prom-client/lib/${name}.js`),
    ],
  },
  worker: {
    files: ["cli/main.ts", "src/serve/workers/process.ts"],
    packages: [
      ...stores,
      "@sinclair/typebox/value",
      "ipaddr.js",
      "pino",
      "prom-client/lib/counter.js",
      "semver/classes/semver.js",
    ],
  },
  engine: {
    files: ["cli/main.ts", "src/engine/process.ts", "src/serve/engine-recovery.ts"],
    packages: [...stores, "@sinclair/typebox/value", "semver/classes/semver.js"],
  },
};

const transpiler = new Bun.Transpiler({ loader: "ts" });

/** The packages that these files and all that they import read; types and what is imported later do not count. */
async function getPackages(files: readonly string[]): Promise<string[]> {
  const packages = new Set<string>();
  const seen = new Set<string>();
  for (const waiting = [...files]; waiting.length > 0; ) {
    const file = waiting.pop()!;
    if (seen.has(file)) continue;
    seen.add(file);
    for (const { kind, path } of transpiler.scanImports(await Bun.file(join(root, file)).text())) {
      if (kind !== "import-statement") continue;
      if (!path.startsWith(".")) packages.add(path);
      else if (path.endsWith(".ts")) waiting.push(join(dirname(file), path));
    }
  }
  // The files of the browser library are files, and are not read.
  return [...packages].filter((name) => !/^(node:|bun:|posthog-js\/)/.test(name)).sort();
}

for (const [role, { files, packages }] of Object.entries(roles)) {
  test(`${role} reads no other packages at its start`, async () => {
    expect(await getPackages(files)).toEqual([...packages].sort());
  });
}
