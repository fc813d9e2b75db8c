/**
 * Puts small faults into the rules, one at a time, and lists those that no test notices: `make mutation [MUTANTS=500 SEED=1]`.
 * With `ONLY=src/journal/recovery.ts:40-60` all that there are in some lines of a file.
 *
 * Works on a copy of the sources. What was tried is kept in `dist/mutation.json`; a run with the same seed goes on where it was
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
import { randomFrom } from "../bench/people-like.ts";
import { type Mutant, mutantsOf } from "./mutants.ts";

const root = resolve(import.meta.dir, "../..");
const count = Number(process.env.MUTANTS ?? 500);
const seed = Number(process.env.SEED ?? 1);
/** A file, and perhaps its first and last line. */
const only = /^(.+?)(?::(\d+)-(\d+))?$/.exec(process.env.ONLY ?? "");
const resultFile = join(root, "dist/mutation.json");
/** A fault can make a loop that never ends. */
const testMsMax = 60_000;

/** Folders of rules, and the tests that have to notice; those that start the executable would test the one in `dist`. */
const subjects: [folder: string, tests: string[]][] = [
  ["src/flags/evaluate", ["test/flags/evaluate", "test/flags/rules"]],
  ["src/ingestion", ["test/ingestion"]],
  [
    "src/people/identity",
    [
      "test/people/identity",
      "test/people/model.test.ts",
      "test/people/historical.test.ts",
      "test/people/groups.test.ts",
      "test/people/persons.test.ts",
      "test/people/identity-store.test.ts",
      "test/people/warnings.test.ts",
    ],
  ],
  [
    "src/journal",
    ["test/journal/journal.test.ts", "test/journal/conformance.test.ts", "test/journal/archive.test.ts"],
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
      return mutantsOf(file, readFileSync(join(root, file), "utf8")).map((mutant) => ({
        ...mutant,
        file,
        tests,
      }));
    }),
);
const random = randomFrom(seed);
const isMeant = ({ file, line }: Candidate) =>
  only === null ||
  (file === only[1] && line >= Number(only[2] ?? 1) && line <= Number(only[3] ?? Number.POSITIVE_INFINITY));
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
const isKnown = ({ file, line, from, to }: Mutant & { file: string }) =>
  tried.some((one) => one.file === file && one.line === line && one.from === from && one.to === to);
for (const candidate of chosen) {
  if (isKnown(candidate)) continue;
  const { file, line, from, to, text, tests } = candidate;
  const original = readFileSync(join(root, file), "utf8");
  writeFileSync(join(copy, file), text);
  const child = Bun.spawn([process.execPath, "test", "--bail", "--timeout", "20000", ...tests], {
    ...{ cwd: copy, stdout: "ignore", stderr: "ignore", timeout: testMsMax, killSignal: "SIGKILL" },
  });
  const isNoticed = (await child.exited) !== 0;
  writeFileSync(join(copy, file), original);
  tried.push({ file, line, from, to, isNoticed });
  if (!isNoticed) console.log(`survives: ${file}:${line}  ${from.slice(0, 60)}  →  ${to.slice(0, 60)}`);
  writeFileSync(resultFile, `${JSON.stringify({ seed, tried }, null, 1)}\n`);
}
rmSync(copy, { recursive: true, force: true });
const noticed = tried.filter(({ isNoticed }) => isNoticed).length;
console.log(`${noticed} of ${tried.length} mutants were noticed (of ${candidates.length} that there are).`);

function knownResults(): Tried[] {
  if (!existsSync(resultFile)) return [];
  const known = JSON.parse(readFileSync(resultFile, "utf8")) as { seed: number; tried: Tried[] };
  return known.seed === seed ? known.tried : [];
}
