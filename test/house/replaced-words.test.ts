/** Words that the glossary replaces: none of them returns in messages, docs, comments, titles of tests or names. */

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dir, "../..");

/** Word (a pattern, any case) and what to write instead. */
const everywhere: readonly [pattern: string, instead: string][] = [
  ["whoever|whomever", "the client, user or process that"],
  ["somebody|someone else's", "a user, another process"],
  ["nobody", "no user, no process"],
  ["anew", "again, from scratch"],
  ["(?:is|are|be|being|was|were) made again", "is rebuilt"],
  ["goes on|went on", "continues, resumes"],
  ["put aside", "quarantined"],
  ["mends?|mended|mending", "fix, repair"],
  ["unless told otherwise", "by default"],
  ["that is none|that are none|what is none|are none of", "invalid"],
  ["beside|besides", "next to, in addition to"],
  ["told", "notified, reported"],
  ["(?:is|are|has|have|had) gone", "deleted, disconnected, missing"],
  ["(?:is|are|has been|have been) begun", "started"],
  ["so many|left for now", "the number, the limit, the name of the parameter"],
  ["slow road", "slow path"],
  ["taken away|given back", "removed, released, returned"],
  ["no matter who", "for every client, user or process"],
  ["appliances?", "server"],
  ["four eyes", "change requests"],
  ["organisations?|behaviours?|recognised|initialised|normalised", "American spelling"],
];

/** Where code is for one machine's reader as well as for the operator. */
const inMessages: readonly [pattern: string, instead: string][] = [
  ["at once", "immediately; at the same time"],
  ["by itself|by themselves", "automatically"],
  ["stands in", "is in"],
  ["fronts", "nodes, cluster"],
  ["of its own|of their own", "dedicated, separate"],
  ["taken over", "migrated, synced"],
  ["room", "disk space, memory, capacity"],
  ["odd", "unusual, invalid"],
  ["there is no", "X does not exist"],
];

/** In titles of tests, in addition. */
const inTitles: readonly [pattern: string, instead: string][] = [
  ["tells?", "reports, shows, returns"],
  ["says? why|says? so|is said", "reports"],
  ["at once", "immediately; concurrently"],
  ["by itself|by themselves", "automatically, separately"],
  ["odd", "unusual, invalid"],
  ["comes? back|brought back", "is returned, is restored"],
  ["what is asked for|as is asked for", "the requested …"],
  ["room", "disk space, memory, capacity"],
];

/** Parts of identifiers that are not used any more, and what to write instead. */
const inIdentifiers: readonly [parts: string, instead: string][] = [
  ["made", "created, generated"],
  ["damage|damaged|damages", "corruption, corrupt"],
  ["usual|usually", "default, baseline, fastPath"],
  ["trouble|troubles", "problem, error, warning"],
  ["front|fronts", "node, server"],
  ["room|rooms|roomy", "capacity, memory, freeBytes"],
  ["piece|pieces", "chunk, block, part"],
  ["reach|reaches", "blastRadius, lastSeqs, extent"],
  ["told", "reported, sent"],
  ["refuse|refused|refusal|refusals", "rejected, rejection"],
  ["oddity|oddities", "warning, slow path"],
  ["begun", "started"],
  ["mend|mended", "repaired"],
  ["nobody|anybody|somebody|whoever", "the user, client or process"],
  ["beside|besides|aside|anew", "next to, quarantined, again"],
  ["gone", "deleted, disconnected"],
  ["appliance|organisation|initialised|licence|behaviour", "server; American spelling"],
];

/** Identifiers with such a part: stored and public names, and those of other products. */
const publicIdentifiers: ReadonlySet<string> = new Set(
  `made made_uuid put_aside damage damaged usual_per_minute trouble fronts mended_pieces pieces FlagReach Reach
   not_told_before told_from refusedProperties RefusedRequests ConnectionRefused flagkeep_refused_total
   FLAGKEEP_TEST_FRONTS take_over_refused`.split(/\s+/),
);

/** Texts that other documents fix, and words of a natural language inside examples. */
const fixed: readonly string[] = [
  "There is already a role with this name.",
  "Not taken over:",
  "brought back",
  "matches nobody yet: add --rollout",
];

function filesIn(folders: readonly string[], ending: string): string[] {
  return folders.flatMap((folder) =>
    [...new Bun.Glob(`**/*${ending}`).scanSync({ cwd: join(root, folder) })]
      .map((file) => `${folder}/${file}`)
      .filter((file) => !file.startsWith("src/console/page")),
  );
}

const isComment = (line: string) => /^\s*(?:\/\/|\/\*|\*)/.test(line);

