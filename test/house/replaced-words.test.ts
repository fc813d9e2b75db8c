/** Words that the glossary replaces: none of them comes back in messages, docs or comments. */

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
  ["that is none|are none of", "invalid"],
  ["appliances?", "server"],
  ["four eyes", "change requests"],
  ["organisations?|behaviours?|recognised|initialised|normalised", "American spelling"],
];

/** Where code is for one machine's reader as well as for the operator. */
const inMessages: readonly [pattern: string, instead: string][] = [
  ["at once", "immediately; at the same time"],
  ["by itself|by themselves", "automatically"],
  ["beside|besides", "next to, in addition to"],
  ["told", "notified, reported"],
  ["stands in", "is in"],
  ["fronts", "nodes, cluster"],
  ["of its own|of their own", "dedicated, separate"],
  ["taken over", "migrated, synced"],
  ["room", "disk space, memory, capacity"],
  ["odd", "unusual, invalid"],
  ["there is no", "X does not exist"],
];

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

test.each([
  ['throw new Error("whoever asks is told");', 2],
  [`const a = \`\${whoever} waits here\`; // whoever`, 0],
  ['  // "whoever asks"', 0],
])("messages are found in %s", (line, count) => {
  const words = [...everywhere, ...inMessages].map(([pattern]) => new RegExp(`\\b(?:${pattern})\\b`, "i"));
  const found = messagesIn(line).flatMap((text) => words.filter((word) => word.test(text)));
  expect(found).toHaveLength(count);
});
