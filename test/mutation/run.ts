/**
 * Puts small faults into the rules, one at a time, and lists those that no test notices: `make mutation [MUTANTS=500 SEED=1]`.
 * With `ONLY=src/journal` those of a folder, with `ONLY=src/journal/recovery.ts:40-60` those in some lines of a file.
 *
 * Works on a copy of the sources. What was tried is kept in `dist/mutation.json`; a run with the same seed continues where it was
 * stopped.
 */

import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { randomFrom } from "../support/seeded-random.ts";
import { getMutants, type Mutant } from "./mutants.ts";

const root = resolve(import.meta.dir, "../..");
const count = Number(process.env.MUTANTS ?? 500);
const seed = Number(process.env.SEED ?? 1);
/** A folder, or a file and perhaps its first and last line. */
const only = /^(.+?)(?::(\d+)-(\d+))?$/.exec(process.env.ONLY ?? "");
const resultFile = join(root, "dist/mutation.json");
/** Limit of a run as a multiple of its duration without a fault, and at least a minute: a fault can cause an endless loop. */
const slowerMax = 5;
const testMsMin = 60_000;

/** Folders of rules, and the tests that have to notice; those that start the executable would test the one in `dist`. */
const subjects: [folder: string, tests: string[]][] = [
  ["src/flags/evaluate", ["test/flags/evaluate", "test/flags/rules", "test/flags/api/repeated.test.ts"]],
  ["src/ingestion", ["test/ingestion"]],
  [
    "src/persons/identity",
    [
      "test/persons/identity",
      "test/persons/model.test.ts",
      "test/persons/historical.test.ts",
      "test/persons/groups.test.ts",
      "test/persons/persons.test.ts",
      "test/persons/new-persons.test.ts",
      "test/persons/identity-store.test.ts",
      "test/persons/property-lists.test.ts",
      "test/persons/warnings.test.ts",
    ],
  ],
  [
    "src/persons",
    [
      "kept-persons",
      "new-persons",
      "persons",
      "store",
      "names",
      "property-lists",
      "unused-lists",
      "deletion",
      "groups",
      "historical",
      "identity-store",
      "model",
      "reader",
      "warnings",
    ].map((name) => `test/persons/${name}.test.ts`),
  ],
  [
    "src/journal",
    [
      ...[
        // The slow one last: the first test that fails is enough.
        "entry-reader",
        "journal",
        "recovery",
        "conformance",
        "archive",
        "damage",
        "disk",
        "failing-disk",
      ].map((name) => `test/journal/${name}.test.ts`),
    ],
  ],
];

interface Tried {
  file: string;
  line: number;
  from: string;
  to: string;
  /** Whether a test failed, or ran without end. */
  isNoticed: boolean;
}

interface Candidate extends Mutant {
  file: string;
  tests: string[];
}

const candidates: Candidate[] = subjects.flatMap(([folder, tests]) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith(".ts"))
    .flatMap((name) => {
      const file = `${folder}/${name}`;
      return getMutants(file, readFileSync(join(root, file), "utf8")).map((mutant) => ({
        ...mutant,
        file,
        tests,
      }));
    }),
);
const random = randomFrom(seed);
const isMeant = ({ file, line }: Candidate) =>
  only === null ||
  ((file === only[1] || file.startsWith(`${only[1]}/`)) &&
    line >= Number(only[2] ?? 1) &&
    line <= Number(only[3] ?? Number.POSITIVE_INFINITY));
const chosen = candidates
  .filter(isMeant)
  .map((candidate) => ({ candidate, order: random() }))
  .sort((one, other) => one.order - other.order)
  .slice(0, count)
  .map(({ candidate }) => candidate);

const copy = mkdtempSync(join(tmpdir(), "mutation-"));
for (const name of ["src", "test", "cli", "package.json", "bunfig.toml", "tsconfig.json"])
  cpSync(join(root, name), join(copy, name), { recursive: true });
for (const name of ["node_modules", "dist", "docs", "examples", "deploy"])
  if (existsSync(join(root, name))) symlinkSync(join(root, name), join(copy, name));

const tried = knownResults();
const baseline = new Map<string, number>();
const isKnown = ({ file, line, from, to }: Mutant & { file: string }) =>
  tried.some((one) => one.file === file && one.line === line && one.from === from && one.to === to);
for (const candidate of chosen) {
  if (isKnown(candidate)) continue;
  const { file, line, from, to, text, tests } = candidate;
  const original = readFileSync(join(root, file), "utf8");
  // Before the fault is there: on a slow machine every one would pass for noticed.
  const msMax = slowerMax * (await baselineMs(tests));
  writeFileSync(join(copy, file), text);
  const isNoticed = !(await passes(tests, msMax));
  writeFileSync(join(copy, file), original);
  tried.push({ file, line, from, to, isNoticed });
  if (!isNoticed) console.log(`survives: ${file}:${line}  ${from.slice(0, 60)}  →  ${to.slice(0, 60)}`);
  writeFileSync(resultFile, `${JSON.stringify({ seed, tried }, null, 1)}\n`);
}
rmSync(copy, { recursive: true, force: true });
const noticed = tried.filter(({ isNoticed }) => isNoticed).length;
console.log(`${noticed} of ${tried.length} mutants were noticed (of ${candidates.length} that there are).`);

/** Milliseconds that tests take without a fault. */
async function baselineMs(tests: string[]): Promise<number> {
  const key = tests.join(" ");
  const known = baseline.get(key);
  if (known !== undefined) return known;
  const started = performance.now();
  if (!(await passes(tests))) throw new Error(`${key} fail without a fault`);
  const ms = performance.now() - started;
  baseline.set(key, ms);
  return ms;
}

async function passes(tests: string[], msMax = Number.POSITIVE_INFINITY): Promise<boolean> {
  // Tests that are ended leave their files behind.
  const folder = mkdtempSync(join(copy, "tmp-"));
  const child = Bun.spawn([process.execPath, "test", "--bail", "--timeout", "60000", ...tests], {
    cwd: copy,
    stdout: "ignore",
    stderr: "ignore",
    killSignal: "SIGKILL",
    env: { ...process.env, TMPDIR: folder },
    ...(Number.isFinite(msMax) ? { timeout: Math.ceil(Math.max(testMsMin, msMax)) } : {}),
  });
  const isPassed = (await child.exited) === 0;
  rmSync(folder, { recursive: true, force: true });
  return isPassed;
}

function knownResults(): Tried[] {
  if (!existsSync(resultFile)) return [];
  const known = JSON.parse(readFileSync(resultFile, "utf8")) as { seed: number; tried: Tried[] };
  return known.seed === seed ? known.tried : [];
}