/** Strings of several words outside of comments; what is inside of `${}` is code. */
function messagesIn(line: string): string[] {
  if (isComment(line) || /^\s*(?:import|export) .* from "/.test(line)) return [];
  return [...line.matchAll(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`/g)]
    .map(([text]) => text.replaceAll(/\$\{[^}]*\}/g, "…"))
    .filter((text) => / /.test(text) && !/\b(?:SELECT|FROM|WHERE|JOIN|AS)\b/.test(text));
}

function findings(
  files: readonly string[],
  words: readonly (readonly [string, string])[],
  textsIn: (line: string) => readonly string[],
): string[] {
  const patterns = words.map(
    ([pattern, instead]) => [new RegExp(`\\b(?:${pattern})\\b`, "i"), instead] as const,
  );
  return files.flatMap((file) =>
    readFileSync(join(root, file), "utf8")
      .split("\n")
      .flatMap((line, index) =>
        textsIn(line)
          .filter((text) => !fixed.some((one) => text.includes(one)))
          .flatMap((text) =>
            patterns
              .filter(([pattern]) => pattern.test(text))
              .map(
                ([pattern, instead]) => `${file}:${index + 1}: ${pattern.exec(text)![0]} (write: ${instead})`,
              ),
          ),
      ),
  );
}

test("messages use the terms of the glossary", () => {
  expect(findings(filesIn(["cli", "src"], ".ts"), [...everywhere, ...inMessages], messagesIn)).toEqual([]);
});

test("comments use the terms of the glossary", () => {
  const commentsIn = (line: string) => (isComment(line) ? [line] : []);
  expect(findings(filesIn(["cli", "src"], ".ts"), everywhere, commentsIn)).toEqual([]);
});

test("docs use the terms of the glossary", () => {
  const docs = ["README.md", "SECURITY.md", "CHANGELOG.md", "CONTRIBUTING.md", ...filesIn(["docs"], ".md")];
  expect(findings(docs, everywhere, (line) => [line.replaceAll(/`[^`]*`/g, "…")])).toEqual([]);
});

/** Titles of tests and of groups of tests. */
function titlesIn(source: string): string[] {
  const calls =
    /(?:\b(?:test|describe|it)(?:\.\w+(?:\([^"`()]*\))?)?|[\])]\))\(\s*("(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`),/g;
  return [...source.matchAll(calls)].map(([, title]) => title!.replaceAll(/\$\{[^}]*\}/g, "…"));
}

test("titles of tests use the terms of the glossary", () => {
  const words = [...everywhere, ...inTitles].map(
    ([pattern, instead]) => [new RegExp(`\\b(?:${pattern})\\b`, "i"), instead] as const,
  );
  const files = filesIn(["test"], ".test.ts").filter((file) => !file.startsWith("test/house/replaced-words"));
  const found = files.flatMap((file) =>
    titlesIn(readFileSync(join(root, file), "utf8")).flatMap((title) =>
      words
        .filter(([word]) => word.test(title))
        .map(([word, instead]) => `${file}: ${title}: ${word.exec(title)![0]} (write: ${instead})`),
    ),
  );
  expect(found).toEqual([]);
});

test.each([
  ['test("whoever asks", () => {});', ['"whoever asks"']],
  ['describe.each([1])("%s is told", () => {});', ['"%s is told"']],
  ['expect(text).toBe("whoever asks");', []],
])("titles are found in %s", (source, titles) => {
  expect(titlesIn(source)).toEqual(titles);
});

test("files for operators use the terms of the glossary", () => {
  const files = ["deploy", "examples"].flatMap((folder) =>
    ["sh", "yaml", "cfg", "service", "env", "md", "py", "mjs", "html"].flatMap((ending) =>
      filesIn([folder], `.${ending}`),
    ),
  );
  expect(files.length).toBeGreaterThan(15);
  expect(findings(files, everywhere, (line) => [line])).toEqual([]);
});

/** Comments, texts and patterns; of a template, what is inside of `${}` is code. */
const noCode =
  /\/\*[\s\S]*?\*\/|\/\/[^\n]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\[\s\S])*`|(?<=[(=,:]\s*)\/(?:[^/\\\n]|\\.)+\//g;

/** Identifiers of each line, outside of comments and strings. */
function identifiersIn(source: string): string[][] {
  const code = source.replaceAll(noCode, (text) =>
    text.startsWith("`")
      ? text.replaceAll(/(^|\})[^$]*?(\$\{|$)/g, (part) => part.replaceAll(/[^\n]/g, " "))
      : text.replaceAll(/[^\n]/g, " "),
  );
  return code.split("\n").map((line) => [...line.matchAll(/[A-Za-z_$][\w$]*/g)].map(([name]) => name));
}

const getParts = (name: string) =>
  name
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[ _$]+/);

test("identifiers of the sources use the terms of the glossary", () => {
  const instead = new Map(inIdentifiers.flatMap(([parts, to]) => parts.split("|").map((part) => [part, to])));
  const found = [...filesIn(["cli", "src"], ".ts"), ...filesIn(["src/console/page"], ".tsx")].flatMap(
    (file) =>
      identifiersIn(readFileSync(join(root, file), "utf8")).flatMap((names, index) =>
        names
          .filter((name) => !publicIdentifiers.has(name))
          .flatMap((name) =>
            getParts(name)
              .filter((part) => instead.has(part))
              .map(() => `${file}:${index + 1}: ${name}`),
          ),
      ),
  );
  expect(found).toEqual([]);
});

test.each([
  // biome-ignore lint/suspicious/noTemplateCurlyInString: code in a string
  ["const madeOnce = `${usualRate}`; // troubles", ["made", "usual"]],
  ["  // damage", []],
  ['call("front", piecesAt)', ["pieces"]],
])("identifiers are found in %s", (line, parts) => {
  const words = inIdentifiers.flatMap(([all]) => all.split("|"));
  expect(
    identifiersIn(line)
      .flat()
      .flatMap((name) => getParts(name).filter((part) => words.includes(part))),
  ).toEqual(parts);
});

test.each([
  ['throw new Error("whoever asks is told");', 2],
  [`const a = \`\${whoever} waits here\`; // whoever`, 0],
  ['  // "whoever asks"', 0],
])("messages are found in %s", (line, count) => {
  const words = [...everywhere, ...inMessages].map(([pattern]) => new RegExp(`\\b(?:${pattern})\\b`, "i"));
  const found = messagesIn(line).flatMap((text) => words.filter((word) => word.test(text)));
  expect(found).toHaveLength(count);
});
